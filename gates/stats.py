"""Limits of rates, changes and ratios: pure functions on counts and arrays.

Every limit here is ONE-SIDED at `level`: (low, high) at level 0.95 are two separate 95 % limits, together a 90 %
interval. A decision uses one of them.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtr, ndtri

from gates.errors import UsageError

Array = NDArray[np.float64]

FEWEST_PROMPTS = 15
"""With fewer prompts than this a bootstrap over prompts is too narrow to decide by."""


_DECIMALS = 12


class ChangeLimits(NamedTuple):
    """One-sided limits of a change, each (…), and where Newcombe's limits stand in for the bootstrap's."""

    low: Array
    high: Array
    newcombe: NDArray[np.bool_]


def clopper_pearson(hits: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Exact one-sided limits in [0, 1] of a rate seen as `hits` of `n`.

    Raises UsageError unless 0 <= hits <= n, n >= 1 and 0.5 < level < 1.
    Source: Clopper & Pearson 1934, Biometrika 26:404-413.
    """
    _check_level(level)
    if n < 1 or not 0 <= hits <= n:
        raise UsageError(f"{hits} hits of {n} is no rate", next_step="give 0 <= hits <= n and n >= 1")
    low = betaincinv(hits, n - hits + 1, 1 - level) if hits else 0.0
    high = betaincinv(hits + 1, n - hits, level) if hits < n else 1.0
    return float(low), float(high)


def newcombe_paired(
    both: ArrayLike, first: ArrayLike, second: ArrayLike, neither: ArrayLike, level: float = 0.95
) -> tuple[Array, Array]:
    """One-sided limits in [-1, 1] of p2 - p1 from paired yes/no answers, each count (…).

    Of n pairs, `both` say yes twice, `first` only the first time, `second` only the second time, `neither` never;
    p1 = (both + first) / n, p2 = (both + second) / n. Wilson's score limits of p1 and p2 are combined with the
    correlation phi, continuity-corrected when positive. Raises UsageError for no pairs.
    Source: Newcombe 1998, Statistics in Medicine 17:2635-2650, method 10.
    """
    _check_level(level)
    a, b, c, d = (np.asarray(count, dtype=np.float64) for count in (both, first, second, neither))
    n = a + b + c + d
    if not np.all(n > 0):
        raise UsageError("no pairs to compare", next_step="give at least one pair of answers")
    p1, p2 = (a + b) / n, (a + c) / n
    (low1, high1), (low2, high2) = _wilson(p1, n, level), _wilson(p2, n, level)
    product = (a + b) * (c + d) * (a + c) * (b + d)
    excess = a * d - b * c
    corrected = np.where(excess > 0, np.maximum(excess - n / 2, 0), excess)
    phi = corrected / np.sqrt(np.where(product > 0, product, 1))
    below = _add(p2 - low2, high1 - p1, phi)
    above = _add(high2 - p2, p1 - low1, phi)
    return p2 - p1 - below, p2 - p1 + above


def newcombe_unpaired(hits_a: int, n_a: int, hits_b: int, n_b: int, level: float = 0.95) -> tuple[float, float]:
    """One-sided limits in [-1, 1] of hits_a/n_a - hits_b/n_b, two independent samples; rates of 0 and 1 included.

    Wilson's score limits of the two rates, combined by square-and-add. Raises UsageError unless 0 <= hits <= n, n >= 1.
    Source: Newcombe 1998, Statistics in Medicine 17:873-890, method 10.
    """
    _check_level(level)
    if min(n_a, n_b) < 1 or not (0 <= hits_a <= n_a and 0 <= hits_b <= n_b):
        raise UsageError(
            f"{hits_a} of {n_a} against {hits_b} of {n_b} are no rates", next_step="give 0 <= hits <= n and n >= 1"
        )
    rates, counts = np.array([hits_a / n_a, hits_b / n_b]), np.array([n_a, n_b], dtype=np.float64)
    low, high = _wilson(rates, counts, level)
    alone = np.zeros(1)
    below = _add(rates[:1] - low[:1], high[1:] - rates[1:], alone)
    above = _add(high[:1] - rates[:1], rates[1:] - low[1:], alone)
    change = rates[0] - rates[1]
    return float(change - below[0]), float(change + above[0])


