"""The rules that seals hold, axis by axis: which ones are the same, who held which, and since when it was fixed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from gates.judge.standing import Standing
from gates.record.body import said
from gates.record.chain import Stored
from gates.record.seal import Seal
from gates.record.standing import IMPORTED, History, standing_of
from gates.records import Sha256, canonical
from gates.spec.limits import Damage
from gates.spec.schema import Gate

Rule = dict[str, JsonValue]
"""Everything that decides an axis: settings and parameters, number of seeds, names and versions of measure and rule."""

_SEALED: dict[Sha256, dict[str, tuple[bytes, Rule]]] = {}
"""The rules of each seal by axis, with their canonical form; a seal's name is the hash of all that they come from."""


def axis_rules(gate: Gate, signatures: Mapping[str, str]) -> dict[str, Rule]:
    """The rule of every axis that a gate judges; two are the same rule where they are equal."""
    k = len(gate.sampling.seeds)

    def made_by(*names: str) -> Rule:
        return {"k": k, "made_by": {name: signatures[name] for name in names if name in signatures}}

    rules: dict[str, Rule] = {"validity": {**gate.validity.as_json(), "k": k}}
    rules["voice"] = {**gate.voice.as_json(), **made_by("words", "voice", "voice.floor")}
    if gate.memorisation is not None:
        asked = {key: value for key, value in gate.memorisation.as_json().items() if key != "read_every_run"}
        rules["memorisation"] = {**asked, **made_by("words", "memorisation", "near")}
        # It makes voice INVALID, whatever memorisation says.
        rules["voice"]["max_heldout_rate"] = asked["max_heldout_rate"]
        if gate.probe is not None:
            rules["extraction"] = {
                "max_rate": gate.probe.max_rate,
                "decide": asked["decide"],
                **made_by("memorisation"),
            }
    for name, axis in gate.damage.named().items():
        rules[name] = {**axis.as_json(), **made_by("words", name, f"{name}.floor")}
    return rules


def with_axis(gate: Gate, axis: str, other: Gate) -> Gate:
    """`gate` with the settings that `other` has for one axis, which both judge."""
    if axis == "voice":
        changed = gate.model_copy(update={"voice": other.voice})
        if gate.memorisation is None or other.memorisation is None:
            return changed
        limit = {"max_heldout_rate": other.memorisation.max_heldout_rate}
        return changed.model_copy(update={"memorisation": gate.memorisation.model_copy(update=limit)})
    if axis in ("memorisation", "validity"):
        return gate.model_copy(update={axis: getattr(other, axis)})
    if axis == "extraction" and gate.probe is not None and other.probe is not None:
        return gate.model_copy(update={"probe": gate.probe.model_copy(update={"max_rate": other.probe.max_rate})})
    named = {**gate.damage.named(), axis: other.damage.named()[axis]}
    document = {name: limits.as_json() for name, limits in named.items()}
    return gate.model_copy(update={"damage": Damage.model_validate_json(canonical(document))})


@dataclass(frozen=True)
class Holder:
    """A seal that holds a rule, and the ledger record that entered it."""

    record: Stored
    seal: Seal

    @property
    def sentence(self) -> str:
        """Who holds it, since when."""
        verb = "imported" if self.record.entry.kind == "import" else "sealed"
        return f"{self.record.entry.gate}, {verb} {self.record.entry.at.removesuffix('+00:00')}"


def held(history: History, axis: str) -> Iterator[tuple[Rule, list[Holder]]]:
    """Every rule that the ledger holds for an axis, in its order, each with all its holders."""
    found: dict[bytes, tuple[Rule, list[Holder]]] = {}
    for name, (record, seal) in history.seals.items():
        if name not in _SEALED:
            rules = axis_rules(seal.gate, seal.binding.signatures)
            _SEALED[name] = {axis: (canonical(rule), rule) for axis, rule in rules.items()}
        if axis in _SEALED[name]:
            key, rule = _SEALED[name][axis]
            found.setdefault(key, (rule, []))[1].append(Holder(record, seal))
    yield from found.values()


def rule_standing(history: History, run: Stored, axis: str, rule: Rule | None) -> Standing:
    """When the rule that judges an axis of a run again was fixed; None where the axis is judged no more."""
    name = said(run, "seal", str)
    record, own = history.sealed(name)
    if record.entry.kind == "import":
        return IMPORTED
    if rule == axis_rules(own.gate, own.binding.signatures).get(axis):
        return standing_of(history, name)
    if rule is None:
        return Standing(name="post-hoc", reason=f"{axis} was sealed and is judged no more")
    elsewhere = [
        holder
        for known, holders in held(history, axis)
        for holder in holders
        if known == rule and holder.record.entry.gate != run.entry.gate and holder.record.entry.kind == "seal"
    ]
    for holder in elsewhere:
        if history.follows(run, holder.record):
            return Standing(
                name="fixed elsewhere, blind",
                reason=f"the same rule for {axis} stands in the seal of {holder.sentence}, before this run began",
            )
    for holder in elsewhere:
        if not history.runs_before(holder.record):
            runs = len(history.runs(holder.record.entry.gate))
            return Standing(
                name="fixed elsewhere, not blind",
                reason=f"the same rule for {axis} stands in the seal of {holder.sentence}, before that gate's numbers "
                f"and after this run's; {runs or 'no'} run(s) of that gate have come of it",
            )
    after = ", ".join(holder.sentence for holder in elsewhere)
    return Standing(
        name="post-hoc",
        reason=f"the rule for {axis} stands only in seals made after their own gates' numbers: {after}"
        if after
        else f"no other gate's seal holds this rule for {axis}, and this run's own holds another",
    )
