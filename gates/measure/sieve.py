"""What a stream of source text shares with some texts: the stretches that can match, everything else let through.

The n-grams of the texts (the small side) are kept as hashes; the sources (of any size) pass by as flat bytes, in shards
of any size. What is kept of them holds every n-gram that the texts hold, so that an index over it gives exactly the
matches of an index over everything; a hash that lies costs a stretch too many, never a match too few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gates.text import BORDER, split

_Hashes = npt.NDArray[np.uint64]
_Places = npt.NDArray[np.intp]

_LEAST_BITS, _MOST_BITS = 22, 32  # 4 MB stay in a processor's cache; at most 4 GB
_PLACES = 16  # for each n-gram of the texts, so that 15 of 16 others are turned away at the first look
_WORD = 8  # bytes of a word that its hash sees: the first ones, and a blank where the word is shorter
_BLANK = ord(" ")
_BLANKS, _LOW, _HIGH = (np.uint64(int.from_bytes(bytes([byte] * _WORD))) for byte in (_BLANK, 0x01, 0x80))
_SCATTER, _BASE = np.uint64(0x9E3779B97F4A7C15), 0xD1342543DE82EF95


class Stretch(NamedTuple):
    """Words of a source document from word `start` on."""

    start: int
    words: tuple[str, ...]

    @property
    def end(self) -> int:
        """The word after its last."""
        return self.start + len(self.words)


@dataclass(frozen=True)
class Sifted:
    """What is left of a part of one document: how many words it had, its first and last ones, and what may match.

    `head` and `tail` are the first and last n − 1 words (all, where there are fewer); `stretches` ascend and neither
    overlap nor touch.
    """

    count: int
    head: tuple[str, ...]
    tail: tuple[str, ...]
    stretches: tuple[Stretch, ...]


NOTHING = Sifted(0, (), (), ())


class Sieve:
    """The n-grams of texts, given in words, as a filter of source text; n is 1 or more."""

    def __init__(self, texts: Iterable[Sequence[str]], n: int) -> None:
        self.n = n
        flat = f" {BORDER.decode()} ".join(map(" ".join, texts)).encode()
        starts, hashes = _hashes(flat, n)
        borders = np.flatnonzero(np.frombuffer(flat, dtype=np.uint8)[starts] == BORDER[0])
        own = np.ones(hashes.size, dtype=np.bool_)
        for k in range(n if hashes.size else 0):
            across = borders - k
            own[across[(across >= 0) & (across < own.size)]] = False
        self._hashes = np.sort(hashes[own])
        bits = min(_MOST_BITS, max(_LEAST_BITS, (_PLACES * self._hashes.size).bit_length()))
        self._shift = np.uint64(64 - bits)
        self._table = np.zeros(1 << bits, dtype=np.bool_)
        self._table[self._rows(self._hashes)] = True

    def sift(self, flat: bytes) -> Sifted:
        """A part of a document, given as flat words, without what no text holds."""
        starts, at = self._shared(flat)
        keep = self.n - 1
        ends = np.append(starts[1:], len(flat))
        return Sifted(
            count=starts.size,
            head=tuple(split(flat[: ends[keep - 1]])) if starts.size > keep > 0 else tuple(split(flat))[:keep],
            tail=tuple(split(flat[starts[-keep] :])) if starts.size > keep > 0 else tuple(split(flat))[:keep],
            stretches=tuple(
                Stretch(first, tuple(split(flat[starts[first] : ends[last - 1]])))
                for first, last in self._stretches(at)
            ),
        )

    def sift_batch(self, flat: bytes) -> tuple[list[int], list[tuple[int, tuple[Stretch, ...]]]]:
        """How many words each document of a flat batch has, and those of them (from 0) that hold what texts hold."""
        starts, at = self._shared(flat)
        ends = np.append(starts[1:], len(flat))
        borders = np.flatnonzero(np.frombuffer(flat, dtype=np.uint8)[starts] == BORDER[0])
        begins = np.concatenate([[0], borders + 1])
        counts = np.append(borders, starts.size) - begins
        owners = np.searchsorted(borders, at)
        found: dict[int, list[Stretch]] = {}
        cuts = np.flatnonzero(np.diff(owners)) + 1
        for own in np.split(at, cuts) if at.size else []:
            for first, last in self._stretches(own):
                number = int(np.searchsorted(borders, first))
                words = tuple(split(flat[starts[first] : ends[last - 1]]))
                found.setdefault(number, []).append(Stretch(first - int(begins[number]), words))
        return counts.tolist(), [(number, tuple(stretches)) for number, stretches in found.items()]

    def _shared(self, flat: bytes) -> tuple[_Places, _Places]:
        """Where each word begins, and which words begin an n-gram whose hash is one of the texts'."""
        starts, hashes = _hashes(flat, self.n)
        at = np.flatnonzero(self._table.take(self._rows(hashes)))
        return starts, at[_among(hashes[at], self._hashes)]

    def joined(self, parts: Iterable[Sifted]) -> Sifted:
        """The whole of parts that follow one another, with what their borders cut through."""
        whole, stretches = NOTHING, list[Stretch]()
        for part in parts:
            border = self.sift(" ".join(whole.tail + part.head).encode("utf-8"))
            _add(stretches, border.stretches, whole.count - len(whole.tail))
            _add(stretches, part.stretches, whole.count)
            head = whole.head if len(whole.head) == self.n - 1 else (whole.head + part.head)[: self.n - 1]
            tail = (whole.tail + part.tail)[max(0, len(whole.tail) + len(part.tail) - self.n + 1) :]
            whole = Sifted(whole.count + part.count, head, tail, ())
        return Sifted(whole.count, whole.head, whole.tail, tuple(stretches))

    def _rows(self, hashes: _Hashes) -> _Places:
        return (hashes >> self._shift).astype(np.intp)

    def _stretches(self, at: _Places) -> Iterator[tuple[int, int]]:
        """First and last word (that one excluded) of the n-grams that begin `at`, those that touch joined."""
        if at.size:
            cuts = np.flatnonzero(np.diff(at) > self.n)
            first, last = at[np.concatenate([[0], cuts + 1])], at[np.append(cuts, at.size - 1)] + self.n
            yield from zip(first.tolist(), last.tolist(), strict=True)


