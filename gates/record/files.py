"""Disk manners of every record: written once or appended, flushed to the disk before anybody relies on it."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gates.errors import DiskError, RecordError, TamperedError
from gates.records import sha256

_PART = ".part"
_TRIES, _INSTANT_S = 5, 0.01


@contextmanager
def on_disk(path: Path) -> Iterator[None]:
    """Say what the system refuses inside as a DiskError: of `path` where it names no file, or a hidden one of ours."""
    try:
        yield
    except OSError as error:
        named = None if error.filename is None else os.fsdecode(error.filename)
        raise DiskError.of(error, path if named is None or named.endswith(_PART) else named) from error


def refuse_link(path: Path) -> None:
    """Raise TamperedError for a link in a record's place: what is written there would land where somebody points."""
    if path.is_symlink():
        raise TamperedError(
            f"{path}: a record is a file of its own, and this is a link to {os.fspath(path.readlink())[:200]!r}",
            next_step="put the file itself in the link's place",
        )


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, where they are not there; their names are then durable."""
    with on_disk(folder):
        new = [each for each in (folder, *folder.parents) if not each.is_dir()]
        folder.mkdir(parents=True, exist_ok=True)
    for each in new:
        sync_folder(each.parent)


def sync_folder(folder: Path) -> None:
    """Make new and renamed names in `folder` durable."""
    with on_disk(folder):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _beside(path: Path, data: bytes) -> Iterator[Path]:
    """A file beside `path` that holds `data`, on the disk; gone when the context ends, whatever happens."""
    beside = path.with_name(f".{path.name}.{os.getpid()}{_PART}")
    try:
        refuse_link(beside)
        with beside.open("wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        yield beside
    finally:
        beside.unlink(missing_ok=True)


def write_once(path: Path, data: bytes) -> None:
    """Write a file that never changes again: whole or not at all, and never over another content.

    Writing the same bytes again is no error, so that interrupted work can be repeated. Raises RecordError when the
    file is there with other bytes, DiskError when the disk refuses.
    """
    make_folder(path.parent)
    with on_disk(path), _beside(path, data) as beside:
        try:
            os.link(beside, path)
        except FileExistsError:
            if path.read_bytes() != data:
                raise RecordError(
                    f"{path}: a record is written once, and this one is there with other content",
                    next_step="move the file away if it is yours to move; gates never overwrites a record",
                ) from None
    sync_folder(path.parent)


def read_recorded(path: Path, recorded: str) -> bytes:
    """A file's bytes, checked against the hash that the ledger holds. Raises TamperedError when they are others."""
    if not path.is_file():
        raise TamperedError(f"{path}: the ledger holds its hash and it is missing", next_step="restore it")
    data = path.read_bytes()
    if sha256(data) != recorded:
        raise TamperedError(
            f"{path}: SHA-256 is {sha256(data)}, the ledger says {recorded}",
            next_step="restore the file from its commit",
        )
    return data


def stored_bytes(path: Path) -> bytes:
    """What a record's file holds, nothing where there is none. Raises TamperedError for what is no file.

    A folder, pipe or device in its place, or a link to one, is never read: that may not end.
    """
    if not path.is_file():
        if path.exists() or path.is_symlink():
            raise TamperedError(
                f"{path}: a record is a file, and this is none", next_step="restore the file from its commit"
            )
        return b""
    return path.read_bytes()


def replace(path: Path, data: bytes) -> None:
    """Replace a file that is no record in one step: the ledger's head, a page that can be made again."""
    with on_disk(path), _beside(path, data) as beside:
        beside.replace(path)
    sync_folder(path.parent)


def cut_torn_line(path: Path) -> int:
    """Cut an unfinished last line off a line file, as a killed writer leaves it; returns the bytes cut."""
    refuse_link(path)
    if not path.exists():
        return 0
    with on_disk(path), path.open("rb+") as handle:
        size = handle.seek(0, os.SEEK_END)
        end = size
        while end:
            start = max(0, end - 65_536)
            handle.seek(start)
            newline = handle.read(end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end == size:
            return 0
        handle.truncate(end)
        os.fsync(handle.fileno())
        return size - end


def append_line(path: Path, line: bytes) -> None:
    """Append one line and put it on the disk before returning. The caller holds the lock.

    When the disk refuses, what was written of the line is taken back: an error means that it is not there.
    """
    append_lines(path, (line,))


def append_lines(path: Path, lines: Iterable[bytes]) -> None:
    """As `append_line`, all of the lines or, when the disk refuses, none."""
    refuse_link(path)
    new = not path.exists()
    with on_disk(path), path.open("ab", buffering=0) as handle:
        before = handle.seek(0, os.SEEK_END)
        try:
            left = memoryview(b"".join(line + b"\n" for line in lines))
            while left:
                left = left[handle.write(left) :]
            os.fsync(handle.fileno())
        except OSError:
            with suppress(OSError):
                handle.truncate(before)
            raise
    if new:
        sync_folder(path.parent)


def held(path: Path) -> bool:
    """Whether another process holds the lock file `path`; nobody is kept waiting."""
    if not path.exists():
        return False
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(handle)


@contextmanager
def locked(path: Path, *, wait: bool, busy: str) -> Iterator[None]:
    """Hold the lock file `path`. Without `wait`, raises RecordError saying `busy` when another process holds it."""
    refuse_link(path)
    make_folder(path.parent)
    with on_disk(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        if not _took(handle, wait=wait):
            raise RecordError(f"{path}: {busy}", next_step="wait until the other process has ended")
        yield
    finally:
        os.close(handle)


def _took(handle: int, *, wait: bool) -> bool:
    """Whether the lock is ours now. `held` has it for an instant, so that one refusal alone says nothing."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            time.sleep(_INSTANT_S)
        else:
            return True
    return False
