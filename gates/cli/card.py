"""`gates card`: the block of an adapter's model card that says what its gate said."""

from __future__ import annotations

from pathlib import Path

import click

from gates.cli.output import print_json, tell
from gates.cli.show import as_json
from gates.errors import ExitCode, UsageError
from gates.flow.finished import read_run
from gates.judge.verdict import Verdict
from gates.record.files import replace
from gates.record.ledger import Ledger
from gates.record.rescore import rescores
from gates.report.card import card_body, card_index, updated


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--arm", help="The candidate; may be left out where the run has one.")
@click.option(
    "--readme", type=click.Path(path_type=Path, dir_okay=False), help="Update this model card, or write a new one."
)
@as_json
def card(run: Path, arm: str | None, readme: Path | None, json_wanted: bool) -> int:
    """Say in model-card form what the finished RUN says of a candidate: figures, verdict, caveats, hashes.

    With --readme the card is updated in place: between the markers of this gate, in its text and in its front matter
    (model-index), and nowhere else. Without it both blocks are printed.

    \b
    gates card reports/lv-bronte/001 --arm ckpt475 --readme ../lv-bronte-475/README.md
    """
    read = read_run(run)
    candidate = arm or _only(read.verdict)
    gate, number = read.seal.gate.name, read.store.number
    rescored = rescores(Ledger(read.workspace / "prereg"), gate, number)
    body = card_body(read.sealed, (number, read.attempts), read.verdict, candidate, rescored)
    index = card_index(read.sealed, number, read.verdict, candidate)
    before = readme.read_text("utf-8") if readme and readme.exists() else ""
    text = updated(before, gate, body, index)
    if readme is not None:
        replace(readme, text.encode())
    if json_wanted:
        print_json({"readme": None if readme is None else str(readme), "changed": text != before, "card": text})
    elif readme is None:
        tell(text.rstrip("\n"))
    else:
        tell(f"{readme}: {'updated' if text != before else 'as it was'}")
    return ExitCode.PASS


def _only(verdict: Verdict) -> str:
    """The name of the only candidate. Raises UsageError where there are several."""
    if len(verdict.candidates) > 1:
        known = ", ".join(verdict.candidates)
        raise UsageError("the run has several candidates", next_step=f"choose one with --arm: {known}")
    return next(iter(verdict.candidates))
