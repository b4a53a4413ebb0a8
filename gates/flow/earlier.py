"""The earlier run whose base seeds say what a gate's rules do with real texts: found in the ledger, or named."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import JsonValue

from gates.errors import GatesError, UsageError
from gates.flow.finished import FinishedRun, read_run
from gates.judge.verdict import BASE
from gates.measure.figures import ArmMeasurements, DamageFigures, Measurements, VoiceFigures
from gates.record.body import said
from gates.record.ledger import Ledger, Stored
from gates.record.seal import Binding, read_seal
from gates.records import Generation
from gates.seat.requests import request_body
from gates.spec.asking import Base, Control
from gates.spec.schema import Gate
from gates.spec.splits import BaseSeeds, Earlier
from gates.stats import Array


@dataclass(frozen=True)
class Asked:
    """A gate to be sealed: its beats, its workspace, the probe's beats, the held-out text and what it binds, if known.

    An earlier run must be like it.
    """

    gate: Gate
    beats: tuple[str, ...]
    workspace: Path
    probe: tuple[str, ...] = ()
    heldout: tuple[str, ...] | None = None
    binding: Binding | None = None

    @property
    def needed(self) -> int:
        """How many base seeds two groups of the gate's k take."""
        return 2 * len(self.gate.sampling.seeds)


def earlier_seeds(asked: Asked, named: Path | None) -> tuple[BaseSeeds | None, str]:
    """The base seeds of the run in folder `named`, or of the newest run of the workspace that will do; and which.

    Without one the sentence says why there is none. Raises UsageError where the named run will not do.
    """
    if named is not None:
        run = read_run(named)
        why = _unlike(asked, run.seal.gate) or _unfit(asked, run)
        if why:
            raise UsageError(
                f"--earlier {named}: {why}",
                next_step="name a run of the same base, seat, prompts, sampling and texts, or leave --earlier out",
            )
        return _pooled(run), f"random splits of the base seeds of {named}"
    reasons: list[str] = []
    for place, verdict in _finished(asked.workspace):
        try:
            why, found = _candidate(asked, place, verdict)
        except GatesError as error:
            why, found = error.message, None
        if found is not None:
            return _pooled(found), f"random splits of the base seeds of {place.relative_to(asked.workspace)}"
        reasons.append(f"{place.relative_to(asked.workspace)}: {why}")
    none = f"no random splits: no earlier run here has {asked.needed} base seeds under this base, seat, prompts, "
    return None, f"{none}sampling and texts" + (f" ({reasons[0]})" if reasons else "")


def _finished(workspace: Path) -> Iterator[tuple[Path, Stored]]:
    """The finished runs of a workspace, the newest first: folder and ledger record."""
    for stored in reversed(Ledger(workspace / "prereg").entries()):
        if stored.entry.kind == "verdict":
            yield workspace / "reports" / stored.entry.gate / f"{said(stored, 'run', int):03d}", stored


def _candidate(asked: Asked, place: Path, verdict: Stored) -> tuple[str, FinishedRun | None]:
    """The run, or why it will not do; its files are read only where its seal does not rule it out."""
    seal = said(verdict, "seal", str)
    prereg = asked.workspace / "prereg"
    files = [
        said(s, "file", str)
        for s in Ledger(prereg).entries()
        if s.entry.kind == "seal" and said(s, "seal", str) == seal
    ]
    if not files:
        return "the ledger names no seal of it", None
    why = _unlike(asked, read_seal(prereg, seal, files[0]).seal.gate)
    if why:
        return why, None
    run = read_run(place)
    why = _unfit(asked, run)
    return why, None if why else run


def _unlike(asked: Asked, other: Gate) -> str:
    """What tells the gate of an earlier run from this one, as far as its base's distances are concerned."""
    pairs = zip(_alike(asked.gate).items(), _alike(other).items(), strict=True)
    return "; ".join(f"another {name}" for (name, one), (_, two) in pairs if one != two)


def _alike(gate: Gate) -> dict[str, object]:
    return {
        "seat": [seat.base_url for seat in gate.servers],
        "base": gate.arms.base,
        "endpoint": gate.prompts.endpoint,
        "sampling": gate.sampling.model_copy(update={"seeds": ()}),
        "voice measure": (gate.voice.measure, gate.voice.mfw, gate.voice.words_per_seed),
        "held-out text": gate.corpora.heldout,
        "reference": gate.corpora.reference,
    }


