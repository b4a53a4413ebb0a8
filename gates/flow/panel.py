"""The known-answer panel: recorded texts of adapters that are known to be right or wrong, judged as any run is.

It tries the instrument: measures and judges on real texts, with both answers wanted. Nothing is asked of a seat, and
nothing is written.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from gates.errors import TamperedError, UsageError
from gates.flow.inputs import Inputs, load_inputs, refuse_unpinned
from gates.flow.measuring import measure
from gates.judge.known import FIGURES, Known, KnownAnswer, against_known
from gates.judge.verdict import judge
from gates.records import Generation, Record, Usage, canonical, sha256
from gates.seat.requests import request_body
from gates.spec.prompts import prompt_text

TEXTS = "generations.jsonl"
KNOWN = "known.csv"
GATES = ("open.yaml", "probe.yaml")

FILES = {
    TEXTS: "a636f7f454f29363c5e6cc708d68f1910b3e679de3a5dde9938f0704ac69d180",
    "beats.txt": "53e1a30ce14781d31b49e15eb016c3e3f861fc9995fd6167e7f6d4ff652f2eff",
    "train-beats.txt": "12d90d413ab7d5d47f84de1ea3b82de50b4e93827b98fae6f3306ca3d6f1fc36",
    "open.yaml": "6825d9f409c856f2565e3e654d581425d4c62c719ad6ca2cdefe1890b2ec8d2d",
    KNOWN: "e86a222e07f3fbac4e60cc9ad53b28cc07abd03064ed6fa191000ed8f7f714f5",
    "probe.yaml": "4e9f2a6e370978956ca852bccd4f994ead89368eb9c806c2e967fdffd8c1a3cc",
}
"""SHA-256 of every file of the panel: the answers are known for these texts under these thresholds alone."""

Panel = tuple["PanelText", ...]


class PanelText(Record):
    """One recorded answer; one line of the panel's texts. `beat` counts from 0 within its set."""

    arm: str
    set: Literal["open", "train-beats"]
    beat: int = Field(ge=0)
    seed: int
    prompt: str
    text: str
    finish_reason: str
    completion_tokens: int = Field(ge=0)


def read_panel(folder: Path) -> Panel:
    """The recorded texts. Raises UsageError for a missing file, TamperedError for a file that is not the panel's."""
    for name, pinned in FILES.items():
        path = folder / name
        if not path.is_file():
            raise UsageError(f"{path} is missing", next_step="run `gates demo --panel` in a clone of the repository")
        if sha256(path.read_bytes()) != pinned:
            raise TamperedError(
                f"{path} is not the file whose answers are known: its SHA-256 is not {pinned}",
                next_step="restore it from its commit",
            )
    lines = (folder / TEXTS).read_bytes().splitlines()
    return tuple(PanelText.parse(line, where=f"{folder / TEXTS}:{number}") for number, line in enumerate(lines, 1))


def known_answers(folder: Path, gate: str) -> tuple[Known, ...]:
    """What the gate file of that name must say of every axis of every arm."""
    with (folder / KNOWN).open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file, strict=True) if row.pop("gate") == gate]
    figures = [{name: float(row[name]) if row[name] else None for name in FIGURES} for row in rows]
    return tuple(
        Known.parse(canonical({**row, **found}), where=str(folder / KNOWN))
        for row, found in zip(rows, figures, strict=True)
    )


def judge_panel(folder: Path, cache: Path, texts: Panel) -> tuple[KnownAnswer, ...]:
    """Measure and judge the panel in `folder`, in its workspace, and set every answer beside the known one.

    Raises UsageError where a corpus is missing.
    """
    return tuple(answer for gate in GATES for answer in judge_texts(folder / gate, cache, texts))


def judge_texts(path: Path, cache: Path, texts: Iterable[PanelText]) -> tuple[KnownAnswer, ...]:
    """Judge recorded texts by one gate of the panel, through the measures and judges of every run."""
    inputs = load_inputs(path, cache)
    refuse_unpinned(inputs)
    # Nothing here is sealed: the gate's own hash stands where a run names its seal.
    seal = inputs.gate.digest()
    measurements = measure(inputs, seal, generations(inputs, seal, texts), FILES[TEXTS])
    answers = known_answers(path.parent, path.name)
    return against_known(inputs.gate.name, judge(inputs.gate, measurements), answers)


def generations(inputs: Inputs, seal: str, texts: Iterable[PanelText]) -> Iterator[Generation]:
    """The texts that a gate asks for, in the form of a run's. Raises TamperedError for another prompt than the gate's.

    What nobody recorded then stays empty: the seat, the tokens of the prompt, the time.
    """
    for text in texts:
        number = text.beat + (len(inputs.beats) if text.set == "train-beats" else 0)
        if text.arm not in inputs.gate.arms.all() or number >= len(inputs.shown):
            continue
        if text.prompt != prompt_text(inputs.prompt(text.arm, number)):
            raise TamperedError(f"the panel's text of {text.arm}, {text.set} {text.beat} answers another prompt")
        beat, prompts = inputs.shown[number]
        yield Generation(
            seal=seal,
            arm=text.arm,
            prompt=number,
            seed=text.seed,
            seat="",
            request=request_body(inputs.gate, text.arm, beat, text.seed, prompts),
            text=text.text,
            finish_reason=text.finish_reason,
            usage=Usage(prompt_tokens=0, completion_tokens=text.completion_tokens),
            model=None,
            fingerprint=None,
            prompt_sha256=None,
            started="",
            latency_s=0.0,
            attempts=1,
            error=None,
        )
