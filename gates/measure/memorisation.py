"""`ngram_hits@1`: which generations repeat the train split word for word, and how often unseen author text does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gates.errors import CorpusError, UsageError
from gates.measure.figures import Leak, MemorisationFigures, Run, SelfCollision, Source, Unmeasured
from gates.measure.ngrams import Match, NgramIndex
from gates.records import sha256, signature
from gates.stats import poisson_ratio
from gates.text import WORDS, prose_words

LEAK_WORDS = 20
"""The shortest run, in words, that train and held-out text may not share."""

_LEVEL = 0.95


@dataclass(frozen=True)
class GeneratedText:
    """One answer and all the text its model was given; (prompt, seed) is its key within an arm."""

    prompt: int
    seed: int
    text: str
    prompt_text: str


class Sources:
    """The train split and the held-out text of one gate, indexed once for all arms.

    `train` and `heldout` give the text of each file; their order does not matter. `n` is the length of an n-gram in
    words. `heldout_words` counts the held-out text's words, `collisions` are the ascending word offsets in it (files
    by name, one after another) where an n-gram of the train split begins, and `longest_collision` is the longest run
    the two share. Raises CorpusError when either side holds no n-gram: nothing could ever be found in it.
    """

    def __init__(self, train: Mapping[str, str], heldout: Mapping[str, str], n: int = 8) -> None:
        self.n = n
        self.train = _index("train", train, n)
        self.heldout = _index("held-out", heldout, n)
        texts = [prose_words(heldout[file]) for file in sorted(heldout)]
        begins = np.cumsum([0, *map(len, texts)])
        shared = self.train.matches(texts)
        offsets = {begins[match.text] + k for match in shared for k in _gram_starts(match, n)}
        self.heldout_words = int(begins[-1])
        self.collisions = np.array(sorted(offsets), dtype=np.intp)
        self.longest_collision = _longest(shared)


def measure_memorisation(generations: Sequence[GeneratedText], sources: Sources) -> MemorisationFigures | Unmeasured:
    """`ngram_hits@1` of one arm; the order of the generations does not matter.

    A generation is a hit if at least one of its n-grams stands in the train split and not in its own prompt. Runs
    follow one source diagonal each; those of equal start and length are one run with several sources. Rates in [0, 1],
    lengths in words (0: no run at all); the limits of the ratio are one-sided at 0.95 each.

    Self-collision: the held-out text cut into disjoint windows of the generations' own lengths, in an order seeded by
    the signature and repeated until the text is used up. A window may span two files, its n-grams do not. `longest`
    is of the whole held-out text, however the windows fall. Without windows its rate says nothing: no ratio then.

    Unmeasured when no generation is as long as an n-gram: 0 hits would then be no evidence.
    """
    n = sources.n
    made_by = signature(
        "ngram_hits@1", n=n, tokens=f"{WORDS}+prose", prompt="subtracted", baseline="own-lengths", level=_LEVEL
    )
    ordered = sorted(generations, key=lambda generation: (generation.prompt, generation.seed, generation.text))
    texts = [prose_words(generation.text) for generation in ordered]
    grams = sum(max(0, len(text) - n + 1) for text in texts)
    if grams == 0:
        return Unmeasured(unmeasured=f"none of {len(texts)} generations holds {n} words, so no {n}-gram could match")
    prompts = [prose_words(generation.prompt_text) for generation in ordered]
    found = sources.train.matches(texts, prompts)
    recited = sources.heldout.matches(texts, prompts)
    hits = len({match.text for match in found})
    baseline = _self_collision([len(text) for text in texts], sources, made_by)
    ratio, low, high = _ratio(hits, len(texts), baseline)
    return MemorisationFigures(
        signature=made_by,
        n=n,
        generations=len(texts),
        hits=hits,
        rate=hits / len(texts),
        ngram_share=len({(match.text, k) for match in found for k in _gram_starts(match, n)}) / grams,
        words_covered=len({(match.text, k) for match in found for k in _words_of(match)}) / sum(map(len, texts)),
        longest=_longest(found),
        runs=_runs(found, ordered, texts),
        heldout_hits=len({match.text for match in recited}),
        heldout_longest=_longest(recited),
        self_collision=baseline,
        ratio=ratio,
        ratio_low=low,
        ratio_high=high,
    )


def shared_runs(train: Mapping[str, str], heldout: Mapping[str, str], minimum: int = LEAK_WORDS) -> tuple[Leak, ...]:
    """Every maximal run of at least `minimum` words that train and held-out text share, by held-out file and offset.

    One leak for each pair of places. `train` and `heldout` give the text of each file.
    """
    index = NgramIndex(((file, prose_words(train[file])) for file in sorted(train)), minimum)
    files = sorted(heldout)
    texts = [prose_words(heldout[file]) for file in files]
    return tuple(
        Leak(
            train=source,
            heldout=Source(file=files[match.text], start=match.start),
            length=match.length,
            sha256=_digest(texts[match.text], match),
        )
        for match in index.matches(texts)
        for source in match.sources
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


def _index(split: str, documents: Mapping[str, str], n: int) -> NgramIndex:
    index = NgramIndex(((file, prose_words(documents[file])) for file in sorted(documents)), n)
    if not len(index):
        raise CorpusError(
            f"the {split} text holds no run of {n} words in its {len(documents)} files: nothing could be found in it",
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


def _runs(
    found: Sequence[Match], generations: Sequence[GeneratedText], texts: Sequence[Sequence[str]]
) -> tuple[Run, ...]:
    cased = {text: prose_words(generations[text].text, case="keep") for text in {match.text for match in found}}
    return tuple(
        Run(
            prompt=generations[match.text].prompt,
            seed=generations[match.text].seed,
            start=match.start,
            length=match.length,
            sources=match.sources,
            sha256=_digest(texts[match.text], match),
            capitalised=tuple(k - match.start for k in _words_of(match) if cased[match.text][k][0].isupper()),
        )
        for match in found
    )


def _digest(words: Sequence[str], match: Match) -> str:
    return sha256(" ".join(words[match.start : match.start + match.length]).encode())


def _gram_starts(match: Match, n: int) -> range:
    return range(match.start, match.start + match.length - n + 1)


def _words_of(match: Match) -> range:
    return range(match.start, match.start + match.length)


def _longest(matches: Sequence[Match]) -> int:
    return max((match.length for match in matches), default=0)
