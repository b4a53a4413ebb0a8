"""`gates table`: the measurements of a finished run as tidy CSV."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gates.cli.output import print_json
from gates.cli.show import as_json
from gates.errors import ExitCode
from gates.flow.frames import load_run
from gates.record.files import replace
from gates.report.wording import cell


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write there; else on stdout.")
@as_json
def table(run: Path, out: Path | None, json_wanted: bool) -> int:
    """Write RUN's measurements as CSV, one row per arm, seed, prompt and axis.

    Prompts are numbered from 0; voice is measured on whole seeds and has no prompt. Of memorisation 1 is a text that
    holds a run of the training text.

    \b
    gates table reports/demo/001 > demo.csv
    """
    values = load_run(run).values
    if json_wanted:
        print_json(values.astype(object).where(values.notna(), None).to_dict("records"))
        return ExitCode.PASS
    text = values.assign(arm=values["arm"].map(cell)).to_csv(index=False, lineterminator="\n")
    if out is not None:
        replace(out, text.encode())
    else:
        sys.stdout.write(text)
    return ExitCode.PASS
