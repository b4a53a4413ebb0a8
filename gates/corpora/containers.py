"""Reading named files out of folders and archives that nobody vouches for.

Nothing is ever extracted by the name an archive gives: a caller asks for names and gets bytes. Archives that hold
absolute or upward paths are refused, wanted members must be plain files, and every size is limited while it is read,
so that a small archive cannot unpack to more than the limits.
"""

from __future__ import annotations

import gzip
import io
import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from gates.corpora.streams import unpacking
from gates.errors import CorpusError

_LARGEST_HEADER = 16_384
_READ_WHOLE = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_ZIP = b"PK\x03\x04"
_MEMBER = b"PK\x01\x02"
_LARGEST_MEMBER = 512  # bytes of a member in a zip's list of them, on average over as many as there may be
_ZIP64_END = 76
_PACKED: dict[bytes, Callable[[Path], IO[bytes]]] = {
    b"\xfd7zXZ\x00": lambda source: unpacking.xz(source.open("rb")),
    b"\x1f\x8b": lambda source: cast("IO[bytes]", gzip.GzipFile(source)),
    b"BZh": lambda source: unpacking.bzip2(source.open("rb")),
}
# What the readers of the standard library raise for broken, encrypted or unknown archives.
_BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    lzma.LZMAError,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    RuntimeError,
)


@dataclass(frozen=True)
class Limits:
    """Bytes of one text, bytes of all that an archive unpacks to, and the number of its members."""

    file: int = 64 * 2**20
    total: int = 2 * 2**30
    members: int = 100_000


LIMITS = Limits()


def is_archive(path: Path) -> bool:
    """Whether a path is a zip or tar file (plain or compressed), judged by its first bytes. Raises CorpusError."""
    if not path.is_file():
        return False
    with _explained(path):
        head = _head(path)
    return head.startswith((_ZIP, *_PACKED)) or head[257:262] == b"ustar"


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(512)


def members(source: Path, wanted: Collection[str], limits: Limits = LIMITS) -> Iterator[tuple[str, bytes]]:
    """Yield (name, bytes) for each wanted name that a folder or archive holds; names it lacks are not an error.

    Raises CorpusError for an archive that is broken, over the limits or hostile, and for a wanted name that is not a
    plain file or leads out of the folder.
    """
    with _explained(source):
        if source.is_dir():
            yield from _folder(source, wanted, limits)
        elif _head(source).startswith(_ZIP):
            yield from _zip(source, wanted, limits)
        else:
            yield from _tar(source, wanted, limits)


@contextmanager
def _explained(source: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CorpusError(
            f"{error.filename or source}: cannot read: {error.strerror or error}",
            next_step="check the path and its permissions, then fetch again",
        ) from None
    except _BROKEN as error:
        raise CorpusError(
            f"{source}: not a readable folder, zip or tar archive: {error}", next_step="get the archive again"
        ) from None


def _folder(source: Path, wanted: Collection[str], limits: Limits) -> Iterator[tuple[str, bytes]]:
    inside = source.resolve()
    for name in wanted:
        path = source / name
        if not path.is_file():
            continue
        if not path.resolve().is_relative_to(inside):
            raise _refused(source, name, "is a link that leads out of the folder")
        with path.open("rb") as stream:
            yield name, _bounded(stream, source, name, limits)


def _zip(source: Path, wanted: Collection[str], limits: Limits) -> Iterator[tuple[str, bytes]]:
    total = 0
    with source.open("rb") as stream:
        _check_list(stream, source, limits)
    with zipfile.ZipFile(source) as archive:
        entries = archive.infolist()
        for entry in entries:
            _check_name(source, entry.filename)
        for entry in entries:
            if entry.filename not in wanted:
                continue
            mode = entry.external_attr >> 16
            if entry.is_dir() or (stat.S_IFMT(mode) and not stat.S_ISREG(mode)):
                raise _refused(source, entry.filename, "is a link or a folder, not a plain file")
            with archive.open(entry) as stream:
                data = _bounded(stream, source, entry.filename, limits)
            total += len(data)
            if total > limits.total:
                raise _refused(source, entry.filename, f"takes the archive over {limits.total} unpacked bytes")
            yield entry.filename, data


def _check_list(stream: IO[bytes], source: Path, limits: Limits) -> None:
    """Raise CorpusError for a zip's list of members that is too long, before the library makes objects of it."""
    end = zipfile._EndRecData(stream)  # type: ignore[attr-defined]  # as the library itself finds it; no stub has it
    if end is None:
        return  # the library says what it is instead
    size, place = end[5], end[9]
    if size > limits.members * _LARGEST_MEMBER:
        raise _refused(source, "the archive", f"has a list of members of {size} bytes")
    stream.seek(max(0, place - size - _ZIP64_END))
    if stream.read(size + _ZIP64_END).count(_MEMBER) > limits.members:
        raise _refused(source, "the archive", f"holds more than {limits.members} members")


def _tar(source: Path, wanted: Collection[str], limits: Limits) -> Iterator[tuple[str, bytes]]:
    with (
        _unpacked(source) as stream,
        tarfile.open(fileobj=_Metered(stream, source, limits), mode="r|", tarinfo=_Modest) as archive,
    ):
        for number, entry in enumerate(archive):
            name = entry.name.removeprefix("./")
            if number >= limits.members:
                raise _refused(source, name, f"is one of more than {limits.members} members")
            _check_name(source, name)
            if name not in wanted:
                continue
            content = archive.extractfile(entry) if entry.isreg() else None
            if content is None:
                raise _refused(source, name, "is a link, a folder or a device, not a plain file")
            yield name, _bounded(content, source, name, limits)


class _Modest(tarfile.TarInfo):
    """A member whose size is one, and whose long name or extended header, which tarfile reads whole, is not large."""

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        if self.size < 0 or (self.size > _LARGEST_HEADER and self.type in _READ_WHOLE):
            raise tarfile.ReadError(f"a header of {self.size} bytes")
        made: tarfile.TarInfo = super()._proc_member(tar)  # type: ignore[misc]  # tarfile's own hook, without a stub
        return made


def _unpacked(source: Path) -> IO[bytes]:
    """The tar inside a compressed file, or the file itself; the caller closes it."""
    head = _head(source)
    for magic, unpacked in _PACKED.items():
        if head.startswith(magic):
            return unpacked(source)
    return source.open("rb")


class _Metered(io.BufferedIOBase):
    """A stream that refuses to give more than the limit: what a tar unpacks to is bounded whatever its headers say."""

    def __init__(self, stream: IO[bytes], source: Path, limits: Limits) -> None:
        self._stream, self._source, self._limits = stream, source, limits
        self._given = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = self._stream.read(-1 if size is None else size)
        self._given += len(data)
        if self._given > self._limits.total:
            raise _refused(self._source, "the archive", f"unpacks to more than {self._limits.total} bytes")
        return data


def _bounded(stream: IO[bytes], source: Path, name: str, limits: Limits) -> bytes:
    data = stream.read(limits.file + 1)
    if len(data) > limits.file:
        raise _refused(source, name, f"is larger than {limits.file} bytes")
    return data


def _check_name(source: Path, name: str) -> None:
    if name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/") or name[1:2] == ":":
        raise _refused(source, repr(name), "is a path that leads out of the archive")


def _refused(source: Path, name: str, why: str) -> CorpusError:
    return CorpusError(f"{source}: {name} {why}", next_step="hand over a folder or archive of plain text files")
