"""P(pass | no change): how often each rule passes a candidate that does no harm, at 2 to 10 seeds.

Rates and their limits are counted exactly, by the functions of `gates.stats` that judge them; margins are simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gates.deferred import Deferred
from gates.records import Record
from gates.spec.limits import Memorisation
from gates.spec.power import LEVEL, MarginPower, last, margin_power
from gates.spec.schema import Gate
from gates.stats import clopper_pearson, exceeds, newcombe_unpaired, poisson_ratio

if TYPE_CHECKING:
    from scipy import stats
else:
    stats = Deferred("scipy.stats")

COPY_RATES = (0.0, 0.01, 0.05)
"""Rates of hits at which a candidate copies no more than anybody does by chance."""
MARGIN_RATES = (0.05, 0.2, 0.5)
GATES = 300
"""Gates simulated for each margin, rate and number of seeds: a standard error of at most 3 points."""

_NEGLIGIBLE = 1e-12

Proves = Callable[[int, int], bool]
"""From the hits of the generations and those of the author's own windows to whether the rule passes."""


class Size(NamedTuple):
    """How much is generated and compared: open prompts, the probe's prompts, windows of the held-out text.

    `windows` is None where the held-out text is not at hand.
    """

    prompts: int
    probe: int = 0
    windows: int | None = None


class RulePower(Record):
    """How often a rule passes a candidate that does no harm, at k seeds and n texts, for several rates of all arms.

    `windows` of the author's own text are compared with, None where the rule compares with none.
    """

    k: int
    n: int
    windows: int | None
    passes: tuple[MarginPower, ...]


def unchanged(
    gate: Gate, size: Size, counts: Sequence[int], rng: np.random.Generator
) -> dict[str, tuple[RulePower, ...]]:
    """P(pass | no change) of every rule but voice's, by its place in the gate file, at each count of seeds.

    What compares with the author's own text is left out where `size` knows no windows of it.
    """
    rules = {**_copying(gate.memorisation, size), **_probing(gate, size)}
    found = {name: tuple(_exact(rule, k) for k in counts) for name, rule in rules.items()}
    simulated: dict[float, tuple[RulePower, ...]] = {}
    for name, axis in gate.damage.named().items():
        if axis.margin is not None and axis.decide == "interval":
            if axis.margin not in simulated:
                simulated[axis.margin] = tuple(_simulated(size.prompts, k, axis.margin, rng) for k in counts)
            found[f"damage.{name}.margin"] = simulated[axis.margin]
    return found


class _Rule(NamedTuple):
    """A rule on `prompts` texts a seed, and windows if it compares with them: `proves(n)` says of hits if they pass."""

    prompts: int
    windows: int | None
    proves: Callable[[int], Proves]


def _copying(rules: Memorisation | None, size: Size) -> dict[str, _Rule]:
    """The rules on hits of the open prompts' texts that are judged by an interval."""
    if rules is None or rules.decide == "point":
        return {}
    found = {}
    for name, limit in (("max_rate", rules.max_rate), ("max_protected_rate", rules.max_protected_rate)):
        if limit is not None:
            found[f"memorisation.{name}"] = _Rule(size.prompts, None, partial(_below_rate, limit))
    if size.windows is not None:
        comparing = (("max_excess", rules.max_excess, _below_excess), ("max_ratio", rules.max_ratio, _below_ratio))
        for name, limit, proves in comparing:
            if limit is not None:
                found[f"memorisation.{name}"] = _Rule(size.prompts, size.windows, partial(proves, limit, size.windows))
    return found


def _probing(gate: Gate, size: Size) -> dict[str, _Rule]:
    if gate.probe is None or not size.probe or gate.memorisation is None or gate.memorisation.decide == "point":
        return {}
    return {"probe.max_rate": _Rule(size.probe, None, partial(_below_rate, gate.probe.max_rate))}


def _below_rate(limit: float, n: int) -> Proves:
    return lambda hits, _own: not exceeds(clopper_pearson(hits, n, LEVEL)[1], limit)


def _below_excess(limit: float, windows: int, n: int) -> Proves:
    return lambda hits, own: not exceeds(newcombe_unpaired(hits, n, own, windows, LEVEL)[1], limit)


def _below_ratio(limit: float, windows: int, n: int) -> Proves:
    def proves(hits: int, own: int) -> bool:
        high = poisson_ratio(hits, n, own, windows, LEVEL)[2]
        return high is not None and not exceeds(high, limit)

    return proves


def _exact(rule: _Rule, k: int) -> RulePower:
    """Sums over all counts that the author's windows may have, of the chance that so few hits come as still pass."""
    n, windows = rule.prompts * k, rule.windows or 0
    # Without a text, and without a window where the rule asks for some, nothing passes: the axis is INVALID.
    fit = n > 0 and (rule.windows is None or windows > 0)
    most: dict[int, int | None] = {}
    passes = []
    for rate in COPY_RATES:
        chances = stats.binom.pmf(np.arange(windows + 1), windows, rate)
        share = 0.0
        for own in np.flatnonzero(chances > _NEGLIGIBLE).tolist() if fit else ():
            if own not in most:
                most[own] = _most(rule.proves(n), own, n)
            if (hits := most[own]) is not None:
                share += chances[own] * stats.binom.cdf(hits, n, rate)
        passes.append(MarginPower(rate=rate, passes=min(1.0, float(share)), passes_error=0.0))
    return RulePower(k=k, n=n, windows=rule.windows, passes=tuple(passes))


def _most(proves: Proves, own: int, n: int) -> int | None:
    """The most hits of n that pass beside `own` of the author's windows; None where not even 0 do."""
    return last(lambda hits: proves(hits, own), 0, n)


def _simulated(prompts: int, k: int, margin: float, rng: np.random.Generator) -> RulePower:
    passes = tuple(margin_power(prompts, k, margin, rate, rng, GATES) for rate in MARGIN_RATES)
    return RulePower(k=k, n=prompts * k, windows=None, passes=passes)
