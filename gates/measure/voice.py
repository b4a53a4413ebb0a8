"""`delta_cb@1`: how far an arm moves from the base toward the held-out author, in cosine Burrows's Delta.

Shapes: S generation seeds, P prompts, W frame words, L = `words_per_seed`, I imposters. All randomness is PCG64 seeded
by SHA-256 of the measure's signature and what is drawn, never by seal, arm names or the list of arms: a re-score gives
the same number, and other candidates change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import fsum
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gates.errors import UsageError
from gates.measure.counted import Counts
from gates.measure.delta import Array, Frame, cosine, count_matrix
from gates.measure.figures import Unmeasured, VoiceFigures
from gates.measure.tokens import Tokens
from gates.records import digest, signature
from gates.text import words

DRAWS = 50
CEILING_DRAWS = 200
RESAMPLES = 1000


@dataclass(frozen=True, eq=False)
class ArmCounts:
    """One arm's generations as word counts (S, P, W + 1), its seeds (S,) in the order of the rows."""

    seeds: tuple[int, ...]
    counts: Counts

    @property
    def pools(self) -> Counts:
        """Counts pooled over the prompts of each seed (S, W + 1)."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def words(self) -> tuple[int, ...]:
        """Words in each seed's pool (S,)."""
        return tuple(int(total) for total in self.pools.sum(axis=-1))


@dataclass(frozen=True, eq=False)
class Yardstick:
    """What arms are measured against, built once: frame, held-out text word by word, imposters, L.

    `sequence` (N,) is the held-out text as frame positions, W for every other word; `imposters` (W + 1,) each, cut to
    N words. `notes` are what a reader must know of them.
    """

    frame: Frame
    words_per_seed: int
    sequence: NDArray[np.int64]
    imposters: Mapping[str, Counts]
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        frame: Frame,
        heldout: Sequence[tuple[str, str]],
        imposters: Mapping[str, Sequence[str]],
        *,
        words_per_seed: int,
    ) -> Self:
        """From (book, text) of the held-out files and the texts of each imposter.

        Raises UsageError when the held-out text or an imposter holds no words.
        """
        tokens = [word for _, text in heldout for word in words(text)]
        cut = {name: [word for text in texts for word in words(text)] for name, texts in imposters.items()}
        wordless = [f"imposter {name}" for name, found in cut.items() if not found]
        if wordless or not tokens:
            raise UsageError(
                f"no words in {', '.join(wordless) or 'the held-out text'}",
                next_step="name texts that the tokeniser can read",
            )
        notes = ["ceiling within one book"] if len({book for book, _ in heldout}) == 1 else []
        notes += [
            f"imposter {name} has {len(found)} words, the held-out text {len(tokens)}"
            for name, found in cut.items()
            if len(found) < len(tokens)
        ]
        place = {word: index for index, word in enumerate(frame.words)}
        return cls(
            frame=frame,
            words_per_seed=words_per_seed,
            sequence=np.array([place.get(word, len(place)) for word in tokens], dtype=np.int64),
            imposters={n: count_matrix([found[: len(tokens)]], frame.words)[0] for n, found in cut.items()},
            notes=tuple(notes),
        )

    @property
    def heldout(self) -> Counts:
        """Counts (W + 1,) of the whole held-out text."""
        return np.bincount(self.sequence, minlength=len(self.frame.words) + 1)

    @property
    def signature(self) -> str:
        """How `delta_cb@1` is made here; part of every seed."""
        return signature(
            "delta_cb@1",
            frame=self.frame.signature.replace("|", ","),
            words_per_seed=self.words_per_seed,
            draws=DRAWS,
            ceiling_draws=CEILING_DRAWS,
            resamples=RESAMPLES,
        )

    def generator(self, *what: str | int) -> np.random.Generator:
        """PCG64 seeded by SHA-256 of the signature and of what is drawn."""
        return np.random.Generator(np.random.PCG64(int(digest([self.signature, *what]), 16)))


def count_arm(
    seeds: tuple[int, ...], texts: Sequence[Sequence[str]], yardstick: Yardstick, tokens: Tokens | None = None
) -> ArmCounts:
    """Count an arm's texts (S, P) in the yardstick's frame."""
    known = Tokens() if tokens is None else tokens
    rows = [count_matrix([known[text] for text in row], yardstick.frame.words) for row in texts]
    return ArmCounts(seeds, np.stack(rows))


