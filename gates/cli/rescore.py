"""`gates rescore`: a finished run under another rule, on the same texts, both verdicts side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gates import flow
from gates.cli.output import print_json, say, tell
from gates.cli.show import as_json, console, signing_key
from gates.errors import UsageError
from gates.flow.rescoring import Asked
from gates.flow.rescoring import rescore as rescore_run
from gates.report.rescored import rescored_tables


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--rule", metavar="NAME@VERSION", help="The floor rule that judges now, wherever a floor decides.")
@click.option(
    "--gate", "gate", type=click.Path(path_type=Path), help="The gate file that judges now, on the same texts."
)
@click.option("--reason", required=True, help="Why; it stands in the re-score for ever.")
@click.option("--candidate", help="End with this candidate's exit code instead of the worst one's.")
@click.option("--by", help="Who asks; your user name by default.")
@signing_key
@as_json
def rescore(run: Path, candidate: str | None, by: str | None, key: Path | None, json_wanted: bool, **asked: Any) -> int:
    """Judge the finished RUN, a folder such as reports/lv-bronte/001, again. Nothing is generated, no seat is asked.

    The new verdict stands beside the old one, which stays. Its standing is computed from the ledger: whether the rule
    was sealed before this run, elsewhere before or after it, or never; and every rule that the ledger holds is tried.

    \b
    gates rescore reports/lv-bronte/001 --rule pairwise-range@1 --reason "the house rule since September"
    """
    made = rescore_run(run, flow.this_world(say, by=by, key=key), Asked(**asked))
    if candidate is not None and candidate not in made.verdict.candidates:
        raise UsageError(
            f"--candidate {candidate!r}: the run has no such candidate; the re-score is {made.folder}",
            next_step=f"choose one of: {', '.join(made.verdict.candidates)}",
        )
    if json_wanted:
        print_json(
            {
                **made.verdict.as_json(),
                "rescore": made.made.as_json(),
                "old": made.old.as_json(),
                "folder": str(made.folder),
            }
        )
    else:
        console().print(rescored_tables(made.made, made.old, made.verdict))
        tell(f"record: {made.folder}/report.md")
    return int((made.verdict.candidates[candidate] if candidate else made.verdict).outcome.exit_code)
