"""`gates report`: the page of a finished run, one self-contained file."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gates.cli.output import print_json, tell
from gates.cli.show import as_json
from gates.corpora.cache import cache_dir
from gates.errors import ExitCode
from gates.flow.finished import read_run
from gates.flow.paging import page_of
from gates.record.files import replace
from gates.report.html import html_report


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Where to; RUN/report.html by default.")
@click.option("--with-sources", is_flag=True, help="Set copied runs beside the words of their source.")
@as_json
def report(run: Path, out: Path | None, with_sources: bool, json_wanted: bool) -> int:
    """Write RUN's page: the answer, pictures with their numbers, copied words, every text.

    RUN is the folder of a finished run, such as reports/demo/001. The page is one file that asks for nothing else and
    holds no word of the training text unless --with-sources is given. It needs the extra `report`.
    """
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
