"""The texts that damage axes compare generations with, and what is derived from them once a run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from gates.measure.damage.stop_words import STOP_WORDS
from gates.text import count_prose, normalise

MID_SENTENCE = 3
"""A name stands in mid-sentence with a capital at least so often."""

LOWER_CASE = 0.02
"""At most this share of a name's occurrences is in lower case."""

PECULIAR = 10
"""A name is at least so many times as frequent in the train split as in the reference texts."""

TITLES = frozenset(
    """
    count countess doctor dr duchess duke lady lord madam madame mademoiselle messrs miss misses monsieur mr mrs ms
    professor sir st
    """.split()  # noqa: SIM905 - a list literal of one quoted word a line is no list a person can check
)
"""Forms of address: written with a capital, and nobody's name."""

_CAPITAL = re.compile(r"[ \t\n]+(?=([^\W\d_a-z][^\W\d_]*(?:'[^\W\d_]+)*))")
_RUNS_ON = re.compile(r"(?:[^\W\d_][,;]?|\b(?:Mr|Mrs|Ms|Dr|St)\.)\Z")
_LONGEST = len("Mrs.") + 1  # what it must see, and the character before


@dataclass(frozen=True)
class Library:
    """Texts by role: the train split, the author's held-out texts, and the reference texts of others."""

    train: tuple[str, ...] = ()
    heldout: tuple[str, ...] = ()
    reference: tuple[str, ...] = ()

    @property
    def author(self) -> tuple[str, ...]:
        """Everything by the author."""
        return (*self.train, *self.heldout)

    @cached_property
    def reference_counts(self) -> Counter[str]:
        """How often each word stands in the reference texts."""
        return _together(map(count_prose, self.reference))

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Every word of the reference texts and of the author, in lower case and without a possessive ending."""
        author = set(chain.from_iterable(map(count_prose, self.author)))
        return frozenset(map(bare, author.union(self.reference_counts)))

    @cached_property
    def names(self) -> frozenset[str]:
        """The proper names that are the train split's own, in lower case."""
        return proper_names(self.train, self.reference_counts)


def bare(word: str) -> str:
    """A word without its possessive ending."""
    return word.removesuffix("'s")


def proper_names(train: Sequence[str], reference: Mapping[str, int]) -> frozenset[str]:
    """The proper names that are a text's own, in lower case and without a possessive ending.

    A word is one when it stands in mid-sentence with a capital at least MID_SENTENCE times (after a word, with nothing
    but space, a comma, a semicolon or a title's full stop between them, and not in capitals throughout), when at most
    LOWER_CASE of its occurrences are in lower case, when it is no function word and no title, and when it is at least
    PECULIAR times as frequent here as in the reference texts, whose word counts are `reference`: God, London and
    Sunday are everybody's, and Jane is a name of Jane Eyre's.
    """
    written = _summed(_together(count_prose(text, case="keep") for text in train), bare)
    after = _summed(Counter(word for text in train for word in _mid_sentence(normalise(text))), bare)
    proper = {word: count for word, count in after.items() if word[0].isupper() and not word.isupper()}
    capital, total, others = _summed(proper, str.lower), _summed(written, str.lower), _summed(reference, bare)
    mine, theirs = max(total.total(), 1), max(others.total(), 1)
    return frozenset(
        name
        for name, count in capital.items()
        if count >= MID_SENTENCE
        and written[name] <= LOWER_CASE * total[name]
        and name not in STOP_WORDS | TITLES
        and total[name] * theirs >= PECULIAR * others[name] * mine
    )


def _mid_sentence(text: str) -> Iterator[str]:
    """The words that are not in small letters and come after a word, with at most one line end between them."""
    for gap in _CAPITAL.finditer(text):
        begin = gap.start()
        if text.count("\n", begin, gap.end()) <= 1 and _RUNS_ON.search(text[max(0, begin - _LONGEST) : begin]):
            yield gap[1]


def _together(texts: Iterable[Counter[str]]) -> Counter[str]:
    found = Counter[str]()
    for counts in texts:
        found.update(counts)
    return found


def _summed(counts: Mapping[str, int], form: Callable[[str], str]) -> Counter[str]:
    """The counts of words under one form together."""
    found = Counter[str]()
    for word, count in counts.items():
        found[form(word)] += count
    return found
