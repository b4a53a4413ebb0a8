"""The door to what only the extra `cluster` can read."""

from __future__ import annotations

from types import ModuleType

from gates.errors import UsageError


def formats() -> ModuleType:
    """The module `gates.corpora.cluster.formats`. Raises UsageError naming the extra where a package is missing."""
    try:
        from gates.corpora.cluster import formats as found  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError as error:
        raise missing(error) from None
    return found


def missing(error: ModuleNotFoundError) -> UsageError:
    """What is missing, and where it comes from."""
    return UsageError(
        f"remote files, .zst, Parquet and clusters need the package {error.name}, which is not installed",
        next_step='pip install "voice-gates[cluster]"',
    )
