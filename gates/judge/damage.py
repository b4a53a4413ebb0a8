"""Decisions on the damage axes: whether the harm against the base is within the floor or inside the margin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gates.errors import UsageError
from gates.judge.axes import BARE, LEVEL, AxisVerdict, Check, few_seeds, inside, invalid, why_unmeasured
from gates.judge.floors import Floor
from gates.measure.figures import ArmMeasurements, DamageFigures
from gates.records import Outcome, signature
from gates.spec.limits import DamageAxis
from gates.stats import Array, exceeds, paired_change

RESAMPLES = 10_000
_LAX = "within the floor: the noisier the measure, the more harm passes; a preset margin is recommended"


class Limits(NamedTuple):
    """One-sided limits of a harm, the rule that made them, and what it warns of."""

    low: float | None
    high: float | None
    rule: str
    warnings: tuple[str, ...]


def damage(
    name: str,
    base: ArmMeasurements,
    arm: ArmMeasurements,
    threshold: DamageAxis,
    floor: Floor,
    rng: np.random.Generator,
) -> AxisVerdict:
    """Whether the harm against the base, on the same prompts and seeds, is within the floor or inside the margin.

    A generation that failed is full harm in a candidate and none in the base (`measure_axis`), the worst case for the
    candidate. A floor is INVALID with any of them: they widen the range of the seeds, so that more harm would pass.
    """
    before, after = base.damage.get(name), arm.damage.get(name)
    if not isinstance(before, DamageFigures):
        return invalid(name, f"base: {why_unmeasured(before)}")
    if not isinstance(after, DamageFigures):
        return invalid(name, why_unmeasured(after))
    unlike = _unlike(before, after, (len(base.seeds), len(arm.seeds)), arm.validity.expected)
    if unlike:
        return invalid(name, unlike)
    failed = base.validity.errors + arm.validity.errors
    if failed and threshold.margin is None:
        return invalid(
            name, f"{failed} generations failed, which makes a floor wider; `margin` can be judged with them"
        )
    x, y = np.array(before.values), np.array(after.values)
    sign = 1 if after.worse == "higher" else -1
    harm = sign * float(y.mean() - x.mean())
    change = f"{x.mean():.3f} to {y.mean():.3f} ({y.mean() - x.mean():+.3f}, worse is {after.worse})"
    if threshold.margin is None:
        size = floor.of(x.mean(axis=1), y.mean(axis=1))
        limits = Limits(None, None, floor.rule.signature, (_LAX, *few_seeds(len(arm.seeds))))
        outcome, bound, sentence = inside(harm, harm, size), size, f"{change}: harm {harm:+.3f}, floor {size:.3f}"
    else:
        size, bound = None, threshold.margin
        limits = _harm_limits(x, y, sign, threshold, rng)
        outcome, sentence = _margin(harm, limits, bound)
        sentence = f"{change}: {sentence}"
    return AxisVerdict(
        axis=name,
        outcome=outcome,
        value=harm,
        threshold=bound,
        low=limits.low,
        high=limits.high,
        floor=size,
        times_floor=harm / size if size else None,
        rule=limits.rule,
        signature=after.signature,
        reason=sentence,
        to_decide=_prompts_to_decide(harm, limits, bound, x.shape[1]) if outcome is Outcome.INCONCLUSIVE else "",
        warnings=limits.warnings,
    )


def _unlike(before: DamageFigures, after: DamageFigures, seeds: tuple[int, int], expected: int) -> str:
    """Why two arms' values cannot be paired, or nothing."""
    shapes = [{len(row) for row in figures.values} for figures in (before, after)]
    if (len(before.values), len(after.values)) != seeds or shapes[0] != shapes[1] or len(shapes[0]) != 1:
        return "base and candidate do not hold the same prompts for every seed"
    if (len(before.per_seed), len(after.per_seed)) != seeds:
        return "the rates of some seeds are missing"
    if sum(map(len, after.values)) != expected or expected < 1:
        return f"{sum(map(len, after.values))} values, {expected} are expected"
    if (before.signature, before.worse) != (after.signature, after.worse):
        return f"the base was measured as {before.signature}, the candidate as {after.signature}"
    return ""


def _harm_limits(x: Array, y: Array, sign: int, threshold: DamageAxis, rng: np.random.Generator) -> Limits:
    if threshold.decide == "point":
        return Limits(None, None, "point", (BARE,))
    try:
        change = paired_change(x.T, y.T, LEVEL, RESAMPLES, rng)
    except UsageError as error:
        return Limits(None, None, "none", (error.message,))
    low, high = sorted((sign * float(change.low), sign * float(change.high)))
    if change.newcombe:
        return Limits(low, high, signature("newcombe-paired", level=LEVEL), ())
    return Limits(low, high, signature("prompt-bootstrap", level=LEVEL, resamples=RESAMPLES), ())


def _margin(harm: float, limits: Limits, margin: float) -> Check:
    if limits.rule == "point":
        return Check(inside(harm, harm, margin), f"harm {harm:+.3f}, margin {margin:.3f}")
    if limits.low is None or limits.high is None:
        return Check(Outcome.INCONCLUSIVE, f"harm {harm:+.3f} without an interval, margin {margin:.3f}")
    said = f"harm {harm:+.3f} (95 % limits {limits.low:+.3f} and {limits.high:+.3f}), margin {margin:.3f}"
    return Check(inside(limits.low, limits.high, margin), said)


def _prompts_to_decide(harm: float, limits: Limits, margin: float, prompts: int) -> str:
    """How many prompts would decide if the harm stayed as it is and the interval shrank with their square root."""
    bound = limits.high if harm < margin else limits.low
    if bound is None:
        return "more prompts are needed for an interval"
    factor = ((bound - harm) / (margin - harm)) ** 2 if exceeds(abs(margin - harm), 0.0) else np.inf
    if factor > 1000:
        return "the harm is too close to its margin for any feasible number of prompts"
    return f"about {int(np.ceil(factor * prompts))} prompts at this harm would decide; there are {prompts}"
