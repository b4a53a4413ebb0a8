"""`gates export`: a finished run in the forms that other tools read."""

from __future__ import annotations

import json
from pathlib import Path

import click
from pydantic import JsonValue

from gates.cli.output import print_json, tell
from gates.cli.show import as_json
from gates.errors import ExitCode, UsageError
from gates.flow.exporting import FORMATS, export_run
from gates.record.files import write_once


@click.command()
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="What the other tool reads.")
@click.option("--arm", help="The arm; by default every arm that the format has something to say of.")
@click.option(
    "--to", type=click.Path(path_type=Path, file_okay=False), help="Write a file for each arm into this folder."
)
@as_json
def export(run: Path, form: str, arm: str | None, to: Path | None, json_wanted: bool) -> int:
    """Export the finished RUN: as in-toto statements for a policy engine, or as logs for `inspect view`.

    Every file is checked against the ledger first. Without --to one document is printed, of one arm.

    \b
    gates export reports/lv-bronte/001 --format intoto --arm ckpt475
    gates export reports/lv-bronte/001 --format inspect --to logs && inspect view --log-dir logs
    """
    documents = export_run(run, form, arm)
    if to is None:
        if len(documents) > 1:
            raise UsageError(
                f"{run} has several arms, and one document can be printed",
                next_step=f"name a folder with --to, or one of them with --arm: {', '.join(documents)}",
            )
        print_json(next(iter(documents.values()))[1])
        return ExitCode.PASS
    written: list[JsonValue] = []
    for name, document in documents.values():
        path = to / name
        write_once(path, json.dumps(document, indent=2, allow_nan=False).encode() + b"\n")
        written.append(str(path))
    if json_wanted:
        print_json({"written": written})
    else:
        tell("\n".join(map(str, written)))
    return ExitCode.PASS