def _unfit(asked: Asked, run: FinishedRun) -> str:
    """Why a run's base seeds cannot be split for this gate, or nothing."""
    bound, now = run.seal.binding, asked.binding
    if now is not None and (bound.seat, bound.frame, bound.texts.get("heldout")) != (
        now.seat,
        now.frame,
        now.texts.get("heldout"),
    ):
        return "its seat, frame or held-out text are not those of this gate"
    measures = (name for name in bound.signatures if now is not None and not name.endswith(".floor"))
    if now is not None and any(
        now.signatures.get(name, bound.signatures[name]) != bound.signatures[name] for name in measures
    ):
        return "it was measured by another version of a measure"
    if not _same_prompts(asked, run.store.generations(run.sealed.sha256)):
        return "its base was asked something else"
    seeds = len(_by_seed(run))
    if seeds < asked.needed:
        return f"{seeds} base seeds are measured, {asked.needed} are needed (a base-again control doubles them)"
    return ""


def _same_prompts(asked: Asked, generations: Iterator[Generation]) -> bool:
    """Whether the base was asked what this gate would ask it, seed apart, for each of the gate's beats."""
    wanted = {p: _request(request_body(asked.gate, BASE, beat, 0)) for p, beat in enumerate(asked.beats)}
    open_prompts = {g.prompt: _request(g.request) for g in generations if g.arm == BASE and g.prompt in wanted}
    return open_prompts == wanted


def _request(body: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {key: value for key, value in body.items() if key != "seed"}


def _base_arms(gate: Gate) -> list[str]:
    """The base, and the controls that are the base again under other seeds."""
    base = gate.arms.base
    return [name for name, arm in gate.arms.all().items() if _is_base(arm, base)]


def _is_base(arm: object, base: Base) -> bool:
    again = isinstance(arm, Control) and arm.adapter is None and (arm.model, arm.system) == (base.model, base.system)
    return arm is base or again


def _by_seed(run: FinishedRun) -> dict[int, tuple[str, int]]:
    """Where each base seed stands: arm and place. A seed that two arms share counts once: its texts may agree."""
    found: dict[int, tuple[str, int]] = {}
    for name in _base_arms(run.seal.gate):
        arm = run.measurements.arms.get(name)
        if arm is not None and _whole(arm) and _distances(run.measurements, name) is not None:
            for place, seed in enumerate(arm.seeds):
                found.setdefault(seed, (name, place))
    return found


def _whole(arm: ArmMeasurements) -> bool:
    seen = arm.validity
    return seen.present == seen.expected and seen.errors == 0 and seen.prompt_mismatches == 0


def _distances(measurements: Measurements, name: str) -> tuple[float, ...] | None:
    """The arm's distances by seed; the base's stand in the figures of every other arm."""
    if name != BASE:
        own = measurements.arms[name].voice
        return own.distances if isinstance(own, VoiceFigures) else None
    others = (arm.voice for arm in measurements.arms.values())
    return next((voice.base_distances for voice in others if isinstance(voice, VoiceFigures)), None)


def _pooled(run: FinishedRun) -> BaseSeeds:
    """The figures of every base seed of a run that is fit."""
    places = _by_seed(run)
    arms = tuple(dict.fromkeys(arm for arm, _ in places.values()))
    distances = {arm: _distances(run.measurements, arm) or () for arm in arms}
    axes = (_values(run.measurements, axis, places.values()) for axis in run.seal.gate.damage.named())
    return BaseSeeds(
        earlier=Earlier(
            gate=run.seal.gate.name,
            run=run.store.number,
            seal=run.sealed.sha256,
            measurements_sha256=run.verdict.measurements_sha256,
            arms=arms,
            seeds=len(places),
        ),
        distances=np.array([distances[arm][place] for arm, place in places.values()]),
        damage={axis: values for axis, values in zip(run.seal.gate.damage.named(), axes, strict=True) if values.size},
    )


def _values(measurements: Measurements, axis: str, places: Collection[tuple[str, int]]) -> Array:
    """The axis's values (N, P) of the base seeds; empty where an arm has none."""
    figures = [(measurements.arms[arm].damage.get(axis), place) for arm, place in places]
    rows = [found.values[place] for found, place in figures if isinstance(found, DamageFigures)]
    return np.array(rows if len(rows) == len(figures) else [])
