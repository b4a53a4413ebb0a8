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

from gates.text import BORDER, prefixes, split

_Hashes = npt.NDArray[np.uint64]
_Places = npt.NDArray[np.intp]

_LEAST_BITS, _MOST_BITS = 22, 32  # 4 MB stay in a processor's cache; at most 4 GB
_PLACES = 16  # for each block of the texts, so that 15 of 16 others are turned away at the first look
_DIGITS = 0xD1342543DE82EF95


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
    """The n-grams of texts, given in words, as a filter of source text; n is 1 or more.

    Of a source only every `step`-th block of words is looked at: each n-gram holds one. An n-gram is compared, by its
    hash, where its block is one of the texts'.
    """

    def __init__(self, texts: Iterable[Sequence[str]], n: int) -> None:
        self.n = n
        self._step = max(1, n // 2)
        self._block = n - self._step + 1
        _starts, words = prefixes(f" {BORDER.decode()} ".join(map(" ".join, texts)).encode())
        borders = np.flatnonzero(words == BORDER[0])
        self._hashes = np.sort(_hashes(words, n)[_within(borders, n, words.size)])
        blocks = _hashes(words, self._block)[_within(borders, self._block, words.size)]
        bits = min(_MOST_BITS, max(_LEAST_BITS, (_PLACES * blocks.size).bit_length()))
        self._shift = np.uint64(64 - bits)
        self._table = np.zeros(1 << bits, dtype=np.bool_)
        self._table[self._rows(blocks)] = True
        self._blocks = np.sort(blocks)

    def sift(self, flat: bytes) -> Sifted:
        """A part of a document, given as flat words, without what no text holds."""
        starts, at = self._shared(flat)
        keep = self.n - 1
        return Sifted(
            count=starts.size,
            head=_words(flat, starts, 0, keep),
            tail=_words(flat, starts, max(0, starts.size - keep), starts.size),
            stretches=tuple(Stretch(first, _words(flat, starts, first, last)) for first, last in self._stretches(at)),
        )

    def sift_batch(self, flat: bytes) -> tuple[list[int], list[tuple[int, tuple[Stretch, ...]]]]:
        """How many words each document of a flat batch has, and those of them (from 0) that hold what texts hold."""
        starts, at = self._shared(flat)
        borders = np.flatnonzero(np.frombuffer(flat, dtype=np.uint8)[starts] == BORDER[0])
        begins = np.concatenate([[0], borders + 1])
        counts = np.append(borders, starts.size) - begins
        # A hash that lies may be of words on both sides of a border.
        at = at[np.searchsorted(borders, at) == np.searchsorted(borders, at + self.n)]
        found: dict[int, list[Stretch]] = {}
        for first, last in self._stretches(at):
            number = int(np.searchsorted(borders, first))
            words = _words(flat, starts, first, last)
            found.setdefault(number, []).append(Stretch(first - int(begins[number]), words))
        return counts.tolist(), [(number, tuple(stretches)) for number, stretches in found.items()]

    def _shared(self, flat: bytes) -> tuple[_Places, _Places]:
        """Where each word begins, and which words begin an n-gram whose hash is one of the texts'."""
        starts, words = prefixes(flat)
        blocks = _hashes(words, self._block, self._step)
        at = np.flatnonzero(self._table.take(self._rows(blocks)))
        at = at[_among(blocks[at], self._blocks)] * self._step
        # The first block of an n-gram begins with one of its first words.
        begins = (at[:, None] - np.arange(self._step)[::-1]).ravel()
        begins = begins[(begins >= 0) & (begins <= words.size - self.n)]
        hashes = np.zeros(begins.size, dtype=np.uint64)
        for k in range(self.n):
            hashes += words[begins + k] * _digit(k)
        return starts, begins[_among(hashes, self._hashes)]

    def joined(self, parts: Iterable[Sifted]) -> Sifted:
        """The whole of parts that follow one another, with what their borders cut through."""
        whole, stretches = NOTHING, list[Stretch]()
        for part in parts:
            border = self.sift(" ".join(whole.tail + part.head).encode("utf-8"))
            _add(stretches, border.stretches, whole.count - len(whole.tail))
            _add(stretches, part.stretches, whole.count)
            head = (whole.head + part.head)[: self.n - 1]
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


def _words(flat: bytes, starts: _Places, first: int, last: int) -> tuple[str, ...]:
    """The words from `first` to `last` (that one excluded, and perhaps more than there are) of those that begin so."""
    begin, end = (int(starts[k]) if k < starts.size else len(flat) for k in (first, last))
    return tuple(split(flat[begin:end]))


def _add(stretches: list[Stretch], more: Sequence[Stretch], shift: int) -> None:
    for start, words in more:
        last = stretches[-1] if stretches else Stretch(-1, ())
        begin = start + shift
        if begin > last.end:
            stretches.append(Stretch(begin, words))
        elif begin + len(words) > last.end:
            stretches[-1] = Stretch(last.start, last.words + words[last.end - begin :])


def _hashes(words: _Hashes, length: int, step: int = 1) -> _Hashes:
    """A hash of every `step`-th window of `length` words, given by their prefixes: equal words, equal hashes."""
    count = max(0, (words.size - length) // step + 1)
    hashes = np.zeros(count, dtype=np.uint64)
    for k in range(length if count else 0):
        hashes += words[k : k + step * (count - 1) + 1 : step] * _digit(k)
    return hashes


def _digit(place: int) -> np.uint64:
    """What a window's word at this place is multiplied by: odd, so that nothing of the word is lost."""
    return np.uint64(pow(_DIGITS, place + 1, 1 << 64))


def _within(borders: _Places, length: int, words: int) -> npt.NDArray[np.bool_]:
    """Which windows of `length` of the words hold no border."""
    own = np.ones(max(0, words - length + 1), dtype=np.bool_)
    for k in range(length):
        across = borders - k
        own[across[(across >= 0) & (across < own.size)]] = False
    return own


def _among(values: _Hashes, known: _Hashes) -> npt.NDArray[np.bool_]:
    """Which values stand among the known ones (ascending); np.isin would sort them all."""
    if not known.size:
        return np.zeros(values.size, dtype=np.bool_)
    return np.asarray(known[np.minimum(np.searchsorted(known, values), known.size - 1)] == values)
