"""Decisions on voice and validity of one arm, and what all axes are judged with: verdict, checks, limits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gates.errors import UsageError
from gates.judge.floors import Floor
from gates.measure.figures import ArmMeasurements, MemorisationFigures, Unmeasured, VoiceFigures
from gates.records import Outcome, Record, digest, worst
from gates.spec.limits import Memorisation, Validity, Voice
from gates.stats import exceeds

LEVEL = 0.95
FEW_SEEDS = 4
MOST_REPEATED = 0.2
"""Share of an arm's possible repeats above which its seeds are no draws of their own.

A floor is a range over seeds, and each copied text narrows it, so that a smaller move exceeds it. Short answers may
agree by chance; more than one in five do not.
"""
BARE = "bare figures compared: without an interval chance may have decided"


class AxisVerdict(Record):
    """What the gate says of one axis of one arm.

    `value` is compared with `threshold`, both in the axis's unit; on a damage axis it is the harm, the change against
    the base in the worse direction. `low` and `high` are one-sided 95 % limits of `value`, None where none decide.
    `floor` and `times_floor` = value / floor where a floor rule decides. `to_decide` says what would turn
    INCONCLUSIVE into a decision.
    """

    axis: str
    outcome: Outcome
    value: float | None = None
    threshold: float | None = None
    low: float | None = None
    high: float | None = None
    floor: float | None = None
    times_floor: float | None = None
    rule: str = ""
    signature: str = ""
    reason: str
    to_decide: str = ""
    warnings: tuple[str, ...] = ()


class Check(NamedTuple):
    """One condition of an axis: its outcome and the sentence that gives its figures."""

    outcome: Outcome
    sentence: str


def invalid(axis: str, reason: str) -> AxisVerdict:
    """An axis that is not fit to judge, without figures."""
    return AxisVerdict(axis=axis, outcome=Outcome.INVALID, reason=reason)


def why_unmeasured(figures: object) -> str:
    """The sentence for figures that are not there."""
    return f"not measured: {figures.unmeasured}" if isinstance(figures, Unmeasured) else "not measured"


def few_seeds(k: int) -> tuple[str, ...]:
    """The warning of a floor that rests on few seeds, if it does."""
    return (f"a floor of {k} seeds is a rough one: use {FEW_SEEDS} or more",) if k < FEW_SEEDS else ()


def axis_rng(axis_signature: str, seeds: tuple[int, ...]) -> np.random.Generator:
    """The bootstrap's generator: PCG64 from the SHA-256 of the axis's signature and the generation seeds."""
    return np.random.Generator(np.random.PCG64(int(digest([axis_signature, list(seeds)]), 16)))


def superiority(value: float, floor: float, times: float = 1.0) -> Outcome:
    """PASS when `value` exceeds `times` the floor, strictly; a floor of 0 measures nothing: INVALID."""
    if not exceeds(floor, 0.0):
        return Outcome.INVALID
    return Outcome.PASS if exceeds(value, times * floor) else Outcome.FAIL


def inside(low: float, high: float, limit: float) -> Outcome:
    """PASS when the upper limit of a harm is inside `limit`, FAIL when the lower is outside, else INCONCLUSIVE."""
    if not exceeds(high, limit):
        return Outcome.PASS
    return Outcome.FAIL if exceeds(low, limit) else Outcome.INCONCLUSIVE


def voice(arm: ArmMeasurements, threshold: Voice, memorised: Memorisation | None, floor: Floor) -> AxisVerdict:
    """Whether the move toward the held-out author exceeds the floor that seeds alone produce.

    INVALID: unmeasured, seeds or words missing, a floor of 0, specificity asked for without imposters, or more
    held-out hits than `max_heldout_rate` (a text that recites its yardstick proves nothing).
    Raises UsageError for `times_floor` with a rule that states its own error rate.
    """
    figures = arm.voice
    if not isinstance(figures, VoiceFigures):
        return invalid("voice", why_unmeasured(figures))
    if floor.rule.fixed_level and threshold.times_floor != 1.0:
        raise UsageError(f"{floor.rule.name} takes no times_floor", next_step="leave voice.times_floor at 1.0")
    unfit = _too_short(figures, len(arm.seeds), threshold.words_per_seed)
    if unfit:
        return invalid("voice", unfit)
    size = floor.of(np.array(figures.base_distances), np.array(figures.distances))
    times = figures.delta / size if exceeds(size, 0.0) else None
    moved = f"moved {figures.delta:+.3f} toward the held-out author"
    if times is None:
        main = f"{moved}, but the floor is 0: seeds changed nothing, so nothing can exceed it"
    else:
        main = f"{moved}, {times:.1f}× the floor of {size:.3f}; more than {threshold.times_floor:.1f}× is required"
    checks = [
        Check(superiority(figures.delta, size, threshold.times_floor), main),
        *_specificity(figures.specificity, threshold.min_specificity),
        *_recited(arm.memorisation, memorised.max_heldout_rate if memorised else None),
    ]
    return AxisVerdict(
        axis="voice",
        outcome=worst([check.outcome for check in checks]),
        value=figures.delta,
        threshold=threshold.times_floor * size,
        floor=size,
        times_floor=times,
        rule=floor.rule.signature,
        signature=figures.signature,
        reason="; ".join(check.sentence for check in checks),
        warnings=(*few_seeds(len(arm.seeds)), *_any_recited(arm.memorisation)),
    )


def validity(arm: ArmMeasurements, limits: Validity) -> AxisVerdict:
    """Whether an arm is fit to judge: complete, asked the same, within its limits, moved by its seeds."""
    seen, seeds = arm.validity, len(arm.seeds)
    troubles, warnings = [], []
    if seen.expected < 1 or seeds < 1 or seen.expected % max(seeds, 1):
        troubles.append(f"{seen.expected} generations cannot be the same prompts under {seeds} seeds")
    if seen.present != seen.expected:
        word = "missing" if seen.present < seen.expected else "too many"
        troubles.append(f"{abs(seen.present - seen.expected)} of {seen.expected} generations {word}")
    for what, count, most in (("errors", seen.errors, limits.max_errors), ("empty", seen.empty, limits.max_empty)):
        if exceeds(count, most * seen.expected):
            troubles.append(f"{count} of {seen.expected} generations are {what}, at most {most:.3f} of them may be")
        elif count:
            warnings.append(f"{count} of {seen.expected} generations are {what}, within the gate's limit")
    if seen.prompt_mismatches:
        troubles.append(
            f"{seen.prompt_mismatches} prompts were not the same tokens for every seed and arm shown the same: "
            "cut short or altered on the way"
        )
    if seen.repeated_seeds:
        possible = seen.expected * (seeds - 1) / max(seeds, 1)
        said = f"{seen.repeated_seeds} of {possible:.0f} texts repeat an earlier seed of their prompt word for word"
        if exceeds(seen.repeated_seeds, MOST_REPEATED * possible):
            troubles.append(f"{said}, at most {MOST_REPEATED:.3f} of them may: the seeds change too little")
        else:
            warnings.append(said)
    return AxisVerdict(
        axis="validity",
        outcome=Outcome.INVALID if troubles else Outcome.PASS,
        reason="; ".join(troubles) or f"{seen.present} of {seen.expected} generations, fit to judge",
        warnings=tuple(warnings),
    )


def _too_short(figures: VoiceFigures, k: int, least: int) -> str:
    """Why distances of k seeds under `least` words each are not there, or nothing."""
    for who, words, distances in (
        ("", figures.words, figures.distances),
        ("base: ", figures.base_words, figures.base_distances),
    ):
        if len(words) != k or len(distances) != k or k < 2:
            return f"{who}{len(distances)} distances and {len(words)} word counts for {k} seeds; at least 2 are needed"
        if min(words) < least:
            return f"{who}a seed has {min(words)} words, {least} are needed"
    return ""


def _specificity(specificity: float | None, least: float | None) -> list[Check]:
    if least is None:
        return []
    if specificity is None:
        return [Check(Outcome.INVALID, "specificity was not measured and the gate asks for it")]
    outcome = Outcome.FAIL if exceeds(least, specificity) else Outcome.PASS
    return [Check(outcome, f"specificity {specificity:+.3f}, at least {least:+.3f} is required")]


def _any_recited(figures: MemorisationFigures | Unmeasured | None) -> tuple[str, ...]:
    if not isinstance(figures, MemorisationFigures) or not figures.heldout_hits:
        return ()
    return (_recite(figures),)


def _recite(figures: MemorisationFigures) -> str:
    return f"{figures.heldout_hits} of {figures.generations} generations recite the held-out text"


def _recited(figures: MemorisationFigures | Unmeasured | None, most: float | None) -> list[Check]:
    if most is None:
        return []
    if not isinstance(figures, MemorisationFigures) or figures.generations < 1:
        return [Check(Outcome.INVALID, "held-out hits were not measured and the gate limits them")]
    outcome = Outcome.INVALID if exceeds(figures.heldout_hits, most * figures.generations) else Outcome.PASS
    return [Check(outcome, f"{_recite(figures)}, at most {most:.3f} of them may")]
