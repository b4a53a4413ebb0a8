"""Whether the seats behind one gate are the same to its texts: version, fingerprint, model cards, canary answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from gates.errors import RefusedError
from gates.flow.binding import seat_part
from gates.seat.canary import CanaryReport, same_voices
from gates.seat.identity import SeatIdentity
from gates.spec.schema import Gate

_NO_DIFFERENCE = frozenset({"base_card_sha256"})
"""What follows from other parts, and would name their difference again."""


class Heard(NamedTuple):
    """One seat as probed, and its canary where it was asked."""

    identity: SeatIdentity
    canary: CanaryReport | None = None


def unlike(gate: Gate, seats: Sequence[Heard]) -> dict[str, tuple[str, ...]]:
    """By address, how a seat differs from the first one, each difference a sentence; those that do not are left out."""
    if len(seats) < 2:
        return {}
    first, *others = seats
    found = {other.identity.base_url: tuple(_differences(gate, first, other)) for other in others}
    return {name: sentences for name, sentences in found.items() if sentences}


def refuse_unlike(gate: Gate, seats: Sequence[Heard]) -> dict[str, tuple[str, ...]]:
    """As `unlike`. Raises RefusedError for seats that differ in a gate that does not allow it."""
    found = unlike(gate, seats)
    if found and gate.unlike_seats is None:
        told = [f"  {name}: {sentence}" for name, sentences in found.items() for sentence in sentences]
        raise RefusedError(
            "\n".join([f"the seats differ, and texts of one arm would come from all of them; {_named(seats)}:", *told]),
            next_step="serve the same version, files and flags everywhere; or say in the gate, before it is sealed, "
            "why they may differ: `unlike_seats: REASON`",
        )
    return found


def _named(seats: Sequence[Heard]) -> str:
    return f"against {seats[0].identity.base_url}"


def _differences(gate: Gate, first: Heard, other: Heard) -> Iterator[str]:
    here, there = (dict(_leaves(seat_part(gate, each.identity))) for each in (other, first))
    for place in sorted(here.keys() | there.keys()):
        if here.get(place) != there.get(place):
            yield f"{place} is {_shown(here, place)}, {_shown(there, place)} at {first.identity.base_url}"
    if first.canary is not None and other.canary is not None:
        yield from same_voices(first.canary, other.canary, f"the answer of {first.identity.base_url}")


def _leaves(value: Mapping[str, JsonValue], path: str = "") -> Iterator[tuple[str, JsonValue]]:
    for key, part in value.items():
        if isinstance(part, dict):
            yield from _leaves(part, f"{path}{key}.")
        elif key not in _NO_DIFFERENCE:
            yield f"{path}{key}", part


def _shown(leaves: Mapping[str, JsonValue], place: str) -> str:
    text = json.dumps(leaves[place], ensure_ascii=False) if place in leaves else "missing"
    return text if len(text) <= 80 else f"{text[:77]}..."
