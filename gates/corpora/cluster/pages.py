"""What a Parquet column unpacks to, known before it is unpacked: by the file's footer and by every page's own header.

Sizes in a page's header bind: the reader makes that much room and refuses a page that unpacks to anything else.
Source: the Apache Parquet format's thrift definition (PageHeader), in thrift's compact protocol.
"""

from __future__ import annotations

from typing import IO

import pyarrow.parquet as pq

from gates.errors import InputError
from gates.spec.source import located

LARGEST = 2**30
"""Bytes that the texts of one row group may unpack to."""

_HEAD = 512
_LONGEST_HEAD = 2**20
_DEEPEST = 16


def check_sizes(file: str, raw: IO[bytes], metadata: pq.FileMetaData, group: int) -> None:
    """Raise InputError where the column `text` of a row group unpacks to more than LARGEST, or its pages are none."""
    columns = (metadata.row_group(group).column(at) for at in range(metadata.num_columns))
    for column in (column for column in columns if column.path_in_schema.split(".")[0] == "text"):
        if column.total_uncompressed_size > LARGEST:
            raise _refused(file, group, column.total_uncompressed_size, "by the footer")
        begin = min(at for at in (column.dictionary_page_offset, column.data_page_offset) if at)
        unpacked = sum_of_pages(raw, begin, begin + column.total_compressed_size)
        if unpacked > LARGEST:
            raise _refused(file, group, unpacked, "by its pages")


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
            return head.numbers[2], head.numbers[3], head.at
        except IndexError:  # a longer header, with the least and greatest value in it
            if len(data) < size:
                break
            size *= 4
        except KeyError:
            break
    raise ValueError(f"no header of a page at byte {at}")


class _Struct:
    """A struct of thrift's compact protocol: the whole numbers in it by their field, and where it ends."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.numbers: dict[int, int] = {}
        self._fields(self.numbers, 0)

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

    def _fields(self, numbers: dict[int, int], depth: int) -> None:
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._number()
            if head & 15 in (4, 5, 6):
                numbers[field] = self._number()
            else:
                self._skip(head & 15, depth)

    def _skip(self, kind: int, depth: int) -> None:
        if kind in (1, 2):  # a truth, which the kind itself tells
            return
        if kind == 3:
            self.at += 1
        elif kind == 7:
            self.at += 8
        elif kind == 8:
            length = self._varint()
            self.at += length
        elif kind == 12 and depth < _DEEPEST:
            self._fields({}, depth + 1)
        else:
            raise KeyError(kind)  # no page's header holds lists or maps


def _refused(file: str, group: int, size: int, told: str) -> InputError:
    rule = f"{told}, more than the {LARGEST:,} bytes that the texts of one row group may unpack to"
    problem = located(file, 0, f"row group {group}, text", f"{size:,} bytes", rule)
    return InputError("the texts cannot be used:", (problem,), next_step="write the file anew in smaller row groups")
