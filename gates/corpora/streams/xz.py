"""An .xz file as a stream, whose dictionary is bounded: the library's own file would take up to 4 GiB for it."""

from __future__ import annotations

import io
import lzma
from typing import IO, cast

MOST_MEMORY = 256 * 2**20
"""Bytes that unpacking may take; `xz -9` asks for 65 MiB."""

_CHUNK = 1 << 18


def unpacked(raw: IO[bytes]) -> IO[bytes]:
    """What the streams of an .xz or .lzma file hold; reading raises LZMAError or EOFError for a damaged one."""
    return cast("IO[bytes]", io.BufferedReader(_Unpacked(raw), _CHUNK))


class _Unpacked(io.RawIOBase):
    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self._stream = _decompressor()

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
                self._stream = _decompressor()
            else:
                data = self._raw.read(_CHUNK) if self._stream.needs_input else b""
                if self._stream.needs_input and not data:
                    raise EOFError("the file ended before its end was marked")
            found = self._stream.decompress(data, len(buffer))
            if found:
                buffer[: len(found)] = found
                return len(found)


def _decompressor() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(memlimit=MOST_MEMORY)
