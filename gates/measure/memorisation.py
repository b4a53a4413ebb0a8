"""`ngram_hits@1`: which generations repeat the train split word for word, and how often unseen author text does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gates.errors import CorpusError, UsageError
from gates.measure.figures import (
    MemorisationFigures,
    NearFigures,
    ProtectedFigures,
    SelfCollision,
    Source,
    Unmeasured,
)
from gates.measure.generated import Generated, GeneratedText, words_of
from gates.measure.near import NEAR, WINDOW, NearIndex, NearMatch
from gates.measure.ngrams import Match, NgramIndex
from gates.measure.split import Split, in_words
from gates.measure.tokens import Tokens
from gates.records import sha256, signature
from gates.stats import poisson_ratio
from gates.text import WORDS, prose_words

TOKENS = f"{WORDS}+prose"
"""How texts are cut into words here: as printed prose."""

_LEVEL = 0.95


class Sources:
    """The train split and the held-out text of one gate, indexed once for all arms.

    `train` and `heldout` give the text of each file; their order does not matter. `n` is the length of an n-gram in
    words. `protected` are further texts that may not be copied, scanned alike; `others` are texts of other authors, in
    which runs are looked up that may be quotations. `heldout_words` counts the held-out text's words, `collisions` are
    the ascending word offsets in it (files by name, one after another) where an n-gram of the train split begins, and
    `longest_collision` is the longest run the two share. Raises CorpusError when train, held-out or protected texts
    hold no n-gram: nothing could ever be found in them.
    """

    def __init__(
        self,
        train: Mapping[str, str],
        heldout: Mapping[str, str],
        n: int = 8,
        *,
        protected: Mapping[str, str] | None = None,
        others: Mapping[str, str] | None = None,
    ) -> None:
        self.n = n
        self._others = others or {}
        self.split = Split(train, heldout, n)
        self.train = _not_empty("train", self.split.index, len(train))
        self.heldout = _not_empty("held-out", NgramIndex(self._heldout(), n), len(heldout))
        self.protected = (
            _not_empty("protected", NgramIndex(in_words(protected), n), len(protected)) if protected else None
        )
        begins = np.cumsum([0, *map(len, self.split.heldout)])
        shared = self.split.shared
        offsets = {begins[match.text] + k for match in shared for k in _gram_starts(match, n)}
        self.heldout_words = int(begins[-1])
        self.collisions = np.array(sorted(offsets), dtype=np.intp)
        self.longest_collision = _longest(shared)

    def _heldout(self) -> Iterator[tuple[str, list[str]]]:
        return zip(self.split.files, self.split.heldout, strict=True)

    @property
    def near(self) -> NearIndex:
        """The train split for near-verbatim runs of at least n words."""
        return self.split.near

    @cached_property
    def longest_near_collision(self) -> int:
        """The longest near-verbatim run, in words, that the held-out text shares with the train split."""
        return _longest(self.split.nearly_shared)

    def elsewhere(self, runs: Sequence[Sequence[str]]) -> list[tuple[Source, ...]]:
        """Where texts of other authors hold the whole of each run, given in words."""
        if not runs or not self._others:
            return [() for _ in runs]
        places: dict[int, list[Source]] = {}
        for match in self._others_index.matches(runs):
            if match.length == len(runs[match.text]):
                places.setdefault(match.text, []).extend(match.sources)
        return [tuple(places.get(number, ())) for number in range(len(runs))]

    @cached_property
    def _others_index(self) -> NgramIndex:
        return NgramIndex(in_words(self._others), self.n)


def measure_memorisation(
    generations: Sequence[GeneratedText], sources: Sources, tokens: Tokens | None = None
) -> MemorisationFigures | Unmeasured:
    """`ngram_hits@1` of one arm; the order of the generations does not matter.

    A generation is a hit if at least one of its n-grams stands in the train split and not in its own prompt. Rates are
    of the generations that hold n words: in a shorter one, as in one that failed, nothing could be found. Runs
    follow one source diagonal each; those of equal start and length are one run with several sources. Rates in [0, 1],
    lengths in words (0: no run at all); the limits of the ratio are one-sided at 0.95 each.

    Self-collision: the held-out text cut into disjoint windows of the scanned generations' lengths, in an order seeded
    by the signature and repeated until the text is used up. A window may span two files, its n-grams do not. `longest`
    is of the whole held-out text, however the windows fall. Without windows its rate says nothing: no ratio then.

    Near-verbatim runs (`near_runs@1`, of at least max(n, 8) words) stand apart in `near`, protected texts in
    `protected`; a run that other authors' texts hold too is marked as such, and counts.

    Unmeasured when no generation is as long as an n-gram: 0 hits would then be no evidence.
    """
    n = sources.n
    made_by = signature("ngram_hits@1", n=n, tokens=TOKENS, prompt="subtracted", baseline="own-lengths", level=_LEVEL)
    arm = Generated(generations, Tokens() if tokens is None else tokens)
    texts = arm.texts.words
    scanned = [len(text) for text in texts if len(text) >= n]
    grams = sum(length - n + 1 for length in scanned)
    if not scanned:
        return Unmeasured(unmeasured=f"none of {len(texts)} generations holds {n} words, so no {n}-gram could match")
    found = sources.train.matches(arm.texts, arm.prompts)
    recited = sources.heldout.matches(arm.texts, arm.prompts)
    hits = _hits(found)
    baseline = _self_collision(scanned, sources, made_by)
    ratio, low, high = _ratio(hits, len(scanned), baseline)
    return MemorisationFigures(
        signature=made_by,
        n=n,
        generations=len(scanned),
        unscanned=len(texts) - len(scanned),
        hits=hits,
        rate=hits / len(scanned),
        ngram_share=len({(match.text, k) for match in found for k in _gram_starts(match, n)}) / grams,
        words_covered=len({(match.text, k) for match in found for k in words_of(match)}) / sum(map(len, texts)),
        longest=_longest(found),
        runs=arm.runs(found, sources.elsewhere),
        heldout_hits=_hits(recited),
        heldout_longest=_longest(recited),
        self_collision=baseline,
        ratio=ratio,
        ratio_low=low,
        ratio_high=high,
        near=_near(arm, sources, len(scanned)),
        protected=_protected(arm, sources, len(scanned)),
    )


def _near(arm: Generated, sources: Sources, scanned: int) -> NearFigures:
    found = sources.near.near_matches(arm.texts, arm.prompts)
    return NearFigures(
        signature=signature(
            NEAR, words=sources.near.minimum, changed=f"1-in-{WINDOW}", tokens=TOKENS, prompt="subtracted"
        ),
        hits=_hits(found),
        rate=_hits(found) / scanned,
        longest=_longest(found),
        unseen_longest=sources.longest_near_collision,
        runs=arm.near_runs(found),
    )


def _protected(arm: Generated, sources: Sources, scanned: int) -> ProtectedFigures | None:
    if sources.protected is None:
        return None
    found = sources.protected.matches(arm.texts, arm.prompts)
    return ProtectedFigures(
        signature=signature("ngram_hits@1", n=sources.n, tokens=TOKENS, prompt="subtracted", texts="protected"),
        generations=scanned,
        hits=_hits(found),
        rate=_hits(found) / scanned,
        longest=_longest(found),
        runs=arm.runs(found, sources.elsewhere),
    )


class Excerpt(NamedTuple):
    """A run as a person reads it: the words before it, its own, the words after it; case kept, punctuation gone."""

    before: str
    run: str
    after: str


def excerpt(text: str, start: int, length: int, context: int = 12) -> Excerpt:
    """The run of `length` words at word offset `start` of a source or generation, with `context` words on each side.

    Raises UsageError when the text does not reach that far: it is not the text the run was found in.
    """
    words = prose_words(text, case="keep")
    end = start + length
    if not 0 <= start < end <= len(words):
        raise UsageError(
            f"words {start} to {end} are asked of a text of {len(words)} words",
            next_step="give the text that the run was found in, unchanged",
        )
    parts = words[max(0, start - context) : start], words[start:end], words[end : end + context]
    return Excerpt(*map(" ".join, parts))


def _not_empty(split: str, index: NgramIndex, files: int) -> NgramIndex:
    if not len(index):
        raise CorpusError(
            f"the {split} text holds no run of {index.n} words in its {files} files: nothing could be found in it",
            next_step=f"name the files of the {split} text, or a smaller n",
        )
    return index


def _self_collision(lengths: Sequence[int], sources: Sources, seed: str) -> SelfCollision:
    """The held-out text's own hits in windows of these lengths (in words, not all 0)."""
    order = np.random.Generator(np.random.PCG64(int(sha256(seed.encode()), 16))).permutation(lengths)
    passes = -(-sources.heldout_words // int(order.sum())) + 1
    ends = np.cumsum(np.tile(order, passes))
    ends = ends[: np.searchsorted(ends, sources.heldout_words, side="right")]
    begins = ends - np.resize(order, ends.size)
    inside = np.searchsorted(sources.collisions, ends - sources.n, side="right")
    hits = int(np.count_nonzero(inside > np.searchsorted(sources.collisions, begins)))
    return SelfCollision(
        windows=ends.size, hits=hits, rate=hits / ends.size if ends.size else 0.0, longest=sources.longest_collision
    )


def _ratio(hits: int, texts: int, baseline: SelfCollision) -> tuple[float | None, float | None, float | None]:
    if not baseline.windows:
        return None, None, None
    return poisson_ratio(hits, texts, baseline.hits, baseline.windows, _LEVEL)


def _gram_starts(match: Match, n: int) -> range:
    return range(match.start, match.start + match.length - n + 1)


def _hits(matches: Sequence[Match | NearMatch]) -> int:
    return len({match.text for match in matches})


def _longest(matches: Sequence[Match | NearMatch]) -> int:
    return max((match.length for match in matches), default=0)
