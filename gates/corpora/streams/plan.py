"""What is to be read, and how the work can be parted: whole files, ranges of bytes, row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from gates.corpora.files import text_files, unusable
from gates.corpora.streams.extra import formats
from gates.errors import Problem
from gates.spec.source import located

Kind = Literal["text", "lines", "rows"]

_KINDS: dict[str, Kind] = {".jsonl": "lines", ".ndjson": "lines", ".parquet": "rows"}
_PACKINGS = (".gz", ".xz", ".bz2", ".zst")


@dataclass(frozen=True)
class Part:
    """Bytes `begin` to `end` (None: all that follow) of a file or URL; of Parquet, these row groups instead."""

    file: str
    kind: Kind
    packing: str
    begin: int = 0
    end: int | None = None

    @property
    def remote(self) -> bool:
        """Whether the file is a URL."""
        return is_remote(self.file)


def is_remote(source: str) -> bool:
    """Whether a source is a URL."""
    return "://" in source


def plan(sources: Sequence[str], part_bytes: int | None = None) -> list[Part]:
    """The parts of files, folders (read through, by name, hidden files passed over) and URLs, in the order given.

    Files that can be read from the middle are cut into parts of about `part_bytes`; all stay whole without it. Raises
    InputError listing everything that is missing, empty or unreadable, UsageError where a package is missing.
    """
    problems: list[Problem] = []
    parts = [part for source in sources for part in _parts(source, part_bytes, problems)]
    if problems:
        raise unusable(problems)
    return parts


def _parts(source: str, part_bytes: int | None, problems: list[Problem]) -> Iterator[Part]:
    for file, size in _files(source, problems):
        name = file.lower()
        packing = next((end for end in _PACKINGS if name.endswith(end)), "")
        whole = Part(file, _KINDS.get(Path(name.removesuffix(packing)).suffix, "text"), packing)
        if size == 0:
            problems.append(located(file, 0, "file", "", "the file is empty", "leave it out"))
        elif whole.kind == "rows":
            yield from (replace(whole, begin=group, end=group + 1) for group in range(formats().row_groups(file)))
        elif packing or not size or part_bytes is None:
            yield whole
        else:
            begins = range(0, size, part_bytes)
            yield from (replace(whole, begin=begin, end=begin + part_bytes) for begin in begins[:-1])
            yield replace(whole, begin=begins[-1])


def _files(source: str, problems: list[Problem]) -> Iterator[tuple[str, int | None]]:
    """Each file and its size in bytes (None: unknown)."""
    if is_remote(source):
        yield from formats().remote_files(source)
    else:
        yield from ((file.as_posix(), file.stat().st_size) for file in text_files([Path(source)], problems))
