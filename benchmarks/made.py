"""A workspace of made-up texts with a finished run of any size, made by gates' own commands.

The author's train split has 1 M words in ten books, with proper names, curly quotes, dashes and accents, so that no
short cut for plain ASCII flatters; his held-out book 80,000 words, eight reference authors 60,000 each. Three arms, the
candidates nearer to the author than the base. The texts come in as a file of texts (`gates import`), which measures
and judges them as `gates run` does when the last one is there; of several runs each has a seed's worth of other texts.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from gates.records import sha256

VOCABULARY = np.array(
    [f"{a}{b}{c}{d}" for a in "bdfglmnrst" for b in "aeioué" for c in "bdklmnprst" for d in ("", "a", "en", "ing")]
)
NAMES = ("Rochester", "Thornfield", "Adèle", "Fairfax", "Ingram")
ARMS = {"base": 0.0, "one": 0.35, "two": 0.3}
BOOK_WORDS, HELDOUT_WORDS, OTHERS, OTHER_WORDS = 100_000, 80_000, 8, 60_000


def prose(seed: int, words: int, lean: float = 0.0, names: tuple[str, ...] = ()) -> str:
    """Zipf-like sentences of invented words, one in ten quoted; `lean` makes every other word more frequent."""
    random = np.random.default_rng(seed)
    rank = np.arange(len(VOCABULARY))
    weights = (1 + lean * (rank % 2)) / (rank + 2.7)
    found = random.choice(VOCABULARY, words, p=weights / weights.sum()).tolist()
    if names:
        for place in random.integers(1, words, words // 60):
            found[place] = names[int(place) % len(names)]
    sentences = [" ".join(found[k : k + 12]) for k in range(0, words, 12)]
    sentences = [one[:1].upper() + one[1:] for one in sentences]
    return "\n".join(f"“{one},” — it’s so." if number % 10 == 0 else f"{one}." for number, one in enumerate(sentences))


def make(folder: Path, *, seeds: int = 5, beats: int = 24, runs: int = 1, books: int = 10) -> Path:
    """Write manifests, texts, gates and the texts to be judged; returns the workspace. Nothing is judged yet."""
    home, cache = folder / "workspace", folder / "cache"
    (home / "prereg").mkdir(parents=True)
    (home / "corpora").mkdir()
    books = {
        "author": [
            *((f"train{k}", "train", prose(k, BOOK_WORDS, 0.3, NAMES)) for k in range(books)),
            ("heldout", "heldout", prose(99, HELDOUT_WORDS, 0.3)),
        ],
        "others": [(f"other{k}", "all", prose(50 + k, OTHER_WORDS, k / 20)) for k in range(OTHERS)],
    }
    for corpus, files in books.items():
        _corpus(home, cache, corpus, files)
    told = [f"The {VOCABULARY[k]} waits at the {VOCABULARY[-1 - k]} with number {k}" for k in range(beats)]
    (home / "prereg" / "beats.txt").write_text("\n".join(told), "utf-8")
    (home / "prereg" / "adapter.bin").write_bytes(b"made up")
    (home / "prereg" / "bench.yaml").write_text(json.dumps(_gate(seeds)), "utf-8")
    for run in range(1, runs + 1):
        lines = [
            {"arm": arm, "prompt": prompt, "seed": seed, "text": _text(run, arm, told[prompt], (seed, prompt))}
            | {"completion_tokens": 330, "finish_reason": "stop"}
            for arm in ARMS
            for seed in range(1, seeds + 1)
            for prompt in range(beats)
        ]
        (home / f"texts{run}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return home


def _text(run: int, arm: str, beat: str, key: tuple[int, int]) -> str:
    seed = int(sha256(f"{run} {arm} {key}".encode())[:8], 16)
    return f"{beat}. {prose(seed, 250, ARMS[arm])}"


def _corpus(home: Path, cache: Path, name: str, files: list[tuple[str, str, str]]) -> None:
    listed = []
    (cache / "corpora" / name).mkdir(parents=True)
    for title, split, text in files:
        data = text.encode()
        (cache / "corpora" / name / f"{title}.txt").write_bytes(data)
        about = {"author": title if name == "others" else name, "title": title, "split": split}
        listed.append({"path": f"{title}.txt", "sha256": sha256(data)} | about)
    manifest = {"schema": "gates.corpus/1", "name": name, "title": name, "licence": "none", "provenance": "made up"}
    manifest |= {"source": {"local": {"root": "texts"}}, "files": listed}
    (home / "corpora" / f"{name}.yaml").write_text(json.dumps(manifest), "utf-8")


def _gate(seeds: int) -> dict[str, object]:
    margins = ("ran_on", "on_beat", "empty", "repetition", "echo", "name_leak")
    return {
        "schema": "gates/1",
        "name": "bench",
        "question": "How long?",
        "seat": {"base_url": "http://127.0.0.1:9/v1"},
        "arms": {
            "base": "base",
            "candidates": {arm: {"model": arm, "adapter": "adapter.bin"} for arm in ARMS if arm != "base"},
        },
        "corpora": {"train": "author/train", "heldout": "author/heldout", "reference": "others"},
        "prompts": {"file": "beats.txt", "template": "Beat: {beat}"},
        "sampling": {"seeds": list(range(1, seeds + 1)), "temperature": 0.9, "top_p": 0.95, "max_tokens": 400},
        "voice": {"mfw": 300, "words_per_seed": 4000},
        "memorisation": {"max_rate": 0.1},
        "damage": {axis: {"margin": 0.5} for axis in margins},
    }


def gates(home: Path, *words: str) -> tuple[float, float, str]:
    """Seconds of the processor and of the clock that a command of `gates` takes as a process of its own, and stdout."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    ended = subprocess.run(
        [sys.executable, "-m", "gates", *words],
        cwd=home,
        env={**os.environ, "GATES_CACHE": str(home.parent / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode not in (0, 1, 3):
        raise SystemExit(f"gates {' '.join(words)} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return spent, time.perf_counter() - started, ended.stdout
