"""A train split and a held-out text, cut into words, numbered and indexed once for all who look into them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from gates.measure.near import NearIndex, NearMatch
from gates.measure.ngrams import Match, NgramIndex, Numbered
from gates.text import prose_words


class Split:
    """Train and held-out texts by file; their order does not matter. `n` is the shortest run of interest, in words.

    `files` are the held-out files, sorted, and `heldout` the words of each.
    """

    def __init__(self, train: Mapping[str, str], heldout: Mapping[str, str], n: int) -> None:
        self.n = n
        self.files = sorted(heldout)
        self.heldout = [prose_words(heldout[file]) for file in self.files]
        self._train = Numbered(in_words(train))
        self.index = NgramIndex(self._train, n)

    @cached_property
    def near(self) -> NearIndex:
        """The train split for near-verbatim runs of at least n words."""
        return NearIndex(self._train, self.n)

    @cached_property
    def shared(self) -> list[Match]:
        """The maximal runs of at least n words that the held-out files share with the train split."""
        return self.index.matches(self.heldout)

    @cached_property
    def nearly_shared(self) -> list[NearMatch]:
        """The near-verbatim runs of at least n words that the held-out files share with the train split."""
        return self.near.near_matches(self.heldout)


def in_words(documents: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    """Each file with its words, by name."""
    return ((file, prose_words(documents[file])) for file in sorted(documents))
