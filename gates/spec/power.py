"""What a rule can prove at a size: false-pass rates, shifts caught, margins, maximum rates, floors of 0.

Simulated with a seeded generator and with the very functions that judge: the floor rule comes as an argument, the
limits of a change from `gates.stats`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from gates.deferred import Deferred
from gates.errors import UsageError
from gates.records import Record
from gates.stats import FEWEST_PROMPTS, Array, clopper_pearson, exceeds, newcombe_paired, paired_change

if TYPE_CHECKING:
    from scipy import stats
else:
    stats = Deferred("scipy.stats")

FloorOf = Callable[[Array, Array], Array]
"""From base (…, k) and candidate (…, k) to the floor (…); shifting an arm must not change it."""

LEVEL = 0.95
GATES = 100_000
"""Gates simulated of up to MANY_SEEDS seeds; of k more seeds MANY_SEEDS / k as many, and at least 100."""
MARGIN_GATES = 2_000
MANY_SEEDS = 10

_RESAMPLES = 2_000
_FEWEST_GATES = 100
_LARGEST_N = 100_000


class VoicePower(Record):
    """How a superiority rule behaves at k seeds, by simulation of independent, equal, normal arms.

    `false_pass`: rate of candidates without any shift that pass, in [0, 1], with its standard error.
    `shift_80`: the smallest shift, in units of the seeds' sd, that passes with probability 0.8.
    """

    k: int
    false_pass: float
    false_pass_error: float
    shift_80: float


class NoisePower(Record):
    """A superiority rule's true level when the candidate's seeds vary `sd_ratio` times as much as the base's.

    `false_pass`: rate of candidates without any shift that pass, in [0, 1], with its standard error.
    """

    sd_ratio: float
    false_pass: float
    false_pass_error: float


class ZeroFloor(Record):
    """How likely a floor of 0 is on an axis that counts: `chance` in [0, 1] where each text hits at `rate`."""

    rate: float
    chance: float


class MarginPower(Record):
    """How often an unchanged candidate passes a non-inferiority margin, in [0, 1], with its standard error.

    Simulated with every text of both arms independent at the same `rate`: prompts that differ make it higher.
    """

    rate: float
    passes: float
    passes_error: float


class RatePower(Record):
    """What `n` generations can prove of a maximum rate.

    `most_hits` still pass (None: not even 0 hits do); `upper_at_zero` is the upper limit at 0 hits; `smallest_n`
    generations are the fewest that can prove the rate with 0 hits (None: no number can).
    """

    n: int
    max_rate: float
    most_hits: int | None
    upper_at_zero: float
    smallest_n: int | None


def voice_power(
    floor: FloorOf,
    k: int,
    times: float,
    rng: np.random.Generator,
    gates: int = GATES,
    *,
    candidate_k: int | None = None,
) -> VoicePower:
    """Simulate `gates` gates of a base and a candidate with k standard normal seeds each (the candidate `candidate_k`).

    Past MANY_SEEDS seeds fewer gates are simulated, in inverse proportion, and the standard error says so.
    A gate passes when mean(base) - mean(candidate) > times x floor, strictly. A shift changes the difference and not
    the floor, so the shift that passes with probability 0.8 is the 0.8 quantile of what the difference lacks.
    Raises UsageError unless k >= 2 and gates >= 1.
    """
    if k < 2 or gates < 1:
        raise UsageError(f"{gates} gates of {k} seeds cannot be simulated", next_step="give k >= 2 and gates >= 1")
    gates = affordable(gates, k)
    base = rng.standard_normal((gates, k))
    candidate = rng.standard_normal((gates, candidate_k or k))
    short = lacking(floor, base, candidate, times)
    rate = float(np.mean(exceeds(0.0, short)))
    return VoicePower(
        k=k,
        false_pass=rate,
        false_pass_error=_error(rate, gates),
        shift_80=float(np.quantile(short, 0.8)),
    )


def pass_curve(
    floor: FloorOf, k: int, times: float, rng: np.random.Generator, shifts: Array
) -> tuple[tuple[float, float], ...]:
    """(shift, share of gates that pass) for each of `shifts` (in units of the seeds' sd), as in `voice_power`."""
    gates = affordable(MANY_SEEDS * MARGIN_GATES, k)
    short = lacking(floor, rng.standard_normal((gates, k)), rng.standard_normal((gates, k)), times)
    return tuple((float(shift), float(np.mean(exceeds(shift, short)))) for shift in shifts)


def noise_power(floor: FloorOf, k: int, times: float, sd_ratio: float, rng: np.random.Generator) -> NoisePower:
    """A rule's true level at k seeds when the candidate's sd is `sd_ratio` times the base's, by simulation."""
    gates = affordable(GATES, k)
    base, candidate = rng.standard_normal((2, gates, k))
    rate = float(np.mean(exceeds(0.0, lacking(floor, base, sd_ratio * candidate, times))))
    return NoisePower(sd_ratio=sd_ratio, false_pass=rate, false_pass_error=_error(rate, gates))


def zero_floor(n_prompts: int, n_seeds: int, rate: float) -> ZeroFloor:
    """How likely both arms' ranges over seeds are 0 when every text is a hit with probability `rate`, exactly.

    One arm's range is 0 when its seeds all have the same count of hits. Raises UsageError for no texts or a rate
    outside [0, 1].
    """
    _check_size(n_prompts, n_seeds, rate)
    alike = np.sum(stats.binom.pmf(np.arange(n_prompts + 1), n_prompts, rate) ** n_seeds)
    return ZeroFloor(rate=rate, chance=float(alike**2))


def margin_power(
    n_prompts: int, n_seeds: int, margin: float, rate: float, rng: np.random.Generator, gates: int = MARGIN_GATES
) -> MarginPower:
    """P(pass | no change) of a margin at n_prompts x n_seeds texts an arm, each a hit with probability `rate`.

    Past MANY_SEEDS seeds the hits are drawn as counts, with the same distribution. Raises UsageError for no texts or a
    rate outside [0, 1].
    """
    _check_size(n_prompts, n_seeds, rate)
    # Where few gates are simulated, their own error hides that of few resamples.
    resamples = _RESAMPLES if gates >= MARGIN_GATES else _RESAMPLES // 4
    if n_seeds <= MANY_SEEDS:
        base, candidate = (rng.random((2, gates, n_prompts, n_seeds)) < rate).astype(np.float64)
        high = paired_change(base, candidate, LEVEL, resamples, rng).high
    elif n_prompts < FEWEST_PROMPTS:
        # Too few prompts for a bootstrap: the limits rest on the counts of pairs alone.
        chances = np.outer((rate, 1 - rate), (rate, 1 - rate)).ravel()
        both, first, second, neither = rng.multinomial(n_prompts * n_seeds, chances, size=gates).T
        high = newcombe_paired(both, first, second, neither, LEVEL)[1]
    else:
        # The bootstrap resamples whole prompts, so each prompt's share of hits stands for its seeds.
        base, candidate = rng.binomial(n_seeds, rate, (2, gates, n_prompts, 1)) / n_seeds
        high = paired_change(base, candidate, LEVEL, resamples, rng).high
    passes = float(np.mean(~exceeds(high, margin)))
    return MarginPower(rate=rate, passes=passes, passes_error=_error(passes, gates))


def rate_power(n: int, max_rate: float) -> RatePower:
    """What n generations can prove of `max_rate` by one-sided Clopper-Pearson limits. Raises UsageError for n < 1."""

    def proves(hits: int, size: int) -> bool:
        return not exceeds(clopper_pearson(hits, size, LEVEL)[1], max_rate)

    short = last(lambda size: not proves(0, size), 1, _LARGEST_N) or 0
    return RatePower(
        n=n,
        max_rate=max_rate,
        most_hits=last(lambda hits: proves(hits, n), 0, n),
        upper_at_zero=clopper_pearson(0, n, LEVEL)[1],
        smallest_n=short + 1 if short < _LARGEST_N else None,
    )


def last(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """The largest integer in [low, high] where `holds`, which turns false once and stays so; None without any."""
    if not holds(low):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def lacking(floor: FloorOf, base: Array, candidate: Array, times: float) -> Array:
    """How far the candidate's move (gates,) falls short of the floor; below 0 it passes."""
    return np.asarray(times * floor(base, candidate) - (base.mean(axis=-1) - candidate.mean(axis=-1)))


def affordable(gates: int, k: int) -> int:
    """How many of `gates` gates are simulated at k seeds, so that many seeds take no longer than a few."""
    return gates if k <= MANY_SEEDS else min(gates, max(_FEWEST_GATES, gates * MANY_SEEDS // k))


def _check_size(n_prompts: int, n_seeds: int, rate: float) -> None:
    if min(n_prompts, n_seeds) < 1 or not 0 <= rate <= 1:
        raise UsageError(
            f"{n_prompts} prompts under {n_seeds} seeds at a rate of {rate} are no gate",
            next_step="give at least one prompt and seed, and a rate in [0, 1]",
        )


def _error(rate: float, n: int) -> float:
    """Standard error of a simulated rate."""
    return float(np.sqrt(rate * (1 - rate) / n))
