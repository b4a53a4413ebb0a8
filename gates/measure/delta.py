"""The Delta family of stylistic distances, the frame they are measured in, and the counting behind both.

Shapes: T texts, W most frequent words (MFW). Counts are whole numbers (T, W + 1), the last column every other word;
relative frequencies are shares of all words of a text, in [0, 1]; z-scores are (frequency − mean) / sd of a frame.
A text without words has no frequencies: its rows are nan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from gates.errors import UsageError
from gates.measure.counted import Counted, Counts, Text
from gates.records import digest, signature
from gates.text import WORDS

Array = NDArray[np.float64]
Texts = Sequence[Text] | Counted
"""Texts, counted once where more than one frame is asked of them."""


@dataclass(frozen=True, eq=False)
class Frame:
    """The fixed most frequent words (W,) with the mean (W,) and sample sd (W,) of each one's relative frequency."""

    words: tuple[str, ...]
    mean: Array
    sd: Array
    signature: str

    def digest(self) -> str:
        """SHA-256 of words, mean and sd, the figures rounded to 12 digits, which summing in another order keeps."""
        figures = [[f"{value:.12g}" for value in values] for values in (self.mean, self.sd)]
        return digest([self.signature, list(self.words), *figures])

    def z(self, counts: Counts) -> Array:
        """z-scores (..., W) of counts (..., W + 1) of the frame's words and all others."""
        return np.asarray((frequencies(counts) - self.mean) / self.sd)


def most_frequent(texts: Texts, mfw: int, *, culling: float = 0.0) -> tuple[str, ...]:
    """The `mfw` most frequent words by pooled counts, ties in alphabetical order; fewer when there are fewer.

    `culling` keeps the words that stand in at least that percentage of the texts, before the cut to `mfw`, as stylo
    does; pydelta rounds the number of texts up, which is the same.
    """
    return (texts if isinstance(texts, Counted) else Counted(texts)).most_frequent(mfw, culling)


def count_matrix(texts: Texts, words: Sequence[str]) -> Counts:
    """Counts (T, W + 1) of `words` in each text, the last column every other word."""
    if isinstance(texts, Counted):
        return texts.matrix(words)
    counts = np.zeros((len(texts), len(words) + 1), dtype=np.int64)
    column = _Columns(zip(words, range(len(words)), strict=True)).__getitem__
    for row, text in zip(counts, texts, strict=True):
        often = list(text.values()) if isinstance(text, Counter) else None
        row[:] = np.bincount(np.fromiter(map(column, text), np.intp, len(text)), often, row.size)
    return counts


class _Columns(dict[str, int]):
    """The column of each counted word; of every other word the last, kept when it is first asked for."""

    def __init__(self, columns: Iterable[tuple[str, int]]) -> None:
        super().__init__(columns)
        self._other = len(self)

    def __missing__(self, word: str) -> int:
        self[word] = self._other
        return self._other


def frequencies(counts: Counts) -> Array:
    """Relative frequencies (..., W) of counts (..., W + 1), as shares of all words.

    stylo gives percent, bitig divides by the words in the list alone, faststylometry leaves pronouns out.
    """
    with np.errstate(invalid="ignore"):
        return np.asarray(counts[..., :-1] / counts.sum(axis=-1, keepdims=True))


def make_frame(
    reference: Sequence[tuple[str, Sequence[str]]], *, mfw: int, chunk: int = 3000, per_author: int = 20
) -> Frame:
    """The frame of (author, words) of the reference texts, the same whatever the order of the texts.

    The `mfw` most frequent words by pooled counts, ties alphabetical; mean and sample sd (n − 1) of their relative
    frequencies over chunks of `chunk` words of each author's texts one after another, the tail dropped, at most
    `per_author` an author (evenly spaced), so that no author dominates; words of zero sd dropped. Raises UsageError
    with fewer than 2 chunks, or when no word's frequency varies.
    """
    by_author: dict[str, list[str]] = {}
    for author, text in sorted((author, list(text)) for author, text in reference):
        by_author.setdefault(author, []).extend(text)
    chunks = [piece for text in by_author.values() for piece in _chunks(text, chunk, per_author)]
    if len(chunks) < 2:
        raise UsageError(
            f"the reference texts hold {len(chunks)} chunks of {chunk} words: mean and sd need at least 2",
            next_step="name more reference texts in corpora.reference",
        )
    made = signature("frame@1", mfw=mfw, tokens=WORDS, chunk=chunk, per_author=per_author, chunks=len(chunks))
    return _frame(chunks, most_frequent([text for _, text in reference], mfw), made)


def frame_of_texts(texts: Texts, *, mfw: int, culling: float = 0.0) -> Frame:
    """The frame of the texts that are to be compared themselves, each one observation, as the published tables have it.

    stylo() and pydelta do so too; faststylometry takes one subcorpus an author, pystylometry the two texts compared,
    which makes every distance a constant. Not for a gate: what is judged may not set its own scale. Raises UsageError
    with fewer than 2 texts, or when no word's frequency varies.
    """
    if len(texts) < 2:
        raise UsageError(
            f"{len(texts)} text given: mean and sd need at least 2", next_step="give more texts, or a reference"
        )
    made = signature("texts@1", mfw=mfw, culling=culling, texts=len(texts))
    return _frame(texts, most_frequent(texts, mfw, culling=culling), made)


