"""One arm of a run as an evaluation log that Inspect reads: its generations as samples, the axes as scores.

The JSON form of an `EvalLog`, version 2: https://inspect.aisi.org.uk/eval-logs.html. An arm is a model of its own to
Inspect, so each has a log of its own; a generation seed is an epoch, in the gate's order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import JsonValue

from gates import __version__
from gates.errors import TamperedError, UsageError
from gates.judge.axes import AxisVerdict
from gates.judge.verdict import Verdict
from gates.measure.figures import ArmMeasurements, DamageFigures, Measurements, MemorisationFigures
from gates.record.ledger import Stored
from gates.record.seal import SealOnDisk
from gates.record.verdicts import told_of
from gates.records import Generation, digest

_STOPPED = {"stop": "stop", "length": "max_tokens", "content_filter": "content_filter"}


@dataclass(frozen=True)
class Told:
    """A finished run as far as a log tells of it; `started` and `ended` are times in ISO 8601.

    `rescored` are the ledger's records of its re-scores.
    """

    sealed: SealOnDisk
    number: int
    measurements: Measurements
    verdict: Verdict
    started: str
    ended: str
    rescored: Sequence[Stored] = ()


def eval_log(told: Told, arm: str, generations: Iterable[Generation]) -> dict[str, JsonValue]:
    """The log of an arm of a run. Raises UsageError for an arm that the gate has not."""
    gate = told.sealed.seal.gate
    if arm not in gate.arms.all():
        raise UsageError(f"{arm!r} is no arm", next_step=f"choose one of: {', '.join(gate.arms.all())}")
    figures = told.measurements.arms[arm]
    seeds = gate.seeds(arm)
    samples: list[JsonValue] = [
        _sample(generation, seeds.index(generation.seed) + 1, figures)
        for generation in sorted(generations, key=lambda one: (one.prompt, one.seed))
        if generation.arm == arm
    ]
    identity = digest([told.sealed.sha256, told.number, arm])
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": identity[:22],
            "run_id": told.verdict.digest()[:22],
            "created": told.started,
            "task": gate.name,
            "task_id": told.sealed.sha256[:22],
            "task_version": told.sealed.sha256[:12],
            "dataset": {"name": gate.prompts.file, "samples": len(samples) // len(seeds), "shuffled": True},
            "model": gate.arms.all()[arm].model,
            "config": {"epochs": len(seeds)},
            "packages": {"voice-gates": __version__},
            "metadata": _metadata(told, arm),
        },
        "plan": {"name": "gates run", "steps": [], "config": {}},
        "results": {
            "total_samples": len(samples),
            "completed_samples": sum(1 for sample in samples if isinstance(sample, dict) and "error" not in sample),
            "scores": [_score(name, axis) for name, axis in _axes(told.verdict, arm).items()],
        },
        "stats": {"started_at": told.started, "completed_at": told.ended, "model_usage": {}},
        "samples": samples,
    }


def file_name(told: Told, arm: str) -> str:
    """The name under which Inspect finds a log in a folder: time, task, identity."""
    try:
        when = datetime.fromisoformat(told.started).strftime("%Y-%m-%dT%H-%M-%S%z")
    except ValueError:
        raise TamperedError(f"a session of the run says it began at {told.started!r}, which is no time") from None
    # Inspect takes what stands between two underscores for the task.
    task = f"{told.sealed.seal.gate.name}-{told.number:03d}-{arm}".replace("_", "-")
    return f"{when}_{task}_{digest([told.sealed.sha256, told.number, arm])[:22]}.json"


def _metadata(told: Told, arm: str) -> dict[str, JsonValue]:
    judged = told.verdict.candidates.get(arm)
    return {
        "question": told.sealed.seal.gate.question,
        "seal": told.sealed.sha256,
        "run": told.number,
        "arm": arm,
        "outcome": None if judged is None else judged.outcome.value,
        "standing": None if told.verdict.standing is None else str(told.verdict.standing),
        "generations_sha256": told.measurements.generations_sha256,
        **({"rescores": [told_of(one, arm) for one in told.rescored]} if judged and told.rescored else {}),
    }


def _axes(verdict: Verdict, arm: str) -> dict[str, AxisVerdict]:
    judged = verdict.candidates.get(arm) or verdict.controls.get(arm)
    return {} if judged is None else judged.axes


def _score(name: str, axis: AxisVerdict) -> dict[str, JsonValue]:
    """An axis without a value (not fit to judge) has no metric, for a figure would look like a result."""
    metrics: dict[str, JsonValue] = {} if axis.value is None else {"value": {"name": "value", "value": axis.value}}
    return {
        "name": name,
        "scorer": axis.signature or name,
        "params": {},
        "metrics": metrics,
        "metadata": axis.as_json(),
    }


def _sample(generation: Generation, epoch: int, figures: ArmMeasurements) -> dict[str, JsonValue]:
    usage = generation.usage
    failed: dict[str, JsonValue] = {}
    if generation.error is not None:
        failed = {"error": {"message": generation.error, "traceback": "", "traceback_ansi": ""}}
    answer: dict[str, JsonValue] = {"role": "assistant", "content": generation.text, "source": "generate"}
    asked = generation.request.get("messages")
    shown: list[JsonValue] = [*asked] if isinstance(asked, list) else [{"role": "user", "content": _prompt(generation)}]
    stopped = _STOPPED.get(generation.finish_reason or "", "unknown")
    counted: dict[str, JsonValue] = (
        {}
        if usage is None
        else {
            "usage": {
                "input_tokens": usage.prompt_tokens,
                "output_tokens": usage.completion_tokens,
                "total_tokens": usage.prompt_tokens + usage.completion_tokens,
            }
        }
    )
    return {
        "id": generation.prompt + 1,
        "epoch": epoch,
        "input": shown,
        "target": "",
        "messages": [*shown, answer],
        "output": {
            "model": generation.model or "",
            "choices": [{"message": answer, "stop_reason": stopped}],
            "time": generation.latency_s,
            **counted,
        },
        "scores": _values(generation, figures),
        "metadata": {"seed": generation.seed, "key": [generation.arm, generation.prompt, generation.seed]},
        "store": {},
        "events": [],
        "model_usage": {},
        "attachments": {},
        **failed,
    }


def _prompt(generation: Generation) -> str:
    return str(generation.request.get("prompt", ""))


def _values(generation: Generation, figures: ArmMeasurements) -> dict[str, JsonValue]:
    """What was measured on one generation alone; voice is measured on a seed's pool and has no value here."""
    row = figures.seeds.index(generation.seed)
    found: dict[str, JsonValue] = {}
    for name, axis in figures.damage.items():
        # A probe's prompts stand after the gate's own, and no damage axis sees them.
        if isinstance(axis, DamageFigures) and generation.prompt < len(axis.values[row]):
            found[name] = {"value": axis.values[row][generation.prompt]}
    if isinstance(figures.memorisation, MemorisationFigures):
        here = [run for run in figures.memorisation.runs if (run.prompt, run.seed) == generation.key[1:]]
        longest = max((run.length for run in here), default=0)
        found["memorisation"] = {
            "value": int(bool(here)),
            "explanation": f"longest run of the train split: {longest} words",
        }
    return found
