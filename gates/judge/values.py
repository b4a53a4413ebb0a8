"""Verdicts from a table of per-seed values, for results of which only numbers are left.

Nothing stands behind such numbers: no seal, no generations. The verdict says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from gates.errors import UsageError
from gates.judge.axes import LEVEL, AxisVerdict, few_seeds, inside, invalid, superiority
from gates.judge.floors import RULES, FloorRule, floor_rule
from gates.judge.verdict import CandidateVerdict
from gates.records import Outcome, Record, Sha256, digest, signature, worst
from gates.spec.fields import CALIBRATED, RETIRED
from gates.stats import Array, clopper_pearson, exceeds, poisson_ratio

VOICE = "voice"
MAX_RATE = "max-rate@1"
MAX_RATIO = "max-ratio@1"
RULE_NAMES = (*RULES, MAX_RATE, MAX_RATIO)

LOWER_IS_WORSE = frozenset({"on_beat", "judged_on_beat"})
RANGES = {
    VOICE: (0.0, 2.0),
    **dict.fromkeys(
        (
            "memorisation",
            "ran_on",
            "on_beat",
            "empty",
            "repetition",
            "echo",
            "template_leak",
            "garble",
            "name_leak",
            "judged_on_beat",
        ),
        (0.0, 1.0),
    ),
}
"""Every axis that a table may hold, with its smallest and largest value: a distance for voice, else a rate."""

ONLY_NUMBERS = "judged from numbers alone: no seal and no generations stand behind them"


class SeedValue(Record):
    """One row: the value of an arm's seed on an axis; `n` texts lie behind a rate, `hits` of them (None: not told)."""

    arm: str
    seed: int = Field(ge=0)
    axis: str
    value: float
    n: int | None = None
    hits: int | None = None


Rows = Sequence[SeedValue]


class ValuesRule(Record):
    """How a table is judged.

    A floor rule decides voice by superiority over `threshold` (1.0) times the floor, other axes by harm within it;
    `floor` is a recorded one that stands for the table's own. `max-rate@1` and `max-ratio@1` compare a rate, and its
    ratio to the base's, with `threshold`. `ceiling`: the distance of the author's own text, for the span closed.
    """

    rule: Literal["pairwise-range@1", "pairwise-calibrated@1", "all-arms-range@1", "max-rate@1", "max-ratio@1"]
    base: str = "base"
    threshold: float | None = Field(default=None, ge=0)
    floor: float | None = Field(default=None, ge=0)
    alpha: float | None = None
    ceiling: float | None = Field(default=None, ge=0, le=2)


class ValuesVerdict(Record):
    """What a rule says of a table: every arm but the base is judged. `outcome` and `exit_code` are the worst arm's.

    `span_closed`: the share of the way from the base to the author's own text that each arm moved, with a ceiling.
    """

    schema_: Literal["gates.values-verdict/1"] = Field(default="gates.values-verdict/1", alias="schema")
    rule: ValuesRule
    values_sha256: Sha256
    outcome: Outcome
    exit_code: int
    candidates: dict[str, CandidateVerdict]
    span_closed: dict[str, float]
    warnings: tuple[str, ...]


def judge_values(rows: Rows, rule: ValuesRule) -> ValuesVerdict:
    """Judge every arm of a table but the base. Missing seeds or axes make INVALID, never PASS.

    Raises UsageError for a base that the table does not hold and for a rule that cannot judge its axes.
    """
    table = _by_axis(rows)
    names = list(dict.fromkeys(row.arm for row in rows if row.arm != rule.base))
    _refuse(rule, table, names)
    axes = {name: {axis: _axis(axis, name, arms, rule) for axis, arms in table.items()} for name in names}
    candidates = {
        name: CandidateVerdict(outcome=worst([axis.outcome for axis in found.values()]), axes=found)
        for name, found in axes.items()
    }
    outcome = worst([candidate.outcome for candidate in candidates.values()])
    return ValuesVerdict(
        rule=rule,
        values_sha256=digest([row.as_json() for row in rows]),
        outcome=outcome,
        exit_code=int(outcome.exit_code),
        candidates=candidates,
        span_closed=_spans(table.get(VOICE, {}), names, rule),
        warnings=(ONLY_NUMBERS, *([f"{RETIRED} is retired: it hangs on which arms exist"] * (rule.rule == RETIRED))),
    )


