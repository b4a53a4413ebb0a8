"""`gates overlap`: which texts repeat a source word for word; for anybody's files."""

from __future__ import annotations

from pathlib import Path

import click

from gates.cli.engine import engine_at
from gates.cli.output import print_json, tell
from gates.cli.show import as_json
from gates.corpora.files import read_prompts, read_texts
from gates.errors import ExitCode, UsageError
from gates.flow.overlap import overlap as measure
from gates.measure.overlap import Overlap, OverlapRun

_PATH = click.Path(path_type=Path)
_SHOWN = 3


@click.command()
@click.option("--source", "sources", multiple=True, required=True, help="Text that may have been copied: path or URL.")
@click.option("--texts", type=_PATH, multiple=True, required=True, help="Texts to look at.")
@click.option("--n", type=click.IntRange(1, 1000), default=8, show_default=True, help="The shortest run, in words.")
@click.option("--prompts", type=_PATH, help="What each text was asked with: its own words are no copies.")
@click.option("--engine", help="Where to read the sources: dask://HOST:PORT, a running scheduler (extra cluster).")
@as_json
def overlap(
    sources: tuple[str, ...],
    texts: tuple[Path, ...],
    n: int,
    prompts: Path | None,
    engine: str | None,
    json_wanted: bool,
) -> int:
    """Find every run of at least N words that texts share with a source, with positions in words from 0.

    A path is a text file (one text), a folder of them, or JSONL with a field `text` and, if wanted, `prompt`. --source
    and --texts may be given several times. --prompts is a text file with one prompt a line, a folder, or JSONL.

    Sources may be of any size: they are streamed. They may be packed (.gz, .xz, .bz2, .zst), Parquet with a column
    `text`, and URLs that fsspec reads.

    Example: gates overlap --source books --source s3://bucket/train --texts generations.jsonl
    """
    found = read_texts(texts)
    given = tuple(text.prompt for text in found)
    if prompts is not None:
        if any(prompt is not None for prompt in given):
            raise UsageError("the texts bring their own prompts", next_step="leave --prompts out")
        given = read_prompts(prompts, len(found))
    with engine_at(engine, "parts of the sources read") as where:
        result = measure(sources, found, given, n, where)
    if json_wanted:
        print_json(result.as_json())
    else:
        _print(result)
    return ExitCode.PASS


def _print(result: Overlap) -> None:
    tell(f"{result.hits} of {result.texts} texts hold {result.n} words in a row of the source ({result.hit_rate:.3f})")
    for run in result.runs:
        tell(f"  {_sentence(run)}")
    tell(result.signature)


def _sentence(run: OverlapRun) -> str:
    places = ", ".join(f"{source.file} at word {source.start}" for source in run.sources[:_SHOWN])
    more = f" and {len(run.sources) - _SHOWN} more places" if len(run.sources) > _SHOWN else ""
    return f"{run.name} at word {run.start}, {run.length} words, as in {places}{more}: {run.words}"
