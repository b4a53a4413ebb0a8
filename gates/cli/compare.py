"""`gates compare`: two arms of a finished run, and which one the sealed tie-break prefers."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from gates.cli.output import print_json, tell
from gates.cli.show import as_json, console
from gates.errors import ExitCode
from gates.flow.finished import read_run
from gates.judge.compare import Comparison, Value
from gates.judge.compare import compare as compare_arms
from gates.records import Outcome
from gates.report.wording import number, one_line


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("a")
@click.argument("b")
@as_json
def compare(run: Path, a: str, b: str, json_wanted: bool) -> int:
    """Compare arms A and B of the finished RUN, a folder such as reports/demo/001.

    By the floor of the two; where that cannot tell them apart, in the order of the sealed tie-break. The choice is a
    preference, never evidence. Exits 0 when there is a comparison, 4 when an arm is not fit to be compared.
    """
    read = read_run(run)
    found = compare_arms(read.seal.gate, read.measurements, read.verdict, a, b)
    standing = read.verdict.standing.as_json() if read.verdict.standing else None
    if json_wanted:
        print_json({**found.as_json(), "standing": standing})
    else:
        _print(found)
        if standing is not None and standing["name"] == "imported":
            tell(f"note: {read.verdict.standing}")
    return ExitCode.PASS if found.comparable else ExitCode.INVALID


def _print(found: Comparison) -> None:
    tell(one_line(found.reason))
    if found.tie_break:
        table = Table(title="tie-break, in the sealed order", title_justify="left", expand=False)
        for name in ("axis", found.a, found.b, "better", "resolves@house", "resolves@1"):
            table.add_column(_plain(name), overflow="fold")
        for axis in found.tie_break:
            cells = (axis.axis, _shown(axis.a), _shown(axis.b), axis.better, axis.prefers or "no")
            table.add_row(*map(_plain, (*cells, f"{axis.resolves}: {axis.reason}")))
        console().print(table)
    for name, outcome in found.outcomes.items():
        if outcome is not Outcome.PASS:
            tell(f"note: {one_line(name)} is {outcome.value} in this run: a preference does not let it ship")


def _plain(text: str) -> Text:
    """Text in which rich reads no mark-up."""
    return Text(one_line(text))


def _shown(value: Value) -> str:
    return number(value) if isinstance(value, float | None) else str(value)
