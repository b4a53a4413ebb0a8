"""`gates delta`: a matrix of stylistic distances between anybody's texts."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from gates.cli.output import print_json, say, tell
from gates.cli.show import as_json
from gates.corpora.files import NamedText, read_texts
from gates.errors import ExitCode, UsageError
from gates.measure.counted import Counted
from gates.measure.delta import DISTANCES, count_matrix, frame_of_texts
from gates.records import signature
from gates.report.wording import cell
from gates.text import Case, count_words, letters

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("files", nargs=-1, required=True, type=_PATH)
@click.option("--measure", type=click.Choice(list(DISTANCES)), default="cosine", show_default=True)
@click.option("--mfw", type=click.IntRange(1, 1_000_000), default=1000, show_default=True, help="Most frequent words.")
@click.option("--case", type=click.Choice(["lower", "keep"]), default="lower", show_default=True)
@click.option("--tokens", type=click.Choice(["words", "letters"]), default="words", show_default=True)
@click.option("--reference", multiple=True, type=_PATH, help="Texts that give mean and sd instead of FILES.")
@click.option("--culling", type=click.FloatRange(0, 100), default=0.0, help="Keep words of at least PERCENT of texts.")
@click.option("--out", type=_PATH, help="Where to write the CSV; standard output without it.")
@as_json
def delta(files: tuple[Path, ...], measure: str, out: Path | None, json_wanted: bool, **options: Any) -> int:
    """Write the matrix of distances between the texts FILES (text files or folders), its header their file stems.

    Without --reference the most frequent words, their mean and sd come from the given texts themselves, as in the
    published tables. --tokens letters cuts at apostrophes, words keeps inner ones.
    """
    texts = read_texts(files)
    names = _stems(texts)
    cut = Counted(_cut(text, options["tokens"], options["case"]) for text in texts)
    others = Counted(_cut(text, options["tokens"], options["case"]) for text in read_texts(options["reference"]))
    frame = frame_of_texts(others or cut, mfw=options["mfw"], culling=options["culling"])
    rows = DISTANCES[measure](count_matrix(cut, frame.words), frame).tolist()
    made = signature(
        f"{measure}-delta@1",
        mfw=len(frame.words),
        culling=options["culling"],
        case=options["case"],
        tokens=options["tokens"],
        frame=f"{len(others)} reference texts" if others else f"the {len(cut)} texts",
    )
    if json_wanted:
        print_json({"signature": made, "names": names, "distances": rows})
    if out is not None:
        out.write_text(_csv(names, rows), encoding="utf-8")
        say(f"{made}: {out}")
    elif not json_wanted:
        tell(_csv(names, rows).rstrip("\n"))
        say(made)
    return ExitCode.PASS


def _stems(texts: Sequence[NamedText]) -> list[str]:
    names = [Path(text.name).stem for text in texts]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise UsageError(f"texts share a name: {', '.join(twice)}", next_step="give each file a name of its own")
    if len(names) < 2:
        raise UsageError("one text has no distance to another", next_step="give at least two texts")
    return names


def _cut(text: NamedText, tokens: str, case: Case) -> Counter[str]:
    found = Counter(letters(text.text, case=case)) if tokens == "letters" else count_words(text.text, case=case)
    if not found:
        raise UsageError(f"{text.name}: there is not one word in it", next_step="leave the file out")
    return found


def _csv(names: Sequence[str], rows: Sequence[Sequence[float]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    shown = [cell(name) for name in names]
    writer.writerow(["", *shown])
    writer.writerows([name, *(f"{value:.9f}" for value in row)] for name, row in zip(shown, rows, strict=True))
    return out.getvalue()
