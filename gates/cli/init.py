"""`gates init`: a workspace to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from gates.cli.output import print_json, tell
from gates.cli.show import as_json
from gates.errors import ExitCode
from gates.flow.starting import start


@click.command()
@click.argument("folder", required=False, default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option("--name", default="my-voice", show_default=True, help="The gate's name.")
@as_json
def init(folder: Path, name: str, json_wanted: bool) -> int:
    """Make a workspace in FOLDER: a commented gate with its beats, two manifests, a workflow for GitHub.

    Nothing that is there already is touched.

    \b
    gates init
    gates init voices --name lv-bronte
    """
    made = start(folder, name)
    if json_wanted:
        print_json({"files": [str(path) for path in made]})
        return ExitCode.PASS
    for path in made:
        tell(f"written: {path}")
    corpora = [path.stem for path in made if path.parent.name == "corpora"]
    tell(
        f"next: say in {' and '.join(f'corpora/{name}.yaml' for name in corpora)} which texts there are and where "
        f"from;\n  then, in {folder}: gates corpora fetch {' '.join(corpora)} --pin;\n"
        f"  then fill in the gate: gates check {made[0]}"
    )
    return ExitCode.PASS
