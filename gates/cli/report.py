"""`gates report`: the page of a finished run, one self-contained file."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gates.cli.output import print_json, tell
from gates.cli.show import as_json
from gates.corpora.cache import cache_dir
from gates.errors import ExitCode, UsageError
from gates.flow.finished import read_run
from gates.flow.paging import page_of
from gates.flow.review import open_reading
from gates.flow.sharing import PAGE, shared_page
from gates.flow.sharing import share as write_share
from gates.record.files import replace
from gates.report.html import can_draw, html_report


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Where to; RUN/report.html by default.")
@click.option("--with-sources", is_flag=True, help="Set copied runs beside the words of their source.")
@click.option(
    "--share",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write a new folder for others: record and page, matched words replaced by their count.",
)
@as_json
def report(run: Path, out: Path | None, with_sources: bool, share: Path | None, json_wanted: bool) -> int:
    """Write RUN's page: the answer, pictures with their numbers, copied words, every text.

    RUN is the folder of a finished run, such as reports/demo/001. The page is one file that asks for nothing else and
    holds no word of the training text unless --with-sources is given. It needs the extra `report`.

    \b
    gates report reports/demo/001
    gates report reports/demo/001 --share for-others
    """
    if share is not None:
        if with_sources or out is not None:
            raise UsageError("--share goes without --with-sources and --out", next_step="leave these out")
        return _shared(run, share, json_wanted)
    page = page_of(read_run(run), cache_dir(os.environ), with_sources=with_sources)
    target = out or run / "report.html"
    replace(target, html_report(page).encode())
    if json_wanted:
        print_json({"file": str(target), "with_sources": with_sources, "lacking": page.lacking})
        return ExitCode.PASS
    tell(f"{target}: {page.verdict.outcome.value}; open it in a browser")
    if page.lacking:
        tell(f"note: without the gate's texts some pictures are missing: {page.lacking}")
    return ExitCode.PASS


def _shared(run: Path, folder: Path, json_wanted: bool) -> int:
    """Write the folder that is fit to share, and the run's page in it where the extra `report` is there."""
    cache = cache_dir(os.environ)
    reading = open_reading(run, cache)
    page = html_report(shared_page(page_of(reading.run, cache))) if can_draw() else None
    made = write_share(reading, folder)
    target = folder / "reports" / made.run / PAGE
    if page is not None:
        replace(target, page.encode())
    if json_wanted:
        print_json({"folder": str(folder), "page": None if page is None else str(target), **made.as_json()})
    else:
        drawn = f"the page is {target}" if page is not None else "no page: it needs the extra `report`"
        tell(f"{folder}: {made.texts} texts, {made.omitted} matched words left out; {drawn}")
        tell("others check it with `gates verify`, which says how far it goes")
    return ExitCode.PASS
