"""Whether a voice still answers as it did when it was signed: the same arm, then and now, under the same seeds.

`then` stands in the base's place of the measures and `now` in the candidate's, so that every figure is the change
since. What it may be is the signed run's own: its floors, its margins, its limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gates.judge.axes import AxisVerdict, axis_rng, invalid, validity, why_unmeasured
from gates.judge.damage import damage
from gates.judge.floors import Floor, FloorRule, spread
from gates.judge.memorisation import extraction, memorisation
from gates.judge.verdict import BASE, CandidateVerdict
from gates.measure.figures import ArmMeasurements, Measurements, VoiceFigures
from gates.records import Outcome, signature, worst
from gates.spec.schema import Gate
from gates.stats import Array, exceeds

SAME_VOICE = "same_voice"
SIMULATED = 20_000


@dataclass(frozen=True)
class SignedFloors:
    """The floors of the signed run by axis, with the rule that made the voice's."""

    rule: str
    voice: float
    damage: Mapping[str, float]


@dataclass(frozen=True)
class Alarm:
    """What a recheck of its size is worth: how often a voice that has not changed is said to have (`false_alarm`, a
    share), and the shift, in units of the seed sd, that is noticed with probability 0.8.
    """

    false_alarm: float
    shift_80: float


def judge_recheck(gate: Gate, arm: str, measured: Measurements, floors: SignedFloors) -> CandidateVerdict:
    """Judge one arm of a recheck, `measured` against itself in the signed run.

    Voice must stay within the signed floor in either direction; memorisation, extraction and damage are judged by
    the gate's own limits, damage as harm since the signed run. Whatever is missing is INVALID, never PASS.
    """
    then, now = measured.arms.get(BASE), measured.arms.get(arm)
    if then is None or now is None:
        axes = {"validity": invalid("validity", "no measurements of the arm, then or now")}
        return CandidateVerdict(outcome=Outcome.INVALID, axes=axes)
    axes = {"validity": validity(now, gate.validity), SAME_VOICE: _same_voice(now, gate, floors)}
    if gate.memorisation is not None:
        axes["memorisation"] = memorisation(now, gate.memorisation)
        if gate.probe is not None:
            axes["extraction"] = extraction(now, gate.probe, gate.memorisation.decide)
    for name, threshold in gate.damage.named().items():
        if threshold.margin is None and name not in floors.damage:
            axes[name] = invalid(name, "the signed run has no floor of this axis")
            continue
        floor = Floor(_recorded(floors.damage.get(name, 0.0), threshold.floor))
        axes[name] = damage(name, then, now, threshold, floor, axis_rng(name, now.seeds))
    return CandidateVerdict(outcome=worst([axis.outcome for axis in axes.values()]), axes=axes)


def alarm(k_signed: int, k_now: int, rng: np.random.Generator) -> Alarm:
    """What comparing `k_now` seeds, then and now, with the pairwise range of `k_signed` seeds is worth.

    20,000 simulated rechecks of independent, equal, normal arms: a seat that repeats itself does better. Source: the
    definition of `same-voice@1`.
    """
    floor = np.maximum(*(spread(rng.standard_normal((SIMULATED, k_signed))) for _ in range(2)))
    moved: Array = rng.standard_normal(SIMULATED) * np.sqrt(2 / k_now)
    return Alarm(float((np.abs(moved) > floor).mean()), float(np.quantile(floor - moved, 0.8)))


def _same_voice(now: ArmMeasurements, gate: Gate, floors: SignedFloors) -> AxisVerdict:
    figures = now.voice
    if not isinstance(figures, VoiceFigures):
        return invalid(SAME_VOICE, why_unmeasured(figures))
    few = min((*figures.words, *figures.base_words), default=0)
    if few < gate.voice.words_per_seed:
        return invalid(SAME_VOICE, f"a seed has {few} words, {gate.voice.words_per_seed} are needed")
    if not exceeds(floors.voice, 0.0):
        return invalid(SAME_VOICE, "the signed run's floor is 0: nothing can lie within it")
    moved = figures.delta
    inside = not exceeds(abs(moved), floors.voice)
    return AxisVerdict(
        axis=SAME_VOICE,
        outcome=Outcome.PASS if inside else Outcome.FAIL,
        value=moved,
        threshold=floors.voice,
        floor=floors.voice,
        times_floor=abs(moved) / floors.voice,
        rule=signature("same-voice@1", floor=floors.rule),
        signature=figures.signature,
        reason=f"moved {moved:+.3f} since the run (positive is toward the author), whose floor is {floors.voice:.3f}",
    )


def _recorded(floor: float, under: str) -> FloorRule:
    """A rule that gives the signed run's floor, whatever the seeds of the recheck say."""

    def given(base: Array, _candidate: Array, _others: object) -> Array:
        return np.full(base.shape[:-1], floor)

    return FloorRule(signature("recorded@1", under=under), given)
