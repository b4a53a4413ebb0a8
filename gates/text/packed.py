"""The words of flat text as numbers, so that arrays can compare and count them."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_BLANK = ord(" ")
SEEN = 8
"""Bytes of a word that its prefix holds."""

_LONG = 24  # bytes of a word that are looked at together
_FULL = np.uint64(1 << 8 * (SEEN - 1))  # at least this has no zero in its last byte
_BLANKS, _LOW, _HIGH = (np.uint64(int.from_bytes(bytes([byte] * SEEN))) for byte in (_BLANK, 0x01, 0x80))


class Prefixes(NamedTuple):
    """Where each of W words begins, and its first eight bytes as a number, least first; zeros fill up shorter words."""

    starts: npt.NDArray[np.intp]
    values: npt.NDArray[np.uint64]


def prefixes(flat: bytes) -> Prefixes:
    """The prefixes of the words of flat text, in order."""
    padded = np.full(len(flat) + 1 + SEEN, _BLANK, dtype=np.uint8)
    padded[1 : len(flat) + 1] = np.frombuffer(flat, dtype=np.uint8)
    blank = padded == _BLANK
    starts = np.flatnonzero(blank[:-1] > blank[1:])
    every = np.ndarray(len(flat) + 1, dtype="<u8", buffer=padded, offset=1, strides=(1,))
    return Prefixes(starts, _masked(every[starts]))


def _masked(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Eight bytes each, with zeros from the first blank on."""
    other = words ^ _BLANKS
    # The lowest high bit that is set marks the first blank (Mycroft's zero byte test); in place, for speed.
    mark = other - _LOW
    mark &= np.invert(other, out=other)
    mark &= _HIGH
    mark &= np.negative(mark, out=other)
    mark >>= np.uint64(7)
    mark -= np.uint64(1)
    mark &= words
    return mark


def count_flat(flat: bytes) -> Counter[str]:
    """How often each word of flat text occurs, words of up to eight bytes counted by their prefixes."""
    starts, values = prefixes(flat)
    padded = np.frombuffer(flat + b" " * _LONG, dtype=np.uint8)
    longer = padded[starts + SEEN] != _BLANK
    longer &= values >= _FULL
    short, counts = _counted(values[~longer])
    rows = short.view(np.uint8).reshape(-1, SEEN)
    counted = Counter(dict(zip(_spelt(np.where(rows, rows, _BLANK)), counts.tolist(), strict=True)))
    # Longer ones as rows of bytes, blanks behind them; the longest, which fill a row, one by one.
    places = starts[longer]
    rows = padded[places[:, None] + np.arange(_LONG)]
    rows[np.logical_or.accumulate(rows == _BLANK, axis=1)] = _BLANK
    filled = rows[:, -1] != _BLANK
    counted.update(_spelt(rows[~filled]))
    counted.update(flat[place:].split(None, 1)[0].decode("utf-8") for place in places[filled].tolist())
    return counted


def _spelt(rows: npt.NDArray[np.integer]) -> list[str]:
    """Rows of bytes, blanks behind each word, as words."""
    spelt = np.full((rows.shape[0], rows.shape[1] + 1), _BLANK, dtype=np.uint8)
    spelt[:, :-1] = rows
    return spelt.tobytes().decode("utf-8").split()


def _counted(values: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.intp]]:
    """The values without repeats, and how often each occurs; np.unique is many times slower."""
    values = np.sort(values)
    first = np.flatnonzero(np.append(True, values[1:] != values[:-1])) if values.size else np.empty(0, dtype=np.intp)
    return values[first], np.diff(np.append(first, values.size))
