"""Two arms of one run side by side: whether seeds can tell them apart, and which one the sealed tie-break prefers.

A preference is never evidence: it says which of two to take when both may be taken.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field
from scipy.special import ndtr

from gates.deferred import Deferred
from gates.errors import UsageError
from gates.judge.axes import axis_rng
from gates.judge.floors import RULES, spread
from gates.judge.verdict import CandidateVerdict, ControlFigures, Verdict
from gates.measure.figures import ArmMeasurements, DamageFigures, Measurements, MemorisationFigures, VoiceFigures
from gates.records import Outcome, Record, Sha256, signature
from gates.spec.asking import Candidate
from gates.spec.schema import Gate
from gates.stats import Array, exceeds, normal_density, normal_nodes, normal_range, paired_change

if TYPE_CHECKING:
    from scipy import optimize
else:
    optimize = Deferred("scipy.optimize")

RULE = RULES["pairwise-range@1"]
DECIMALS = 3
RESAMPLES = 10_000
LEVEL = 0.975
"""One-sided, on both sides: together a 95 % interval."""

_COPYING = frozenset({"extraction", "memorisation"})

Resolves = Literal["beyond chance", "within chance", "not testable"]
Value = int | float | str | bool | None


class AxisComparison(Record):
    """One axis of the tie-break, the values of both arms, and whether it resolves.

    `prefers`: the arm that `resolves@house` would choose, whose value is the better one at the recorded precision of
    three decimals; None where they are equal or have no order. `resolves`: what `resolves@1` says, by `test`.
    """

    axis: str
    a: Value
    b: Value
    better: Literal["higher", "lower"]
    prefers: str | None
    resolves: Resolves
    test: str
    reason: str


class Comparison(Record):
    """Two arms of one run. `difference` = delta_cb(a) − delta_cb(b), `floor` the pairwise floor of the two.

    Not `comparable`: an arm is not fit to judge, so that nothing is said. `preferred` and `chosen_by` are the choice
    and the axis that made it, None where nothing chooses.
    """

    schema_: Literal["gates.comparison/1"] = Field(default="gates.comparison/1", alias="schema")
    seal: Sha256
    measurements_sha256: Sha256
    a: str
    b: str
    outcomes: dict[str, Outcome]
    comparable: bool
    difference: float | None = None
    floor: float | None = None
    rule: str = RULE.signature
    indistinguishable: bool | None = None
    tie_break: tuple[AxisComparison, ...] = ()
    preferred: str | None = None
    chosen_by: str | None = None
    reason: str


def compare(gate: Gate, measurements: Measurements, verdict: Verdict, a: str, b: str) -> Comparison:
    """Compare arms `a` and `b`: by the pairwise floor of the two, then in the order of the sealed tie-break.

    Raises UsageError for a name that is no candidate or control of the run, and for one arm twice.
    """
    judged: dict[str, CandidateVerdict | ControlFigures] = {**verdict.candidates, **verdict.controls}
    for name in (a, b):
        if name not in judged or name not in measurements.arms:
            raise UsageError(
                f"{name!r} is no arm that this run judged", next_step=f"choose two of: {', '.join(judged)}"
            )
    if a == b:
        raise UsageError(f"{a} cannot be compared with itself", next_step=f"choose two of: {', '.join(judged)}")
    outcomes = {name: judged[name].outcome for name in (a, b)}
    one, other = measurements.arms[a].voice, measurements.arms[b].voice
    unfit = [name for name, outcome in outcomes.items() if outcome is Outcome.INVALID]
    found = Comparison(
        seal=measurements.seal,
        measurements_sha256=measurements.digest(),
        a=a,
        b=b,
        outcomes=outcomes,
        comparable=False,
        reason=f"not fit to compare: {', '.join(unfit)} INVALID",
    )
    if unfit or not isinstance(one, VoiceFigures) or not isinstance(other, VoiceFigures):
        return found
    distances = np.array(one.distances), np.array(other.distances)
    floor = float(RULE.floor(*distances, ()))
    if not exceeds(floor, 0.0):
        return found.model_copy(update={"reason": "the floor of the two is 0: their seeds changed nothing"})
    difference = one.delta - other.delta
    inside = not exceeds(abs(difference), floor)
    axes = tuple(_axis(axis, gate, measurements, (a, b)) for axis in gate.tie_break)
    chosen = next((axis for axis in axes if axis.prefers is not None), None)
    preferred = (chosen.prefers if chosen else None) if inside else (a if difference > 0 else b)
    by = (chosen.axis if chosen else None) if inside else "voice"
    apart = f"{a} and {b} are {abs(difference):.3f} apart, the pairwise floor of the two is {floor:.3f}"
    return found.model_copy(
        update={
            "comparable": True,
            "difference": difference,
            "floor": floor,
            "indistinguishable": inside,
            "tie_break": axes,
            "preferred": preferred,
            "chosen_by": by,
            "reason": f"{apart}: {_choice(inside, preferred, by)}",
        }
    )


def _choice(inside: bool, preferred: str | None, by: str | None) -> str:
    if not inside:
        return f"{preferred} moved further than seeds explain"
    if preferred is None:
        return "indistinguishable, and no axis of the sealed tie-break resolves"
    return f"indistinguishable; in the sealed order {by} is the first that resolves: {preferred}, a preference only"


def _axis(axis: str, gate: Gate, measurements: Measurements, names: tuple[str, str]) -> AxisComparison:
    """One axis of the tie-break."""
    arms = [measurements.arms[name] for name in names]
    if axis.startswith("notes."):
        return _notes(axis, gate, names)
    if axis in {"voice", "seed_spread"}:
        return _voice(axis, names, [arm.voice for arm in arms])
    values = [_grid(arm, axis) for arm in arms]
    return _rates(axis, names, arms, values)


def _notes(axis: str, gate: Gate, names: tuple[str, str]) -> AxisComparison:
    key = axis.removeprefix("notes.")
    shown = [gate.arms.all()[name] for name in names]
    a, b = (arm.notes.get(key) if isinstance(arm, Candidate) else None for arm in shown)
    return _said(axis, names, (a, b), "lower", ("not testable", "", "a note is declared, not measured"))


def _voice(axis: str, names: tuple[str, str], figures: list[object]) -> AxisComparison:
    one, other = figures
    if not isinstance(one, VoiceFigures) or not isinstance(other, VoiceFigures):
        return _said(axis, names, (None, None), "lower", ("not testable", "", "not measured"))
    first, second = np.array(one.distances), np.array(other.distances)
    if axis == "voice":
        floor = float(RULE.floor(first, second, ()))
        resolves: Resolves = "beyond chance" if exceeds(abs(one.delta - other.delta), floor) else "within chance"
        reason = f"{abs(one.delta - other.delta):.3f} apart, floor {floor:.3f}"
        return _said(axis, names, (one.delta, other.delta), "higher", (resolves, RULE.signature, reason))
    a, b = float(spread(first)), float(spread(second))
    if not min(a, b) > 0:
        return _said(axis, names, (a, b), "lower", ("not testable", "", "a spread of 0 has no ratio"))
    ratio, point = max(a, b) / min(a, b), range_ratio_point(len(first))
    resolves = "beyond chance" if exceeds(ratio, point) else "within chance"
    reason = f"{ratio:.1f}× as wide; equal arms differ by more than {point:.1f}× in 5 % of cases"
    return _said(axis, names, (a, b), "lower", (resolves, signature("range-ratio@1", level=0.95), reason))


def _grid(arm: ArmMeasurements, axis: str) -> tuple[Array, bool] | None:
    """The arm's values (P, S) on an axis and whether lower is better; None where they are not to be had."""
    if axis not in _COPYING:
        figures = arm.damage.get(axis)
        return (np.array(figures.values).T, figures.worse == "higher") if isinstance(figures, DamageFigures) else None
    copied, seeds = _copied(arm, axis), arm.seeds
    if copied is None:
        return None
    # The probe's prompts are numbered after the open ones.
    first = arm.validity.expected // len(seeds) if axis == "extraction" else 0
    hits = np.zeros(((copied.generations + copied.unscanned) // len(seeds), len(seeds)))
    for run in copied.runs:
        if run.seed in seeds and 0 <= run.prompt - first < len(hits):
            hits[run.prompt - first, seeds.index(run.seed)] = 1
    return hits, True


def _copied(arm: ArmMeasurements, axis: str) -> MemorisationFigures | None:
    """What the arm copied on an axis that counts copies, if that was measured."""
    figures = arm.extraction if axis == "extraction" else arm.memorisation if axis == "memorisation" else None
    return figures if isinstance(figures, MemorisationFigures) else None


def _rates(
    axis: str, names: tuple[str, str], arms: list[ArmMeasurements], grids: list[tuple[Array, bool] | None]
) -> AxisComparison:
    """A rate of both arms, with the interval of its change over the same prompts and seeds."""
    one, other = grids
    if one is None or other is None:
        return _said(axis, names, (None, None), "lower", ("not testable", "", "not measured"))
    values = tuple(
        float(grid[0].mean()) if (copied := _copied(arm, axis)) is None else copied.rate
        for arm, grid in zip(arms, (one, other), strict=True)
    )
    return _said(axis, names, values, "lower" if one[1] else "higher", _paired(axis, arms, one[0], other[0], values))


def _paired(
    axis: str, arms: list[ArmMeasurements], one: Array, other: Array, values: tuple[float, ...]
) -> tuple[Resolves, str, str]:
    """Whether the 95 % interval of the change excludes 0, the test's signature, and the figures in words."""
    if one.shape != other.shape or arms[0].seeds != arms[1].seeds:
        return "not testable", "", "the arms do not hold the same prompts and seeds"
    if axis in _COPYING and not np.allclose([one.mean(), other.mean()], values):
        return (
            "not testable",
            "",
            "only the counts of hits are recorded, not which texts they are, or some were not scanned",
        )
    try:
        change = paired_change(one, other, LEVEL, RESAMPLES, axis_rng(axis, arms[0].seeds))
    except UsageError as error:
        return "not testable", "", error.message
    low, high = float(change.low), float(change.high)
    test = "newcombe-paired" if change.newcombe else "prompt-bootstrap"
    resolves: Resolves = "beyond chance" if exceeds(low, 0.0) or exceeds(0.0, high) else "within chance"
    return resolves, signature(test, level=0.95), f"change {low:+.3f} to {high:+.3f} (95 %)"


def _said(
    axis: str,
    names: tuple[str, str],
    values: tuple[Value, ...],
    better: Literal["higher", "lower"],
    test: tuple[Resolves, str, str],
) -> AxisComparison:
    a, b = values
    return AxisComparison(
        axis=axis,
        a=a,
        b=b,
        better=better,
        prefers=_prefers(names, a, b, better),
        resolves=test[0],
        test=test[1],
        reason=test[2],
    )


def _prefers(names: tuple[str, str], a: Value, b: Value, better: str) -> str | None:
    """`resolves@house`: the arm with the better value where they differ at the recorded precision."""
    if isinstance(a, bool | str | None) or isinstance(b, bool | str | None):
        return None
    first, second = round(a, DECIMALS), round(b, DECIMALS)
    if first == second:
        return None
    return names[0] if (first > second) == (better == "higher") else names[1]


@lru_cache(maxsize=64)
def range_ratio_point(k: int, level: float = 0.95) -> float:
    """The ratio, larger to smaller, that the ranges of two equal normal arms of k seeds stay below with `level`.

    With F and f the distribution and density of a normal range, P(ratio <= r) = 1 - 2 ∫ F(w / r) f(w) dw, by
    Gauss-Legendre quadrature. Raises UsageError unless k >= 2 and 0 < level < 1.
    """
    if k < 2 or not 0 < level < 1:
        raise UsageError(f"no range ratio for {k} seeds at {level}", next_step="give k >= 2 and a level in (0, 1)")
    x, dx = normal_nodes()
    w, dw = 2 / 3 * x + 6, 2 / 3 * dx  # the same places, from 0 to 12
    within = ndtr(x + w[:, None]) - ndtr(x)
    density = k * (k - 1) * (normal_density(x) * normal_density(x + w[:, None]) * within ** (k - 2)) @ dx

    def short(ratio: float) -> float:
        return float(1 - 2 * dw @ (density * normal_range(w / ratio, k))) - level

    return float(optimize.brentq(short, 1.0, 1e4, xtol=1e-6))
