"""What a split shares: runs that stand in train and held-out text alike, word for word or nearly so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from gates.measure.figures import Leak, Source
from gates.measure.generated import digest
from gates.measure.near import NearMatch
from gates.measure.ngrams import Match
from gates.measure.split import Split

LEAK_WORDS = 20
"""The shortest run, in words, that train and held-out text may not share."""


def leaks(split: Split) -> tuple[Leak, ...]:
    """What a split shares, exact runs before near ones. Its n is LEAK_WORDS at most."""
    return (*_exact(split, LEAK_WORDS), *_near(split, LEAK_WORDS))


def shared_runs(train: Mapping[str, str], heldout: Mapping[str, str], minimum: int = LEAK_WORDS) -> tuple[Leak, ...]:
    """Every maximal run of at least `minimum` words that train and held-out text share, by held-out file and offset.

    One leak for each pair of places. `train` and `heldout` give the text of each file.
    """
    return tuple(_exact(Split(train, heldout, minimum), minimum))


def near_twins(train: Mapping[str, str], heldout: Mapping[str, str], minimum: int = LEAK_WORDS) -> tuple[Leak, ...]:
    """Every run of at least `minimum` words that the two share but for at most one word in eight (`near_runs@1`).

    One leak for each pair of places, by held-out file and offset. Twins that hold a whole run of `minimum` equal words
    are left out: `shared_runs` lists those.
    """
    return tuple(_near(Split(train, heldout, minimum), minimum))


def _exact(split: Split, minimum: int) -> Iterator[Leak]:
    for match in split.shared:
        if match.length >= minimum:
            yield from (_leak(source, split, match) for source in match.sources)


def _near(split: Split, minimum: int) -> Iterator[Leak]:
    for match in split.nearly_shared:
        if match.length >= minimum >= max(np.diff([-1, *match.changed, match.length])):
            yield from (_leak(source, split, match) for source in match.sources)


def _leak(source: Source, split: Split, match: Match | NearMatch) -> Leak:
    text = split.heldout[match.text]
    return Leak(
        train=source,
        heldout=Source(file=split.files[match.text], start=match.start),
        length=match.length,
        sha256=digest(text[match.start : match.start + match.length]),
        changed=match.changed if isinstance(match, NearMatch) else (),
    )
