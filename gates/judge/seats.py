"""What several seats mean for a verdict: which differences make it INVALID, and what a reader must know."""

from __future__ import annotations

from gates.measure.figures import SeatFigures, SeatsFigures
from gates.spec.schema import Gate


def refused_seats(gate: Gate, found: SeatsFigures | None) -> list[str]:
    """Why seats that differ make every candidate INVALID: the gate does not allow it."""
    if found is None or gate.unlike_seats is not None:
        return []
    return [f"{seat.seat} differs, and the gate allows no unlike seats: {seat.unlike[0]}" for seat in _unlike(found)]


def seat_warnings(gate: Gate, found: SeatsFigures | None) -> list[str]:
    """Seats that differ by leave of the gate, seats that were lost, and blocks whose arms had more than one seat."""
    if found is None:
        return []
    warnings = [
        f"the seats differ, which the gate allows ({gate.unlike_seats}): {seat.seat}: {'; '.join(seat.unlike)}"
        for seat in _unlike(found)
        if gate.unlike_seats is not None
    ]
    for seat in found.seats:
        given = sum(seat.texts.values())
        warnings.extend(seat.lost)
        if given and not seat.closed:
            warnings.append(
                f"{seat.seat} gave {given} texts and was not looked at again after the last of them: that the sealed "
                "weights gave them rests on its look before, and on each answer's model and fingerprint"
            )
    if found.split:
        warnings.append(
            f"{found.split} of {found.blocks} prompts and seeds had their arms answered by more than one seat, since "
            "one was lost; the others are matched"
        )
    return warnings


def _unlike(found: SeatsFigures) -> list[SeatFigures]:
    return [seat for seat in found.seats if seat.unlike]
