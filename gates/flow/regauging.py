"""Which figures another rule needs of a finished run: those that are there, or the same texts measured otherwise."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from pydantic import JsonValue, ValidationError

from gates.errors import RefusedError, UsageError
from gates.flow.axes import axes_of
from gates.flow.binding import bind, signatures
from gates.flow.finished import FinishedRun, sealed_inputs
from gates.flow.floors import rules_of
from gates.flow.inputs import Findings, Inputs, examine, frame_of
from gates.flow.recorded import measure_run
from gates.judge.floors import RULES
from gates.measure.figures import Measurements
from gates.record.seal import differences
from gates.records import Record, canonical, digest
from gates.spec.limits import Damage, Floored, Voice
from gates.spec.schema import Gate

_BOUND = ("texts", "prompts", "frame", "signatures")


@dataclass
class Gauge:
    """Figures of a run under one gate or another. With `texts`, the run's texts are measured again where needed.

    `state` says whether that was needed, and whether it could be done; `inputs` holds hashes of what it was done with.
    """

    run: FinishedRun
    cache: Path
    gate: Gate
    path: Path
    texts: bool
    state: Literal["not needed", "used", "missing"] = "not needed"
    why_missing: str = ""
    inputs: dict[str, JsonValue] | None = None
    _found: dict[str, Measurements] = field(default_factory=dict)
    _loaded: Inputs | None = None

    def figures(self, gate: Gate) -> Measurements | str:
        """The run's figures as `gate` measures, or one sentence why they cannot be had."""
        if covers(self.run.seal.gate, gate):
            return self.run.measurements
        key = digest(_measures(gate))
        if key not in self._found:
            inputs = self._inputs()
            if inputs is None:
                self.state = "missing"
                return self.why_missing
            self.state = "used"
            under = replace(inputs, gate=gate, frame=frame_of(inputs.reference, gate.voice.mfw), axes=axes_of(gate))
            store, seal = self.run.store, self.run.sealed.sha256
            self._found[key] = measure_run(under, seal, store, self.run.seal.gate)
        return self._found[key]

    def _inputs(self) -> Inputs | None:
        if self._loaded is None and not self.why_missing:
            loaded = self._load() if self.texts else "not tried: it measures otherwise, and the texts were not here"
            if isinstance(loaded, str):
                self.why_missing = loaded
            else:
                self._loaded = loaded
        return self._loaded

    def _load(self) -> Inputs | str:
        if self.gate.corpora == self.run.seal.gate.corpora:
            inputs = sealed_inputs(self.run.workspace, self.cache, self.run.sealed)
        else:
            findings = Findings()
            inputs = examine(self.path, self.cache, self.gate, findings, adapters=False) or "; ".join(findings.missing)
        if isinstance(inputs, str):
            return inputs
        bound = bind(inputs, {}, {}).as_json()
        if bound["prompts"] != self.run.seal.binding.prompts:
            return f"{self.path}: its prompts are not those that the run was asked"
        self.inputs = {name: bound[name] for name in _BOUND}
        return inputs


def covers(measured: Gate, gate: Gate) -> bool:
    """Whether figures that were measured for one gate hold everything that another one judges."""
    there, asked = _measures(measured), _measures(gate)
    return all(asked[key] == there.get(key) for key in asked)


def _measures(gate: Gate) -> dict[str, JsonValue]:
    """What a gate has measured, apart from how it is judged."""
    voice, memorised = gate.voice, gate.memorisation
    asked: dict[str, JsonValue] = {
        "corpora": gate.corpora.as_json(),
        "voice": [voice.measure, voice.mfw, voice.words_per_seed],
        **{f"damage.{name}": True for name in gate.damage.named()},
    }
    if memorised is not None:
        asked["memorisation"] = [memorised.measure, memorised.n]
    return asked


def floor_named(gate: Gate, rule: str) -> Gate:
    """`gate` with another floor rule wherever a floor decides: voice, and damage axes `within: floor`.

    A rule with an error rate of its own takes no `times_floor`. Raises UsageError for a rule that is not known.
    """

    def named(axis: Floored) -> dict[str, JsonValue]:
        kept = {key: value for key, value in axis.as_json().items() if key != "alpha"}
        return {**kept, "floor": rule}

    try:
        voice = Voice.model_validate_json(canonical({**named(gate.voice), "times_floor": 1.0}))
        damage = Damage.model_validate_json(
            canonical({n: named(a) if a.margin is None else a.as_json() for n, a in gate.damage.named().items()})
        )
    except ValidationError:
        raise UsageError(f"no floor rule is called {rule!r}", next_step=f"choose one of: {', '.join(RULES)}") from None
    changed = gate.model_copy(update={"voice": voice, "damage": damage})
    if rules_of(changed)[rule].fixed_level:
        return changed
    times = {"times_floor": gate.voice.times_floor}
    return changed.model_copy(update={"voice": voice.model_copy(update=times)})


def refuse_other_texts(path: Path, sealed: Gate, gate: Gate) -> None:
    """Raise RefusedError for a gate that asks for other texts than those of the run, field by field."""
    changed = differences(_texts(sealed), _texts(gate))
    if changed:
        raise RefusedError(
            "\n".join([f"{path}: this gate asks for other texts than the run's:", *(f"  {c}" for c in changed)]),
            next_step="keep arms, prompts, probe and sampling as they were sealed, or run the gate",
        )


def _texts(gate: Gate) -> dict[str, JsonValue]:
    """What decides which texts a gate generates."""
    arms: dict[str, JsonValue] = {
        name: {"model": arm.model, "system": getattr(arm, "system", None), "seeds": list(gate.seeds(name))}
        for name, arm in gate.arms.all().items()
    }
    roles: dict[str, JsonValue] = {
        "candidates": [*sorted(gate.arms.candidates)],
        "controls": [*sorted(gate.arms.controls)],
    }
    prompts = _without(gate.prompts, "file")
    probe = None if gate.probe is None else _without(gate.probe, "file", "max_rate")
    return {"arms": arms, "roles": roles, "prompts": prompts, "probe": probe, "sampling": gate.sampling.as_json()}


def _without(record: Record, *keys: str) -> dict[str, JsonValue]:
    return {key: value for key, value in record.as_json().items() if key not in keys}


def sealed_signatures(gate: Gate) -> dict[str, str]:
    """How this version of gates would measure and judge a gate; of axes that are not installed nothing is said."""
    try:
        return signatures(gate, axes_of(gate), rules_of(gate))
    except UsageError:
        return {}
