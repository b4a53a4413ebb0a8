"""What a report says of the seats that answered: whether they repeat themselves, and which answered what."""

from __future__ import annotations

from collections.abc import Sequence

from gates.measure.figures import SeatsFigures
from gates.record.seal import Seal
from gates.record.store import Session
from gates.records import canonical
from gates.seat.repeats import Determinism


def seat_sentences(sessions: Sequence[Session]) -> tuple[str, ...]:
    """The determinism report of a run's end, and every warning of any look at the seat, each once."""
    told = [(session.name, session.determinism) for session in sessions if session.determinism is not None]
    several = len({name for name, _ in told}) > 1
    repeats = [
        (f"{name}: " if several else "")
        + Determinism.parse(canonical(found), where="sessions.jsonl: determinism").sentence
        for name, found in told
    ]
    warnings = dict.fromkeys(warning for session in sessions for warning in session.warnings)
    return (*repeats, *warnings)


SEATS = (
    "seat",
    "version",
    "fingerprint",
    "texts by arm",
    "no answer",
    "against the first",
    "times lost",
    "looked at again",
)


def seat_rows(seal: Seal, found: SeatsFigures) -> list[tuple[str, ...]]:
    """The cells under SEATS: what is sealed of each of several seats, and what it gave."""
    rows: list[tuple[str, ...]] = []
    for seat in found.seats:
        sealed = seal.seat_at(seat.seat)
        rows.append(
            (
                seat.seat,
                str(sealed.get("version") or "–"),
                str(sealed.get("fingerprint") or "–"),
                ", ".join(f"{arm} {count}" for arm, count in seat.texts.items()),
                str(sum(seat.errors.values())),
                "; ".join(seat.unlike) or "the same",
                str(len(seat.lost)),
                "yes" if seat.closed else "no",
            )
        )
    return rows


def matched_blocks(found: SeatsFigures) -> str:
    """How many prompts and seeds had one seat for all their arms, in one sentence."""
    return f"{found.blocks - found.split} of {found.blocks} prompts and seeds had all their arms answered by one seat."
