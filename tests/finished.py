"""A finished run without a seat: real seal, ledger, measurements and verdict over texts that a test makes up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from gates.flow.binding import bind
from gates.flow.concluding import conclude
from gates.flow.earlier import Asked
from gates.flow.inputs import Inputs, load_inputs
from gates.flow.planning import operating_of, seed_of
from gates.flow.world import World
from gates.record.ledger import Ledger, Stamp
from gates.record.seal import Seal, SealOnDisk, write_seal
from gates.record.store import RunStore, Session, open_run
from gates.records import Generation, Usage
from gates.seat.requests import request_body
from tests.small import prose, small_workspace

AT = "2026-01-01T00:00:00+00:00"
SEAT: dict[str, Any] = {
    "version": "0.9.0",
    "fingerprint": "vllm-0.9.0-x",
    "base_card": {"id": "base", "root": "org/carrier", "max_model_len": 8192},
    "base_card_sha256": "0" * 64,
}

Words = Callable[[str, int, int], str]
"""The text that an arm gives for a prompt and a seed."""


def some_words(arm: str, prompt: int, seed: int) -> str:
    """Random words, the candidates' closer to the author's than the base's."""
    return prose(1000 * seed + prompt, 30, 0.0 if arm != "base" else 0.02)


TWO = {
    "arms": {
        "base": "base",
        "candidates": {
            "one": {"model": "voice-one", "adapter": "one.gguf"},
            "two": {"model": "voice-two", "adapter": "one.gguf"},
        },
    }
}
COPIED = " ".join(prose(0, 4000).split()[500:512])
"""Twelve words of the train split."""


def two_voices(arm: str, prompt: int, seed: int) -> str:
    text = some_words(arm, prompt, seed)
    if (arm, prompt, seed) in {("one", 3, 1), ("base", 5, 2), ("two", 1, 1)}:
        return f"{text} {COPIED} {text}"
    return "" if (arm, prompt, seed) == ("one", 7, 2) else text


def finished_run(home: Path, cache: Path, say: Words = some_words, **changes: Any) -> Path:
    """Write a workspace with a finished run of the small gate; returns the run's folder."""
    gate_path = small_workspace(home, cache, **changes)
    inputs = load_inputs(gate_path, cache)
    sealed = sealed_gate(inputs)
    return end_run(inputs, sealed, say)


def sealed_gate(inputs: Inputs) -> SealOnDisk:
    gate = inputs.gate
    return write_seal(
        inputs.prereg,
        Seal(
            gate=gate,
            gate_file=inputs.path.relative_to(inputs.workspace).as_posix(),
            binding=bind(inputs, SEAT, {}),
            context={},
            order_seed=seed_of("order", gate),
            operating=operating_of(Asked(gate, inputs.beats, inputs.workspace)).as_json(),
            sealed_at=AT,
            sealed_by="tester",
            previous=Ledger(inputs.prereg).heads(),
            amends=None,
            runs_before=0,
        ),
    )


def end_run(inputs: Inputs, sealed: SealOnDisk, say: Words) -> Path:
    """Record the generations of a run, measure, judge and write it, as `gates run` does after its seat has answered."""
    gate, stamp = sealed.seal.gate, Stamp(AT, "tester")
    ledger = Ledger(inputs.prereg)
    store = open_run(ledger, inputs.reports, gate.name, sealed.sha256, stamp)
    store.resume(sealed.sha256)
    add_look(store, ledger, sealed, "start", stamp)
    for arm, about in gate.arms.all().items():
        for seed in gate.seeds(arm):
            for prompt, shown in enumerate(inputs.shown):
                text = say(arm, prompt, seed)
                store.add(
                    Generation(
                        seal=sealed.sha256,
                        arm=arm,
                        prompt=prompt,
                        seed=seed,
                        seat="made up",
                        request=request_body(gate, arm, shown.beat, seed, shown.prompts),
                        text=text,
                        finish_reason="stop",
                        usage=Usage(prompt_tokens=8, completion_tokens=30),
                        model=about.model,
                        fingerprint=SEAT["fingerprint"],
                        prompt_sha256=None,
                        started=AT,
                        latency_s=0.1,
                        attempts=1,
                        error=None,
                    )
                )
    add_look(store, ledger, sealed, "end", stamp)
    world = World(cache=inputs.cache, by="tester", environ={}, now=lambda: datetime.fromisoformat(AT))
    conclude(inputs, sealed, store, world)
    return store.folder


def add_look(store: RunStore, ledger: Ledger, sealed: SealOnDisk, phase: Any, stamp: Stamp) -> None:
    """A look at a seat that was not there."""
    count = sum(1 for _ in store.generations(sealed.sha256))
    store.add_session(
        Session(
            phase=phase,
            seal=sealed.sha256,
            at=stamp.at,
            by=stamp.by,
            seat={},
            canary={},
            cache_salt="salt",
            deviations=(),
            generations=count,
            generations_sha256=store.generations_sha256(),
        ),
        ledger,
    )


def world_of(cache: Path, by: str, key: Path | None = None) -> World:
    return World(cache=cache, by=by, environ={}, key=key)
