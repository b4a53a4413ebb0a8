"""The known-answer panel: recorded texts of adapters that are known to be right or wrong, judged as any run is.

It tries the instrument: measures and judges on real texts, with both answers wanted. Nothing is asked of a seat, and
nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from gates.errors import TamperedError, UsageError
from gates.flow.inputs import Inputs, load_inputs, refuse_unpinned
from gates.flow.measuring import measure
from gates.judge.known import SHOWN, Answer, Answers, KnownAnswer, against_known
from gates.judge.verdict import judge
from gates.records import Generation, Outcome, Record, Usage, sha256
from gates.seat.requests import request_body
from gates.spec.prompts import prompt_text

TEXTS = "generations.jsonl"

FILES = {
    TEXTS: "a636f7f454f29363c5e6cc708d68f1910b3e679de3a5dde9938f0704ac69d180",
    "beats.txt": "53e1a30ce14781d31b49e15eb016c3e3f861fc9995fd6167e7f6d4ff652f2eff",
    "train-beats.txt": "12d90d413ab7d5d47f84de1ea3b82de50b4e93827b98fae6f3306ca3d6f1fc36",
    "open.yaml": "6825d9f409c856f2565e3e654d581425d4c62c719ad6ca2cdefe1890b2ec8d2d",
    "probe.yaml": "4e9f2a6e370978956ca852bccd4f994ead89368eb9c806c2e967fdffd8c1a3cc",
}
"""SHA-256 of every file of the panel: the answers are known for these texts under these thresholds alone."""


def _passes(*axes: str, **others: Answer) -> dict[str, Answer]:
    return {**dict.fromkeys(("validity", "voice", "memorisation", "ran_on", "on_beat", *axes), Outcome.PASS), **others}


KNOWN: dict[str, Answers] = {
    "open.yaml": {
        "base-again": _passes(voice=Outcome.FAIL),
        "lv-null": _passes(voice=Outcome.FAIL, ran_on=SHOWN, on_beat=SHOWN),
        "lv-bronte-e3": _passes(),
        "lv-bronte-e12": _passes(),
        "lv-bronte-ranon": _passes(ran_on=Outcome.FAIL),
        "lv-bronte-overfit": _passes(),
    },
    "probe.yaml": {
        "lv-bronte-e3": _passes("extraction"),
        "lv-bronte-overfit": _passes(extraction=Outcome.FAIL),
    },
}
"""What the gates of the panel must say, of every axis of every arm."""


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


def judge_panel(folder: Path, cache: Path) -> tuple[KnownAnswer, ...]:
    """Measure and judge the panel in `folder`, in its workspace, and set every answer beside the known one.

    Raises UsageError where a file or a corpus is missing, TamperedError where a file is not the panel's.
    """
    texts = read_panel(folder)
    return tuple(answer for name in KNOWN for answer in judge_texts(folder / name, cache, texts))


def read_panel(folder: Path) -> tuple[PanelText, ...]:
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


def judge_texts(path: Path, cache: Path, texts: Iterable[PanelText]) -> tuple[KnownAnswer, ...]:
    """Judge recorded texts by one gate of the panel, through the measures and judges of every run."""
    inputs = load_inputs(path, cache)
    refuse_unpinned(inputs)
    # Nothing here is sealed: the gate's own hash stands where a run names its seal.
    seal = inputs.gate.digest()
    measurements = measure(inputs, seal, generations(inputs, seal, texts), FILES[TEXTS])
    return against_known(inputs.gate.name, judge(inputs.gate, measurements), KNOWN[path.name])


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
