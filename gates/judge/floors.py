"""Floor rules: the difference that seeds alone produce, under a versioned name.

A rule works on arrays whose last axis is the seeds, so that a simulation of 100,000 gates runs the very code that
judges one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from gates.deferred import Deferred
from gates.errors import UsageError
from gates.records import signature
from gates.spec.fields import ALPHA
from gates.spec.limits import Floored
from gates.stats import Array, normal_density, normal_range

if TYPE_CHECKING:
    from scipy import optimize
else:
    optimize = Deferred("scipy.optimize")

Compute = Callable[[Array, Array, Sequence[Array]], Array]


@dataclass(frozen=True)
class FloorRule:
    """A named rule: from the per-seed values of arms to the floor that a difference of their means must exceed.

    `floor(base, candidate, others)` takes base (…, k), candidate (…, k) and the other arms, each (…, k), and gives
    the floor (…) in the values' unit, >= 0; it raises UsageError when an arm that counts has fewer than two seeds.
    `fixed_level` rules have a stated error rate of their own, so a gate's `times_floor` does not apply to them.
    """

    name: str
    floor: Compute
    parameters: dict[str, float] = field(default_factory=dict)
    fixed_level: bool = False

    @property
    def signature(self) -> str:
        """The rule's name with its parameters."""
        return signature(self.name, **self.parameters)


@dataclass(frozen=True)
class Floor:
    """A floor rule beside the other arms of one run, as a gate applies it to one axis."""

    rule: FloorRule
    others: Sequence[Array] = ()

    def of(self, base: Array, candidate: Array) -> float:
        """The floor of two arms' per-seed values, each (k,)."""
        return float(self.rule.floor(base, candidate, self.others))


def spread(values: Array) -> Array:
    """max - min over the last axis, the seeds: (…, k) to (…). Raises UsageError for k < 2."""
    if values.shape[-1] < 2:
        raise UsageError(f"{values.shape[-1]} seed(s) have no spread", next_step="give every arm at least 2 seeds")
    return np.asarray(np.ptp(values, axis=-1))


def pairwise_range(base: Array, candidate: Array, others: Sequence[Array] = ()) -> Array:
    """`pairwise-range@1`: the larger of the two arms' spreads; other arms do not count."""
    del others
    return np.maximum(spread(base), spread(candidate))


def all_arms_range(base: Array, candidate: Array, others: Sequence[Array] = ()) -> Array:
    """`all-arms-range@1`: the largest spread over all arms. Retired, for re-scoring: it hangs on who else was there."""
    return np.asarray(np.maximum.reduce([spread(arm) for arm in (base, candidate, *others)]))


def pairwise_level(k: int, times: float = 1.0, sd_ratio: float = 1.0) -> float:
    """How often a candidate without any shift beats `times` the pairwise range, in one direction.

    Two independent normal arms of k seeds, the second with `sd_ratio` times the first's sd. The difference of means
    is independent of both ranges, so the rate is the integral over u of F(u) phi(u), where F is the larger range's
    distribution scaled to the difference's sd: Gauss-Legendre quadrature, good to 1e-9.
    """
    u, weights = _half_line()
    larger = u * np.sqrt((1 + sd_ratio**2) / k) / times
    cdf = normal_range(larger, k)
    cdf = cdf * (cdf if sd_ratio == 1 else normal_range(larger / sd_ratio, k))
    return float(weights @ (cdf * normal_density(u)))


@cache
def _half_line() -> tuple[Array, Array]:
    """Places and weights of a quadrature from 0 as far as a normal density counts."""
    nodes, weights = np.polynomial.legendre.leggauss(80)
    return 4.25 * (nodes + 1), 4.25 * weights


@lru_cache(maxsize=256)
def calibration(k: int, alpha: float) -> float:
    """g(k, alpha): the multiple of the pairwise range that a candidate without shift beats with probability alpha.

    For two independent, equal, normal arms of k seeds, one direction. Raises UsageError unless k >= 2 and
    0.0001 <= alpha <= 0.4.
    """
    if k < 2 or not 1e-4 <= alpha <= 0.4:
        raise UsageError(
            f"no calibrated floor for {k} seeds at alpha {alpha}", next_step="give k >= 2 and alpha from 0.0001 to 0.4"
        )
    return float(optimize.brentq(lambda times: pairwise_level(k, times) - alpha, 1e-3, 1e3, xtol=1e-9))


def pairwise_calibrated(alpha: float = ALPHA) -> FloorRule:
    """`pairwise-calibrated@1`: g(k, alpha) times the pairwise range, so that the error rate is alpha at every k."""

    def compute(base: Array, candidate: Array, others: Sequence[Array]) -> Array:
        k = base.shape[-1]
        if candidate.shape[-1] != k:
            raise UsageError(
                f"pairwise-calibrated@1: {k} seeds against {candidate.shape[-1]}",
                next_step="give both arms as many seeds, or use pairwise-range@1",
            )
        return calibration(k, alpha) * pairwise_range(base, candidate, others)

    return FloorRule("pairwise-calibrated@1", compute, {"alpha": alpha}, fixed_level=True)


RULES = {
    rule.name: rule
    for rule in (
        FloorRule("pairwise-range@1", pairwise_range),
        FloorRule("all-arms-range@1", all_arms_range),
        pairwise_calibrated(),
    )
}
"""Every rule this version knows, by name."""


def floor_rule(name: str, alpha: float | None = None) -> FloorRule:
    """The rule of that name, `pairwise-calibrated@1` at `alpha` where one is given.

    Raises UsageError for an unknown rule and for an alpha where it means nothing.
    """
    if name not in RULES:
        raise UsageError(f"no floor rule is called {name!r}", next_step=f"choose one of: {', '.join(RULES)}")
    if alpha is None:
        return RULES[name]
    if not RULES[name].fixed_level:
        raise UsageError(f"{name} has no alpha", next_step="leave alpha out, or use pairwise-calibrated@1")
    return pairwise_calibrated(alpha)


def rule_of(axis: Floored, rules: Mapping[str, FloorRule] = RULES) -> FloorRule:
    """The floor rule that a gate names for an axis: one built in, or one of `rules`. Raises UsageError for another."""
    return rules[axis.floor] if axis.floor in rules.keys() - RULES.keys() else floor_rule(axis.floor, axis.alpha)


class BrokenFloorError(UsageError):
    """A rule that was plugged in gave no floor: the axis is not fit to judge."""


def plugged(rule: FloorRule) -> FloorRule:
    """A rule of foreign code: it sees the two arms alone, and nothing but finite floors >= 0 of one shape is believed.

    Its floor raises BrokenFloorError otherwise, and when the rule raises anything.
    """

    def compute(base: Array, candidate: Array, _others: Sequence[Array]) -> Array:
        try:
            found = np.asarray(rule.floor(base, candidate, ()), dtype=np.float64)
        except Exception as error:  # noqa: BLE001 - foreign code may raise anything, and none of it is a floor
            raise BrokenFloorError(f"{rule.name} failed: {type(error).__name__}: {str(error)[:200]}") from None
        if found.shape != base.shape[:-1]:
            raise BrokenFloorError(f"{rule.name} gave floors of shape {found.shape} for arms of shape {base.shape}")
        if not np.all(np.isfinite(found) & (found >= 0)):
            raise BrokenFloorError(f"{rule.name} gave a floor that is no finite number of at least 0")
        return found

    return replace(rule, floor=compute)