def _by_axis(rows: Rows) -> dict[str, dict[str, list[SeedValue]]]:
    """axis -> arm -> its rows in the order of their seeds."""
    table: dict[str, dict[str, list[SeedValue]]] = {}
    for row in sorted(rows, key=lambda row: row.seed):
        table.setdefault(row.axis, {}).setdefault(row.arm, []).append(row)
    return {axis: table[axis] for axis in RANGES if axis in table}


def _refuse(rule: ValuesRule, table: dict[str, dict[str, list[SeedValue]]], names: list[str]) -> None:
    """Raise UsageError for what the rule cannot judge."""
    arms = {arm for found in table.values() for arm in found}
    needs_base = rule.rule != MAX_RATE
    floor = rule.rule in RULES
    troubles = {
        f"the table holds no arm {rule.base!r} to compare with": needs_base and rule.base not in arms,
        f"the table holds nothing but {rule.base!r}": not names,
        f"{rule.rule} needs a threshold": not floor and rule.threshold is None,
        f"{rule.rule} takes no floor": not floor and rule.floor is not None,
        "a recorded floor belongs to one unit, and the table holds voice beside other axes": rule.floor is not None
        and VOICE in table
        and len(table) > 1,
        f"{rule.rule} takes no threshold: its alpha says how strict it is": rule.rule == CALIBRATED
        and rule.threshold is not None,
        f"{rule.rule} has no alpha": rule.alpha is not None and rule.rule != CALIBRATED,
        "a ceiling needs distances, and the table holds no voice": rule.ceiling is not None and VOICE not in table,
        f"{rule.rule} limits rates of which higher is worse": not floor
        and bool(table.keys() & {VOICE, *LOWER_IS_WORSE}),
        f"{rule.rule} needs n, the number of texts, in every row": not floor
        and any(row.n is None for found in table.values() for values in found.values() for row in values),
    }
    for trouble, there in troubles.items():
        if there:
            known = f"; the table holds: {', '.join(sorted(arms))}" if "holds" in trouble else ""
            raise UsageError(f"{trouble}{known}", next_step="see `gates judge --help`")


def _axis(axis: str, name: str, arms: dict[str, list[SeedValue]], rule: ValuesRule) -> AxisVerdict:
    """One axis of one arm."""
    own, base = arms.get(name, []), arms.get(rule.base, [])
    if not own:
        return invalid(axis, "the table holds no value of this arm")
    if not base and rule.rule != MAX_RATE:
        return invalid(axis, f"{rule.base}: the table holds no value of this arm")
    missing = _missing_seeds(own, base)
    if missing:
        return invalid(axis, missing)
    if rule.rule == MAX_RATE:
        return _max_rate(axis, own, rule.threshold or 0.0)
    if rule.rule == MAX_RATIO:
        return _max_ratio(axis, own, base, rule.threshold or 0.0)
    others = [_values(found) for other, found in arms.items() if other not in (name, rule.base)]
    return _floor(axis, (_values(base), _values(own)), others, rule)


def _missing_seeds(own: list[SeedValue], base: list[SeedValue]) -> str:
    """Why the seeds of two arms are not a full set each, or nothing; a control may have as many seeds of its own."""
    mine, theirs = {row.seed for row in own}, {row.seed for row in base}
    if not theirs or mine == theirs or (len(mine) == len(theirs) and not mine & theirs):
        return ""
    return f"seeds {sorted(mine)} against {sorted(theirs)} of the base: some are missing"


def _values(rows: list[SeedValue]) -> Array:
    return np.array([row.value for row in rows])


