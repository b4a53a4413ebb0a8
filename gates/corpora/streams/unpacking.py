"""Files of .xz and .bz2 as streams: their memory bounded, and nothing at their end passed over.

The library's own files would take up to 4 GiB for an .xz dictionary, and end in silence at whatever follows a stream of
.bz2, be it another one that is damaged.
"""

from __future__ import annotations

import bz2
import io
import lzma
from collections.abc import Callable
from typing import IO, cast

MOST_MEMORY = 256 * 2**20
"""Bytes that unpacking an .xz may take; `xz -9` asks for 65 MiB."""

_CHUNK = 1 << 18


def xz(raw: IO[bytes]) -> IO[bytes]:
    """What the streams of an .xz or .lzma file hold; reading raises LZMAError or EOFError for a damaged one."""
    return _stream(raw, lambda: lzma.LZMADecompressor(memlimit=MOST_MEMORY))


def bzip2(raw: IO[bytes]) -> IO[bytes]:
    """What the streams of a .bz2 file hold; reading raises OSError or EOFError for a damaged one."""
    return _stream(raw, bz2.BZ2Decompressor)


def _stream(raw: IO[bytes], begin: Callable[[], lzma.LZMADecompressor | bz2.BZ2Decompressor]) -> IO[bytes]:
    return cast("IO[bytes]", io.BufferedReader(_Unpacked(raw, begin), _CHUNK))


class _Unpacked(io.RawIOBase):
    def __init__(self, raw: IO[bytes], begin: Callable[[], lzma.LZMADecompressor | bz2.BZ2Decompressor]) -> None:
        self._raw, self._begin = raw, begin
        self._stream = begin()

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._raw.close()
        super().close()

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # typeshed takes any buffer
        while True:
            if self._stream.eof:
                data = self._stream.unused_data.lstrip(b"\0")  # zeros may stand between streams
                while not data:
                    more = self._raw.read(_CHUNK)
                    if not more:
                        return 0
                    data = more.lstrip(b"\0")
                self._stream = self._begin()
            else:
                data = self._raw.read(_CHUNK) if self._stream.needs_input else b""
                if self._stream.needs_input and not data:
                    raise EOFError("the file ended before its end was marked")
            found = self._stream.decompress(data, len(buffer))
            if found:
                buffer[: len(found)] = found
                return len(found)
