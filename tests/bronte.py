"""The Brontë case as a workspace: texts made of random words whose distances give the figures that the house recorded.

A base and two candidates under five seeds. delta_cb is 0.193 for ckpt475 and 0.210 for ckpt925; the ranges over seeds
are 0.091 of the base and 0.251 of ckpt925. Nothing is written into a record by hand: the texts are measured.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from gates.flow.binding import bind
from gates.flow.concluding import conclude
from gates.flow.inputs import Inputs, load_inputs
from gates.flow.planning import operating_of, seed_of
from gates.flow.sealing import asked_of
from gates.flow.world import World
from gates.measure.delta import Frame, cosine, count_matrix
from gates.record.ledger import Ledger
from gates.record.seal import Seal, SealOnDisk, write_seal
from gates.record.store import RunStore, open_run, runs
from gates.records import Generation, Usage
from gates.seat.requests import request_body
from gates.text import words
from tests.finished import add_look
from tests.small import BEATS, VOCABULARY, small_workspace

Key = tuple[str, int, int]
"""(arm, prompt, seed)."""
SEEDS = (1, 2, 3, 4, 5)
WORDS = 1200
SHAPE = np.array([-0.5, -0.1, 0.0, 0.1, 0.5])
ARMS = {"base": (0.0, 0.091), "ckpt475": (0.193, 0.060), "ckpt925": (0.210, 0.251)}
"""Move toward the held-out text and range over seeds, by arm."""
MODELS = {"base": "voices-base", "ckpt475": "lv-bronte-475", "ckpt925": "lv-bronte-925"}
GATE: dict[str, Any] = {
    "name": "lv-bronte",
    "question": "Does lv-bronte move the carrier toward held-out Brontë?",
    "seat": {"base_url": "http://127.0.0.1:8027/v1"},
    "arms": {
        "base": "voices-base",
        "candidates": {
            "ckpt475": {"model": "lv-bronte-475", "adapter": "/adapters/lv-bronte-475"},
            "ckpt925": {"model": "lv-bronte-925", "adapter": "/adapters/lv-bronte-925"},
        },
    },
    "sampling": {"seeds": list(SEEDS), "temperature": 0.9, "top_p": 0.95, "max_tokens": 400},
    "voice": {"mfw": 100, "words_per_seed": WORDS, "floor": "all-arms-range@1"},
    "damage": {},
    "declarations": {"data_seen": "none"},
}
HEMINGWAY = GATE | {
    "name": "lv-hemingway",
    "question": "Does lv-hemingway move the carrier toward held-out Hemingway?",
    "arms": {
        "base": "voices-base",
        "candidates": {"ckpt850": {"model": "lv-hemingway-850", "adapter": "/adapters/lv-hemingway-850"}},
    },
    "voice": GATE["voice"] | {"floor": "pairwise-range@1"},
}


class Record:
    """A workspace under construction; each thing that is entered is a day later than the one before."""

    def __init__(self, home: Path) -> None:
        self.workspace, self.cache = home / "workspace", home / "cache"
        self.gate = small_workspace(self.workspace, self.cache, **GATE).rename(self.workspace / "prereg/lv-bronte.yaml")
        self._days = iter(range(1, 29))

    @property
    def world(self) -> World:
        """Any day of September."""
        now = datetime(2026, 9, next(self._days), 12, tzinfo=UTC)
        return World(cache=self.cache, by="Ann", environ={}, now=lambda: now)

    def write(self, name: str, gate: dict[str, Any], **changes: Any) -> Path:
        """Another gate file."""
        path = self.workspace / "prereg" / f"{name}.yaml"
        document = json.loads(self.gate.read_text("utf-8")) | gate | {"name": name} | changes
        path.write_text(json.dumps(document), "utf-8")
        return path

    def seal(self, path: Path, adapters: dict[str, str] | None = None) -> SealOnDisk:
        """Seal a gate as `gates seal` does, but without asking a seat, and under a rule that has since been retired.

        `adapters` gives the hash of an arm's one adapter file.
        """
        inputs = load_inputs(path, self.cache)
        stamp, ledger = self.world.stamp(), Ledger(inputs.prereg)
        cards: dict[str, Any] = {arm.model: {"id": arm.model} for arm in inputs.gate.arms.candidates.values()}
        binding = bind(inputs, {"version": "0.11.0", "fingerprint": None}, cards)
        known = {
            arm: identity.model_copy(update={"files": {"a.safetensors": (adapters or {})[arm]}})
            for arm, identity in binding.adapters.items()
            if arm in (adapters or {})
        }
        before = [s for s in ledger.entries() if s.entry.kind == "seal" and s.entry.gate == inputs.gate.name]
        made = Seal(
            gate=inputs.gate,
            gate_file=path.relative_to(self.workspace).as_posix(),
            binding=binding.model_copy(update={"adapters": {**binding.adapters, **known}}),
            context={},
            order_seed=seed_of("order", inputs.gate),
            operating=operating_of(asked_of(inputs)).as_json(),
            sealed_at=stamp.at,
            sealed_by=stamp.by,
            previous=ledger.heads(),
            amends=str(before[-1].entry.body["seal"]) if before else None,
            runs_before=len(runs(ledger.entries(), inputs.gate.name)),
        )
        return write_seal(inputs.prereg, made)

    def run(self, path: Path, sealed: SealOnDisk, texts: dict[Key, str], failed: Collection[Key] = ()) -> RunStore:
        """A finished run of texts that are there already; of the `failed` keys the seat gave none."""
        inputs = replace(load_inputs(path, self.cache), gate=sealed.seal.gate)
        ledger, begun = Ledger(inputs.prereg), self.world.stamp()
        store = open_run(ledger, inputs.reports, inputs.gate.name, sealed.sha256, begun)
        store.folder.mkdir(parents=True)
        add_look(store, ledger, sealed, "start", begun)
        for generation in generations(inputs, sealed, texts):
            error = "the seat gave up" if generation.key in failed else None
            store.add(generation.model_copy(update={"error": error}))
        add_look(store, ledger, sealed, "end", begun)
        conclude(inputs, sealed, store, self.world)
        return store


def generations(inputs: Inputs, sealed: SealOnDisk, texts: dict[Key, str]) -> Iterator[Generation]:
    for (arm, prompt, seed), text in texts.items():
        beat, prompts = inputs.shown[prompt]
        yield Generation(
            seal=sealed.sha256,
            arm=arm,
            prompt=prompt,
            seed=seed,
            seat="seat",
            request=request_body(inputs.gate, arm, beat, seed, prompts),
            text=text,
            finish_reason="stop",
            usage=Usage(prompt_tokens=9, completion_tokens=len(text.split())),
            model=inputs.gate.arms.all()[arm].model,
            fingerprint=None,
            prompt_sha256=None,
            started="2026-09-01T12:00:00+00:00",
            latency_s=0.1,
            attempts=1,
            error=None,
        )


def house_texts(inputs: Inputs) -> dict[Key, str]:
    """Texts by (arm, prompt, seed) whose distances to the held-out text are those of the house's record."""
    rng = np.random.default_rng(475)
    goal = [word for document in inputs.heldout for word in words(document.text)]
    texts = {}
    for arm, (move, width) in ARMS.items():
        for seed, target in zip(SEEDS, 0.80 - move + width * SHAPE, strict=True):
            pool = _pool(rng, inputs.frame, goal, float(target))
            size = len(pool) // len(BEATS)
            for prompt in range(len(BEATS)):
                texts[arm, prompt, seed] = " ".join(pool[prompt * size : (prompt + 1) * size])
    return texts


