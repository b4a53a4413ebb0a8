"""What a report says of the seat that answered: whether it repeats itself, and what was found about it."""

from __future__ import annotations

from collections.abc import Sequence

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
