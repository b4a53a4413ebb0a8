"""What GitHub Actions shows: annotations, one workflow command a line, and the step's summary in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from gates.judge.verdict import Verdict
from gates.record.seal import SealOnDisk
from gates.records import Outcome
from gates.report.markdown import title
from gates.report.marks import plain, table
from gates.report.wording import ANSWERS, SYMBOLS, caution, in_order, one_line, threshold_of, value_of

_LEVELS = {Outcome.PASS: "notice", Outcome.FAIL: "error", Outcome.INCONCLUSIVE: "warning", Outcome.INVALID: "error"}


def workflow_commands(gate: str, verdict: Verdict, *, file: str = "") -> Iterator[str]:
    """One workflow command for each candidate that passes and for each axis that does not; `file` is the gate's.

    No text can begin a command of its own or end the one it stands in: line breaks and signs are escaped as the
    runner reads them.
    """
    for name, candidate in verdict.candidates.items():
        trouble = [axis for axis in in_order(candidate.axes) if axis.outcome is not Outcome.PASS]
        if not trouble:
            said = f"{name} {ANSWERS[Outcome.PASS]}{caution(verdict)}"
            yield _command(Outcome.PASS, f"{gate}: {name}", said, file)
        for axis in trouble:
            yield _command(axis.outcome, f"{gate}: {name}, {axis.axis} {axis.outcome.value}", axis.reason, file)


def step_summary(sealed: SealOnDisk, number: int, verdict: Verdict, standing: str) -> str:
    """The answer, why, and every axis, in Markdown that no text can bend."""
    gate, rows = sealed.seal.gate, []
    for name, candidate in verdict.candidates.items():
        for axis in in_order(candidate.axes):
            outcome = f"{SYMBOLS[axis.outcome]} {axis.outcome.value}"
            rows.append([plain(name), plain(axis.axis), outcome, value_of(axis), threshold_of(axis)])
    answers = [
        f"- {SYMBOLS[candidate.outcome]} **{plain(name)}** {ANSWERS[candidate.outcome]}"
        for name, candidate in verdict.candidates.items()
    ]
    why = [
        f"- {plain(f'{name}, {axis.axis}: {axis.reason}')}"
        for name, candidate in verdict.candidates.items()
        for axis in in_order(candidate.axes)
        if axis.outcome is not Outcome.PASS
    ]
    return "\n".join(
        [
            f"## {title(verdict)}: {plain(gate.name)}, run {number:03d}",
            "",
            plain(gate.question),
            "",
            *answers,
            "",
            *([*why, ""] if why else []),
            *table(["candidate", "axis", "verdict", "figure", "required"], rows),
            f"Standing: {plain(standing)} Seal `{sealed.sha256[:12]}`.",
            "",
        ]
    )


def _command(outcome: Outcome, title: str, message: str, file: str) -> str:
    properties = {"file": file, "title": title}
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items() if value)
    return f"::{_LEVELS[outcome]} {listed}::{_data(message)}"


def _data(text: str) -> str:
    return one_line(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
