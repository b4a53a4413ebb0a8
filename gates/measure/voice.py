"""`delta_cb@1`: how far an arm moves from the base toward the held-out author, in cosine Burrows's Delta.

Shapes: S generation seeds, P prompts, W frame words, L = `words_per_seed`. All randomness is PCG64 seeded by SHA-256
of the measure's signature and what is drawn, never by seal, arm names or the list of arms: a re-score gives the same
number, and other candidates change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gates.measure.delta import Array, Counts, Frame, cosine, count_matrix
from gates.measure.figures import Unmeasured, VoiceFigures
from gates.records import digest, signature
from gates.text import words

DRAWS = 50
CEILING_DRAWS = 200
RESAMPLES = 1000


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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
        """From (book, text) of the held-out files and the texts of each imposter."""
        place = {word: index for index, word in enumerate(frame.words)}
        tokens = [word for _, text in heldout for word in words(text)]
        sequence = np.array([place.get(word, len(place)) for word in tokens], dtype=np.int64)
        cut = {name: [word for text in texts for word in words(text)] for name, texts in imposters.items()}
        notes = ["ceiling within one book"] if len({book for book, _ in heldout}) == 1 else []
        notes += [
            f"imposter {name} has {len(found)} words, the held-out text {len(tokens)}"
            for name, found in cut.items()
            if len(found) < len(tokens)
        ]
        return cls(
            frame=frame,
            words_per_seed=words_per_seed,
            sequence=sequence,
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


def count_arm(seeds: tuple[int, ...], texts: Sequence[Sequence[str]], yardstick: Yardstick) -> ArmCounts:
    """Count an arm's texts (S, P) in the yardstick's frame."""
    rows = [count_matrix([words(text) for text in row], yardstick.frame.words) for row in texts]
    return ArmCounts(seeds, np.stack(rows))


def measure_voice(arm: ArmCounts, base: ArmCounts, yardstick: Yardstick) -> VoiceFigures | Unmeasured:
    """`delta_cb@1` of one arm. Unmeasured when a seed's pool of the arm or the base holds fewer than L words.

    d(arm, s): the seed's generations pooled, 50 multivariate-hypergeometric draws of exactly L words, the mean cosine
    distance of the drawn z-scores to the held-out text's. The ceiling is d of the author's own text (see `_ceiling`).
    Source: Smith and Aldridge 2011 (cosine Delta); Eder 2015 (bags of words, and why length must be fixed).
    """
    short = _short("base", base, yardstick.words_per_seed) or _short("the arm", arm, yardstick.words_per_seed)
    if short:
        return Unmeasured(unmeasured=short)
    targets = np.stack([yardstick.heldout, *yardstick.imposters.values()])
    mine, bases = _distances(arm, targets, yardstick), _distances(base, targets, yardstick)
    moves = bases.mean(axis=0) - mine.mean(axis=0)
    ceiling, note = _ceiling(arm, yardstick)
    base_distance = float(bases[:, 0].mean())
    span = None if ceiling is None else base_distance - ceiling
    imposters = {name: float(move) for name, move in zip(yardstick.imposters, moves[1:], strict=True)}
    delta = float(moves[0])
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
        imposters=imposters,
        specificity=delta - max(imposters.values()) if imposters else None,
        influence=_influence(arm, base, yardstick),
        notes=(*yardstick.notes, *note),
    )


def _short(name: str, arm: ArmCounts, least: int) -> str:
    short = [f"seed {seed} has {count}" for seed, count in zip(arm.seeds, arm.words, strict=True) if count < least]
    return f"{name} is short of words_per_seed = {least}: {', '.join(short)} words" if short else ""


def _distances(arm: ArmCounts, targets: Counts, yardstick: Yardstick) -> Array:
    """d (S, targets) of each seed's pool to each target, the mean over the same 50 draws."""
    goals = yardstick.frame.z(targets)
    rows = []
    for seed, pool in zip(arm.seeds, arm.pools, strict=True):
        drawn = [_draw(yardstick.generator(seed, draw), pool, yardstick.words_per_seed) for draw in range(DRAWS)]
        rows.append(cosine(yardstick.frame.z(np.stack(drawn)), goals).mean(axis=0))
    return np.stack(rows)


def _draw(rng: np.random.Generator, pool: Counts, size: int) -> Counts:
    return np.asarray(rng.multivariate_hypergeometric(pool, size, method="marginals"))


