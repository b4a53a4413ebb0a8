"""What a run comes to under another rule, and under every rule that the ledger holds. Nothing is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from gates.errors import RecordError
from gates.flow.axes import axes_of
from gates.flow.binding import signatures
from gates.flow.finished import FinishedRun
from gates.flow.floors import rules_of
from gates.flow.regauging import Gauge, sealed_signatures
from gates.judge.standing import Standing
from gates.judge.verdict import Judged, Verdict, judge
from gates.measure.figures import Measurements
from gates.record.ledger import Stored
from gates.record.rescore import HeldRule
from gates.record.rules import Holder, Rule, axis_rules, held, rule_standing, with_axis
from gates.record.standing import History
from gates.records import Sha256
from gates.report.wording import threshold_of, value_of
from gates.spec.schema import Gate


@dataclass(frozen=True)
class Case:
    """A run, the gate that judges it now, and the ledger as it stands."""

    run: FinishedRun
    gate: Gate
    file: str
    history: History
    gauge: Gauge
    made: dict[str, JsonValue] = field(default_factory=dict)

    @property
    def started(self) -> Stored:
        """The ledger's record of the run, made before its first generation."""
        return self.history.run(self.run.store.gate, self.run.store.number)


@dataclass(frozen=True)
class Weighed:
    """What judging a run again comes to. It rests on the run, and on the seals and runs of the ledger alone.

    `known` names those records; `measurements` are there where the run was measured otherwise. `case` is what was
    judged, as it was read; it does not travel between processes.
    """

    case: Case | None = field(repr=False)

    verdict: Verdict
    measurements: Measurements | None
    axes: dict[str, Standing]
    held: tuple[HeldRule, ...]
    texts: Literal["not needed", "used", "missing"]
    inputs: dict[str, JsonValue] | None
    known: tuple[Sha256, ...]

    def __getstate__(self) -> dict[str, object]:
        """All but the case: a cluster's worker keeps it, and it is read again where it is needed."""
        return {**self.__dict__, "case": None}


def known_of(history: History) -> tuple[Sha256, ...]:
    """The records that standings and rules rest on."""
    return tuple(record.sha256 for record in history.records if record.entry.kind != "rescore")


def judged_again(case: Case) -> Weighed:
    """The run judged again, and under every rule that the ledger holds."""
    run, gate = case.run, case.gate
    measurements = case.gauge.figures(gate)
    if isinstance(measurements, str):
        raise RecordError(measurements, next_step="fetch the texts: `gates corpora fetch NAME`")
    remeasured = measurements is not run.measurements
    judged = judge(gate, measurements, rules_of(gate))
    rules = axis_rules(gate, _signatures(case, remeasured=remeasured))
    sealed = axis_rules(run.seal.gate, run.seal.binding.signatures)
    axes = {axis: rule_standing(case.history, case.started, axis, rules.get(axis)) for axis in {**sealed, **rules}}
    changed = [axis for axis in {**sealed, **rules} if sealed.get(axis) != rules.get(axis)]
    tried = [axis for axis in dict.fromkeys(["voice", *changed]) if axis in rules]
    return Weighed(
        case=case,
        verdict=judged,
        measurements=measurements if remeasured else None,
        axes=axes,
        held=tuple(row for axis in tried for row in _held(case, axis, rules[axis], (measurements, judged))),
        texts=case.gauge.state,
        inputs=case.gauge.inputs,
        known=known_of(case.history),
    )


def _signatures(case: Case, *, remeasured: bool) -> dict[str, str]:
    """How the figures that are judged were made, and which rules judge them now."""
    now = signatures(case.gate, axes_of(case.gate), rules_of(case.gate))
    if remeasured:
        return now
    then = case.run.seal.binding.signatures
    return {name: made if name.endswith(".floor") else then.get(name, made) for name, made in now.items()}


def versions(case: Case) -> dict[str, str]:
    """How this version of gates measures and judges, under the sealed gate and the one that judges now."""
    return {**sealed_signatures(case.run.seal.gate), **signatures(case.gate, axes_of(case.gate), rules_of(case.gate))}


def _held(case: Case, axis: str, now: Rule, first: tuple[Measurements, Verdict]) -> list[HeldRule]:
    """Every rule for an axis that the ledger holds, each tried on the run; the one that judges `now` judged `first`."""
    known = list(held(case.history, axis))
    if now not in [rule for rule, _ in known]:
        known.append((now, []))
    return [
        _row(axis, rule, holders, first, now=True)
        if rule == now
        else _row(axis, rule, holders, _tried(case, axis, holders, first))
        for rule, holders in known
    ]


def _tried(
    case: Case, axis: str, holders: list[Holder], first: tuple[Measurements, Verdict]
) -> tuple[Measurements | str, Verdict | None]:
    """The run's figures as the rule of `holders` asks for them, and what it says of them."""
    gate, (measured, judged) = with_axis(case.gate, axis, holders[0].seal.gate), first
    figures = case.gauge.figures(gate)
    if isinstance(figures, str):
        return figures, None
    return figures, judge(gate, figures, rules_of(gate), Judged(case.gate, judged) if figures is measured else None)


def _row(
    axis: str, rule: Rule, holders: list[Holder], tried: tuple[Measurements | str, Verdict | None], *, now: bool = False
) -> HeldRule:
    figures, judged = tried
    found = {} if judged is None else judged.candidates
    there = {name: one.axes[axis] for name, one in found.items() if axis in one.axes}
    return HeldRule(
        axis=axis,
        rule=rule,
        held_by=tuple(holder.sentence for holder in holders),
        judges_now=now,
        outcomes={name: one.outcome for name, one in there.items()},
        overall={name: one.outcome for name, one in found.items()},
        figures={name: f"{value_of(one)} {threshold_of(one)}" for name, one in there.items()},
        note=figures if isinstance(figures, str) else "",
    )
