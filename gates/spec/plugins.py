"""What installed distributions plug in under an entry point group, by name; nothing is loaded here."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

AXES = "gates.axes"
"""The group in which a distribution names its damage axes."""
FLOORS = "gates.floors"
"""The group in which a distribution names its floor rules, without their version."""


def plugged_in(group: str) -> dict[str, tuple[EntryPoint, ...]]:
    """The entries of a group by name; more than one entry of a name is a clash."""
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in _installed(group, tuple(sys.path)):
        found[entry.name] = (*found.get(entry.name, ()), entry)
    return found


@lru_cache(maxsize=4)
def _installed(group: str, _path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """The entries of what is installed on a path, looked up once: each look reads every distribution's files."""
    return tuple(entry_points(group=group))


def origin(entry: EntryPoint) -> str:
    """The distribution of an entry, with its version."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
