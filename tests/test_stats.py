"""Limits against published values, closed forms and hand enumeration."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import studentized_range

from gates.errors import UsageError
from gates.stats import (
    clopper_pearson,
    cluster_bootstrap,
    exceeds,
    newcombe_paired,
    newcombe_unpaired,
    normal_range,
    paired_change,
    poisson_ratio,
)

TWO_SIDED = 0.975
"""One-sided limits at this level are the two ends of a published two-sided 95 % interval."""


def rng() -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(20261))


def binomial(hits: range, n: int, p: float) -> float:
    return sum(math.comb(n, hit) * p**hit * (1 - p) ** (n - hit) for hit in hits)


@pytest.mark.parametrize(("hits", "n"), [(7, 20), (1, 30), (19, 24)])
def test_clopper_pearson_limits_are_where_the_binomial_tails_hold_five_percent(hits, n):
    low, high = clopper_pearson(hits, n, 0.95)
    assert binomial(range(hits, n + 1), n, low) == pytest.approx(0.05)
    assert binomial(range(hits + 1), n, high) == pytest.approx(0.05)


@pytest.mark.parametrize("n", [1, 30, 59])
def test_clopper_pearson_at_no_hits_is_the_closed_form(n):
    assert clopper_pearson(0, n, 0.95) == pytest.approx((0.0, 1 - 0.05 ** (1 / n)))


@settings(deadline=None)
@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_clopper_pearson_holds_the_rate_and_mirrors_misses(case):
    hits, n = case
    low, high = clopper_pearson(hits, n)
    assert 0 <= low <= hits / n <= high <= 1
    assert clopper_pearson(n - hits, n) == pytest.approx((1 - high, 1 - low), abs=1e-9)


@pytest.mark.parametrize(("hits", "n", "level"), [(1, 0, 0.95), (4, 3, 0.95), (-1, 3, 0.95), (1, 3, 0.5), (1, 3, 95.0)])
def test_clopper_pearson_refuses_what_is_no_rate(hits, n, level):
    with pytest.raises(UsageError, match=f"{hits} hits of {n} is no rate|level {level} is no one-sided"):
        clopper_pearson(hits, n, level)


@pytest.mark.parametrize(
    ("both", "first", "second", "neither", "published"),
    [
        # Newcombe 1998, Statistics in Medicine 17:2635-2650, table II, method 10.
        (36, 2, 12, 0, (0.0569, 0.3404)),
        (18, 2, 12, 18, (0.0562, 0.3290)),
        # Fagerland, Lydersen & Laake, Statistical Analysis of Contingency Tables, chapter 8: complete response
        # before and after consolidation therapy; their R package prints -0.1186 to -0.0046 for before - after.
        (59, 6, 16, 80, (0.0046, 0.1186)),
    ],
)
def test_newcombe_gives_the_published_limits(both, first, second, neither, published):
    assert newcombe_paired(both, first, second, neither, TWO_SIDED) == pytest.approx(published, abs=5e-5)


@settings(deadline=None)
@given(st.lists(st.integers(0, 60), min_size=4, max_size=4).filter(any))
def test_newcombe_holds_the_change_and_mirrors_when_the_arms_are_swapped(counts):
    both, first, second, neither = counts
    low, high = newcombe_paired(both, first, second, neither)
    change = (second - first) / sum(counts)
    assert -1 - 1e-9 <= low <= change + 1e-9
    assert change - 1e-9 <= high <= 1 + 1e-9
    assert newcombe_paired(both, second, first, neither) == pytest.approx((-high, -low), abs=1e-12)


def test_newcombe_refuses_no_pairs():
    with pytest.raises(UsageError, match="no pairs to compare"):
        newcombe_paired(0, 0, 0, 0)


def test_bootstrap_of_two_prompts_is_the_enumeration():
    # Means 0 and 1: resampled means are 0, 1/2, 1 with probabilities 1/4, 1/2, 1/4.
    diff = np.array([[0.0], [1.0]])
    assert cluster_bootstrap(diff, 0.95, 4000, rng()) == (0.0, 1.0)
    assert cluster_bootstrap(diff, 0.70, 4000, rng()) == (0.5, 0.5)


def test_bootstrap_of_many_prompts_is_the_normal_interval():
    means = rng().normal(0.1, 1.0, (400, 1))
    low, high = cluster_bootstrap(means, 0.95, 4000, rng())
    half = 1.645 * means.std() / 20
    assert (float(low), float(high)) == pytest.approx((means.mean() - half, means.mean() + half), abs=half / 10)


@settings(deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=20), st.integers(2, 5))
def test_repeating_seeds_of_a_prompt_narrows_nothing(means, seeds):
    one = np.array(means)[:, None]
    low, high = cluster_bootstrap(one, 0.95, 200, rng())
    repeated = cluster_bootstrap(np.repeat(one, seeds, axis=1), 0.95, 200, rng())
    assert repeated == pytest.approx((low, high), abs=1e-12)


def test_bootstrap_refuses_an_empty_array():
    with pytest.raises(UsageError, match=r"differences of shape \(0, 3\)"):
        cluster_bootstrap(np.zeros((0, 3)), 0.95, 10, rng())


def test_limits_of_a_change_cover_it_about_as_often_as_they_say():
    # 24 prompts of different difficulty, 5 seeds, a true change of -0.1, 1,000 repeats: nominal 0.95 each side.
    gen = rng()
    easy = gen.uniform(0.2, 0.9, (1000, 24, 1))
    base = (gen.random((1000, 24, 5)) < easy).astype(float)
    candidate = (gen.random((1000, 24, 5)) < easy - 0.1).astype(float)
    limits = paired_change(base, candidate, 0.95, 1000, gen)
    assert np.mean(limits.high >= -0.1) == pytest.approx(0.94, abs=0.025)
    assert np.mean(limits.low <= -0.1) == pytest.approx(0.94, abs=0.025)
    assert not limits.newcombe.any()


def one_hit(prompts: int, hit: int) -> np.ndarray:
    values = np.zeros((prompts, 2))
    values[hit] = 1
    return values


@pytest.mark.parametrize(
    ("base", "candidate", "newcombe"),
    [
        (one_hit(14, 0), one_hit(14, 1), True),
        (one_hit(15, 0), one_hit(15, 1), False),
        (np.zeros((40, 2)), one_hit(40, 1), True),
        (one_hit(40, 1), np.ones((40, 2)), True),
        (one_hit(40, 1), one_hit(40, 1), True),
    ],
    ids=["few prompts", "enough prompts", "a rate of 0", "a rate of 1", "no prompt changes"],
)
def test_newcombe_stands_in_where_a_bootstrap_would_be_too_narrow(base, candidate, newcombe):
    limits = paired_change(base, candidate, 0.95, 500, rng())
    assert bool(limits.newcombe) is newcombe
    assert limits.low < candidate.mean() - base.mean() < limits.high


def test_newcombe_of_two_silent_arms_is_the_wilson_limit():
    # Neither arm hits in 36 pairs: Wilson's upper limit is z^2 / (n + z^2) with z = 1.6449.
    limits = paired_change(np.zeros((12, 3)), np.zeros((12, 3)), 0.95, 10, rng())
    assert float(limits.high) == pytest.approx(1.6449**2 / (36 + 1.6449**2), abs=1e-5)
    assert float(limits.low) == pytest.approx(-float(limits.high))


def test_shares_on_few_prompts_have_no_interval():
    with pytest.raises(UsageError, match=r"shares on 5 prompts have no interval[^\n]*\n  next: use at least 15"):
        paired_change(np.full((5, 2), 0.25), np.full((5, 2), 0.5), 0.95, 10, rng())


def test_shares_without_any_in_the_base_have_limits_wider_than_their_own():
    """Base silent, 24 prompts x 5: Newcombe's limits hold the true change, and lie outside a normal interval's."""
    shares = np.where(rng().random((24, 5)) < 0.2, 0.1, 0.0)
    limits = paired_change(np.zeros((24, 5)), shares, 0.95, 500, rng())
    half = 1.6449 * shares.std() / np.sqrt(shares.size)
    assert bool(limits.newcombe)
    assert limits.low < shares.mean() - half
    assert limits.high > shares.mean() + half


def test_ratio_of_rates_gives_the_limits_that_r_prints():
    # R 4: poisson.test(c(11, 6 + 8 + 7), c(800, 1083 + 1050 + 878)) prints 1.971488 and 0.8584264 4.2772659.
    assert poisson_ratio(11, 800, 21, 3011, TWO_SIDED) == pytest.approx((1.971488, 0.8584264, 4.2772659), abs=5e-7)


def test_hemingway_hits_seven_times_as_often_as_the_author_collides():
    ratio, low, high = poisson_ratio(7, 100, 1, 100)
    assert ratio == pytest.approx(7.0)
    # 7 of 8 hits: the share's upper limit p solves 1 - p^8 = 0.05, and the ratio is p / (1 - p).
    assert high == pytest.approx(0.95 ** (1 / 8) / (1 - 0.95 ** (1 / 8)))
    assert low is not None
    assert low < 7 < high


def test_a_ratio_without_a_baseline_has_only_a_lower_limit():
    # All 3 hits on one side: 0.05 ** (1/3) bounds their share from below; 100 texts against 200 windows.
    share = 0.05 ** (1 / 3)
    assert poisson_ratio(3, 100, 0, 200) == (None, pytest.approx(2 * share / (1 - share)), None)
    assert poisson_ratio(0, 100, 0, 200) == (None, None, None)
    assert poisson_ratio(0, 100, 3, 200)[:2] == (0.0, 0.0)


@pytest.mark.parametrize(("hits", "n"), [(-1, 10), (1, 0)])
def test_a_ratio_refuses_what_is_no_rate(hits, n):
    with pytest.raises(UsageError, match=f"{hits} of {n} against 1 of 10 are no rates"):
        poisson_ratio(hits, n, 1, 10)


def test_equal_shares_summed_in_another_order_do_not_exceed_each_other():
    assert 0.1 + 0.2 > 0.3
    assert not exceeds(0.1 + 0.2, 0.3)
    assert exceeds(0.3 + 1e-9, 0.3)


@pytest.mark.parametrize(
    ("counts", "low", "high"),
    [
        ((56, 70, 48, 80), 0.0524, 0.3339),
        ((9, 10, 3, 10), 0.1705, 0.8090),
        ((6, 7, 2, 7), 0.0582, 0.8062),
        ((5, 56, 0, 29), -0.0381, 0.1926),
        ((0, 10, 0, 20), -0.1611, 0.2775),
        ((0, 10, 0, 10), -0.2775, 0.2775),
        ((10, 10, 0, 20), 0.6791, 1.0),
        ((10, 10, 0, 10), 0.6075, 1.0),
    ],
)
def test_newcombe_unpaired_gives_the_published_limits(counts, low, high):
    # Newcombe 1998, Statistics in Medicine 17:873-890, table II, method 10.
    assert newcombe_unpaired(*counts, TWO_SIDED) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("counts", [(0, 0, 0, 1), (1, 1, 2, 1), (-1, 5, 0, 5)])
def test_newcombe_unpaired_refuses_what_is_no_rate(counts):
    with pytest.raises(UsageError, match="are no rates"):
        newcombe_unpaired(*counts)


@pytest.mark.parametrize("k", [2, 3, 5, 10, 100])
def test_the_range_of_normal_values_is_the_studentized_range_without_degrees_of_freedom(k):
    # scipy's own integration, another method; at k = 2 the closed form 2 Φ(w / √2) − 1 = erf(w / 2).
    widths = np.array([0.0, 0.05, 0.5, 1.7, 3.3, 6.0, 30.0])
    assert normal_range(widths, k) == pytest.approx(studentized_range.cdf(widths, k, np.inf), abs=1e-10)
    if k == 2:
        assert normal_range(widths, k) == pytest.approx([math.erf(w / 2) for w in widths], abs=1e-14)