def _add(stretches: list[Stretch], more: Sequence[Stretch], shift: int) -> None:
    for start, words in more:
        last = stretches[-1] if stretches else Stretch(-1, ())
        begin = start + shift
        if begin > last.end or not stretches:
            stretches.append(Stretch(begin, words))
        elif begin + len(words) > last.end:
            stretches[-1] = Stretch(last.start, last.words + words[last.end - begin :])


def _hashes(flat: bytes, n: int) -> tuple[_Places, _Hashes]:
    """Where each word begins, and a hash of every window of n words: equal words, equal hashes."""
    padded = np.full(len(flat) + 1 + _WORD, _BLANK, dtype=np.uint8)
    padded[1 : len(flat) + 1] = np.frombuffer(flat, dtype=np.uint8)
    blank = padded == _BLANK
    starts = np.flatnonzero(blank[:-1] & ~blank[1:])
    every = np.ndarray(len(flat) + 1, dtype="<u8", buffer=padded, offset=1, strides=(1,)) if starts.size else None
    words = np.empty(0, dtype=np.uint64) if every is None else every[starts]
    return starts, _rolled(_scattered(words), n)


def _scattered(words: _Hashes) -> _Hashes:
    """A hash of each word's first eight bytes, whatever follows its first blank."""
    other = words ^ _BLANKS
    # The lowest high bit that is set marks the first blank (Mycroft's zero byte test); in place, for speed.
    mark = other - _LOW
    mark &= np.invert(other, out=other)
    mark &= _HIGH
    mark &= np.negative(mark, out=other)
    mark -= np.uint64(1)
    mark &= words
    mark *= _SCATTER
    mark ^= np.right_shift(mark, np.uint64(32), out=other)
    return mark


def _rolled(words: _Hashes, n: int) -> _Hashes:
    """Hashes of n words in a row as digits of a number modulo 2^64, by doubling: (W,) to (max(0, W − n + 1),)."""
    if words.size < n:
        return np.empty(0, dtype=np.uint64)
    hashes, length = words, 1
    for bit in bin(n)[3:]:
        more = hashes[length:]
        hashes = hashes[:-length] * _power(length)
        hashes += more
        length *= 2
        if bit == "1":
            hashes = hashes[:-1] * _power(1) + words[length:]
            length += 1
    return hashes


def _power(exponent: int) -> np.uint64:
    return np.uint64(pow(_BASE, exponent, 1 << 64))


def _among(values: _Hashes, known: _Hashes) -> npt.NDArray[np.bool_]:
    """Which values stand among the known ones (ascending); np.isin would sort them all."""
    if not known.size:
        return np.zeros(values.size, dtype=np.bool_)
    return np.asarray(known[np.minimum(np.searchsorted(known, values), known.size - 1)] == values)
