"""What a split shares: runs that stand in train and held-out text alike, word for word or nearly so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from gates.measure.figures import Leak, Source
from gates.measure.generated import digest
from gates.measure.near import NearIndex, NearMatch
from gates.measure.ngrams import Match, NgramIndex
from gates.text import prose_words

LEAK_WORDS = 20
"""The shortest run, in words, that train and held-out text may not share."""


def shared_runs(train: Mapping[str, str], heldout: Mapping[str, str], minimum: int = LEAK_WORDS) -> tuple[Leak, ...]:
    """Every maximal run of at least `minimum` words that train and held-out text share, by held-out file and offset.

    One leak for each pair of places. `train` and `heldout` give the text of each file.
    """
    index = NgramIndex(_in_words(train), minimum)
    files = sorted(heldout)
    texts = [prose_words(heldout[file]) for file in files]
    return tuple(
        _leak(source, files[match.text], texts[match.text], match)
        for match in index.matches(texts)
        for source in match.sources
    )


def near_twins(train: Mapping[str, str], heldout: Mapping[str, str], minimum: int = LEAK_WORDS) -> tuple[Leak, ...]:
    """Every run of at least `minimum` words that the two share but for at most one word in eight (`near_runs@1`).

    One leak for each pair of places, by held-out file and offset. Twins that hold a whole run of `minimum` equal words
    are left out: `shared_runs` lists those.
    """
    index = NearIndex(_in_words(train), minimum)
    files = sorted(heldout)
    texts = [prose_words(heldout[file]) for file in files]
    return tuple(
        _leak(source, files[match.text], texts[match.text], match)
        for match in index.near_matches(texts)
        if max(np.diff([-1, *match.changed, match.length])) <= minimum
        for source in match.sources
    )


def _leak(source: Source, file: str, text: Sequence[str], match: Match | NearMatch) -> Leak:
    return Leak(
        train=source,
        heldout=Source(file=file, start=match.start),
        length=match.length,
        sha256=digest(text[match.start : match.start + match.length]),
        changed=match.changed if isinstance(match, NearMatch) else (),
    )


def _in_words(documents: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    return ((file, prose_words(documents[file])) for file in sorted(documents))
