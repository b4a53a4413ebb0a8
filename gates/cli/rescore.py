"""`gates rescore`: finished runs under another rule, on the same texts, both verdicts side by side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from pydantic import JsonValue

from gates import flow
from gates.cli.engine import engine_at
from gates.cli.output import print_json, say, tell
from gates.cli.show import as_json, console, head_at_the_end, signing_key
from gates.errors import ExitCode, GatesError, UsageError
from gates.flow.rescoring import Asked, Rescored, rescore_all
from gates.record.rescore import before
from gates.records import Outcome, worst
from gates.report.rescored import rescored_tables


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--rule", metavar="NAME@VERSION", help="The floor rule that judges now, wherever a floor decides.")
@click.option(
    "--gate", "gate", type=click.Path(path_type=Path), help="The gate file that judges now, on the same texts."
)
@click.option("--reason", required=True, help="Why; it stands in the re-score for ever.")
@click.option("--candidate", help="End with this candidate's exit code instead of the worst one's.")
@click.option("--by", help="Who asks; your user name by default.")
@click.option("--engine", help="Where to judge many runs: dask://HOST:PORT, a running scheduler (extra cluster).")
@signing_key
@as_json
def rescore(**options: Any) -> int:
    """Judge each finished RUN, a folder such as reports/lv-bronte/001, again. Nothing is generated, no seat is asked.

    The new verdict stands beside the old one, which stays. Its standing is computed from the ledger: whether the rule
    was sealed before this run, elsewhere before or after it, or never; and every rule that the ledger holds is tried.

    Of several runs each has a line. One that cannot be judged again is named and the others are judged all the same;
    the exit code is then that of the failure. The workers of an --engine must see the workspace under the same path.

    \b
    gates rescore reports/lv-bronte/001 --rule pairwise-range@1 --reason "the house rule since September"
    gates rescore reports/*/001 --rule pairwise-range@1 --reason "the house rule since September"
    """
    runs, json_wanted, candidate = (options.pop(name) for name in ("runs", "json_wanted", "candidate"))
    if candidate is not None and len(runs) > 1:
        raise UsageError("--candidate is of one run", next_step="leave it out, or name one run")
    head_at_the_end(*runs)
    world = flow.this_world(say, by=options.pop("by"), key=options.pop("key"))
    with engine_at(options.pop("engine"), "runs judged again") as engine:
        made = rescore_all(runs, world, Asked(**options), engine)
        if len(runs) == 1:
            return _one(next(made), candidate, json_wanted=json_wanted)
        return _many(zip(runs, made, strict=True), json_wanted=json_wanted)


def _one(made: Rescored | GatesError, candidate: str | None, *, json_wanted: bool) -> int:
    if isinstance(made, GatesError):
        raise made
    if json_wanted:
        print_json(_document(made))
    else:
        console().print(rescored_tables(made.made, made.old, made.verdict))
        tell(f"record: {made.folder}/report.md")
    if candidate is not None and candidate not in made.verdict.candidates:
        raise UsageError(
            f"--candidate {candidate!r}: the run has no such candidate; the re-score is {made.folder}",
            next_step=f"choose one of: {', '.join(made.verdict.candidates)}",
        )
    return int((made.verdict.candidates[candidate] if candidate else made.verdict).outcome.exit_code)


def _many(made: Iterator[tuple[Path, Rescored | GatesError]], *, json_wanted: bool) -> int:
    documents: list[dict[str, JsonValue]] = []
    outcomes, failed = list[Outcome](), list[ExitCode]()
    for run, one in made:
        if isinstance(one, GatesError):
            failed.append(one.exit_code)
            documents.append({"run": str(run), "error": str(one), "exit_code": int(one.exit_code)})
            say(f"{run}: not judged again: {one}", needed=True)
            continue
        outcomes.append(one.verdict.outcome)
        documents.append({"run": str(run), **_document(one)})
        if not json_wanted:
            then, now, standing = one.old.outcome.value, one.verdict.outcome.value, one.made.standing.name
            tell(f"{run}{before(one.made.first)}: {then} then, {now} now ({standing}); record: {one.folder}/report.md")
    status = max(failed) if failed else worst(outcomes).exit_code
    if json_wanted:
        print_json({"rescores": documents, "exit_code": int(status)})
    else:
        tell(f"{len(outcomes)} of {len(documents)} runs judged again")
    return int(status)


def _document(made: Rescored) -> dict[str, JsonValue]:
    return {
        "first": [*made.made.first],
        **made.verdict.as_json(),
        "rescore": made.made.as_json(),
        "old": made.old.as_json(),
        "folder": str(made.folder),
    }
