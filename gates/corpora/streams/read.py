"""One part of a source, read piece by piece: never more in memory than a few megabytes or one long line."""

from __future__ import annotations

import codecs
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple, cast

from gates.corpora.files import read_line, unusable
from gates.corpora.streams import unpacking
from gates.corpora.streams.extra import formats
from gates.corpora.streams.part import Part, opened
from gates.errors import InputError, Problem
from gates.spec.source import MAX_PROBLEMS, located, printable, shown

MAX_LINE = 1 << 26
"""Bytes of one line that are still read: what a hostile archive unpacks to must end somewhere."""

_CHUNK = 1 << 19  # with twice as much a scan takes a third longer: its arrays go back to the system each time
_CONTEXT = 3  # bytes before a cut that tell whether a hyphen breaks a word there: its last one, and a carriage return
_HYPHEN_ENDS = b"-\xad\x90"
_OPENERS: dict[str, Callable[[IO[bytes]], IO[bytes]]] = {
    ".gz": lambda raw: cast("IO[bytes]", gzip.GzipFile(fileobj=raw)),
    ".xz": unpacking.xz,
    ".bz2": unpacking.bzip2,
}
_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError)


class Document(NamedTuple):
    """A line or row of a part, counting from 1, and its text in UTF-8; None where the line is empty."""

    line: int
    text: bytes | None


def text_of(part: Part) -> Iterator[bytes]:
    """A part of a text file, cut where neither a word nor what is printed as one is cut.

    Parts of one file that follow one another give its text, without gaps. Raises InputError where it cannot be read.
    """
    with _opened(part, _CONTEXT) as stream:
        buffer, place = _first(part, stream)
        if part.end is not None and place >= part.end:
            return
        while True:
            chunk = stream.read(max(_CHUNK, len(buffer)))
            buffer += chunk
            stop = _cut(buffer, part.end - place) if part.end is not None and place + len(buffer) >= part.end else -1
            if stop >= 0 or not chunk:
                yield buffer[: stop if stop >= 0 else len(buffer)]
                return
            stop = _last_cut(buffer)
            if not stop and len(buffer) > MAX_LINE:
                raise _too_long(part)
            yield buffer[:stop]
            buffer, place = buffer[stop:], place + stop


def _first(part: Part, stream: IO[bytes]) -> tuple[bytes, int]:
    """What was read from the first cut at or after the part's begin, and where in the file that is."""
    place = max(0, part.begin - _CONTEXT)
    buffer, seen = b"", part.begin - 1
    while part.begin:
        chunk = stream.read(_CHUNK)
        buffer += chunk
        cut = _cut(buffer, max(part.begin, seen + 1) - place)
        if cut >= 0 or not chunk:
            cut = cut if cut >= 0 else len(buffer)
            return buffer[cut:], place + cut
        seen = place + len(buffer)
        place += max(0, len(buffer) - _CONTEXT)
        buffer = buffer[-_CONTEXT:]
    return b"", 0


def documents_of(part: Part) -> Iterator[Document]:
    """The documents of a part of JSONL (field `text`; lines that are empty have none) or Parquet (column `text`).

    Raises InputError listing the lines that are not as they should be.
    """
    problems: list[Problem] = []
    for document in _row_documents(part, problems) if part.kind == "rows" else _line_documents(part, problems):
        yield document
        if len(problems) >= MAX_PROBLEMS:
            break
    if problems:
        raise unusable(problems)


def _cut(buffer: bytes, lowest: int) -> int:
    """The first place from `lowest` on behind a line end that breaks no word; -1 without one."""
    at = buffer.find(b"\n", max(0, lowest - 1))
    while at >= 0 and _broken(buffer, at):
        at = buffer.find(b"\n", at + 1)
    return at + 1 if at >= 0 else -1


def _last_cut(buffer: bytes) -> int:
    """A late place behind a line end that breaks no word, or in a long line a blank that does not; 0 without one."""
    lowest = max(0, len(buffer) - _CHUNK)  # looked at once, however long the buffer grows for want of a place
    at = buffer.rfind(b"\n", lowest)
    while at >= 0 and _broken(buffer, at):
        at = buffer.rfind(b"\n", lowest, at)
    if at < 0 and len(buffer) > _CHUNK and b"_" not in buffer:
        # What stands between two underscores of a line belongs together; without one, any blank behind a word will do.
        at = buffer.rfind(b" ", lowest)
        while at > 0 and not buffer[at - 1 : at].isalnum():
            at = buffer.rfind(b" ", lowest, at)
    return max(0, at + 1)


def _broken(buffer: bytes, at: int) -> bool:
    """Whether a word may be broken by the line end `at`."""
    before = buffer[max(0, at - 2) : at].removesuffix(b"\r")
    return before[-1:] in _HYPHEN_ENDS and bool(before)


def _lines(part: Part) -> Iterator[bytes]:
    """The lines that begin in the part."""
    with _opened(part, 1) as stream:
        place = part.begin
        if part.begin:
            place += len(_line(part, stream)) - 1
        while part.end is None or place < part.end:
            line = _line(part, stream)
            if not line:
                return
            place += len(line)
            yield line


def _line(part: Part, stream: IO[bytes]) -> bytes:
    line = stream.readline(MAX_LINE + 1)
    if len(line) > MAX_LINE:
        raise _too_long(part)
    return line


def _line_documents(part: Part, problems: list[Problem]) -> Iterator[Document]:
    for number, line in enumerate(_lines(part), 1):
        first = number == 1 and not part.begin
        yield Document(number, _parsed(part, number, line.removeprefix(codecs.BOM_UTF8) if first else line, problems))


def _parsed(part: Part, number: int, line: bytes, problems: list[Problem]) -> bytes | None:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        bad = shown(line[error.start : error.start + 1])
        problems.append(located(part.file, number, "byte", bad, "the line is not UTF-8 here", "save it as UTF-8"))
        return None
    found = read_line(part.file, number, text, problems) if text.strip() else None
    return None if found is None else found.text.encode("utf-8", "surrogatepass")


def _row_documents(part: Part, problems: list[Problem]) -> Iterator[Document]:
    with formats().explained(part.file), opened(part) as raw:
        for number, text in enumerate(formats().texts(raw, part.file, part.begin, part.end), 1):
            if text is None:
                problems.append(located(part.file, number, "text", "null", "must be there, and a string"))
            yield Document(number, None if text is None else text.encode("utf-8"))


def _too_long(part: Part) -> InputError:
    rule = f"one line is longer than {MAX_LINE:,} bytes"
    return unusable([located(part.file, 0, "line", "", rule, "break it into lines")])


@contextmanager
def _opened(part: Part, context: int) -> Iterator[IO[bytes]]:
    """The part's file, unpacked, `context` bytes before the part."""
    try:
        with opened(part) as raw:
            if part.packing == ".zst":
                yield formats().unpacked(raw)
            elif part.packing:
                with _OPENERS[part.packing](raw) as unpacked:
                    yield unpacked
            else:
                if part.begin > context:
                    raw.seek(part.begin - context)
                yield raw
    except _DAMAGED as error:
        said = (error.strerror if isinstance(error, OSError) else None) or printable(str(error)) or type(error).__name__
        raise unusable([located(part.file, 0, "file", "", f"cannot be read: {said}")]) from error