def measure_voice(arm: ArmCounts, base: ArmCounts, yardstick: Yardstick) -> VoiceFigures | Unmeasured:
    """`delta_cb@1` of one arm. Unmeasured when a seed's pool of the arm or the base holds fewer than L words.

    delta = mean over seeds of d(base, s) − mean over seeds of d(arm, s), d as in `distances`; positive = toward the
    held-out author. The ceiling is d of the author's own text under the arm's conditions: 200 draws, each of as many
    disjoint windows of the held-out text as there are prompts, at random places, of the lengths that the arm's texts
    have in one seed (the seeds in turn), pooled and drawn to L, against the rest of the held-out text. Where a seed's
    pool holds more than half as many words as the held-out text, too little would be left to measure against: ceiling
    and span are None, and a note says so. The imposters' moves rest on the same draws as the author's.

    Source: Smith and Aldridge 2011 (cosine Delta); Eder 2015 (bags of words, and why length must be fixed).
    """
    short = _short("base", base, yardstick.words_per_seed) or _short("the arm", arm, yardstick.words_per_seed)
    if short:
        return Unmeasured(unmeasured=short)
    mine, bases = distances(arm, yardstick), _of_base(base, yardstick)[0]
    delta, *moves = (before - after for before, after in zip(_means(bases), _means(mine), strict=True))
    ceiling, note = _ceiling(arm, yardstick)
    span = None if ceiling is None else _means(bases)[0] - ceiling
    return VoiceFigures(
        signature=yardstick.signature,
        frame_sha256=yardstick.frame.digest(),
        words=arm.words,
        base_words=base.words,
        distances=tuple(map(float, mine[:, 0])),
        base_distances=tuple(map(float, bases[:, 0])),
        delta=delta,
        spread=float(np.ptp(mine[:, 0])),
        base_spread=float(np.ptp(bases[:, 0])),
        ceiling=ceiling,
        span=span,
        span_closed=delta / span if span is not None and span > 0 else None,
        interval=_interval(arm, base, delta, yardstick),
        imposters=dict(zip(yardstick.imposters, moves, strict=True)),
        specificity=delta - max(moves) if moves else None,
        influence=_influence(arm, base, yardstick),
        notes=(*yardstick.notes, *note),
    )


def distances(arm: ArmCounts, yardstick: Yardstick) -> Array:
    """d (S, 1 + I) in [0, 2] of each seed to the held-out text and to each imposter. Each pool holds L words or more.

    The seed's generations are pooled; d is the mean over 50 multivariate-hypergeometric draws of exactly L words of
    the cosine distance of their z-scores to the text's. Draw number n of a seed is seeded by (signature, seed, n).
    """
    goals = yardstick.frame.z(np.stack([yardstick.heldout, *yardstick.imposters.values()]))
    rows = []
    for seed, pool in zip(arm.seeds, arm.pools, strict=True):
        drawn = [_draw(yardstick.generator(seed, draw), pool, yardstick.words_per_seed) for draw in range(DRAWS)]
        rows.append(_means(cosine(yardstick.frame.z(np.stack(drawn)), goals)))
    return np.array(rows)


def disjoint_windows(rng: np.random.Generator, lengths: NDArray[np.int64], size: int) -> list[slice]:
    """Where disjoint windows of these lengths lie in a text of `size` words: in this order, at random places."""
    gaps = np.sort(rng.integers(0, size - int(lengths.sum()) + 1, lengths.size))
    ends = gaps + np.cumsum(lengths)
    return [slice(int(end - length), int(end)) for end, length in zip(ends, lengths, strict=True)]


def _means(rows: Array) -> list[float]:
    # Exact sums: neither the order of rows nor the columns beside one change its last digit.
    return [fsum(column) / len(column) for column in rows.T]


def _short(name: str, arm: ArmCounts, least: int) -> str:
    short = [f"seed {seed} has {count}" for seed, count in zip(arm.seeds, arm.words, strict=True) if count < least]
    return f"{name} is short of words_per_seed = {least}: {', '.join(short)} words" if short else ""


def _draw(rng: np.random.Generator, pool: Counts, size: int) -> Counts:
    return np.asarray(rng.multivariate_hypergeometric(pool, size, method="marginals"))


