"""Exact matching of word runs: an index over the n-grams of source texts, built once and asked by many texts.

Windows of n word ids are found by a 64-bit hash and believed only after their ids were compared. A run is followed
along one source diagonal (text offset minus source offset), so that matches from different places are never joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gates.errors import UsageError
from gates.measure.figures import Source

Ids = npt.NDArray[np.int32]
Places = npt.NDArray[np.intp]
_Flags = npt.NDArray[np.bool_]
_Hashes = npt.NDArray[np.uint64]

SOURCE_BORDER = 0
TEXT_BORDER = -2
_UNKNOWN = -1  # a word no source holds; like a text's border it equals no source id, so that no exact run passes it
_PAIRS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Match:
    """A run of a text's words that stands in the sources and can be extended at none of these places.

    `text` counts texts from 0, `start` and `length` words; `sources` are all places where exactly this run ends on
    both sides, in the order of the index.
    """

    text: int
    start: int
    length: int
    sources: tuple[Source, ...]


class Piece(NamedTuple):
    """Words of a source file, the first of them the file's word `start`."""

    file: str
    words: Sequence[str]
    start: int = 0


class _Numbers(dict[str, int]):
    """Words by number, from 1; a new word gets the next."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self) + 1
        return number


class Numbered:
    """Source documents with each word as a number, one after another: what indexes of any n are made from.

    `documents` are (file, words) pairs or pieces, and are read one at a time.
    """

    def __init__(self, documents: Iterable[tuple[str, Sequence[str]] | Piece]) -> None:
        self.files: list[tuple[str, int]] = []
        self.vocabulary = _Numbers()
        self.ids, self.begins = join(self._numbered(documents), SOURCE_BORDER)

    def _numbered(self, documents: Iterable[tuple[str, Sequence[str]] | Piece]) -> Iterator[list[int]]:
        for file, words, start in (Piece(*document) for document in documents):
            self.files.append((file, start))
            yield list(map(self.vocabulary.__getitem__, words))


class Texts:
    """Texts in words, each word as a number of their own: numbered once for all indexes that are asked about them.

    `words` are the texts, `begins` where each begins among their joined words.
    """

    def __init__(self, words: Sequence[Sequence[str]]) -> None:
        self.words = words
        self._numbers = _Numbers()
        number = self._numbers.__getitem__
        self._ids, self.begins = join((list(map(number, text)) for text in words), 0)

    def ids(self, vocabulary: Mapping[str, int]) -> Ids:
        """The joined words by the numbers of another vocabulary, with a border before the first text and after each."""
        known = [TEXT_BORDER, *(vocabulary.get(word, _UNKNOWN) for word in self._numbers)]
        return np.array(known, dtype=np.int32)[self._ids]


class NgramIndex:
    """All n-grams of named source documents; no n-gram crosses from one document into the next.

    `documents` are (file, words) pairs, pieces, or numbered already. `n` is the shortest run that counts, in words.
    Memory is about 25 bytes a word. Raises UsageError when n is below 1.
    """

    def __init__(self, documents: Iterable[tuple[str, Sequence[str]] | Piece] | Numbered, n: int) -> None:
        if n < 1:
            raise UsageError(
                f"n = {n}: an n-gram holds at least one word", next_step="give n as 1 or more (8 is usual)"
            )
        self.n = n
        source = documents if isinstance(documents, Numbered) else Numbered(documents)
        self._files, self._vocabulary = source.files, source.vocabulary
        self._ids, self._begins = source.ids, source.begins
        places = np.flatnonzero(_whole(self._ids, n))
        hashes = _hashes(self._ids, n)[places]
        order = np.argsort(hashes)
        self._places = places[order]
        self._hashes = hashes[order]
        # A table of the hashes' first bits, a quarter full at most: most n-grams of other texts miss it.
        bits = int(order.size).bit_length() + 2
        self._shift = np.uint64(64 - bits)
        self._perhaps = np.zeros(1 << bits, dtype=np.bool_)
        self._perhaps[self._hashes >> self._shift] = True

    def __len__(self) -> int:
        """How many n-grams the sources hold, repeats counted."""
        return self._places.size

    def matches(self, texts: Sequence[Sequence[str]] | Texts, prompts: Sequence[Sequence[str]] = ()) -> list[Match]:
        """The maximal runs of at least n words that each text shares with the sources, by text, start and length.

        `prompts` are as many as the texts, or none: an n-gram of a text that its own prompt holds is no match and
        breaks runs, so that a run holds no n-gram of the prompt.
        """
        ids, begins = self._numbered(texts)
        at, low, counts = self._looked_up(ids)
        barred = np.zeros(ids.size, dtype=np.bool_)
        if len(prompts):
            barred = self._barred(ids, np.split(at, np.searchsorted(at, begins[1:])), prompts)
        open_ = ~barred[at]
        runs = [
            self._runs(ids, barred, text_at, source_at)
            for text_at, source_at in self._pairs(at[open_], low[open_], counts[open_])
        ]
        return self._grouped(begins, runs)

    def _looked_up(self, ids: Ids) -> tuple[Places, Places, Places]:
        """Where an n-gram begins whose hash the sources know, the first of its hashes there, and how many it has."""
        at = np.flatnonzero(_whole(ids, self.n))
        hashes = _hashes(ids, self.n)[at]
        perhaps = self._perhaps[hashes >> self._shift]
        at, hashes = at[perhaps], hashes[perhaps]
        low = np.searchsorted(self._hashes, hashes, side="left")
        counts = np.searchsorted(self._hashes, hashes, side="right") - low
        known = counts > 0
        return at[known], low[known], counts[known]

    def _numbered(self, texts: Sequence[Sequence[str]] | Texts) -> tuple[Ids, Places]:
        """The joined words of texts by the sources' numbers, and where each text begins."""
        asked = texts if isinstance(texts, Texts) else Texts(texts)
        return asked.ids(self._vocabulary), asked.begins

    def _known(self, words: Sequence[str]) -> list[int]:
        number = self._vocabulary.get
        return [number(word, _UNKNOWN) for word in words]

    def _barred(self, ids: Ids, places: Sequence[Places], prompts: Sequence[Sequence[str]]) -> _Flags:
        """Which of the `places`, given text by text, begin an n-gram of the text's own prompt."""
        barred = np.zeros(ids.size, dtype=np.bool_)
        for prompt, own in zip(prompts, places, strict=True):
            if len(prompt) < self.n or not own.size:
                continue
            known = np.array(self._known(prompt), dtype=np.int32)
            grams = {known[k : k + self.n].tobytes() for k in range(known.size - self.n + 1)}
            barred[[place for place in own.tolist() if ids[place : place + self.n].tobytes() in grams]] = True
        return barred

    def _pairs(self, at: Places, low: Places, counts: Places) -> Iterator[tuple[Places, Places]]:
        """Text and source places of equal hash, in blocks, so that much repeated n-grams need no more memory."""
        ends = np.cumsum(counts)
        first = 0
        while first < at.size:
            limit = ends[first] - counts[first] + _PAIRS_AT_ONCE
            last = max(first + 1, int(np.searchsorted(ends, limit, side="right")))
            block = counts[first:last]
            within = np.arange(block.sum()) - np.repeat(np.cumsum(block) - block, block)
            yield np.repeat(at[first:last], block), self._places[np.repeat(low[first:last], block) + within]
            first = last

    def _runs(self, ids: Ids, barred: _Flags, text_at: Places, source_at: Places) -> npt.NDArray[np.intp]:
        """(R, 3): text place, length and source place of every run that begins at one of the pairs."""
        source = self._ids
        begins = barred[text_at - 1] | (ids[text_at - 1] != source[source_at - 1])
        text_at, source_at = text_at[begins], source_at[begins]
        for k in range(self.n):
            same = ids[text_at + k] == source[source_at + k]
            text_at, source_at = text_at[same], source_at[same]
        lengths = np.full(text_at.size, self.n, dtype=np.intp)
        growing = np.arange(text_at.size)
        while growing.size:
            text_next = text_at[growing] + lengths[growing]
            source_next = source_at[growing] + lengths[growing]
            grows = (ids[text_next] == source[source_next]) & ~barred[text_next - self.n + 1]
            growing = growing[grows]
            lengths[growing] += 1
        return np.stack([text_at, lengths, source_at], axis=1)

    def _grouped(self, begins: Places, runs: Sequence[npt.NDArray[np.intp]]) -> list[Match]:
        found = np.concatenate([np.empty((0, 3), dtype=np.intp), *runs])
        found = found[np.lexsort((found[:, 2], found[:, 1], found[:, 0]))]
        texts = np.searchsorted(begins, found[:, 0], side="right") - 1
        columns = (texts, found[:, 0] - begins[texts], found[:, 1], found[:, 2])
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [
            Match(text, start, length, self._sources([place for *_, place in places]))
            for (text, start, length), places in groupby(rows, key=itemgetter(0, 1, 2))
        ]

    def _sources(self, places: Sequence[int]) -> tuple[Source, ...]:
        """Where places of the joined sources stand in their files."""
        numbers = np.searchsorted(self._begins, places, side="right") - 1
        within = (np.asarray(places, dtype=np.intp) - self._begins[numbers]).tolist()
        files = (self._files[number] for number in numbers.tolist())
        return tuple(Source(file=file, start=start + k) for (file, start), k in zip(files, within, strict=True))


def join(pieces: Iterable[Sequence[int]], border: int) -> tuple[Ids, Places]:
    """All pieces in one array, with a border before the first and after each; and where each piece begins."""
    edge = np.array([border], dtype=np.int32)
    parts = [edge]
    begins = []
    size = 1
    for piece in pieces:
        parts += [np.array(piece, dtype=np.int32), edge]
        begins.append(size)
        size += len(piece) + 1
    return np.concatenate(parts), np.array(begins, dtype=np.intp)


def _whole(ids: Ids, n: int) -> _Flags:
    """Which windows of n ids hold neither a border nor an unknown word."""
    breaks = np.concatenate([[0], np.cumsum(ids <= 0)])
    whole: _Flags = breaks[n:] == breaks[:-n]
    return whole


def _hashes(ids: Ids, n: int) -> _Hashes:
    """A 64-bit hash of every window of n ids: scattered ids as digits of a number modulo 2^64."""
    scattered = ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    scattered ^= scattered >> np.uint64(32)
    windows = max(0, ids.size - n + 1)
    hashes = np.zeros(windows, dtype=np.uint64)
    for k in range(n):
        hashes = hashes * np.uint64(0xD1342543DE82EF95) + scattered[k : k + windows]
    return hashes
