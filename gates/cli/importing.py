"""`gates import`: texts that are older than this record, judged as a run that says so for ever."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from gates import flow
from gates.cli.output import print_json, say, tell
from gates.cli.show import as_json, console, head_at_the_end, signing_key
from gates.errors import UsageError
from gates.flow.importing import import_texts
from gates.report.terminal import verdict_table


def _names(mapped: Sequence[str]) -> dict[str, str]:
    """FIELD=NAME pairs. Raises UsageError for what is none, or a field that stands there twice."""
    names: dict[str, str] = {}
    for one in mapped:
        field, sign, name = one.partition("=")
        if not sign or not name or field in names:
            raise UsageError(f"--map {one!r}: FIELD=NAME is needed, once a field", next_step="--map text=completion")
        names[field] = name
    return names


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--gate", "gate", required=True, type=click.Path(path_type=Path), help="The gate file that judges them.")
@click.option("--map", "mapped", multiple=True, metavar="FIELD=NAME", help="A field that has another name in FILE.")
@click.option("--by", help="Who imports them; your user name by default.")
@signing_key
@as_json
def import_(file: Path, gate: Path, mapped: Sequence[str], by: str | None, key: Path | None, json_wanted: bool) -> int:
    """Make FILE, one JSON object a line, a run of GATE, and judge it: texts that were there before any seal.

    Fields: arm (or its model), seed, prompt (its number from 0, its beat or its text), text; finish_reason, error,
    prompt_tokens and completion_tokens where the file has them. The file is hashed and kept as received. What comes of
    it stands as *imported, not sealed before generation*, in every report; it can be re-scored and compared.

    \b
    gates import old/bronte.jsonl --gate prereg/lv-bronte.yaml --map text=completion --map arm=model
    """
    head_at_the_end(gate)
    run = import_texts(file, gate, _names(mapped), flow.this_world(say, by=by, key=key))
    if json_wanted:
        print_json({**run.verdict.as_json(), "run": str(run.store.folder), "attempts": run.attempts})
    else:
        console().print(verdict_table(run.seal.gate.question, run.verdict))
        tell(f"imported, not sealed before generation; record: {run.store.folder}/report.md")
    return int(run.verdict.outcome.exit_code)