def _floor(axis: str, pair: tuple[Array, Array], others: list[Array], rule: ValuesRule) -> AxisVerdict:
    base, own = pair
    named = floor_rule(rule.rule, rule.alpha)
    try:
        size = rule.floor if rule.floor is not None else float(named.floor(base, own, others))
    except UsageError as error:
        return invalid(axis, f"no floor: {error.message}")
    change = float(own.mean() - base.mean())
    if axis == VOICE:
        times = rule.threshold if rule.threshold is not None else 1.0
        value, threshold = -change, times * size
        outcome = superiority(value, size, times)
        sentence = f"moved {value:+.3f} toward the held-out author; more than {threshold:.3f} is required"
    else:
        value, threshold = (-change if axis in LOWER_IS_WORSE else change), size
        outcome = inside(value, value, size)
        sentence = f"{base.mean():.3f} to {own.mean():.3f}: harm {value:+.3f}, floor {size:.3f}"
    multiple = value / size if exceeds(size, 0.0) else None
    if axis == VOICE:
        said = "the floor is 0: nothing can exceed it" if multiple is None else f"{multiple:.1f}× the floor"
        sentence = f"{sentence}; {said}{_span(base, own, rule.ceiling)}"
    return AxisVerdict(
        axis=axis,
        outcome=outcome,
        value=value,
        threshold=threshold,
        floor=size,
        times_floor=multiple,
        rule=_signature(named, rule.floor),
        reason=sentence,
        warnings=few_seeds(len(own)) if rule.floor is None else (),
    )


def _signature(rule: FloorRule, recorded: float | None) -> str:
    return rule.signature if recorded is None else signature("recorded@1", floor=recorded, under=rule.name)


def _span(base: Array, own: Array, ceiling: float | None) -> str:
    closed = None if ceiling is None else _closed(base, own, ceiling)
    return "" if closed is None else f"; {100 * closed:.1f} % of the span to the author's own text"


def _closed(base: Array, own: Array, ceiling: float) -> float | None:
    """The share of the span that a move closes; None where the base is no farther than the author's own text."""
    span = float(base.mean()) - ceiling
    return float(base.mean() - own.mean()) / span if exceeds(span, 0.0) else None


def _spans(arms: dict[str, list[SeedValue]], names: list[str], rule: ValuesRule) -> dict[str, float]:
    if rule.ceiling is None or rule.base not in arms:
        return {}
    base = _values(arms[rule.base])
    closed = {name: _closed(base, _values(arms[name]), rule.ceiling) for name in names if name in arms}
    return {name: share for name, share in closed.items() if share is not None}


def _counts(rows: list[SeedValue]) -> tuple[int, int]:
    return sum(row.hits or 0 for row in rows), sum(row.n or 0 for row in rows)


def _max_rate(axis: str, own: list[SeedValue], most: float) -> AxisVerdict:
    hits, n = _counts(own)
    low, high = clopper_pearson(hits, n, LEVEL)
    return AxisVerdict(
        axis=axis,
        outcome=inside(low, high, most),
        value=hits / n,
        threshold=most,
        low=low,
        high=high,
        rule=signature(MAX_RATE, level=LEVEL),
        reason=f"{hits} of {n}: {hits / n:.3f} (95 % limits {low:.3f} and {high:.3f}), at most {most:.3f} is allowed",
        to_decide="more texts",
    )


def _max_ratio(axis: str, own: list[SeedValue], base: list[SeedValue], most: float) -> AxisVerdict:
    (hits, n), (base_hits, base_n) = _counts(own), _counts(base)
    ratio, low, high = poisson_ratio(hits, n, base_hits, base_n, LEVEL)
    said = f"{hits} of {n} against {base_hits} of {base_n}"
    if low is None:
        outcome, sentence = Outcome.INCONCLUSIVE, f"{said}: without any hit the ratio is undefined"
    else:
        outcome = inside(low, np.inf if high is None else high, most)
        upper = "no upper limit" if high is None else f"{high:.1f}"
        figure = "no ratio" if ratio is None else f"{ratio:.1f}×"
        sentence = f"{said}: {figure} (95 % limits {low:.1f} and {upper}), at most {most:.1f}× is allowed"
    return AxisVerdict(
        axis=axis,
        outcome=outcome,
        value=ratio,
        threshold=most,
        low=low,
        high=high,
        rule=signature(MAX_RATIO, level=LEVEL),
        reason=sentence,
        to_decide="more texts",
    )