def cluster_bootstrap(diff: Array, level: float, resamples: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """One-sided percentile limits of the mean of `diff` (…, P, S), resampling its P prompts with their S seeds.

    Leading axes share the same draws of prompts. Prompts are the clusters: several seeds of one prompt are not
    independent. Raises UsageError for an empty array.
    Source: Davison & Hinkley 1997, Bootstrap Methods and their Application, sections 3.8 and 5.3.
    """
    _check_level(level)
    if diff.ndim < 2 or diff.size == 0:
        raise UsageError(f"differences of shape {diff.shape} cannot be resampled", next_step="give (prompts, seeds)")
    draws = _resamples(diff.shape[-2], resamples, rng)
    low, high = np.quantile(diff.mean(axis=-1) @ draws.T, [1 - level, level], axis=-1)
    return low, high


def _resamples(prompts: int, resamples: int, rng: np.random.Generator) -> Array:
    """How often each of the prompts is drawn, as a share of all draws (R, P), and `rng` moved on.

    Every axis of every run that is judged by the same generator draws the same: it is drawn once.
    """
    state = rng.bit_generator.state
    if state["bit_generator"] != "PCG64" or state["has_uint32"]:
        return np.asarray(rng.multinomial(prompts, np.full(prompts, 1 / prompts), size=resamples) / prompts)
    draws, after = _drawn(prompts, resamples, state["state"]["state"], state["state"]["inc"])
    rng.bit_generator.state = {**state, "state": {"state": after, "inc": state["state"]["inc"]}}
    return draws


@lru_cache(maxsize=16)
def _drawn(prompts: int, resamples: int, state: int, inc: int) -> tuple[Array, int]:
    """The draws of a PCG64 generator in that state, and the state it is left in."""
    bits = np.random.PCG64()
    bits.state = {"bit_generator": "PCG64", "state": {"state": state, "inc": inc}, "has_uint32": 0, "uinteger": 0}
    draws = np.random.Generator(bits).multinomial(prompts, np.full(prompts, 1 / prompts), size=resamples) / prompts
    draws.setflags(write=False)
    return draws, int(bits.state["state"]["state"])


def paired_change(
    base: Array, candidate: Array, level: float, resamples: int, rng: np.random.Generator
) -> ChangeLimits:
    """One-sided limits of mean(candidate) - mean(base), both (…, P, S) on the same prompts and seeds.

    A bootstrap over prompts; Newcombe's paired limits over the P x S pairs instead where a rate is 0 or 1, where
    every prompt changes alike (a bootstrap would then have no width) or where there are fewer than FEWEST_PROMPTS
    prompts. Shares in [0, 1] enter Newcombe's limits as the 0/1 values of their mean and covariance, which vary at
    least as much: the limits are wider than need be. Raises UsageError for shares on fewer than FEWEST_PROMPTS prompts.
    """
    diff = candidate - base
    low, high = cluster_bootstrap(diff, level, resamples, rng)
    rates = np.stack([base.mean(axis=(-2, -1)), candidate.mean(axis=(-2, -1))])
    alike = np.ptp(diff.mean(axis=-1), axis=-1) == 0
    newcombe = np.asarray(((rates == 0) | (rates == 1)).any(axis=0) | alike | (base.shape[-2] < FEWEST_PROMPTS))
    if not newcombe.any():
        return ChangeLimits(low, high, newcombe)
    if base.shape[-2] < FEWEST_PROMPTS and not (np.isin(base, (0, 1)).all() and np.isin(candidate, (0, 1)).all()):
        raise UsageError(
            f"shares on {base.shape[-2]} prompts have no interval here: too few prompts",
            next_step=f"use at least {FEWEST_PROMPTS} prompts",
        )
    both, first, second, neither = (
        (one * other).sum(axis=(-2, -1)) for one in (base, 1 - base) for other in (candidate, 1 - candidate)
    )
    paired_low, paired_high = newcombe_paired(both, first, second, neither, level)
    return ChangeLimits(np.where(newcombe, paired_low, low), np.where(newcombe, paired_high, high), newcombe)


def poisson_ratio(
    hits_a: int, n_a: float, hits_b: int, n_b: float, level: float = 0.95
) -> tuple[float | None, float | None, float | None]:
    """(ratio, low, high) of the rates hits_a/n_a and hits_b/n_b with exact one-sided conditional limits, each >= 0.

    Given the total, hits_a is binomial and its odds are the ratio times n_a/n_b. Without hits in b there is neither
    a ratio nor an upper limit (None); without hits at all there is nothing (all None).
    Raises UsageError for negative hits or n <= 0.
    Source: Przyborowski & Wilenski 1940, Biometrika 31:313-323.
    """
    if min(hits_a, hits_b) < 0 or min(n_a, n_b) <= 0:
        raise UsageError(f"{hits_a} of {n_a} against {hits_b} of {n_b} are no rates", next_step="give hits >= 0, n > 0")
    if hits_a + hits_b == 0:
        return None, None, None
    low, high = clopper_pearson(hits_a, hits_a + hits_b, level)
    scale = n_b / n_a
    ratio = hits_a / hits_b * scale if hits_b else None
    return ratio, low / (1 - low) * scale, high / (1 - high) * scale if hits_b else None


def normal_range(width: Array, k: int) -> Array:
    """P(the range of k independent standard normal values <= width), for widths (…) >= 0, each in [0, 1].

    k ∫ φ(x) [Φ(x + w) − Φ(x)]^(k−1) dx by Gauss-Legendre quadrature: good to 1e-12 up to 10 values, 1e-9 up to 1,000.
    Source: Tippett 1925, Biometrika 17:364-387.
    """
    x, dx = normal_nodes()
    above = ndtr(x + np.asarray(width, dtype=np.float64)[..., None]) - ndtr(x)
    return np.asarray(k * (normal_density(x) * above ** (k - 1)) @ dx)


@cache
def normal_nodes() -> tuple[Array, Array]:
    """Places and weights of a quadrature over the real line, as far as a normal density counts."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    return 9 * nodes, 9 * weights


def normal_density(x: Array) -> Array:
    """φ(x), the standard normal density."""
    return np.asarray(np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi))


def exceeds(value: Array | float, bound: Array | float) -> NDArray[np.bool_]:
    """Strictly greater (…), compared at 12 decimals, so that equal shares summed in another order are equal."""
    return np.asarray(np.round(np.subtract(value, bound), _DECIMALS) > 0)


def _wilson(p: Array, n: Array, level: float) -> tuple[Array, Array]:
    """Wilson's score limits (Wilson 1927, JASA 22:209-212), for arrays, which scipy's binomtest does not take."""
    z = ndtri(level)
    middle = p + z**2 / (2 * n)
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return (middle - half) / (1 + z**2 / n), (middle + half) / (1 + z**2 / n)


def _add(one: Array, other: Array, phi: Array) -> Array:
    """Square-and-add of two half-widths under correlation phi; rounding must not make the root imaginary."""
    return np.asarray(np.sqrt(np.maximum(one**2 - 2 * phi * one * other + other**2, 0)))


def _check_level(level: float) -> None:
    if not 0.5 < level < 1:
        raise UsageError(f"level {level} is no one-sided confidence level", next_step="give a level such as 0.95")
