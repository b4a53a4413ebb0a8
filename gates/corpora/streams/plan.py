"""What is to be read, and how the work can be parted: whole files, ranges of bytes, row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gates.corpora.files import text_files, unusable
from gates.corpora.streams.extra import formats
from gates.corpora.streams.part import Kind, Part, is_remote, opened, state_of
from gates.errors import Problem
from gates.spec.source import located

_KINDS: dict[str, Kind] = {".jsonl": "lines", ".ndjson": "lines", ".parquet": "rows"}
_PACKINGS = (".gz", ".xz", ".bz2", ".zst")


def plan(sources: Sequence[str], part_bytes: int | None = None) -> list[Part]:
    """The parts of files, folders (read through, by name, hidden files passed over) and URLs, in the order given.

    Files that can be read from the middle are cut into parts of about `part_bytes`, Parquet between row groups; all
    stay whole without it. Raises
    InputError listing everything that is missing, empty or unreadable, UsageError where a package is missing.
    """
    problems: list[Problem] = []
    parts = [part for source in sources for part in _parts(source, part_bytes, problems)]
    if problems:
        raise unusable(problems)
    return parts


def _parts(source: str, part_bytes: int | None, problems: list[Problem]) -> Iterator[Part]:
    for file, size, state in _files(source, problems):
        name = (file.partition("::")[0] if is_remote(file) else file).lower()
        packing = next((end for end in _PACKINGS if name.endswith(end)), "")
        kind = _KINDS.get(Path(name.removesuffix(packing)).suffix, "text")
        whole = Part(file, kind, packing, folder=Path.cwd().as_posix(), state=state)
        if size == 0:
            problems.append(located(file, 0, "file", "", "the file is empty", "leave it out"))
        elif whole.kind == "rows":
            yield from (replace(whole, begin=begin, end=end) for begin, end in _groups(whole, part_bytes))
        elif packing or not size or part_bytes is None:
            yield whole
        else:
            begins = range(0, size, part_bytes)
            yield from (replace(whole, begin=begin, end=begin + part_bytes) for begin in begins[:-1])
            yield replace(whole, begin=begins[-1])


def _groups(whole: Part, part_bytes: int | None) -> Iterator[tuple[int, int]]:
    """Row groups that follow one another, together about `part_bytes`; each opening of a file reads its whole index."""
    with formats().explained(whole.file), opened(whole) as raw:
        sizes = formats().row_groups(raw)
    begin = held = 0
    for end, size in enumerate(sizes, 1):
        held += size
        if end == len(sizes) or (part_bytes is not None and held >= part_bytes):
            yield begin, end
            begin, held = end, 0


def _files(source: str, problems: list[Problem]) -> Iterator[tuple[str, int | None, str]]:
    """Each file, its size in bytes (None: unknown, or it cannot be read from the middle), and its state."""
    if is_remote(source):
        yield from formats().remote_files(source)
    else:
        yield from ((file.as_posix(), *state_of(file)) for file in text_files([Path(source)], problems))
