"""From a gate and its measurements to a verdict: one pure function.

A candidate is judged from its own figures and the base's alone; other candidates do not count, unless a retired floor
rule asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field, JsonValue

from gates.judge.axes import AxisVerdict, axis_rng, invalid, validity, voice, why_unmeasured
from gates.judge.damage import damage
from gates.judge.floors import RULES, BrokenFloorError, Floor, FloorRule, rule_of
from gates.judge.memorisation import extraction, memorisation
from gates.judge.seats import refused_seats, seat_warnings
from gates.judge.standing import Attempts, Standing
from gates.measure.figures import (
    ArmMeasurements,
    DamageFigures,
    JudgeFigures,
    Leak,
    Measurements,
    MemorisationFigures,
    VoiceFigures,
)
from gates.records import Outcome, Record, Sha256, worst
from gates.spec.limits import Floored
from gates.spec.schema import Gate
from gates.stats import Array, exceeds

BASE = "base"
JUDGED = "judged_on_beat"


class CandidateVerdict(Record):
    """What the gate says of one candidate: the worst outcome of its axes, and each axis by name."""

    outcome: Outcome
    axes: dict[str, AxisVerdict]


class ControlFigures(Record):
    """A control's figures in the form of a verdict; controls are never judged and decide nothing."""

    judged: Literal[False] = False
    outcome: Outcome
    axes: dict[str, AxisVerdict]


class Verdict(Record):
    """What the gate says of a run. `outcome` and `exit_code` are those of the worst candidate.

    `undecided` names each axis that could not be decided and what would decide it; `warnings` concern the whole run,
    an axis keeps its own. `standing` and `attempts` come from the ledger (`gates.record.standing`), not from judging.
    """

    schema_: Literal["gates.verdict/1"] = Field(default="gates.verdict/1", alias="schema")
    seal: Sha256
    measurements_sha256: Sha256
    outcome: Outcome
    exit_code: int
    candidates: dict[str, CandidateVerdict]
    controls: dict[str, ControlFigures]
    undecided: tuple[str, ...]
    warnings: tuple[str, ...]
    standing: Standing | None = None
    attempts: Attempts | None = None


def outcomes_of(verdict: Verdict) -> dict[str, JsonValue]:
    """What the ledger says of a verdict: its outcome, and each candidate's."""
    return {
        "outcome": verdict.outcome.value,
        "candidates": {name: candidate.outcome.value for name, candidate in verdict.candidates.items()},
    }


class Judged(NamedTuple):
    """What a gate has said of measurements."""

    gate: Gate
    verdict: Verdict

    def margin(self, arm: str, axis: str, gate: Gate) -> AxisVerdict | None:
        """What it said of a damage axis, where `gate` has the same margin for it: the same figures in, the same out."""
        threshold = gate.damage.named()[axis]
        found = self.verdict.candidates.get(arm) or self.verdict.controls.get(arm)
        alike = threshold.margin is not None and self.gate.damage.named().get(axis) == threshold
        return found.axes.get(axis) if found is not None and alike and axis != JUDGED else None


def judge(
    gate: Gate, measurements: Measurements, rules: Mapping[str, FloorRule] = RULES, earlier: Judged | None = None
) -> Verdict:
    """Judge every candidate of `gate` by `measurements`. Whatever is missing or unfit makes INVALID, never PASS.

    `rules` holds the floor rules by name, those plugged in included. Raises UsageError for a rule that is not there.
    `earlier` is what another gate has said of these very measurements: what must be the same is not computed again.
    """
    arms = measurements.arms
    troubles = _run_troubles(gate, measurements)
    axes = {
        name: _tried(_axes(name, gate, arms, troubles, (rules, earlier)), gate, measurements.judge)
        for name in gate.arms.all()
        if name != BASE
    }
    outcomes = {name: worst([axis.outcome for axis in found.values()]) for name, found in axes.items()}
    overall = worst([outcomes[name] for name in gate.arms.candidates])
    return Verdict(
        seal=measurements.seal,
        measurements_sha256=measurements.digest() if earlier is None else earlier.verdict.measurements_sha256,
        outcome=overall,
        exit_code=int(overall.exit_code),
        candidates={n: CandidateVerdict(outcome=outcomes[n], axes=axes[n]) for n in gate.arms.candidates},
        controls={n: ControlFigures(outcome=outcomes[n], axes=axes[n]) for n in gate.arms.controls},
        undecided=tuple(s for name in gate.arms.candidates for s in _undecided(name, axes[name])),
        warnings=_run_warnings(gate, measurements),
    )


