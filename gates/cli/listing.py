"""`gates list`: every run of a workspace over time, and the index page of its reports."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from gates.cli.corpora import workspace_of, workspace_option
from gates.cli.output import print_json, tell
from gates.cli.show import as_json, console
from gates.errors import ExitCode
from gates.flow.history import History, history
from gates.record.files import replace
from gates.records import Outcome
from gates.report.html import html_index
from gates.report.html.model import Line
from gates.report.terminal import outcome_text
from gates.report.wording import number, one_line


@click.command("list")
@workspace_option
@click.option("--html", is_flag=True, help="Write the index page reports/index.html, too (extra `report`).")
@as_json
def list_command(workspace: Path | None, html: bool, json_wanted: bool) -> int:
    """List every gate and run of this workspace, with verdict, standing, re-scores and sign-offs over time.

    \b
    gates list
    gates list --html      reports/index.html: the same with a picture for each author, and links
    """
    home = workspace_of(workspace)
    found = history(home)
    target = home / "reports" / "index.html"
    if html:
        target.parent.mkdir(exist_ok=True)
        replace(target, html_index(lines_of(found), home.resolve().name).encode())
    if json_wanted:
        print_json({**found.as_json(), "page": str(target) if html else None})
        return ExitCode.PASS
    _print(found)
    if html:
        tell(f"{target}: open it in a browser")
    return ExitCode.PASS


def lines_of(found: History) -> list[Line]:
    """One line for each candidate of each run, in the order of time; one for a run without a verdict."""
    lines = []
    for item in found.runs:
        events = tuple(event.sentence() for event in item.events)
        place = (f"{item.gate} {item.run:03d}", item.author, item.begun[:10], item.state, item.standing, item.page)
        for name, judged in item.candidates.items() or [("", None)]:
            outcome = judged.outcome if judged else item.outcome
            move, required = (judged.move, judged.required) if judged else (None, None)
            lines.append(Line(*place, name, outcome, move, required, events))
    return lines


def _print(found: History) -> None:
    table = Table(expand=False)
    for name in ("run", "begun", "candidate", "verdict", "move", "standing"):
        table.add_column(name, no_wrap=name in ("begun", "verdict", "standing"), overflow="fold")
    since: dict[str, None] = {}
    for line in lines_of(found):
        verdict = outcome_text(Outcome(line.outcome)) if line.outcome else Text(line.state)
        cells = map(_plain, (line.place, line.begun, line.candidate))
        table.add_row(*cells, verdict, number(line.move, signed=True), line.standing)
        since |= dict.fromkeys(f"{line.place}: {event}" for event in line.events)
    if found.runs:
        console().print(table, *map(_plain, since), sep="\n")
    began = {item.gate for item in found.runs}
    for gate, seals in found.sealed.items():
        if gate not in began:
            tell(f"{gate}: sealed{f' {seals} times' if seals > 1 else ''}, no run yet")
    if not found.sealed:
        tell("nothing is sealed here yet: gates seal GATE")


def _plain(text: str) -> Text:
    return Text(one_line(text))
