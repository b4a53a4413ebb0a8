"""What a gate says of arms whose answer is known, set beside what it must say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from gates.judge.axes import AxisVerdict
from gates.judge.verdict import CandidateVerdict, ControlFigures, Verdict
from gates.records import Outcome, Record
from gates.stats import exceeds

SHOWN: Literal["shown"] = "shown"
"""The answer of an axis that is shown and not tested: any is right, unless the gate could not judge."""

TOLERANCE = 0.005
"""How far a figure may lie from the known one: less than one text of 120 moves a rate.

Draws are seeded, so nothing but rounding should differ. Other draws move a floor by more than this, and are meant to
show: where they are drawn otherwise, a re-score no longer gives the same number.
"""

FIGURES = ("value", "low", "high", "threshold")
"""What of an axis's verdict is compared beside its outcome."""


class Known(Record):
    """The right answer to one axis of one arm, with the figures that a verdict gives (`AxisVerdict`; None: without)."""

    arm: str
    axis: str
    answer: Outcome | Literal["shown"]
    value: float | None
    low: float | None
    high: float | None
    threshold: float | None


class KnownAnswer(Record):
    """One axis of one arm: what the gate must say of it, and what it says.

    `known` is None for an axis that nobody expected, `found` for one that the gate says nothing of.
    """

    gate: str
    arm: str
    axis: str
    known: Known | None
    found: AxisVerdict | None

    @property
    def wrong(self) -> str:
        """What is not as it must be, as a sentence; nothing where all is right."""
        if self.found is None:
            return "the gate says nothing of it"
        if self.known is None:
            return f"nobody expected it: {self.found.reason}"
        outcome = self.found.outcome
        if outcome is Outcome.INVALID if self.known.answer == SHOWN else outcome is not self.known.answer:
            return f"{outcome} for {self.known.answer}: {self.found.reason}"
        figures = [(name, getattr(self.found, name), getattr(self.known, name)) for name in FIGURES]
        return "; ".join(
            f"{name} {_told(found)} for {_told(known)}" for name, found, known in figures if not _same(found, known)
        )


def against_known(gate: str, verdict: Verdict, answers: Sequence[Known]) -> tuple[KnownAnswer, ...]:
    """Every axis of every candidate and control, in the order of `answers`, then whatever nobody expected.

    An arm or axis that stands on one side only is a row as well, so that nothing which is missing can be right.
    """
    arms: dict[str, CandidateVerdict | ControlFigures] = {**verdict.candidates, **verdict.controls}
    found = {(name, axis): said for name, arm in arms.items() for axis, said in arm.axes.items()}
    known = {(answer.arm, answer.axis): answer for answer in answers}
    return tuple(
        KnownAnswer(gate=gate, arm=arm, axis=axis, known=known.get((arm, axis)), found=found.get((arm, axis)))
        for arm, axis in dict.fromkeys([*known, *found])
    )


def _same(found: float | None, known: float | None) -> bool:
    if found is None or known is None:
        return found is known
    return not exceeds(abs(found - known), TOLERANCE)


def _told(figure: float | None) -> str:
    return "none" if figure is None else f"{figure:z.3f}"