def _ceiling(arm: ArmCounts, yardstick: Yardstick) -> tuple[float | None, tuple[str, ...]]:
    """d of the author's own text under the arm's conditions, the mean of 200 draws; None with a note when it is short.

    Each draw takes, for one seed in turn, P disjoint windows of the held-out text of the arm's own lengths at random
    places, pools them, draws L words, and measures against the rest of the held-out text.
    """
    lengths = arm.counts.sum(axis=-1)
    largest = int(lengths.sum(axis=-1).max())
    if 2 * largest > yardstick.sequence.size:
        note = (
            f"no ceiling: {largest} words of windows leave less than half of {yardstick.sequence.size} held-out words"
        )
        return None, (note,)
    whole = yardstick.heldout
    found = []
    for draw in range(CEILING_DRAWS):
        rng = yardstick.generator("ceiling", draw)
        own = _windows(rng, yardstick.sequence, rng.permutation(lengths[draw % len(lengths)]), whole.size)
        drawn = _draw(rng, own, yardstick.words_per_seed)
        z = yardstick.frame.z(np.stack([drawn, whole - own]))
        found.append(float(cosine(z[:1], z[1:])[0, 0]))
    return float(np.mean(found)), ()


def _windows(rng: np.random.Generator, sequence: NDArray[np.int64], lengths: NDArray[np.int64], size: int) -> Counts:
    """Counts of disjoint windows of these lengths at random places, in this order."""
    gaps = np.sort(rng.integers(0, sequence.size - int(lengths.sum()) + 1, lengths.size))
    begins = gaps + np.concatenate(([0], np.cumsum(lengths)[:-1]))
    pieces = [sequence[begin : begin + length] for begin, length in zip(begins, lengths, strict=True)]
    return np.bincount(np.concatenate(pieces), minlength=size)


def _interval(arm: ArmCounts, base: ArmCounts, delta: float, yardstick: Yardstick) -> tuple[float, float]:
    """95 % bootstrap over prompts, all seeds kept, the same resample for both arms; descriptive.

    Replicates weigh each seed's generations, then draw L words with replacement; delta + quantiles of (replicates −
    their mean). With 24 prompts its simulated coverage is about 0.89 for nominal 0.95.
    """
    rng = yardstick.generator("bootstrap")
    prompts = arm.counts.shape[1]
    weights = rng.multinomial(prompts, np.full(prompts, 1 / prompts), size=RESAMPLES)
    goal = yardstick.frame.z(yardstick.heldout[None, :])
    moves = np.zeros(RESAMPLES)
    for one, sign in ((base, 1.0), (arm, -1.0)):
        for seed_counts in one.counts:
            pools = weights @ seed_counts
            totals = pools.sum(axis=-1, keepdims=True)
            # A resample of empty texts only has no words to draw: it repeats the whole pool.
            share = np.where(totals > 0, pools, seed_counts.sum(axis=0)) / np.maximum(
                np.where(totals > 0, totals, seed_counts.sum()), 1
            )
            drawn = rng.multinomial(yardstick.words_per_seed, share)
            moves += sign * cosine(yardstick.frame.z(drawn), goal)[:, 0] / len(one.seeds)
    low, high = np.quantile(moves - moves.mean(), (0.025, 0.975))
    return (delta + float(low), delta + float(high))


def _influence(arm: ArmCounts, base: ArmCounts, yardstick: Yardstick) -> tuple[float, ...]:
    """For each prompt (P,): the move without it minus the move with all, on whole pools without drawing."""

    def move(keep: NDArray[np.bool_]) -> float:
        goal = yardstick.frame.z(yardstick.heldout[None, :])
        d = [cosine(yardstick.frame.z(a.counts[:, keep].sum(axis=1)), goal).mean() for a in (base, arm)]
        return float(d[0] - d[1])

    prompts = arm.counts.shape[1]
    everyone = np.ones(prompts, dtype=bool)
    whole = move(everyone)
    without = [everyone & (np.arange(prompts) != prompt) for prompt in range(prompts)]
    return tuple(move(keep) - whole if _all_have_words((base, arm), keep) else 0.0 for keep in without)


def _all_have_words(arms: tuple[ArmCounts, ...], keep: NDArray[np.bool_]) -> bool:
    return all(bool(arm.counts[:, keep].sum(axis=(1, 2)).all()) for arm in arms)
