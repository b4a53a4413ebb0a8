"""What installed distributions plug in under an entry point group, by name; nothing is loaded here."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

AXES = "gates.axes"
"""The group in which a distribution names its damage axes."""
FLOORS = "gates.floors"
"""The group in which a distribution names its floor rules, without their version."""


def plugged_in(group: str) -> dict[str, tuple[EntryPoint, ...]]:
    """The entries of a group by name; more than one entry of a name is a clash."""
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in _installed(group, tuple(map(_changed, sys.path))):
        found[entry.name] = (*found.get(entry.name, ()), entry)
    return found


# Each look reads the files of every distribution: it is worth one as long as nothing is installed or removed.
@lru_cache(maxsize=8)
def _installed(group: str, _path: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=group))


def _changed(place: str) -> tuple[str, int]:
    """A folder of the path, and when anything was last put there or taken away."""
    try:
        return place, Path(place).stat().st_mtime_ns
    except OSError:
        return place, 0


def origin(entry: EntryPoint) -> str:
    """The distribution of an entry, with its version."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
