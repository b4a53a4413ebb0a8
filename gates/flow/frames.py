"""A finished run as pandas frames, for people who look at figures themselves: `from gates import load_run`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path

import pandas as pd

from gates.flow.finished import FinishedRun, read_run
from gates.judge.verdict import Verdict
from gates.measure.figures import ArmMeasurements, DamageFigures, Measurements, MemorisationFigures, VoiceFigures
from gates.report.wording import SYMBOLS, in_order, one_line, threshold_of, value_of

Row = tuple[str, str, int, int | None, str, float]

COLUMNS = ("arm", "role", "seed", "prompt", "axis", "value")
"""Columns of the table of measurements: one row per arm, seed, prompt and axis."""


@dataclass(frozen=True, repr=False)
class RunFrames:
    """A finished run, every file of it checked against the ledger.

    `verdict` and `measurements` are the records themselves. The frames are made when they are first asked for:

    - `values`: one row per arm, seed, prompt and axis (`COLUMNS`). `value` is a damage axis's value of that text, in
      [0, 1]; on `memorisation` (and `extraction`) 1 where the text holds a run of the training text, else 0; on
      `voice` the distance of the whole seed to the held-out author, in [0, 2], with no prompt.
    - `texts`: one row per generation: arm, seed, prompt, text, completion_tokens, finish_reason, latency_s, error.
    - `verdicts`: one row per candidate or control and axis: outcome, value, low, high, threshold, floor, rule, reason.
    """

    run: FinishedRun

    @property
    def verdict(self) -> Verdict:
        """What the gate says."""
        return self.run.verdict

    @property
    def measurements(self) -> Measurements:
        """Every figure."""
        return self.run.measurements

    @cached_property
    def values(self) -> pd.DataFrame:
        """Measurements, tidy: see the class."""
        arms = self.measurements.arms.items()
        rows = [(name, arm.role, *row) for name, arm in arms for row in _rows(name, arm, self.measurements)]
        return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"prompt": "Int64"})

    @cached_property
    def texts(self) -> pd.DataFrame:
        """Generations: see the class."""
        columns = ("arm", "seed", "prompt", "text", "completion_tokens", "finish_reason", "latency_s", "error")
        rows = [
            (
                g.arm,
                g.seed,
                g.prompt,
                g.text,
                g.usage and g.usage.completion_tokens,
                g.finish_reason,
                g.latency_s,
                g.error,
            )
            for g in self.run.store.generations(self.run.sealed.sha256)
        ]
        return pd.DataFrame(rows, columns=list(columns)).astype({"completion_tokens": "Int64"})

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """Verdicts: see the class."""
        columns = ["arm", "judged", "axis", "outcome", "value", "low", "high", "threshold", "floor", "rule", "reason"]
        judged = [(name, True, one.axes) for name, one in self.verdict.candidates.items()]
        judged += [(name, False, one.axes) for name, one in self.verdict.controls.items()]
        rows = [
            (name, counts, a.axis, a.outcome.value, a.value, a.low, a.high, a.threshold, a.floor, a.rule, a.reason)
            for name, counts, axes in judged
            for a in in_order(axes)
        ]
        numbers = ("value", "low", "high", "threshold", "floor")
        return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(numbers, "float64"))

    def __repr__(self) -> str:
        lines = [f"{self.run.seal.gate.name}, run {self.run.store.number:03d}: {self.verdict.outcome.value}"]
        lines += [
            f"  {SYMBOLS[one.outcome]} {one_line(name)}: {one.outcome.value}"
            for name, one in self.verdict.candidates.items()
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The verdict as a table in a notebook; every text in it is escaped."""
        rows = "".join(
            f"<tr><td>{_cell(name)}</td><td>{_cell(axis.axis)}</td>"
            f"<td>{SYMBOLS[axis.outcome]} {axis.outcome.value}</td><td>{_cell(value_of(axis))}</td>"
            f"<td>{_cell(threshold_of(axis))}</td></tr>"
            for name, one in self.verdict.candidates.items()
            for axis in in_order(one.axes)
        )
        head = "".join(f"<th>{name}</th>" for name in ("candidate", "axis", "verdict", "figure", "required"))
        return (
            f"<p><strong>{self.verdict.outcome.value}</strong>: {_cell(self.run.seal.gate.question)}</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        )


def load_run(folder: str | Path) -> RunFrames:
    """The finished run in a folder such as reports/demo/001.

    Raises RecordError where no finished run is, TamperedError where a file is not what the ledger says.
    """
    return RunFrames(read_run(Path(folder)))


def _rows(name: str, arm: ArmMeasurements, measurements: Measurements) -> Iterator[tuple[int, int | None, str, float]]:
    """(seed, prompt, axis, value) of one arm: voice, memorisation, extraction, then damage."""
    for seed, distance in zip(arm.seeds, _distances(name, arm, measurements), strict=False):
        yield seed, None, "voice", distance
    for axis, figures in (("memorisation", arm.memorisation), ("extraction", arm.extraction)):
        if isinstance(figures, MemorisationFigures):
            yield from _hits(arm, axis, figures)
    for axis, damage in arm.damage.items():
        if isinstance(damage, DamageFigures):
            for seed, row in zip(arm.seeds, damage.values, strict=True):
                yield from ((seed, prompt, axis, value) for prompt, value in enumerate(row))


def _distances(name: str, arm: ArmMeasurements, measurements: Measurements) -> tuple[float, ...]:
    """Distances by seed; the base's stand in every other arm's figures."""
    if isinstance(arm.voice, VoiceFigures):
        return arm.voice.distances
    if name != "base":
        return ()
    others = (other.voice for other in measurements.arms.values())
    return next((voice.base_distances for voice in others if isinstance(voice, VoiceFigures)), ())


def _hits(
    arm: ArmMeasurements, axis: str, figures: MemorisationFigures
) -> Iterator[tuple[int, int | None, str, float]]:
    """1 for each text with a run, 0 for the others; the open prompts are as many as the arm was asked."""
    hit = {(run.seed, run.prompt) for run in figures.runs}
    if axis == "extraction":
        yield from ((seed, prompt, axis, 1.0) for seed, prompt in sorted(hit))
        return
    for seed in arm.seeds:
        for prompt in range(arm.validity.expected // len(arm.seeds)):
            yield seed, prompt, axis, float((seed, prompt) in hit)


def _cell(text: str) -> str:
    return escape(one_line(text))