def _ceiling(arm: ArmCounts, yardstick: Yardstick) -> tuple[float | None, tuple[str, ...]]:
    # Sorted, so that neither the order of seeds nor that of prompts changes the figure.
    lengths = np.sort(arm.counts[np.argsort(arm.seeds)].sum(axis=-1), axis=1)
    largest, size = int(lengths.sum(axis=-1).max()), yardstick.sequence.size
    if 2 * largest > size:
        return None, (f"no ceiling: {largest} words of windows leave less than half of {size} held-out words",)
    whole = yardstick.heldout
    found = []
    for draw in range(CEILING_DRAWS):
        rng = yardstick.generator("ceiling", draw)
        places = disjoint_windows(rng, rng.permutation(lengths[draw % len(lengths)]), size)
        own = np.bincount(np.concatenate([yardstick.sequence[place] for place in places]), minlength=whole.size)
        z = yardstick.frame.z(np.stack([_draw(rng, own, yardstick.words_per_seed), whole - own]))
        found.append(float(cosine(z[:1], z[1:])[0, 0]))
    return float(np.mean(found)), ()


def _interval(arm: ArmCounts, base: ArmCounts, delta: float, yardstick: Yardstick) -> tuple[float, float]:
    """95 % bootstrap over prompts, all seeds kept, the same resample for both arms; descriptive.

    Replicates weigh each seed's generations, then draw L words with replacement; delta + quantiles of (replicates −
    their mean). With 24 prompts its simulated coverage for nominal 0.95 lies between 0.85, where prompts differ much,
    and 0.99, where the drawing of words makes most of the variance.
    """
    moves = _of_base(base, yardstick)[1].copy()
    _replicate(moves, ("arm", -1.0), arm, yardstick)
    low, high = np.quantile(moves - moves.mean(), (0.025, 0.975))
    return (delta + float(low), delta + float(high))


@lru_cache(maxsize=1)
def _of_base(base: ArmCounts, yardstick: Yardstick) -> tuple[Array, Array]:
    """The base's distances and its part in each replicate (R,), the same for every arm it is compared with."""
    moves = np.zeros(RESAMPLES)
    _replicate(moves, ("base", 1.0), base, yardstick)
    return distances(base, yardstick), moves


def _replicate(moves: Array, role: tuple[str, float], one: ArmCounts, yardstick: Yardstick) -> None:
    """Add one side's part, under its name and with its sign, to the replicates' moves (R,)."""
    name, sign = role
    prompts = one.counts.shape[1]
    weights = yardstick.generator("bootstrap").multinomial(prompts, np.full(prompts, 1 / prompts), size=moves.size)
    goal = yardstick.frame.z(yardstick.heldout[None, :])
    for place in np.argsort(one.seeds):
        rng = yardstick.generator("bootstrap", name, one.seeds[place])
        drawn = rng.multinomial(yardstick.words_per_seed, _resampled(one.counts[place], weights))
        moves += sign * cosine(yardstick.frame.z(drawn), goal)[:, 0] / len(one.seeds)


def _resampled(counts: Counts, weights: NDArray[np.int64]) -> Array:
    """Shares (R, W + 1) of words in one seed's texts (P, W + 1), each text taken as often as weights (R, P) say."""
    # As floats for speed: the sums are whole numbers below 2^53 and stay exact.
    pools = weights.astype(np.float64) @ counts.astype(np.float64)
    # A resample of empty texts alone has no words to draw: it repeats the whole pool.
    pools[pools.sum(axis=-1) == 0] = counts.sum(axis=0)
    return np.asarray(pools / pools.sum(axis=-1, keepdims=True))


def _influence(arm: ArmCounts, base: ArmCounts, yardstick: Yardstick) -> tuple[float, ...]:
    """For each prompt (P,): the move without it minus the move with all, on whole pools without drawing.

    Where nothing is left without a prompt, nothing moves.
    """
    goal = yardstick.frame.z(yardstick.heldout[None, :])

    def move(pools_of_base: Counts, pools_of_arm: Counts) -> Array:
        d = [
            cosine(yardstick.frame.z(pools).reshape(-1, goal.size), goal).reshape(pools.shape[:-1]).mean(axis=0)
            for pools in (pools_of_base, pools_of_arm)
        ]
        return np.asarray(d[0] - d[1])

    whole = float(move(base.pools, arm.pools))
    without = move(base.pools[:, None] - base.counts, arm.pools[:, None] - arm.counts)
    return tuple(float(one) - whole for one in np.nan_to_num(without, nan=0.0))
