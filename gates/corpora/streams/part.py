"""A part of a source, and its file as it was when the work was planned: what has changed since is not read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from gates.corpora.files import unusable
from gates.corpora.streams.extra import formats
from gates.spec.source import located

Kind = Literal["text", "lines", "rows"]


@dataclass(frozen=True)
class Part:
    """Bytes `begin` to `end` (None: all that follow) of a file or URL; of Parquet, these row groups instead.

    A `file` without a folder of its own lies in `folder`, wherever the reader works. `state` is how the file was
    (empty: not looked at).
    """

    file: str
    kind: Kind
    packing: str
    begin: int = 0
    end: int | None = None
    folder: str = ""
    state: str = ""

    @property
    def remote(self) -> bool:
        """Whether the file is a URL."""
        return is_remote(self.file)

    @property
    def place(self) -> str:
        """What is opened; `file` is how it is named."""
        return self.file if self.remote else (Path(self.folder) / self.file).as_posix()


def is_remote(source: str) -> bool:
    """Whether a source is a URL."""
    return "://" in source


@contextmanager
def opened(part: Part) -> Iterator[IO[bytes]]:
    """The bytes of the part's file. Raises InputError where it is not as it was planned, before or after reading."""
    _same(part)
    with formats().remote(part.file) if part.remote else Path(part.place).open("rb") as raw:
        yield raw
    _same(part)


def state_of(path: Path) -> tuple[int, str]:
    """The size of a file on the disk, and what changes with its content. Raises OSError."""
    found = path.stat()
    return found.st_size, f"size {found.st_size}, mtime {found.st_mtime_ns}"


def _same(part: Part) -> None:
    if part.state:
        now = formats().state(part.file) if part.remote else state_of(Path(part.place))[1]
        if now != part.state:
            rule = f"changed while it was read, or not the same everywhere: {part.state} when planned, now {now}"
            hint = "let nothing write it meanwhile; copies on several machines must keep their times"
            raise unusable([located(part.file, 0, "file", "", rule, hint)])
