"""What installed distributions plug in under an entry point group, by name; nothing is loaded here."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

AXES = "gates.axes"
"""The group in which a distribution names its damage axes."""
FLOORS = "gates.floors"
"""The group in which a distribution names its floor rules, without their version."""


def plugged_in(group: str) -> dict[str, tuple[EntryPoint, ...]]:
    """The entries of a group by name; more than one entry of a name is a clash."""
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in entry_points(group=group):
        found[entry.name] = (*found.get(entry.name, ()), entry)
    return found


def origin(entry: EntryPoint) -> str:
    """The distribution of an entry, with its version."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
