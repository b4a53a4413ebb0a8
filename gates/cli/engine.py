"""Where costly work runs: in this process, or on the workers of a scheduler that `--engine` names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gates.cli.output import say
from gates.corpora.streams.extra import missing
from gates.flow.overlap import Engine, Here


@contextmanager
def engine_at(address: str | None, parts: str) -> Iterator[Engine]:
    """The engine at an address, this process without one; `parts` says what progress counts. Raises UsageError."""
    if address is None:
        yield Here()
        return
    try:
        from gates.flow.cluster.engine import connected  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError as error:
        raise missing(error) from None
    with connected(address, lambda done, total: say(f"{done} of {total} {parts}")) as engine:
        yield engine