def _axes(
    name: str,
    gate: Gate,
    arms: dict[str, ArmMeasurements],
    troubles: list[str],
    known: tuple[Mapping[str, FloorRule], Judged | None],
) -> dict[str, AxisVerdict]:
    """Every axis of one arm by name; `run` stands first when the whole run is unfit."""
    rules, earlier = known
    found = {"run": invalid("run", "; ".join(troubles))} if troubles else {}
    arm, base = arms.get(name), arms.get(BASE)
    unfit = _unfit(name, gate, arm)
    if arm is None or base is None or unfit:
        return {**found, "validity": invalid("validity", unfit or "there is no base to compare with")}
    found["validity"] = validity(arm, gate.validity)
    floor = _floor(gate.voice, name, _distances(arms), rules)
    found["voice"] = _guarded("voice", partial(voice, arm, gate.voice, gate.memorisation, floor))
    if gate.memorisation is not None:
        found["memorisation"] = memorisation(arm, gate.memorisation)
        if gate.probe is not None:
            found["extraction"] = extraction(arm, gate.probe, gate.memorisation.decide)
    for axis, threshold in gate.damage.named().items():
        if earlier is not None and (same := earlier.margin(name, axis, gate)):
            found[axis] = same
            continue
        floor = _floor(threshold, name, _rates(arms, axis), rules)
        rng = axis_rng(axis, gate.seeds(name))
        found[axis] = _guarded(axis, partial(damage, axis, base, arm, threshold, floor, rng))
    return found


def _tried(axes: dict[str, AxisVerdict], gate: Gate, tried: object) -> dict[str, AxisVerdict]:
    """The axes of one arm, the judged one with its judge's error rate: INVALID where that is unknown or too high."""
    found = axes.get(JUDGED)
    if gate.judge is None or found is None:
        return axes
    if not isinstance(tried, JudgeFigures):
        return axes | {JUDGED: invalid(JUDGED, f"the judge's error rate: {why_unmeasured(tried)}")}
    most, n = gate.judge.max_error, tried.on_beat + tried.off_beat
    said = (
        f"the judge errs in {tried.missed + tried.taken} of {n} labelled texts: {tried.error_rate:.3f} (95 % limits "
        f"{tried.error_low:.3f} and {tried.error_high:.3f}); {tried.missed} missed, {tried.taken} wrongly taken, "
        f"{tried.swayed} swayed by the order"
    )
    if exceeds(tried.error_high, most):
        return axes | {JUDGED: invalid(JUDGED, f"{said}; its upper limit may be {most:.3f} at most")}
    return axes | {JUDGED: found.model_copy(update={"reason": f"{found.reason}; {said}"})}


def _guarded(axis: str, decide: Callable[[], AxisVerdict]) -> AxisVerdict:
    """The decision on an axis, INVALID where the rule of a plug-in gave no floor."""
    try:
        return decide()
    except BrokenFloorError as error:
        return invalid(axis, error.message)


def _unfit(name: str, gate: Gate, arm: ArmMeasurements | None) -> str:
    """Why an arm is not the one that the gate names, or nothing."""
    if arm is None:
        return "no measurements of this arm"
    role = BASE if name == BASE else "candidate" if name in gate.arms.candidates else "control"
    if arm.role != role:
        return f"measured as {arm.role}, the gate names it a {role}"
    if arm.seeds != gate.seeds(name):
        return f"measured with seeds {list(arm.seeds)}, the gate fixes {list(gate.seeds(name))}"
    return ""


