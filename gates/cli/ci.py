"""`gates ci`: a finished run's verdict where continuous integration shows it."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gates.cli.output import command, on_runner, print_json, tell
from gates.cli.show import as_json
from gates.errors import UsageError
from gates.flow.finished import FinishedRun, read_run
from gates.flow.watching import status_of
from gates.record.files import replace
from gates.report.github import step_summary, workflow_commands
from gates.report.junit import junit
from gates.report.markdown import standing
from gates.report.wording import caution


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--junit", "junit_file", type=click.Path(path_type=Path, dir_okay=False), help="Write JUnit XML there.")
@click.option("--arm", "candidate", help="End with this candidate's exit code instead of the worst one's.")
@click.option(
    "--github/--no-github",
    default=None,
    help="GitHub's annotations, and its step summary; by default where GITHUB_ACTIONS is set.",
)
@as_json
def ci(run: Path, junit_file: Path | None, candidate: str | None, github: bool | None, json_wanted: bool) -> int:
    """Say the verdict of the finished RUN in the forms that continuous integration shows, and exit with its code.

    Every file is checked against the ledger first. JUnit holds one case per candidate and axis; what is not PASS is
    never green. On GitHub each axis that does not pass is an annotation, and the step's summary holds the answer.

    \b
    gates ci reports/lv-bronte/001 --junit gates.xml
    gates ci reports/lv-bronte/001 --arm ckpt475
    """
    read = read_run(run)
    if candidate is not None and candidate not in read.verdict.candidates:
        known = ", ".join(read.verdict.candidates)
        raise UsageError(f"--arm {candidate!r}: the run has no such candidate", next_step=f"choose one of: {known}")
    if junit_file is not None:
        document = junit(read.seal.gate.name, read.store.number, read.verdict, seconds=status_of(run).elapsed_s)
        replace(junit_file, document.encode())
    wanted = github if github is not None else on_runner()
    if wanted:
        _summarise(read)
    outcome = (read.verdict.candidates[candidate] if candidate else read.verdict).outcome
    if json_wanted:
        found = read.verdict.standing.name if read.verdict.standing else None
        print_json(
            {
                "outcome": outcome.value,
                "standing": found,
                "exit_code": int(outcome.exit_code),
                "junit": _named(junit_file),
            }
        )
    elif wanted:
        for line in workflow_commands(read.seal.gate.name, read.verdict, file=read.seal.gate_file):
            command(line)
    else:
        tell(f"{read.seal.gate.name} {read.store.number:03d}: {outcome.value}{caution(read.verdict)}")
    return int(outcome.exit_code)


def _summarise(read: FinishedRun) -> None:
    """Append to the step's summary, where the runner names one."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        with Path(path).open("a", encoding="utf-8") as handle:
            handle.write(
                step_summary(read.sealed, read.store.number, read.verdict, standing(read.sealed, read.verdict))
            )


def _named(path: Path | None) -> str | None:
    return None if path is None else str(path)
