"""The Delta family of stylistic distances, the frame they are measured in, and the counting behind both.

Shapes: T texts, W most frequent words (MFW). Counts are whole numbers (T, W + 1), the last column every other word;
relative frequencies are shares of all words of a text, in [0, 1]; z-scores are (frequency − mean) / sd of a frame.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gates.errors import UsageError
from gates.records import digest, signature
from gates.text import WORDS

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

CHUNK = 3000
PER_AUTHOR = 20


@dataclass(frozen=True)
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
        """z-scores (..., W) of counts (..., W + 1). A text without words has no frequencies: its row is nan."""
        with np.errstate(invalid="ignore"):
            frequency = counts[..., :-1] / counts.sum(axis=-1, keepdims=True)
        return np.asarray((frequency - self.mean) / self.sd)


def most_frequent(texts: Sequence[Sequence[str]], mfw: int) -> tuple[str, ...]:
    """The `mfw` most frequent words by pooled counts, ties in alphabetical order; fewer when there are fewer."""
    pooled: Counter[str] = Counter()
    for text in texts:
        pooled.update(text)
    ranked = sorted(pooled.items(), key=lambda item: (-item[1], item[0]))
    return tuple(word for word, _ in ranked[:mfw])


def count_matrix(texts: Sequence[Sequence[str]], words: Sequence[str]) -> Counts:
    """Counts (T, W + 1) of `words` in each text, the last column every other word."""
    place = {word: index for index, word in enumerate(words)}
    counts = np.zeros((len(texts), len(words) + 1), dtype=np.int64)
    for row, text in zip(counts, texts, strict=True):
        for word, count in Counter(text).items():
            row[place.get(word, -1)] += count
    return counts


def make_frame(reference: Sequence[tuple[str, Sequence[str]]], *, mfw: int) -> Frame:
    """The frame of (author, words) of the reference texts.

    The `mfw` most frequent words by pooled counts, ties alphabetical; mean and sample sd (n − 1) of their relative
    frequencies over 3,000-word chunks of each author's texts one after another, the tail dropped, at most 20 an author
    (evenly spaced), so that no author dominates; words of zero sd dropped. Raises UsageError with fewer than 2 chunks.
    """
    by_author: dict[str, list[str]] = {}
    for author, text in sorted(reference, key=lambda item: (item[0], list(item[1][:50]))):
        by_author.setdefault(author, []).extend(text)
    words = most_frequent([text for _, text in reference], mfw)
    chunks = [chunk for author in sorted(by_author) for chunk in _chunks(by_author[author])]
    if len(chunks) < 2:
        raise UsageError(
            f"the reference texts hold {len(chunks)} chunks of {CHUNK} words: mean and sd need at least 2",
            next_step="name more reference texts in corpora.reference",
        )
    counts = count_matrix(chunks, words)
    frequency = counts[:, :-1] / CHUNK
    mean, sd = frequency.mean(axis=0), frequency.std(axis=0, ddof=1)
    kept = sd > 0
    return Frame(
        words=tuple(word for word, keep in zip(words, kept, strict=True) if keep),
        mean=mean[kept],
        sd=sd[kept],
        signature=signature("frame@1", mfw=mfw, tokens=WORDS, chunk=CHUNK, per_author=PER_AUTHOR, chunks=len(chunks)),
    )


def _chunks(text: Sequence[str]) -> list[Sequence[str]]:
    whole = len(text) // CHUNK
    chosen = range(whole) if whole <= PER_AUTHOR else (place * whole // PER_AUTHOR for place in range(PER_AUTHOR))
    return [text[place * CHUNK : (place + 1) * CHUNK] for place in chosen]


def cull(counts: Counts, percent: float) -> NDArray[np.bool_]:
    """Which of the W words stand in at least `percent` of the T texts (stylo's culling), from counts (T, W + 1)."""
    share = (counts[:, :-1] > 0).mean(axis=0) * 100
    return np.asarray(share >= percent)


def cosine(z: Array, other: Array | None = None) -> Array:
    """Cosine (Würzburg) Delta 1 − cos(z_a, z_b) in [0, 2], (T, U): z (T, W) against `other` (U, W), or itself.

    Smith and Aldridge 2011; Jannidis et al. 2015; stylo's dist.wurzburg and pydelta's cosine_delta. Evert et al. take
    the angle instead: the same ranks.
    """
    other = z if other is None else other
    unit, others = (a / np.linalg.norm(a, axis=-1, keepdims=True) for a in (z, other))
    return np.asarray(1 - np.clip(unit @ others.T, -1, 1))


def burrows(z: Array) -> Array:
    """Burrows's Delta (T, T): mean absolute difference of z-scores. Burrows 2002; alike in stylo and pydelta."""
    return _pairwise(z, lambda a, b: np.abs(a - b).mean(axis=-1))


def quadratic(z: Array) -> Array:
    """Argamon's quadratic Delta (T, T): sum of squared differences of z-scores. Argamon 2008; pydelta.

    stylo's dist.argamon is its square root divided by W.
    """
    return _pairwise(z, lambda a, b: ((a - b) ** 2).sum(axis=-1))


def linear(frequencies: Array) -> Array:
    """Argamon's linear Delta (T, T) of relative frequencies (T, W).

    Sum of absolute differences, each divided by the word's mean absolute deviation from its median over the texts.
    Argamon 2008; pydelta. stylo does not offer it; bitig calls the Euclidean distance of z-scores so.
    """
    median = np.median(frequencies, axis=0)
    spread = np.abs(frequencies - median).mean(axis=0)
    kept = spread > 0
    scaled = frequencies[:, kept] / spread[kept]
    return _pairwise(scaled, lambda a, b: np.abs(a - b).sum(axis=-1))


def eder(z: Array) -> Array:
    """Eder's Delta (T, T): absolute differences of z-scores, the word of rank i (from 1) weighted by (W − i + 2) / W.

    stylo's dist.eder. pydelta weighs by (W − i + 1) / W and divides by W; bitig divides by the sum of the weights.
    Columns must stand in the order of frequency.
    """
    count = z.shape[-1]
    weights = (count - np.arange(1, count + 1) + 2) / count
    return _pairwise(z, lambda a, b: (np.abs(a - b) * weights).sum(axis=-1))


def eder_simple(percent: Array) -> Array:
    """Eder's simple distance (T, T): L1 of the square roots of frequencies in percent, no z-scores.

    stylo's dist.simple.

    bitig gives this name to L1 on z-scores, which is another measure.
    """
    return _pairwise(np.sqrt(percent), lambda a, b: np.abs(a - b).sum(axis=-1))


def min_max(frequencies: Array) -> Array:
    """Min-max (Ruzicka) distance (T, T) in [0, 1]: 1 − Σ min / Σ max of frequencies. Kestemont et al. 2016."""
    return _pairwise(frequencies, lambda a, b: 1 - np.minimum(a, b).sum(axis=-1) / np.maximum(a, b).sum(axis=-1))


def _pairwise(rows: Array, distance: Callable[[Array, Array], Array]) -> Array:
    return np.stack([distance(row[None, :], rows) for row in rows])