def _frame(observations: Texts, words: Sequence[str], made: str) -> Frame:
    frequency = frequencies(count_matrix(observations, words))
    mean, sd = frequency.mean(axis=0), frequency.std(axis=0, ddof=1)
    # Not sd > 0: rounding gives equal frequencies an sd of 1e-17.
    varies = np.ptp(frequency, axis=0) > 0
    if not varies.any():
        raise UsageError(
            f"not one of the {len(words)} most frequent words varies in frequency between the reference texts",
            next_step="give reference texts that differ from each other",
        )
    return Frame(tuple(word for word, kept in zip(words, varies, strict=True) if kept), mean[varies], sd[varies], made)


def _chunks(text: Sequence[str], size: int, most: int) -> list[Sequence[str]]:
    whole = len(text) // size
    chosen = range(whole) if whole <= most else (place * whole // most for place in range(most))
    return [text[place * size : (place + 1) * size] for place in chosen]


def cosine(z: Array, other: Array | None = None) -> Array:
    """Cosine (Würzburg) Delta 1 − cos(z_a, z_b) in [0, 2], (T, U): z (T, W) against `other` (U, W), or itself.

    A row of zeros has no direction: its distances are 1. Smith and Aldridge 2011; Jannidis et al. 2015; stylo's
    dist.wurzburg, pydelta's cosine_delta. Evert et al. 2017 take the angle: the same ranks. Whether sd is the sample's
    or the population's makes no difference here.
    """
    # einsum, not a matrix product: BLAS gives a row other last digits when rows stand beside it.
    return np.asarray(1 - np.clip(np.einsum("tw,uw->tu", _unit(z), _unit(z if other is None else other)), -1, 1))


def _unit(z: Array) -> Array:
    length = np.linalg.norm(z, axis=-1, keepdims=True)
    return np.asarray(z / np.where(length == 0, 1, length))


def burrows(z: Array) -> Array:
    """Burrows's Delta (T, T): mean absolute difference of z-scores (T, W).

    Burrows 2002; alike in stylo (dist.delta) and pydelta; bitig measures from the centroid of a class, with the
    population's sd, which multiplies by sqrt(n / (n − 1)).
    """
    return _pairwise(z, lambda a, b: np.abs(a - b).mean(axis=-1))


def quadratic(z: Array) -> Array:
    """Argamon's quadratic Delta (T, T): sum of squared differences of z-scores (T, W).

    Argamon 2008; pydelta, bitig. stylo's dist.argamon, though labelled linear, is its square root divided by W.
    """
    return _pairwise(z, lambda a, b: ((a - b) ** 2).sum(axis=-1))


def linear(frequency: Array) -> Array:
    """Argamon's linear Delta (T, T) of relative frequencies (T, W).

    Sum of absolute differences, each divided by the word's mean absolute deviation from its median over the T texts;
    words that do not vary are left out. Argamon 2008; pydelta. stylo does not offer it; bitig calls the Euclidean
    distance of z-scores so.
    """
    spread = np.abs(frequency - np.median(frequency, axis=0)).mean(axis=0)
    scaled = frequency[:, spread > 0] / spread[spread > 0]
    return _pairwise(scaled, lambda a, b: np.abs(a - b).sum(axis=-1))


def eder(z: Array) -> Array:
    """Eder's Delta (T, T): sum of absolute differences of z-scores (T, W), rank i (from 1) weighing (W − i + 2) / W.

    Columns stand in the order of frequency. stylo's dist.eder. pydelta weighs by (W − i + 1) / W and divides by W;
    bitig divides by the sum of the weights.
    """
    count = z.shape[-1]
    weights = (count - np.arange(1, count + 1) + 2) / count
    return _pairwise(z, lambda a, b: (np.abs(a - b) * weights).sum(axis=-1))


def eder_simple(frequency: Array) -> Array:
    """Eder's simple distance (T, T): sum of absolute differences of the square roots of frequencies (T, W) in percent.

    stylo's dist.simple. pydelta divides by W; bitig gives this name to the sum over z-scores, another measure.
    """
    return _pairwise(np.sqrt(100 * frequency), lambda a, b: np.abs(a - b).sum(axis=-1))


def min_max(frequency: Array) -> Array:
    """Min-max (Ruzicka) distance (T, T) in [0, 1]: 1 − Σ min / Σ max of frequencies (T, W). Kestemont et al. 2016."""
    return _pairwise(frequency, lambda a, b: 1 - np.minimum(a, b).sum(axis=-1) / np.maximum(a, b).sum(axis=-1))


def _pairwise(rows: Array, distance: Callable[[Array, Array], Array]) -> Array:
    return np.stack([distance(row[None, :], rows) for row in rows])


DISTANCES: Mapping[str, Callable[[Counts, Frame], Array]] = MappingProxyType(
    {
        "cosine": lambda counts, frame: cosine(frame.z(counts)),
        "burrows": lambda counts, frame: burrows(frame.z(counts)),
        "quadratic": lambda counts, frame: quadratic(frame.z(counts)),
        "linear": lambda counts, _: linear(frequencies(counts)),
        "eder": lambda counts, frame: eder(frame.z(counts)),
        "eder-simple": lambda counts, _: eder_simple(frequencies(counts)),
        "min-max": lambda counts, _: min_max(frequencies(counts)),
    }
)
"""Every distance by name: from counts (T, W + 1) of a frame's words to (T, T)."""