def _pool(rng: np.random.Generator, frame: Frame, goal: list[str], target: float) -> list[str]:
    """WORDS words at that distance from the held-out ones: some of the author's, the others unlike theirs."""
    own = list(rng.choice(goal, WORDS))
    other = list(rng.choice(VOCABULARY, WORDS, p=_unlike(goal)))
    wanted = frame.z(count_matrix([goal], frame.words))

    def off(words_: list[str]) -> float:
        z = frame.z(count_matrix([words_], frame.words))
        return abs(float(cosine(z, wanted)[0, 0]) - target)

    mine = min(range(0, WORDS, 20), key=lambda count: off(own[:count] + other[count:]))
    pool = own[:mine] + other[mine:]
    best = off(pool)
    while best > 1e-4:
        place, word = int(rng.integers(WORDS)), str(rng.choice(VOCABULARY))
        tried = [*pool[:place], word, *pool[place + 1 :]]
        if (now := off(tried)) < best:
            pool, best = tried, now
    rng.shuffle(pool)
    return pool


def _unlike(goal: list[str]) -> np.ndarray:
    """A share for each word: the rarer the author uses it, the more."""
    counts = np.array([goal.count(word) for word in VOCABULARY], dtype=float)
    shares = 1 / (counts + counts.mean())
    return shares / shares.sum()
