"""What a rule does with real seeds: an earlier run's base seeds split at random into a base and a candidate.

Both halves are the same model's, so whatever passes passes by chance alone; the moves caught are in the axis's own
unit. Pure functions on arrays; every split is drawn from the generator that is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gates.errors import UsageError
from gates.records import Record, Sha256
from gates.spec.power import LEVEL, FloorOf, lacking
from gates.stats import Array, exceeds, paired_change

SPLITS = 4_000
"""Random splits of the seeds; the same number in each of the ALIKE sets that say how far chance can move a rate."""
MARGIN_SPLITS = 400

_ALIKE = 100
_MARGIN_ALIKE, _MARGIN_ALIKE_SPLITS = 20, 50
_RESAMPLES = 1_000


class Earlier(Record):
    """The earlier run whose base seeds were split: its gate, number, seal and figures, and the arms that were pooled.

    `seeds` counts the distinct seeds of these arms: the base, and every control that is the base again.
    """

    gate: str
    run: int
    seal: Sha256
    measurements_sha256: Sha256
    arms: tuple[str, ...]
    seeds: int


class SplitPower(Record):
    """A superiority rule on random splits of an earlier run's base seeds into two groups of k.

    `false_pass`: share of the splits that pass, in [0, 1]. Its error is the sd of that share over sets of as many
    normal seeds, split alike: what these few seeds may differ by. `shift_80`: the smallest move, in the axis's own
    unit (delta_cb), that passes in 0.8 of the splits.
    """

    k: int
    false_pass: float
    false_pass_error: float
    shift_80: float


class SplitMargin(Record):
    """How often one group of k base seeds passes a margin against another, in [0, 1].

    The error is the sd of that share over sets of seeds whose texts are drawn anew, prompt by prompt, from those there.
    """

    passes: float
    passes_error: float


class EarlierPower(Record):
    """What the gate's rules do with the base seeds of an earlier run: voice by k, each margin at the gate's own k."""

    earlier: Earlier
    voice: tuple[SplitPower, ...]
    margins: dict[str, SplitMargin]


@dataclass(frozen=True)
class BaseSeeds:
    """The figures of an earlier run's N base seeds: distances (N,), and by damage axis the values (N, P)."""

    earlier: Earlier
    distances: Array
    damage: Mapping[str, Array] = field(default_factory=dict)


def split_power(floor: FloorOf, values: Array, k: int, times: float, rng: np.random.Generator) -> SplitPower:
    """A superiority rule on SPLITS random splits of the distances `values` (N,) into two groups of k.

    Raises UsageError unless k >= 2 and N >= 2k.
    """
    groups = _groups(len(values), k, SPLITS, rng)
    short = _short(floor, values, groups, times)
    alike = [
        float(np.mean(exceeds(0.0, _short(floor, other, groups, times))))
        for other in rng.standard_normal((_ALIKE, len(values)))
    ]
    return SplitPower(
        k=k,
        false_pass=float(np.mean(exceeds(0.0, short))),
        false_pass_error=float(np.std(alike, ddof=1)),
        shift_80=float(np.quantile(short, 0.8)),
    )


def split_margin(values: Array, k: int, margin: float, rng: np.random.Generator) -> SplitMargin:
    """How often a margin passes on random splits of values (N, P) in [0, 1] into two groups of k seeds.

    Raises UsageError unless k >= 2 and N >= 2k.
    """
    n, prompts = values.shape
    drawn = rng.integers(n, size=(_MARGIN_ALIKE, n, prompts))
    alike = [
        _passes(np.take_along_axis(values, seeds, axis=0), k, margin, _MARGIN_ALIKE_SPLITS, rng) for seeds in drawn
    ]
    return SplitMargin(passes=_passes(values, k, margin, MARGIN_SPLITS, rng), passes_error=float(np.std(alike, ddof=1)))


def _groups(n: int, k: int, splits: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Random pairs of disjoint groups of k of n seeds, (splits, 2, k)."""
    if k < 2 or n < 2 * k:
        raise UsageError(f"{n} seeds cannot be split into two groups of {k}", next_step="give k >= 2 and 2k seeds")
    return np.argsort(rng.random((splits, n)), axis=1)[:, : 2 * k].reshape(splits, 2, k)


def _short(floor: FloorOf, values: Array, groups: NDArray[np.intp], times: float) -> Array:
    base, candidate = np.moveaxis(values[groups], 1, 0)
    return lacking(floor, base, candidate, times)


def _passes(values: Array, k: int, margin: float, splits: int, rng: np.random.Generator) -> float:
    groups = np.moveaxis(values[_groups(len(values), k, splits, rng)], -1, -2)  # (splits, 2, P, k)
    try:
        high = paired_change(groups[:, 0], groups[:, 1], LEVEL, _RESAMPLES, rng).high
    except UsageError:  # shares on few prompts have no interval: the axis is INCONCLUSIVE, whatever the split
        return 0.0
    return float(np.mean(~exceeds(high, margin)))
