"""What a text makes of its prompt: whether it follows the beat, or only copies it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from gates.errors import UsageError
from gates.measure.damage.axis import Answers, Measured, each, figures
from gates.measure.damage.stems import stem
from gates.measure.damage.stop_words import STOP_WORDS
from gates.measure.figures import Unmeasured
from gates.measure.tokens import Tokens
from gates.records import signature
from gates.text import WORDS, words

MINIMUM_BEATS = 10
"""Fewer beats make the nearest one too easy to hit by chance."""

COPIED = 8
"""Words in a row of the prompt that are a copy."""

SHORTEST_COPY = 4
"""A beat of fewer words than this is no copy even as a whole: anybody may say "A storm."."""

_TIE = 1e-9

Matrix = NDArray[np.float64]


def on_beat(texts: Sequence[Sequence[str]], beats: Sequence[str], tokens: Tokens | None = None) -> Measured:
    """`on_beat@1`: share of the texts (S, P) in [0, 1] whose own beat is the nearest of all beats (P,); lower is worse.

    Nearest by cosine of TF-IDF vectors fitted on the beats only (as scikit-learn's: smoothed idf, sublinear tf, L2
    norm) over Snowball stems (as nltk's, English); the stop words are removed before stemming. A tie with another beat
    and a similarity of zero are misses, so an empty text is one. Chance is 1 / P. Unmeasured with fewer than 10 beats,
    with beats that hold nothing but stop words, or without texts. Raises UsageError when a row is not P texts long.
    Sources: Salton and Buckley 1988, Information Processing and Management 24:513-523; Porter 2001, Snowball.

    For the beat "A farmer refuses to sell his land." Passing: "He would not sell the land." Failing: "She wept."
    """
    if len(beats) < MINIMUM_BEATS:
        return Unmeasured(unmeasured=f"{len(beats)} beats, and at least {MINIMUM_BEATS} are needed to tell them apart")
    for row in texts:
        if len(row) != len(beats):
            raise UsageError(f"{len(row)} texts of one seed for {len(beats)} beats", next_step="give one text a beat")
    vectors = Vectors(beats, tokens)
    if not vectors.size:
        return Unmeasured(unmeasured=f"the {len(beats)} beats hold nothing but stop words")
    known = vectors.of(beats)
    values = [_nearest_is_own(vectors.of(row) @ known.T) for row in texts]
    made_by = signature(
        "on_beat@1",
        beats=len(beats),
        tokens=WORDS,
        stop_words="function-words@1",
        stems="snowball-english",
        tf="sublinear",
        norm="l2",
    )
    return figures(made_by, "lower", values)


def echo(answers: Answers) -> Measured:
    """`echo@1`: share of the generations (S, P) in [0, 1] that copy their prompt back; higher is worse.

    A copy is 8 words in a row of what the arm was shown (system lines and template included), or the whole beat where
    it has 4 to 7 words. A generation that failed counts as harm. Unmeasured without generations.

    For "Beat: Two sisters quarrel over a letter." Passing: "They quarrelled over the letter." is 0.
    Failing: "Scene: two sisters quarrel over a letter. The end." is 1.
    """
    copies = [_copies(prompt, beat) for prompt, beat in zip(answers.prompts, answers.beats, strict=True)]

    def copied(text: str, prompt: int) -> bool:
        found = answers.tokens[text]
        return any(not runs.isdisjoint(_runs(found, n)) for n, runs in copies[prompt].items() if runs)

    made_by = signature("echo@1", n=COPIED, shortest=SHORTEST_COPY, tokens=WORDS)
    return figures(made_by, "higher", each(answers, copied))


def _copies(prompt: str, beat: str) -> dict[int, frozenset[tuple[str, ...]]]:
    """The runs of words that would be a copy, by their length."""
    said = words(beat)
    whole = {len(said): frozenset({tuple(said)})} if SHORTEST_COPY <= len(said) < COPIED else {}
    return {COPIED: frozenset(_runs(words(prompt), COPIED)), **whole}


def _runs(found: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    return zip(*(found[start:] for start in range(n)), strict=False)


class Vectors:
    """TF-IDF vectors (T, V) of texts, over the V stems of the beats (P,) that they are fitted on.

    idf = ln((1 + beats) / (1 + beats with the stem)) + 1, tf = 1 + ln(count), each row of length 1, or 0 where a text
    holds no stem of the beats.
    """

    def __init__(self, beats: Sequence[str], tokens: Tokens | None = None) -> None:
        self._tokens = Tokens() if tokens is None else tokens
        found = Counter(stem_ for beat in beats for stem_ in {stem(word) for word in words(beat) if _counts(word)})
        self.size = len(found)
        self._columns = _Columns(found)
        self._idf = np.log((1 + len(beats)) / (1 + np.array([found[stem_] for stem_ in sorted(found)]))) + 1

    def of(self, texts: Sequence[str]) -> Matrix:
        """The vectors of texts."""
        counts = np.zeros((len(texts), self.size))
        for row, text in zip(counts, texts, strict=True):
            row[:] = np.bincount(list(map(self._columns.__getitem__, self._tokens[text])), minlength=self.size + 1)[:-1]
        weights = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * self._idf
        lengths = np.linalg.norm(weights, axis=1, keepdims=True)
        return np.asarray(weights / np.where(lengths == 0, 1, lengths))


class _Columns(dict[str, int]):
    """The column of each word's stem, found when the word is first asked for; V for stop words and other stems."""

    def __init__(self, stems: Iterable[str]) -> None:
        super().__init__()
        self._stems = {stem_: column for column, stem_ in enumerate(sorted(stems))}

    def __missing__(self, word: str) -> int:
        none = len(self._stems)
        self[word] = column = self._stems.get(stem(word), none) if _counts(word) else none
        return column


def _counts(word: str) -> bool:
    return word not in STOP_WORDS


def _nearest_is_own(similarity: Matrix) -> list[float]:
    """1 for each row of (P, P) similarities of texts to beats whose diagonal exceeds all else in the row, else 0."""
    own = np.diagonal(similarity).copy()
    others = similarity.copy()
    np.fill_diagonal(others, 0.0)
    hits: list[float] = (own > others.max(axis=1) + _TIE).astype(np.float64).tolist()
    return hits
