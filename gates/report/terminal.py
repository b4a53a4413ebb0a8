"""The verdict as a table in the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from gates.judge.verdict import Verdict
from gates.records import Outcome
from gates.report.wording import SYMBOLS, in_order, threshold_of, value_of

_STYLES = {Outcome.PASS: "bold green", Outcome.FAIL: "bold red", Outcome.INCONCLUSIVE: "bold yellow"}


def outcome_text(outcome: Outcome) -> Text:
    """An outcome in words, shape and colour."""
    return Text(f"{SYMBOLS[outcome]} {outcome.value}", style=_STYLES.get(outcome, "bold magenta"))


def verdict_table(question: str, verdict: Verdict) -> RenderableType:
    """The question, one row a candidate and axis, then why each that did not pass did not."""
    table = Table(title=escape(question), title_justify="left", title_style="bold", expand=False)
    for name in ("candidate", "axis", "verdict", "figure", "against"):
        table.add_column(name, no_wrap=name == "verdict", overflow="fold")
    reasons: list[Text] = []
    for name, candidate in verdict.candidates.items():
        table.add_section()
        table.add_row(name, "", outcome_text(candidate.outcome), "", "")
        for axis in in_order(candidate.axes):
            table.add_row("", axis.axis, outcome_text(axis.outcome), value_of(axis), threshold_of(axis))
            if axis.outcome is not Outcome.PASS:
                reasons.append(Text(f"{name}, {axis.axis}: {axis.reason}"))
    warnings = [Text(f"note: {warning}", style="dim") for warning in verdict.warnings]
    return Group(table, *reasons, *warnings)
