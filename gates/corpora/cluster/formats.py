"""Remote files through fsspec, .zst and Parquet through pyarrow; failures as the reader's own."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, cast
from urllib.parse import urlsplit

import fsspec
import pyarrow
import pyarrow.parquet as pq

from gates.corpora.cluster import pages
from gates.errors import GatesError, InputError, UsageError
from gates.spec.source import located, printable, without_secrets

_ROWS = 512
_BUFFER = 1 << 18
_CACHES = frozenset({"simplecache", "filecache", "blockcache", "cached"})
_CHANGING = (
    *("ETag", "etag", "md5Hash", "Content-MD5", "CRC", "generation"),
    *("mtime", "Last-Modified", "LastModified", "last_modified", "created"),
)
"""What file systems say of a file that changes with its content, most telling first. Only the first told is compared:
a listing may give a time more finely than the file's own head, and the content's hash without it."""

_QUOTES = '"'
_STRINGS = (pyarrow.types.is_string, pyarrow.types.is_large_string, pyarrow.types.is_string_view)


def remote_files(url: str) -> Iterator[tuple[str, int | None, str]]:
    """The files at a URL, or below it by name: their sizes (None: unknown, or unreadable from the middle) and states.

    Raises UsageError for a URL that holds a secret or leads through a cache, InputError where nothing can be found.
    """
    with explained(url):
        _check(url)
        system, path = fsspec.core.url_to_fs(url)
        held = _held(url)
        # Whether a web address is a folder could only be told by reading all of it for links.
        if path.endswith("/") if url.startswith(("http://", "https://")) else system.isdir(path):
            _first, mark, archive = url.partition("::")
            for name in sorted(name for name in system.find(path) if not _hidden(name, path)):
                size, told = _size_and_state(system.info(name))
                if name.endswith("/") and not size:
                    continue  # no text: stores keep such an object where somebody made a folder
                yield f"{system.unstrip_protocol(name)}{mark}{archive}", size, told + held
        else:
            size, told = _size_and_state(system.info(path))
            yield url, size, told + held


def _check(url: str) -> None:
    for link in url.split("::"):
        scheme = link.partition("://")[0]
        split = urlsplit(link)
        if "@" in split.netloc or split.query:
            # The file's name goes into results, so that a password or signature in it would, too.
            raise UsageError(
                f"{printable(scheme)}://…: a URL with a password or a query is not read",
                next_step="give the credentials as the file system's own settings (environment, configuration file)",
            )
        if scheme in _CACHES:
            raise UsageError(
                f"{printable(scheme)}::…: a cache between would leave copies on the disk, and may hold older ones",
                next_step="leave it out: every source is read once, as a stream",
            )


def state(url: str) -> str:
    """What changes with the content of the file at a URL, asked anew. Raises InputError where it cannot be had."""
    with explained(url):
        system, path = fsspec.core.url_to_fs(url)
        system.invalidate_cache()
        return _size_and_state(system.info(path))[1] + _held(url)


def _held(url: str) -> str:
    """The state of the archive that holds the file at a URL: what it tells of its members may stay the same."""
    archive = url.partition("::")[2]
    return f", in one of {state(archive)}" if archive else ""


def _size_and_state(info: dict[str, object]) -> tuple[int | None, str]:
    size = info.get("size")
    by = [name for name in _CHANGING if info.get(name)][:1]
    told = ", ".join(f"{name} {str(info[name]).strip(_QUOTES)}" for name in ("size", *by) if name in info)
    return size if isinstance(size, int) and info.get("partial", True) else None, told


@contextmanager
def remote(url: str) -> Iterator[IO[bytes]]:
    """A remote file, opened for reading; seekable where its server can send ranges. Raises InputError, and in reading
    OSError or EOFError."""
    with explained(url):
        system, path = fsspec.core.url_to_fs(url)
        size = system.info(path).get("size")
        raw = system.open(path, "rb")
    with raw, io.BufferedReader(_Whole(raw, size), _BUFFER) as whole:
        yield cast("IO[bytes]", whole)


class _Whole(io.RawIOBase):
    """A remote file to the last byte that its size promises; whatever its client raises, as OSError."""

    def __init__(self, raw: IO[bytes], size: int | None) -> None:
        self._raw, self._size, self._at = raw, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at}.get(whence, self._size)
        if base is None:
            raise OSError("its server does not say how long it is")
        if base + offset != self._at:
            with _as_oserror():
                self._raw.seek(base + offset)
        self._at = base + offset
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # typeshed takes any buffer
        with _as_oserror():
            data = self._raw.read(len(buffer))
            buffer[: len(data)] = data
        self._at += len(data)
        if self._size is not None and (self._at > self._size or (not data and self._at < self._size)):
            raise EOFError(f"{self._size:,} bytes were promised, {self._at:,} came")
        return len(data)


@contextmanager
def _as_oserror() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # each file system's client has errors of its own
        raise OSError(_said(error)) from error


def unpacked(raw: IO[bytes]) -> IO[bytes]:
    """What a Zstandard stream holds, of one frame or several; reading one that is cut off raises OSError."""
    stream = pyarrow.CompressedInputStream(pyarrow.PythonFile(raw, mode="r"), "zstd")
    return cast("IO[bytes]", io.BufferedReader(stream))


def row_groups(raw: IO[bytes]) -> list[int]:
    """The packed bytes of each row group of a Parquet file."""
    return [sum(chunk.packed for chunk in group.chunks) for group in pages.row_groups(pq.read_metadata(raw))]


def texts(raw: IO[bytes], file: str, begin: int, end: int) -> Iterator[str | None]:
    """The column `text` of row groups `begin` to `end` (that one excluded) of a Parquet file, called `file`.

    It stays a dictionary where it is one, for a file of a few bytes may name one long text a million times. Raises
    InputError where it is not one column of strings, where a row group's texts unpack to more than `pages.LARGEST`,
    before they do, and where there are more or fewer of them than the footer says; what pyarrow raises where it is
    damaged.
    """
    index = pq.read_metadata(raw)
    _check_column(file, index.schema.to_arrow_schema())
    column = [index.schema.column(at).path for at in range(len(index.schema))].index("text")
    groups = pages.row_groups(index)
    raw.seek(0)
    with pq.ParquetFile(
        raw, metadata=index, pre_buffer=False, read_dictionary=["text"], page_checksum_verification=True
    ) as table:
        for group in range(begin, end):
            pages.check_sizes(file, raw, (group, groups[group]), column)
        rows = 0
        for batch in table.iter_batches(batch_size=_ROWS, row_groups=range(begin, end), columns=["text"]):
            rows += batch.num_rows
            yield from (value.as_py() for value in batch.column("text"))
        if rows != (promised := sum(group.rows for group in groups[begin:end])):
            raise _unusable(file, "rows", f"{rows:,}", f"the footer promises {promised:,}")


def _check_column(file: str, schema: pyarrow.Schema) -> None:
    names = schema.names
    if names.count("text") != 1:
        raise _unusable(file, "columns", printable(", ".join(names)), "must hold one named text")
    kind = schema.field("text").type
    kind = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
    if not any(is_one(kind) for is_one in _STRINGS):
        raise _unusable(file, "text", printable(str(kind)), "must be a column of strings")


@contextmanager
def explained(file: str) -> Iterator[None]:
    """Whatever a file system or reader raises, as an InputError that names the file."""
    try:
        yield
    except GatesError:
        raise
    except Exception as error:  # each file system's client has errors of its own
        raise _unusable(file, "file", "", f"cannot be read: {_said(error)}") from error


def _unusable(file: str, place: str, value: str, rule: str) -> InputError:
    return InputError("the texts cannot be used:", (located(file, 0, place, value, rule),))


def _said(error: Exception) -> str:
    """What an error says, without the secrets of the addresses in it: a store may lead to a signed one."""
    return without_secrets(printable(str(error))) or type(error).__name__


def _hidden(name: str, folder: str) -> bool:
    return any(part.startswith(".") for part in name.removeprefix(folder).split("/"))
