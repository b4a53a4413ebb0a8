"""`gates status`: how far a run is, asked from another terminal; of a finished run one line."""

from __future__ import annotations

from pathlib import Path

import click

from gates.cli.corpora import workspace_of
from gates.cli.output import print_json, tell
from gates.cli.show import as_json
from gates.errors import ExitCode
from gates.flow.watching import RunStatus, latest_run, status_of
from gates.records import Outcome
from gates.report.wording import SYMBOLS, duration, one_line


@click.command()
@click.argument("run", required=False, type=click.Path(path_type=Path, exists=True, file_okay=False))
@as_json
def status(run: Path | None, json_wanted: bool) -> int:
    """Say how far RUN is, a folder such as reports/demo/001; without RUN, the run that was begun last.

    Reads what is on the disk and disturbs nobody. Exits with 0 whatever the run's state or outcome.

    \b
    gates status                      the latest run of this workspace
    gates status reports/demo/001
    """
    found = status_of(run or latest_run(workspace_of(None)))
    if json_wanted:
        print_json({**found.as_json(), "done": found.done, "total": found.total})
        return ExitCode.PASS
    tell(summary(found))
    if found.state in ("running", "stopped"):
        for name, arm in found.arms.items():
            errors = f", {arm.errors} errors" if arm.errors else ""
            tell(f"  {one_line(name)}: {arm.done} of {arm.total if arm.total is not None else '?'}{errors}")
    return ExitCode.PASS


def summary(found: RunStatus) -> str:
    """A run in one line."""
    place = f"{found.gate} {found.run:03d}"
    errors = sum(arm.errors for arm in found.arms.values())
    pace = [] if found.tokens_per_s is None else [f"{found.tokens_per_s:.0f} tokens/s"]
    counts = [f"{errors} errors", f"{found.retries} retries"]
    if found.state == "finished":
        outcome = Outcome(found.outcome)
        each = ", ".join(f"{one_line(name)} {said}" for name, said in found.candidates.items())
        texts = f"{found.done} texts in {duration(found.elapsed_s)}"
        parts = [f"{SYMBOLS[outcome]} {outcome.value} ({each})", texts, *pace, *counts, f"attempt {found.run}"]
        return f"{place}: {', '.join(parts)} of {found.attempts}"
    if found.state == "spoiled":
        return f"{place}: spoiled, INVALID for good: {one_line(found.why)}"
    texts = f"{found.done} of {found.total if found.total is not None else '?'} texts"
    left = [] if found.left_s is None else [f"about {duration(found.left_s)} left"]
    after = ["the same `gates run` continues"] if found.state == "stopped" else left
    return f"{place}: {', '.join([found.state, texts, *pace, *counts, *after])}"
