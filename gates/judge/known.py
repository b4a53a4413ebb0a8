"""What a gate says of arms whose answer is known, set beside what it must say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from gates.judge.axes import AxisVerdict
from gates.judge.verdict import CandidateVerdict, ControlFigures, Verdict
from gates.records import Outcome, Record

SHOWN: Literal["shown"] = "shown"
"""Stands for an axis that is shown and not tested: whatever the gate says is right, unless it could not judge."""

Answer = Outcome | Literal["shown"]
Answers = Mapping[str, Mapping[str, Answer]]
"""The right answer by arm and axis."""


class KnownAnswer(Record):
    """One axis of one arm: what the gate must say of it, and what it says.

    `expected` is None for an axis that nobody expected, `found` for one that the gate says nothing of; neither is ever
    `right`.
    """

    gate: str
    arm: str
    axis: str
    expected: Answer | None
    found: AxisVerdict | None

    @property
    def right(self) -> bool:
        """Whether the gate says what it must."""
        if self.found is None:
            return False
        return (
            self.found.outcome is not Outcome.INVALID if self.expected == SHOWN else self.expected is self.found.outcome
        )


def against_known(gate: str, verdict: Verdict, expected: Answers) -> tuple[KnownAnswer, ...]:
    """Every axis of every candidate and control, in the order of `expected`, then whatever nobody expected.

    An arm or axis that stands on one side only is a row as well, so that nothing which is missing can be right.
    """
    arms: dict[str, CandidateVerdict | ControlFigures] = {**verdict.candidates, **verdict.controls}
    found = {(name, axis): said for name, arm in arms.items() for axis, said in arm.axes.items()}
    known = {(name, axis): answer for name, axes in expected.items() for axis, answer in axes.items()}
    return tuple(
        KnownAnswer(gate=gate, arm=arm, axis=axis, expected=known.get((arm, axis)), found=found.get((arm, axis)))
        for arm, axis in dict.fromkeys([*known, *found])
    )
