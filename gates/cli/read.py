"""`gates read`: blind readers' votes on a finished run, taken on a page and shown beside the voice figure."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import Any

import click

from gates.cli.output import print_json, say, tell
from gates.cli.show import as_json, console, head_at_the_end, signing_key
from gates.cli.web import serve
from gates.corpora.cache import cache_dir
from gates.errors import ExitCode, UsageError
from gates.flow import this_world
from gates.flow.blind import BlindDesk, BlindReading, enter_votes
from gates.flow.review import Reading, open_reading
from gates.record.votes import Votes, tallies
from gates.report.blind import readers_table


@click.command()
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--blind", is_flag=True, help="Read: a page on this machine, until Ctrl-C.")
@click.option("--arm", help="The candidate to read; the only one by default.")
@click.option("--trials", default=12, show_default=True, type=click.IntRange(1, 1000), help="How many to read.")
@click.option("--by", help="Who reads; your user name by default.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="The page's port; 0 takes a free one.")
@signing_key
@as_json
def read(run: Path, blind: bool, arm: str | None, json_wanted: bool, **asked: Any) -> int:
    """Say what blind readers of the finished RUN have said, or read blind: base, candidate and author, no labels.

    A reader says which of three passages is the author's, which reads best, and what is wrong. The trials are drawn
    from the seal for each reader. Votes stand beside delta_cb with exact intervals, and no verdict counts them.

    \b
    gates read reports/demo/001 --blind --arm lv-bronte-e12
    gates read reports/demo/001
    """
    head_at_the_end(run)
    reading = open_reading(run, cache_dir(os.environ))
    if blind:
        world = this_world(say, by=asked["by"], key=asked["key"])
        trials = BlindReading(reading, _arm(reading, arm), world.by)
        desk = BlindDesk(trials, world, tuple(islice(trials.trials(), asked["trials"])))
        try:
            serve(desk, asked["port"])
        finally:
            enter_votes(trials, world)
    found = tallies(Votes(reading.run.store.folder).read())
    if json_wanted:
        print_json({"readers": [tally.as_json() for tally in found]})
    elif found:
        console().print(readers_table(reading.run.measurements, found))
        tell("a reader who cannot tell them apart knows the author in a third of the trials")
    else:
        tell("nobody has read this run blind yet: add --blind")
    return ExitCode.PASS


def _arm(reading: Reading, arm: str | None) -> str:
    candidates = list(reading.run.seal.gate.arms.candidates)
    if arm is None and len(candidates) > 1:
        raise UsageError("this gate has several candidates", next_step=f"--arm, one of: {', '.join(candidates)}")
    return arm or candidates[0]
