"""What a Parquet column unpacks to, known before it is unpacked: by the file's footer and by every page's own header.

Sizes in a page's header bind: the reader makes that much room and refuses a page that unpacks to anything else. The
footer is read as pyarrow has understood it and writes it anew, but not by its objects for column chunks, which end the
whole process over some damaged ones. Source: the thrift definition of Apache Parquet, in thrift's compact protocol
(FileMetaData, PageHeader).
"""

from __future__ import annotations

import io
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

import pyarrow.parquet as pq

from gates.errors import InputError
from gates.spec.source import located

LARGEST = 2**30
"""Bytes that the texts of one row group may unpack to."""

_HEAD = 512
_LONGEST_HEAD = 2**20
_DEEPEST = 16
_MARK, _TAIL = 4, 8
"""The file's first letters; the footer's length and the last letters."""

_TRUTHS, _BYTE, _INT32, _INT64, _DOUBLE, _BINARY, _LISTS, _STRUCT = (1, 2), 3, 5, 6, 7, 8, (9, 10), 12
_NUMBERS = (4, _INT32, _INT64)
_KINDS = (*_TRUTHS, _BYTE, *_NUMBERS, _DOUBLE, _BINARY, *_LISTS, _STRUCT)
"""Of thrift's kinds all but maps, which neither footers nor pages hold."""

_Wanted = Mapping[int, Any]
"""Fields that are asked for: numbers by their kind, structs and lists of structs by the fields asked of them."""

_SIZES: _Wanted = {6: _INT64, 7: _INT64, 9: _INT64, 11: _INT64}
_GROUPS: _Wanted = {4: {1: {3: _SIZES}, 3: _INT64}}
_PAGE: _Wanted = {2: _INT32, 3: _INT32}


@dataclass(frozen=True)
class Chunk:
    """A column of a row group: bytes unpacked and packed, and where its first page begins."""

    unpacked: int
    packed: int
    begin: int


@dataclass(frozen=True)
class Group:
    """A row group: how many rows it promises, and its columns in the order of the schema."""

    rows: int
    chunks: tuple[Chunk, ...]


def row_groups(metadata: pq.FileMetaData) -> list[Group]:
    """The row groups that a Parquet file's footer names. Raises ValueError for a damaged one."""
    written = io.BytesIO()
    metadata.write_metadata_file(written)
    try:
        footer = _Struct(written.getvalue()[_MARK:-_TAIL]).read(_GROUPS)
        return [_group(group) for group in footer.get(4, [])]
    except (IndexError, KeyError, TypeError) as error:
        raise ValueError("its footer is damaged") from error


def _group(told: Mapping[int, Any]) -> Group:
    return Group(operator.index(told[3]), tuple(_chunk(column[3]) for column in told[1]))


def _chunk(told: Mapping[int, Any]) -> Chunk:
    unpacked, packed, *begins = (operator.index(told[field]) for field in (6, 7, 9, 11) if field in told)
    return Chunk(unpacked, packed, min(at for at in begins if at))


def check_sizes(file: str, raw: IO[bytes], group: tuple[int, Group], column: int) -> None:
    """Raise InputError where a row group's column unpacks to more than LARGEST, ValueError where its pages are none."""
    number, chunk = group[0], group[1].chunks[column]
    if chunk.unpacked > LARGEST:
        raise _refused(file, number, chunk.unpacked, "by the footer")
    unpacked = sum_of_pages(raw, chunk.begin, chunk.begin + chunk.packed)
    if unpacked > LARGEST:
        raise _refused(file, number, unpacked, "by its pages")


def sum_of_pages(raw: IO[bytes], at: int, end: int) -> int:
    """The bytes that the pages between two places of a file unpack to, headers excluded.

    Stops once they are more than LARGEST. Raises ValueError for what is no page.
    """
    total = 0
    while at < end and total <= LARGEST:
        unpacked, packed, length = _page(raw, at)
        if unpacked < 0 or packed < 0:
            raise ValueError(f"a page at byte {at} has a size below zero")
        total += unpacked
        at += length + packed
    return total


def _page(raw: IO[bytes], at: int) -> tuple[int, int, int]:
    """Bytes that a page has unpacked and packed, and those of its header."""
    size = _HEAD
    while size <= _LONGEST_HEAD:
        raw.seek(at)
        data = raw.read(size)
        try:
            head = _Struct(data)
            sizes = head.read(_PAGE)
            return sizes[2], sizes[3], head.at
        except IndexError:  # a longer header, with the least and greatest value in it
            if len(data) < size:
                break
            size *= 4
        except KeyError:
            break
    raise ValueError(f"no header of a page at byte {at}")


class _Struct:
    """A struct of thrift's compact protocol; `at` is where it ends once it is read.

    What it holds is read by field: whole numbers, structs, lists of either. Only what is asked for is kept.
    """

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def read(self, wanted: _Wanted, depth: int = 0) -> dict[int, Any]:
        """The wanted fields that are there. Raises IndexError where the data ends, KeyError for what is no struct."""
        found: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._number()
            kind = head & 15
            # In a struct a truth is told by its kind alone.
            value = None if kind in _TRUTHS else self._value(kind, wanted.get(field), depth)
            asked = wanted.get(field)
            if asked == kind or isinstance(asked, Mapping):
                found[field] = value
        return found

    def _value(self, kind: int, wanted: object, depth: int) -> Any:
        if depth > _DEEPEST or kind not in _KINDS:
            raise KeyError(kind)
        if kind in _NUMBERS:
            return self._number()
        if kind == _STRUCT:
            return self.read(wanted if isinstance(wanted, Mapping) else {}, depth + 1)
        if kind in _LISTS:
            head = self._byte()
            size = head >> 4 if head >> 4 < 15 else self._varint()
            values = (self._value(head & 15, wanted, depth + 1) for _ in range(size))
            return [value for value in values if wanted is not None]
        length = self._varint() if kind == _BINARY else 8 if kind == _DOUBLE else 1
        self.at += length
        return None

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _varint(self) -> int:
        found = shift = 0
        while shift < 64:
            byte = self._byte()
            found |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
        return found

    def _number(self) -> int:
        found = self._varint()
        return (found >> 1) ^ -(found & 1)


def _refused(file: str, group: int, size: int, told: str) -> InputError:
    rule = f"{told}, more than the {LARGEST:,} bytes that the texts of one row group may unpack to"
    problem = located(file, 0, f"row group {group}, text", f"{size:,} bytes", rule)
    return InputError("the texts cannot be used:", (problem,), next_step="write the file anew in smaller row groups")
