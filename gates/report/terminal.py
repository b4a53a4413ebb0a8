"""The verdict as a table in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gates.judge.known import KnownAnswer
from gates.judge.values import ValuesVerdict
from gates.judge.verdict import Verdict
from gates.record.recheck import Recheck
from gates.records import Outcome
from gates.report.wording import SYMBOLS, caution, in_order, is_imported, one_line, threshold_of, value_of

_STYLES = {Outcome.PASS: "bold green", Outcome.FAIL: "bold red", Outcome.INCONCLUSIVE: "bold yellow"}


def outcome_text(outcome: Outcome) -> Text:
    """An outcome in words, shape and colour."""
    return Text(f"{SYMBOLS[outcome]} {outcome.value}", style=_STYLES.get(outcome, "bold magenta"))


def verdict_table(question: str, verdict: Verdict | ValuesVerdict | Recheck) -> RenderableType:
    """The question, one row a candidate and axis, then why each that did not pass did not.

    Everything is plain text to rich: no mark-up in a name or a reason is read, no control character gets through.
    """
    beside = caution(verdict) if isinstance(verdict, Verdict) else ""
    table = Table(title=_plain(question + beside), title_justify="left", title_style="bold", expand=False)
    for name in ("candidate", "axis", "verdict", "figure", "against"):
        table.add_column(name, no_wrap=name == "verdict", overflow="fold")
    reasons: list[Text] = []
    for name, candidate in verdict.candidates.items():
        table.add_section()
        table.add_row(_plain(name), "", outcome_text(candidate.outcome), "", "")
        for axis in in_order(candidate.axes):
            figure, against = _plain(value_of(axis)), _plain(threshold_of(axis))
            table.add_row("", _plain(axis.axis), outcome_text(axis.outcome), figure, against)
            if axis.outcome is not Outcome.PASS:
                reasons.append(_plain(f"{name}, {axis.axis}: {axis.reason}"))
    warnings = [_plain(f"note: {warning}", "dim") for warning in verdict.warnings]
    return Group(table, *reasons, *warnings, *(standing_lines(verdict) if isinstance(verdict, Verdict) else []))


def standing_lines(verdict: Verdict) -> list[Text]:
    """When the rule was fixed, and every attempt where there was more than this one."""
    # Of imported texts a warning has said it.
    lines = [] if verdict.standing is None or is_imported(verdict) else [f"standing: {verdict.standing}"]
    tried = verdict.attempts
    if tried is not None and (tried.other_gates or any(one.tries > 1 for one in tried.candidates.values())):
        lines += tried.sentences()
    return [_plain(line) for line in lines]


def known_tables(answers: Sequence[KnownAnswer]) -> RenderableType:
    """A table for each gate: what it must say of every axis of each arm, what it says; then why, where they differ."""
    tables = [_known(gate, list(rows)) for gate, rows in groupby(answers, lambda answer: answer.gate)]
    wrong = [
        _plain(f"unexpected: {answer.gate}, {answer.arm}, {answer.axis}: {answer.wrong}", "bold red")
        for answer in answers
        if answer.wrong
    ]
    return Group(*tables, *wrong)


def _known(gate: str, answers: Sequence[KnownAnswer]) -> Table:
    table = Table(title=_plain(gate), title_justify="left", title_style="bold", expand=False)
    for name in ("arm, axis", "expected", "found", "figure", "against"):
        table.add_column(name, no_wrap=name in ("expected", "found"), overflow="fold")
    for arm, rows in groupby(answers, lambda answer: answer.arm):
        table.add_section()
        table.add_row(_plain(arm))
        for answer in rows:
            said, expected = answer.found, answer.known.answer if answer.known else "–"
            found = (outcome_text(said.outcome), _plain(value_of(said)), _plain(threshold_of(said))) if said else ("–",)
            table.add_row(Text("  ") + _plain(answer.axis), _plain(expected), *found)
    return table


def _plain(text: str, style: str = "") -> Text:
    return Text(one_line(text), style=style)
