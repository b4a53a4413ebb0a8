"""Texts whose words are counted once, whatever is asked of the counts later."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Text = Sequence[str] | Counter[str]
"""A text in words, or how often it has each: who measures it more than once counts it once."""


class Counted:
    """How often each of T texts has each word, by numbers of words instead of words.

    Memory is 16 bytes for each word of each text, repeats in one text apart.
    """

    def __init__(self, texts: Iterable[Text]) -> None:
        counts = list(map(counted, texts))
        numbers = defaultdict[str, int]()
        numbers.default_factory = numbers.__len__
        self._numbers = numbers
        sizes = list(map(len, counts))
        self._ids = np.fromiter(map(numbers.__getitem__, chain.from_iterable(counts)), np.intp, sum(sizes))
        self._counts = np.fromiter(chain.from_iterable(text.values() for text in counts), np.int64, sum(sizes))
        self._texts = np.repeat(np.arange(len(counts)), sizes)
        self._totals = np.array([text.total() for text in counts], dtype=np.int64)

    def __len__(self) -> int:
        """How many texts."""
        return self._totals.size

    def most_frequent(self, mfw: int, culling: float = 0.0) -> tuple[str, ...]:
        """As `gates.measure.delta.most_frequent`."""
        pooled = np.zeros(len(self._numbers), dtype=np.int64)
        np.add.at(pooled, self._ids, self._counts)
        found = np.bincount(self._ids)
        kept = np.flatnonzero(100 * found >= culling * len(self))
        # Those as frequent as the last one that is wanted are sorted, not the tens of thousands that are rarer.
        if 0 < mfw < kept.size:
            kept = kept[pooled[kept] >= np.partition(pooled[kept], -mfw)[-mfw]]
        words = list(self._numbers)
        frequent = [(-count, words[number]) for number, count in zip(kept.tolist(), pooled[kept].tolist(), strict=True)]
        return tuple(word for _, word in sorted(frequent)[:mfw])

    def matrix(self, words: Sequence[str]) -> Counts:
        """Counts (T, W + 1) of `words` in each text, the last column every other word."""
        columns = np.full(len(self._numbers), -1, dtype=np.intp)
        known = [(self._numbers[word], column) for column, word in enumerate(words) if word in self._numbers]
        at, places = np.array(known, dtype=np.intp).reshape(-1, 2).T
        columns[at] = places
        column = columns[self._ids]
        asked = column >= 0
        counts = np.zeros((len(self), len(words) + 1), dtype=np.int64)
        counts[self._texts[asked], column[asked]] = self._counts[asked]
        counts[:, -1] = self._totals - counts.sum(axis=1)
        return counts


def counted(text: Text) -> Counter[str]:
    """A text's counts, counted unless they are."""
    return text if isinstance(text, Counter) else Counter(text)
