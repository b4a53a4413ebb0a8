"""A small workspace without any download: texts made of random words, twelve beats, an adapter of a few bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from gates.records import sha256

VOCABULARY = [f"{a}{b}{c}" for a in "bdfglmnrst" for b in "aeiou" for c in ("", "n", "r", "st")]
CORPORA = {
    "author": {"train": ("Ann Author", "First", 4000), "heldout": ("Ann Author", "Second", 4000)},
    "others": {"all": ("Bob Other", "Third", 9000)},
}
NOUNS = ("ship", "dog", "rain", "girl", "lamp", "horse", "king", "snow", "coat", "bird", "road", "sea")
BEATS = tuple(f"The {noun} waits at the gate" for noun in NOUNS)

GATE: dict[str, Any] = {
    "schema": "gates/1",
    "name": "small",
    "question": "Does it move?",
    "seat": {"base_url": "http://127.0.0.1:9/v1", "attempts": 1},
    "arms": {"base": "base", "candidates": {"one": {"model": "voice-one", "adapter": "one.gguf"}}},
    "corpora": {"train": "author/train", "heldout": "author/heldout", "reference": "others"},
    "prompts": {"file": "beats.txt", "template": "Beat: {beat}"},
    "sampling": {"seeds": [1, 2], "temperature": 0.9, "top_p": 0.95, "max_tokens": 40},
    "voice": {"mfw": 100, "words_per_seed": 100},
    "memorisation": {"max_rate": 0.2},
    "damage": {"ran_on": {"within": "floor"}},
}


def prose(seed: int, words: int, lean: float = 0.0) -> str:
    """Random words, Zipf-like; `lean` moves weight from the first half of the vocabulary to the second."""
    rng = np.random.default_rng(seed)
    weights = 1 / (np.arange(len(VOCABULARY)) + 5.0) + lean * (np.arange(len(VOCABULARY)) >= len(VOCABULARY) // 2)
    return " ".join(rng.choice(VOCABULARY, words, p=weights / weights.sum()))


def small_workspace(home: Path, cache: Path, **changes: Any) -> Path:
    """Write workspace and cache; returns the gate's path. `changes` replace keys of the gate."""
    (home / "corpora").mkdir(parents=True)
    (home / "prereg").mkdir(exist_ok=True)
    for number, (name, splits) in enumerate(CORPORA.items()):
        files = []
        for split, (author, title, words) in splits.items():
            data = prose(len(files) + 10 * number, words, 0.01 * number).encode()
            path = cache / "corpora" / name / f"{split}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            files.append({"path": path.name, "sha256": sha256(data), "author": author, "title": title, "split": split})
        manifest = {
            "schema": "gates.corpus/1",
            "name": name,
            "title": f"Title of {name}",
            "licence": "none",
            "provenance": "made up",
            "source": {"local": {"root": "texts"}},
            "files": files,
        }
        (home / "corpora" / f"{name}.yaml").write_text(json.dumps(manifest), "utf-8")
    (home / "prereg" / "beats.txt").write_text("\n".join(BEATS), "utf-8")
    (home / "prereg" / "one.gguf").write_bytes(b"adapter")
    gate = home / "prereg" / "small.yaml"
    gate.write_text(json.dumps(GATE | changes), "utf-8")
    return gate
