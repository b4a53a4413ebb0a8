"""Keep the texts of a trial as the known-answer panel: make_panel.py GENERATIONS.jsonl.gz BEATS.txt PAIRS.json OUT.

GENERATIONS holds one text a line: arm, seed, set ("open" or "train-beats"), beat (its number from 0 in that set),
prompt, text, finish_reason, completion_tokens. The open beats are the lines of BEATS, the train-beats those of the
first 24 training pairs in PAIRS. Every text is kept, as it is, but sorted and in canonical JSON, so that the same input
gives the same bytes: OUT/generations.jsonl, OUT/beats.txt and OUT/train-beats.txt, whose SHA-256 are printed. Nothing
is written when a text is missing or twice there, or when its prompt is not that of its beat.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import click

from gates.records import canonical, sha256

SEEDS = {"base-again": range(101, 106)}
"""Generation seeds by arm; 1 to 5 for every arm that is not named."""
PROBED = ("lv-bronte-e3", "lv-bronte-overfit")
"""The arms that were asked the train-beats, too."""
SETS = ("open", "train-beats")
PROBE_SIZE = 24


@click.command()
@click.argument("generations", type=click.Path(path_type=Path, exists=True))
@click.argument("beats", type=click.Path(path_type=Path, exists=True))
@click.argument("pairs", type=click.Path(path_type=Path, exists=True))
@click.argument("out", type=click.Path(path_type=Path, file_okay=False, exists=True))
def main(generations: Path, beats: Path, pairs: Path, out: Path) -> None:
    """Write the panel's texts and beats to the folder OUT."""
    asked = {
        "open": beats.read_text("utf-8").split("\n")[:-1],
        "train-beats": [pair["beat"] for pair in json.loads(pairs.read_bytes())[:PROBE_SIZE]],
    }
    with gzip.open(generations, "rt", encoding="utf-8") as lines:
        texts = sorted(map(json.loads, lines), key=_key)
    problems = _problems(texts, asked)
    if problems:
        raise click.ClickException("\n".join(problems[:10]))
    for name, content in (
        ("generations.jsonl", b"".join(canonical(text) + b"\n" for text in texts)),
        ("beats.txt", _lines(asked["open"])),
        ("train-beats.txt", _lines(asked["train-beats"])),
    ):
        (out / name).write_bytes(content)
        click.echo(f"{sha256(content)}  {name}")


def _key(text: dict[str, Any]) -> tuple[int, str, int, int]:
    return SETS.index(text["set"]), text["arm"], text["seed"], text["beat"]


def _problems(texts: list[dict[str, Any]], asked: dict[str, list[str]]) -> list[str]:
    """What keeps these texts from being a panel, in sentences."""
    arms = sorted({text["arm"] for text in texts})
    expected = Counter(
        (number, arm, seed, beat)
        for (number, kind), arm in product(enumerate(SETS), arms)
        if kind == "open" or arm in PROBED
        for seed, beat in product(SEEDS.get(arm, range(1, 6)), range(len(asked[kind])))
    )
    found = Counter(map(_key, texts))
    wrong = [f"missing: {key}" for key in expected - found] + [f"too many: {key}" for key in found - expected]
    return wrong or [
        f"not the prompt of its beat: {_key(text)}"
        for text in texts
        if text["prompt"] != f"Beat: {asked[text['set']][text['beat']]}"
    ]


def _lines(beats: list[str]) -> bytes:
    return "".join(f"{beat}\n" for beat in beats).encode()


if __name__ == "__main__":
    main()
