"""How long scoring a finished run takes: 3 arms, 5 seeds, 24 beats, a train split of 1 M words, all of it made up.

    python benchmarks/score.py

Measures and judges in this process, as `gates run` does when the last generation is there; seconds are of the
processor (user and system), the process's start included.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from gates.corpora.texts import Document
from gates.flow.inputs import Inputs, frame_of
from gates.flow.measuring import measure
from gates.judge.verdict import judge
from gates.records import Generation, Usage, sha256
from gates.spec.schema import Gate

SEEDS, BEATS, WORDS = (1, 2, 3, 4, 5), 24, 250
VOCABULARY = np.array(
    [f"{a}{b}{c}{d}" for a in "bdfglmnrst" for b in "aeiou" for c in "bdklmnprst" for d in ("", "a", "en")]
)
HASH = "0" * 64


def prose(seed: int, words: int, lean: float = 0.0) -> str:
    """Zipf-like sentences of invented words."""
    random = np.random.default_rng(seed)
    weights = 1 / (np.arange(len(VOCABULARY)) + 2.7) + lean * (np.arange(len(VOCABULARY)) % 2) / len(VOCABULARY)
    found = random.choice(VOCABULARY, words, p=weights / weights.sum()).tolist()
    return " ".join(" ".join(found[k : k + 12]).capitalize() + "." for k in range(0, words, 12))


def document(name: str, text: str, author: str) -> Document:
    """A text as a corpus gives it."""
    return Document(
        name=name,
        corpus=author,
        author=author,
        title=name,
        split="all",
        text=text,
        cleaner="none",
        sha256=HASH,
        text_sha256=HASH,
    )


def finished() -> tuple[Inputs, list[Generation]]:
    """A gate's inputs and all its generations."""
    arms = {"one": {"model": "one", "adapter": "a"}, "two": {"model": "two", "adapter": "b"}}
    gate = {
        "schema": "gates/1",
        "name": "bench",
        "question": "How long?",
        "seat": {"base_url": "http://127.0.0.1:9/v1"},
        "arms": {"base": "base", "candidates": arms},
        "corpora": {"train": "author/train", "heldout": "author/heldout", "reference": "others"},
        "prompts": {"file": "beats.txt", "template": "Beat: {beat}"},
        "sampling": {"seeds": SEEDS, "temperature": 0.9, "top_p": 0.95, "max_tokens": 400},
        "voice": {"mfw": 300, "words_per_seed": 4000},
        "memorisation": {"max_rate": 0.1},
        "damage": {axis: {"margin": 0.5} for axis in ("ran_on", "on_beat", "empty", "repetition", "echo", "name_leak")},
    }
    beats = tuple(
        f"The {word} waits at the gate with a {other}"
        for word, other in zip(VOCABULARY[:BEATS], VOCABULARY[40:], strict=False)
    )
    reference = tuple(document(f"ref{k}", prose(50 + k, 60_000, k / 20), f"other{k}") for k in range(8))
    inputs = Inputs(
        path=Path("prereg/bench.yaml"),
        workspace=Path(),
        cache=Path("cache"),
        gate=Gate.model_validate(gate),
        beats=beats,
        train=tuple(document(f"train{k}", prose(k, 100_000, 0.3), "author") for k in range(10)),
        heldout=(document("heldout", prose(99, 80_000, 0.3), "author"),),
        reference=reference,
        imposters={},
        frame=frame_of(reference, 300),
        adapters={},
    )
    return inputs, [
        generation(
            arm,
            prompt,
            seed,
            f"{beats[prompt]}. {prose(1000 * seed + 10 * prompt + len(arm), WORDS, 0.3 * (arm != 'base'))}",
        )
        for arm in ("base", *arms)
        for seed in SEEDS
        for prompt in range(BEATS)
    ]


def generation(arm: str, prompt: int, seed: int, text: str) -> Generation:
    """An answer."""
    return Generation.model_validate(
        {
            "seal": HASH,
            "arm": arm,
            "prompt": prompt,
            "seed": seed,
            "seat": "none",
            "request": {},
            "text": text,
            "finish_reason": "stop",
            "usage": Usage(prompt_tokens=9, completion_tokens=300),
            "model": arm,
            "fingerprint": None,
            "prompt_sha256": None,
            "started": "t",
            "latency_s": 1.0,
            "attempts": 1,
            "error": None,
        }
    )


if __name__ == "__main__":
    inputs, generations = finished()
    started, wall = time.process_time(), time.perf_counter()
    measured = measure(inputs, HASH, generations, sha256(b""))
    middle = time.process_time()
    verdict = judge(inputs.gate, measured)
    ended = time.process_time()
    print(f"measure {middle - started:.2f} s, judge {ended - middle:.2f} s of the processor")
    print(f"wall {time.perf_counter() - wall:.2f} s; {verdict.outcome.value}")
