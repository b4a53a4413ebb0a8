"""What stands beside a verdict's figures: whether its rule was fixed before the numbers, and how often was tried.

Computed from the ledger elsewhere (`gates.record.standing`); here is what it says, and the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Literal, get_args

from pydantic import Field

from gates.records import Record

StandingName = Literal["prospective", "fixed elsewhere, blind", "fixed elsewhere, not blind", "post-hoc", "imported"]
STANDINGS: tuple[StandingName, ...] = get_args(StandingName)
"""From the strongest to the weakest."""


class Standing(Record):
    """When the rule behind a verdict was fixed, as the ledger shows it, and why that is so.

    prospective: before any generation of its gate; fixed elsewhere, blind: in another gate's seal before this run's
    first generation; fixed elsewhere, not blind: in another gate's seal, before that gate's numbers and after this
    run's; post-hoc: none of these; imported: the texts are older than the record, which can show nothing of them.
    """

    name: StandingName
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def weakest(standings: Iterable[Standing]) -> Standing:
    """The standing that prevails; of equal ones the first. Raises ValueError for none."""
    return max(standings, key=lambda standing: STANDINGS.index(standing.name))


class Counted(Record):
    """What the ledger holds of a gate: seals, runs that began, and the verdicts before this one: a floor was drawn for
    each, by a run or a re-score.
    """

    seals: int = Field(ge=0)
    runs: int = Field(ge=0)
    floors: int = Field(ge=0)

    def __str__(self) -> str:
        return f"{_many(self.seals, 'seal')}, {_many(self.runs, 'run')}, {_many(self.floors, 'floor')} before"


class Tries(Record):
    """How often a candidate's bytes were tried, this time included, under whatever gate: runs, and re-scores of them.

    `chance` in [0, 1]: that one of as many candidates that moved nothing passes voice, taken as independent, each at
    the false-pass rate of its own seal. Tries that share texts and rule pass together: for them it is too high.
    """

    tries: int = Field(ge=1)
    chance: float = Field(ge=0, le=1)


class Attempts(Record):
    """Every attempt up to a verdict, this one included, of its gate and of its candidates' bytes under other gates."""

    this_gate: Counted
    other_gates: dict[str, Counted]
    candidates: dict[str, Tries]

    def sentences(self) -> list[str]:
        """What a reader must know of it."""
        others = [f"the same adapter bytes under gate {name}: {counted}" for name, counted in self.other_gates.items()]
        said = [f"this gate so far: {self.this_gate}", *others]
        for name, tried in self.candidates.items():
            said.append(
                f"{name}: {_many(tried.tries, 'try', 'tries')}; one of as many that moved nothing passes voice "
                f"with a chance of {tried.chance:.1%}"
            )
        return said


def one_passes(rates: Iterable[float]) -> float:
    """The chance that at least one of independent tries passes, each at its own rate in [0, 1]."""
    return 1 - prod(1 - rate for rate in rates)


def _many(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or f'{one}s'}"
