"""`movers@1`: which of the most frequent words carry an arm's move, and whether toward the held-out author or away."""

from __future__ import annotations

import numpy as np

from gates.measure.delta import Array
from gates.measure.voice import ArmCounts, Yardstick
from gates.records import Record, signature
from gates.stats import exceeds

MOVERS = 10
"""Words shown in each direction."""


class Mover(Record):
    """One frame word: its z-scores in base, arm and held-out text, and the larger of both arms' ranges over seeds.

    A z-score says how many reference sds more often than in the reference a word is used.
    """

    word: str
    base: float
    arm: float
    author: float
    spread: float

    @property
    def shift(self) -> float:
        """How far the arm moved from the base; positive = uses the word more often."""
        return self.arm - self.base

    @property
    def toward(self) -> bool:
        """Whether the arm is nearer to the author's use of the word than the base is."""
        return bool(exceeds(abs(self.base - self.author), abs(self.arm - self.author)))


class Movers(Record):
    """The words that an arm uses more (`up`) and less (`down`) often than the base, the largest shifts first.

    `toward` is the share in [0, 1] of all frame words on which the arm is nearer to the author than the base is.
    """

    signature: str
    up: tuple[Mover, ...]
    down: tuple[Mover, ...]
    toward: float


def measure_movers(arm: ArmCounts, base: ArmCounts, yardstick: Yardstick, most: int = MOVERS) -> Movers | None:
    """The `most` words with the largest shifts in each direction; None where a seed of either holds no word.

    A word's z in an arm is the mean over seeds of its z in the seed's whole pool: no words are drawn, for nothing is
    decided here. Ties stand in the order of the frame.
    """
    if not all((*arm.words, *base.words)):
        return None
    before, after = yardstick.frame.z(base.pools), yardstick.frame.z(arm.pools)
    author = yardstick.frame.z(yardstick.heldout)
    spread = np.maximum(np.ptp(before, axis=0), np.ptp(after, axis=0))
    old, new = before.mean(axis=0), after.mean(axis=0)
    shift = new - old

    def chosen(order: Array) -> tuple[Mover, ...]:
        places = [int(place) for place in np.argsort(order, kind="stable")[:most] if exceeds(0.0, order[place])]
        return tuple(
            Mover(
                word=yardstick.frame.words[place],
                base=float(old[place]),
                arm=float(new[place]),
                author=float(author[place]),
                spread=float(spread[place]),
            )
            for place in places
        )

    return Movers(
        signature=signature("movers@1", frame=yardstick.frame.signature.replace("|", ","), most=most),
        up=chosen(-shift),
        down=chosen(shift),
        toward=float(np.mean(exceeds(np.abs(old - author), np.abs(new - author)))),
    )
