"""The cache of texts and wheels outside git: written atomically, verified by SHA-256 on every read.

Layout below the cache folder: `corpora/NAME/PATH` (texts, raw bytes), `wheels/` and `downloads/` (containers that texts
or models are taken from), `partial/` (unfinished writes, which never count as there).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import platformdirs

from gates.corpora.manifest import Manifest, TextFile
from gates.errors import CorpusError, UsageError
from gates.records import sha256


class State(StrEnum):
    """What the cache holds of one file."""

    PRESENT = "present"
    MISSING = "missing"
    WRONG = "wrong"


@dataclass(frozen=True)
class Cached:
    """One file of a corpus as the cache holds it; `data` is None when it is missing, `sha256` is what was found."""

    file: TextFile
    data: bytes | None

    @property
    def sha256(self) -> str | None:
        """SHA-256 of the bytes found, or None."""
        return None if self.data is None else sha256(self.data)

    @property
    def state(self) -> State:
        """PRESENT only when the bytes are there and are the pinned ones (any bytes, while unpinned)."""
        if self.data is None:
            return State.MISSING
        return State.PRESENT if self.file.pinned in {None, self.sha256} else State.WRONG

    @property
    def complaint(self) -> str:
        """One line that says what is wrong with the file."""
        if self.data is None:
            return f"{self.file.path}: missing"
        return wrong_hash(self.file.path, self.file.sha256, self.sha256 or "")


def wrong_hash(name: str, expected: str, found: str) -> str:
    """One line for a file whose bytes are not the ones that are pinned."""
    return f"{name}: wrong hash: expected sha256 {expected}, found {found}"


def cache_dir(environ: Mapping[str, str]) -> Path:
    """The cache folder: GATES_CACHE where it is set and not empty, else the user's cache folder."""
    chosen = environ.get("GATES_CACHE")
    try:
        return Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("gates", appauthor=False)
    except RuntimeError:
        raise UsageError(
            "there is no home folder to keep a cache in", next_step="set GATES_CACHE to a folder"
        ) from None


def text_path(cache: Path, manifest: Manifest, file: TextFile) -> Path:
    """Where the raw bytes of a text lie in the cache."""
    return cache / "corpora" / manifest.name / file.path


def look_up(cache: Path, manifest: Manifest, file: TextFile) -> Cached:
    """What the cache holds of a file. Raises CorpusError when the file is there and cannot be read."""
    path = text_path(cache, manifest, file)
    try:
        return Cached(file, path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return Cached(file, None)
    except OSError as error:
        raise _unreadable(path, error) from None


def store(cache: Path, target: Path, data: bytes) -> None:
    """Write `data` to `target` below the cache, whole or not at all; the last of two writers prevails."""
    with partial_folder(cache) as folder:
        part = folder / "part"
        with part.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        move_in(part, target)


@contextmanager
def partial_folder(cache: Path) -> Iterator[Path]:
    """A private folder for unfinished writes on the cache's own file system, removed at the end.

    Raises CorpusError when the cache cannot be written.
    """
    parent = cache / "partial"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            yield Path(folder)
    except OSError as error:
        raise CorpusError(
            f"{error.filename or cache}: cannot write to the corpus cache: {error.strerror or error}",
            next_step="free some space or make the folder writable, or choose another cache with GATES_CACHE",
        ) from None


def move_in(part: Path, target: Path) -> None:
    """Put a finished file in its place in one step."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part.replace(target)


def file_sha256(path: Path) -> str | None:
    """SHA-256 of a file in hex, or None when there is no such file. Raises CorpusError when it cannot be read."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> CorpusError:
    return CorpusError(
        f"{path}: cannot read what the cache holds: {error.strerror}",
        next_step="make it readable, or remove it and fetch again",
    )
