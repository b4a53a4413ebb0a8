"""`gates verify`: whether a workspace's record still holds, derived again from its generations."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gates.cli.corpora import workspace_of
from gates.cli.output import print_json
from gates.cli.show import as_json
from gates.corpora.cache import cache_dir
from gates.errors import ExitCode
from gates.flow.verifying import Verified
from gates.flow.verifying import verify as verify_workspace


@click.command()
@click.argument("workspace", required=False, type=click.Path(path_type=Path, exists=True, file_okay=False))
@as_json
def verify(workspace: Path | None, json_wanted: bool) -> int:
    """Derive the record of WORKSPACE again: ledger, seals, measurements, verdicts, reports.

    Exits with 0 when everything was derived again and holds, 3 when something could not be derived here (a text that
    the cache lacks, an unfinished run), 5 when something does not hold; each is named.
    """
    found = verify_workspace(workspace_of(workspace), cache_dir(os.environ))
    if json_wanted:
        print_json({**found.as_json(), "exit_code": int(found.exit_code)})
    else:
        _print(found)
    return found.exit_code


def _print(found: Verified) -> None:
    for sentence in found.breaks:
        click.echo(f"BROKEN: {sentence}")
    for sentence in found.not_derived:
        click.echo(f"not re-derived: {sentence}")
    state = {ExitCode.PASS: "everything holds", ExitCode.TAMPERED: f"{len(found.breaks)} breaks"}
    click.echo(
        f"{found.records} records, {found.seals} seals, {found.runs} runs: "
        f"{state.get(found.exit_code, f'{len(found.not_derived)} not re-derived, the rest holds')}"
    )
    click.echo(f"anchor: {found.anchor}")