def _run_troubles(gate: Gate, measurements: Measurements) -> list[str]:
    """What makes every candidate INVALID: leaks, arms missing or unknown, a base that is not fit to compare with."""
    arms = measurements.arms
    return [
        *(_leaked(leak) for leak in _exact(measurements) if leak.sha256 not in gate.validity.accept_leaks),
        *(f"{name}: measured, but no arm of this gate" for name in arms if name not in gate.arms.all()),
        *(f"control {name}: no measurements" for name in gate.arms.controls if name not in arms),
        *(f"base: {trouble}" for trouble in _base_troubles(gate, arms.get(BASE))),
        *refused_seats(gate, measurements.seats),
    ]


def _base_troubles(gate: Gate, base: ArmMeasurements | None) -> list[str]:
    unfit = _unfit(BASE, gate, base)
    if base is None or unfit:
        return [unfit]
    found = validity(base, gate.validity)
    troubles = [found.reason] if found.outcome is Outcome.INVALID else []
    if gate.memorisation is not None and not isinstance(base.memorisation, MemorisationFigures):
        troubles.append("memorisation was not measured")
    unmeasured = [name for name in gate.damage.named() if not isinstance(base.damage.get(name), DamageFigures)]
    return troubles + [f"{name} was not measured" for name in unmeasured]


def _exact(measurements: Measurements) -> list[Leak]:
    """The leaks that make a run INVALID; near-verbatim twins are warned of."""
    return [leak for leak in measurements.leaks if not leak.changed]


def _leaked(leak: Leak) -> str:
    return (
        f"{leak.length} words of {leak.train.file} (word {leak.train.start}) stand in held-out {leak.heldout.file} "
        f"(word {leak.heldout.start}); validity.accept_leaks would name it {leak.sha256}"
    )


def _floor(axis: Floored, name: str, values: dict[str, Array], rules: Mapping[str, FloorRule]) -> Floor:
    """The axis's rule beside the per-seed values of every arm but this one and the base."""
    return Floor(rule_of(axis, rules), tuple(found for other, found in values.items() if other not in (name, BASE)))


def _distances(arms: dict[str, ArmMeasurements]) -> dict[str, Array]:
    return {name: np.array(arm.voice.distances) for name, arm in arms.items() if isinstance(arm.voice, VoiceFigures)}


def _rates(arms: dict[str, ArmMeasurements], axis: str) -> dict[str, Array]:
    figures = {name: arm.damage.get(axis) for name, arm in arms.items()}
    return {name: np.array(found.per_seed) for name, found in figures.items() if isinstance(found, DamageFigures)}


def _undecided(name: str, axes: dict[str, AxisVerdict]) -> list[str]:
    """The axes of a candidate that decided nothing, in sentences."""
    return [
        f"{name}, {axis}: not fit to judge: {found.reason}"
        if found.outcome is Outcome.INVALID
        else f"{name}, {axis}: {found.reason}; {found.to_decide}"
        for axis, found in axes.items()
        if found.outcome in (Outcome.INVALID, Outcome.INCONCLUSIVE)
    ]


def _run_warnings(gate: Gate, measurements: Measurements) -> tuple[str, ...]:
    """What a reader must know of the whole run: accepted leaks, and what is short of perfect in base and controls."""
    exact = _exact(measurements)
    accepted = sum(leak.sha256 in gate.validity.accept_leaks for leak in exact)
    found = [f"{accepted} runs of words shared by train and held-out text, accepted by the gate"] if accepted else []
    twins = len(measurements.leaks) - len(exact)
    if twins:
        longest = max(leak.length for leak in measurements.leaks if leak.changed)
        found.append(f"{twins} near-verbatim twins stand in train and held-out text, the longest of {longest} words")
    for name in (BASE, *gate.arms.controls):
        if name in measurements.arms:
            checked = validity(measurements.arms[name], gate.validity)
            said = (*checked.warnings, *([checked.reason] if checked.outcome is Outcome.INVALID else []))
            found.extend(f"{name}: {sentence}" for sentence in said)
    return (*found, *seat_warnings(gate, measurements.seats))
