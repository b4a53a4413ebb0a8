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

from gates.corpora.cluster.pages import check_sizes
from gates.errors import InputError, UsageError
from gates.spec.source import located, printable

_ROWS = 512


def remote_files(url: str) -> Iterator[tuple[str, int | None]]:
    """The files at a URL, or below it by name, and their sizes. Raises UsageError for a URL that holds a secret."""
    split = urlsplit(url)
    if "@" in split.netloc or split.query:
        # The file's name goes into results, so that a password or signature in it would, too.
        raise UsageError(
            f"{printable(split.scheme)}://…: a URL with a password or a query is not read",
            next_step="give the credentials as the file system's own settings (environment, configuration file)",
        )
    with explained(url):
        system, path = fsspec.core.url_to_fs(url)
        # Whether a web address is a folder could only be told by reading all of it for links.
        if path.endswith("/") if split.scheme in ("http", "https") else system.isdir(path):
            inside = sorted(name for name in system.find(path) if not _hidden(name, path))
            yield from ((system.unstrip_protocol(name), system.size(name)) for name in inside)
        else:
            yield url, system.size(path)


def remote(url: str) -> IO[bytes]:
    """A remote file, opened for reading; seekable where its server can send ranges."""
    opened: IO[bytes] = fsspec.open(url, "rb").open()
    return opened


def unpacked(raw: IO[bytes]) -> IO[bytes]:
    """What a Zstandard stream holds, of one frame or several; reading one that is cut off raises OSError."""
    stream = pyarrow.CompressedInputStream(pyarrow.PythonFile(raw, mode="r"), "zstd")
    return cast("IO[bytes]", io.BufferedReader(stream))


def row_groups(file: str) -> list[int]:
    """The packed bytes of each row group of a Parquet file."""
    with explained(file), fsspec.open(file, "rb") as raw:
        index = pq.read_metadata(raw)
        groups = map(index.row_group, range(index.num_row_groups))
        return [sum(group.column(n).total_compressed_size for n in range(group.num_columns)) for group in groups]


def texts(place: str, file: str, begin: int, end: int) -> Iterator[str | None]:
    """The column `text` of row groups `begin` to `end` (that one excluded) of what is at `place`, named `file`.

    It stays a dictionary where it is one, for a file of a few bytes may name one long text a million times. Raises
    InputError where a row group's texts unpack to more than `pages.LARGEST`, before they do.
    """
    with explained(file), _table(place) as (raw, table):
        if "text" not in table.schema_arrow.names:
            raise InputError(
                "the texts cannot be used:",
                (
                    located(
                        file, 0, "columns", printable(", ".join(table.schema_arrow.names)), "must hold one named text"
                    ),
                ),
            )
        for group in range(begin, end):
            check_sizes(file, raw, table.metadata, group)
        for batch in table.iter_batches(batch_size=_ROWS, row_groups=range(begin, end), columns=["text"]):
            yield from (value.as_py() for value in batch.column(0))


@contextmanager
def explained(file: str) -> Iterator[None]:
    """Whatever a file system or reader raises, as an InputError that names the file."""
    try:
        yield
    except (OSError, ValueError, ImportError, EOFError, pyarrow.ArrowException) as error:
        said = printable(str(error)) or type(error).__name__
        raise InputError(
            "the texts cannot be used:", (located(file, 0, "file", "", f"cannot be read: {said}"),)
        ) from error


@contextmanager
def _table(place: str) -> Iterator[tuple[IO[bytes], pq.ParquetFile]]:
    with fsspec.open(place, "rb") as raw:
        index = pq.read_metadata(raw)
        packed = ["text"] if "text" in index.schema.to_arrow_schema().names else None
        raw.seek(0)
        with pq.ParquetFile(raw, metadata=index, pre_buffer=False, read_dictionary=packed) as table:
            yield raw, table


def _hidden(name: str, folder: str) -> bool:
    return any(part.startswith(".") for part in name.removeprefix(folder).split("/"))
