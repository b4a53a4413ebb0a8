"""`gates review`: what a person must read of a finished run, one item after another, and what they say of each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError
from rich.text import Text

from gates.cli.output import print_json, say, tell
from gates.cli.show import as_json, console, head_at_the_end, interactive, signing_key
from gates.cli.web import serve
from gates.corpora.cache import cache_dir
from gates.errors import ExitCode, UsageError
from gates.flow import this_world
from gates.flow.desk import ReviewDesk
from gates.flow.review import ItemShown, Reading, open_reading
from gates.flow.world import World
from gates.record.review import LABELS, Said
from gates.report.review import NAMED, excerpt_text, lines, place, reading_table, several_lines, why

_ASK = f"ok or bad, then what it is ({', '.join(LABELS)}) and a note if you like; skip; quit"


@click.command()
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--arm", help="Only what signing off this candidate needs; by default what any candidate needs.")
@click.option("--list", "list_wanted", is_flag=True, help="List the items and end; as without a terminal.")
@click.option(
    "--mark", "marks", nargs=2, multiple=True, type=(str, click.Choice(["ok", "bad"])), help="Mark ITEM and end."
)
@click.option("--as", "label", type=click.Choice(LABELS), help="With --mark: what the matched words are.")
@click.option("--note", default="", help="With --mark: a note that stays with it.")
@click.option("--by", help="Who reads; your user name by default.")
@click.option("--web", is_flag=True, help="Read in a browser: a page on this machine, until Ctrl-C.")
@click.option(
    "--port", default=0, type=click.IntRange(0, 65535), help="With --web: the page's port; 0 takes a free one."
)
@signing_key
@as_json
def review(run: Path, arm: str | None, marks: tuple[tuple[str, str], ...], json_wanted: bool, **asked: Any) -> int:
    """Read what must be read of the finished RUN, a folder such as reports/demo/001.

    Shows each unread item on a terminal and asks for a mark; what is marked is kept at once, and the same command
    goes on where it stopped. Exits with 0 when nothing is left to read, else with 3.

    \b
    gates review reports/demo/001
    gates review reports/demo/001 --web
    gates review reports/demo/001 --mark 3f9a ok --as stock-phrase --note "it was a dark and"
    """
    head_at_the_end(run)
    world = this_world(say, by=asked["by"], key=asked["key"])
    reading = open_reading(run, cache_dir(os.environ))
    # An unknown arm is told before anything is asked.
    reading.needed(arm)
    if marks:
        with _sitting(reading, world):
            for name, mark in marks:
                reading.mark(name, _said(mark, asked["label"], asked["note"]), world)
    elif asked["web"]:
        with _sitting(reading, world):
            serve(ReviewDesk(reading, world, arm), asked["port"])
    elif interactive() and not asked["list_wanted"] and not json_wanted:
        with _sitting(reading, world):
            _read_on(reading, arm, world)
    _print(reading, arm, world.by, json_wanted)
    return ExitCode.INCONCLUSIVE if reading.unread(world.by, arm) else ExitCode.PASS


@contextmanager
def _sitting(reading: Reading, world: World) -> Iterator[None]:
    """However the sitting ends, its marks are entered in the ledger."""
    try:
        yield
    finally:
        reading.enter(world)


def _print(reading: Reading, arm: str | None, by: str, json_wanted: bool) -> None:
    items, marks = reading.needed(arm), reading.marks(by)
    left = reading.unread(by, arm)
    if json_wanted:
        told = [
            {"name": name, **item.as_json(), "mark": marks[name].as_json() if name in marks else None}
            for name, item in items.items()
        ]
        print_json({"list_sha256": reading.list_sha256, "by": by, "unread": len(left), "items": told})
        return
    console().print(reading_table(items, marks))
    others = {mark.by for mark in reading.marks().values()} - {by}
    tell(f"{by} has read {len(items) - len(left)} of {len(items)}; {len(left)} unread")
    if others:
        tell(f"also read by: {', '.join(sorted(others))}; each person who signs has read for themselves")
    for candidate in reading.run.seal.gate.arms.candidates:
        tell(f"  to sign {candidate} off: {len(reading.unread(by, candidate))} unread")


def _read_on(reading: Reading, arm: str | None, world: World) -> None:
    left = reading.unread(world.by, arm)
    for number, name in enumerate(left, start=1):
        console().print(lines(_parts(reading.show(name), f"{number} of {len(left)}")))
        said = _asked()
        if said == "quit":
            return
        if isinstance(said, Said):
            reading.mark(name, said, world)


def _parts(shown: ItemShown, where: str) -> Iterator[str | Text]:
    yield Text(f"\n{where}  {shown.name[:NAMED]}  {place(shown.item)}: {why(shown.item)}", "bold")
    yield f"prompt: {several_lines(shown.prompt)}\n"
    if shown.error is not None:
        yield f"no answer: {several_lines(shown.error)}"
    if shown.run is None:
        yield several_lines(shown.text)
        return
    yield excerpt_text(shown.run)
    for quote in shown.quotes:
        yield f"\nin {several_lines(quote.source.file)} at word {quote.source.start}:"
        yield excerpt_text(quote.words) if quote.words else f"not shown: {quote.missing}"
    if shown.more_sources:
        yield f"and in {shown.more_sources} more places"
    if shown.elsewhere:
        yield f"other authors have it too: {several_lines(shown.elsewhere)}"


def _asked() -> Said | str:
    """What the reader says: a mark with its label and note, `skip` or `quit`."""
    while True:
        first, _, rest = click.prompt(_ASK, err=True).strip().partition(" ")
        word = next((w for w in ("ok", "bad", "skip", "quit") if first and w.startswith(first.lower())), "")
        if word in {"skip", "quit"}:
            return word
        if word:
            label, _, note = rest.strip().partition(" ")
            known = label in LABELS
            return _said(word, label if known else None, note.strip() if known else rest.strip())


def _said(mark: str, label: str | None, note: str) -> Said:
    try:
        return Said.model_validate({"mark": mark, "label": label, "note": note})
    except ValidationError as error:
        raise UsageError(f"the note cannot be kept: {error.errors()[0]['msg']}") from None
