"""Whether what was derived again is what is recorded: counts equal, figures within the tolerance that they state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue

from gates.errors import TamperedError
from gates.record.ledger import Stored

TOLERANCE = 1e-9
"""Figures derived again on another machine may differ by this much, relative or absolute; counts may not differ."""


def check_same(path: Path, stored: JsonValue, derived: JsonValue) -> None:
    """Raise TamperedError where the record at `path` differs from the same derived again."""
    if different := unlike(stored, derived):
        raise TamperedError(f"{path}: derived again it differs: {'; '.join(different[:5])}")


def check_told(entered: Stored, derived: Mapping[str, JsonValue]) -> None:
    """Raise TamperedError where a ledger record says otherwise than what was derived again."""
    if different := unlike({key: entered.entry.body.get(key) for key in derived}, dict(derived)):
        raise TamperedError(
            f"ledger record {entered.sha256} ({entered.entry.kind} of {entered.entry.gate!r}): derived again it says "
            f"otherwise: {'; '.join(different[:5])}"
        )


def unlike(stored: JsonValue, derived: JsonValue, path: str = "") -> list[str]:
    """Where two JSON values differ by more than the tolerance of derived figures."""
    if isinstance(stored, dict) and isinstance(derived, dict):
        keys = sorted(stored.keys() | derived.keys())
        return [d for key in keys for d in unlike(stored.get(key), derived.get(key), f"{path}.{key}".lstrip("."))]
    if isinstance(stored, list) and isinstance(derived, list) and len(stored) == len(derived):
        return [
            d for place, pair in enumerate(zip(stored, derived, strict=True)) for d in unlike(*pair, f"{path}[{place}]")
        ]
    numbers = [value for value in (stored, derived) if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) == 2 and float in map(type, numbers):
        close = math.isclose(numbers[0], numbers[1], rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        return [] if close else [f"{path}: stored {stored}, derived {derived}"]
    # A hash over figures that differ in their last digit differs as a whole: the figures themselves are compared.
    if path.endswith("measurements_sha256"):
        return []
    same = stored == derived and isinstance(stored, bool) == isinstance(derived, bool)
    return [] if same else [f"{path}: stored {stored}, derived {derived}"]
