"""Random splits of base seeds against the list of all splits, and against what equal, normal arms must show."""

from itertools import combinations

import numpy as np
import pytest

from gates.errors import UsageError
from gates.judge.floors import RULES, pairwise_level
from gates.spec.splits import split_margin, split_power
from gates.stats import newcombe_paired


def rng(seed: int = 3) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def pairwise(base, candidate):
    return RULES["pairwise-range@1"].floor(base, candidate, ())


DISTANCES = np.array([0.90, 0.93, 0.95, 0.951, 0.96, 0.99, 1.02])


def every_split(k: int) -> list[tuple[list[int], list[int]]]:
    """Every ordered pair of disjoint groups of k of the seeds."""
    seeds = range(len(DISTANCES))
    return [(a, b) for a in combinations(seeds, k) for b in combinations(set(seeds) - set(a), k)]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("times", [0.5, 1.0])
def test_random_splits_agree_with_the_list_of_all(k, times):
    short = []
    for a, b in every_split(k):
        base, own = DISTANCES[list(a)], DISTANCES[list(b)]
        short.append(times * max(np.ptp(base), np.ptp(own)) - (base.mean() - own.mean()))
    found = split_power(pairwise, DISTANCES, k, times, rng())
    expected = np.mean(np.array(short) < 0)
    assert 0 < expected < 1
    assert found.false_pass == pytest.approx(expected, abs=4 * np.sqrt(expected / 4_000))
    assert np.mean(np.array(short) < found.shift_80) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(("k", "sd"), [(2, 0.018), (3, 0.011), (4, 0.005), (5, 0.002)])
def test_the_error_is_how_far_ten_normal_seeds_move_the_rate(k, sd):
    # The sd of the split rate over sets of ten normal seeds, simulated elsewhere: 1.8, 1.1, 0.5 and 0.2 points.
    found = split_power(pairwise, rng(8).standard_normal(10), k, 1.0, rng())
    assert found.false_pass_error == pytest.approx(sd, rel=0.4)
    # And it covers: over many sets of seeds the mean rate is the integrated one.
    rates = [split_power(pairwise, rng(seed).standard_normal(10), k, 1.0, rng(seed)).false_pass for seed in range(6)]
    assert np.mean(rates) == pytest.approx(pairwise_level(k), abs=4 * sd / np.sqrt(6))


def test_a_margin_of_one_always_passes_and_a_margin_of_nothing_never():
    values = (rng().random((8, 20)) < 0.4).astype(float)
    assert split_margin(values, 4, 1.0, rng()) == split_margin(values, 4, 1.0, rng(5))
    assert split_margin(values, 4, 1.0, rng()).passes == 1
    assert split_margin(values, 4, 0.0, rng()).passes < 0.15
    wide, narrow = (split_margin(values, 4, margin, rng()) for margin in (0.3, 0.1))
    assert wide.passes > narrow.passes
    assert narrow.passes_error > 0


def test_a_margin_on_few_prompts_is_decided_by_newcombes_limits():
    # Six prompts, seeds that say yes always or never: every split is one of few tables, each decided by hand.
    values = np.array([[1.0] * 6, [1.0] * 6, [0.0] * 6, [0.0] * 6])
    passing = 0
    splits = [(a, b) for a in combinations(range(4), 2) for b in combinations(set(range(4)) - set(a), 2)]
    orders = [(a, (b, c)) for a, (b, c) in splits] + [(a, (c, b)) for a, (b, c) in splits]
    for a, b in orders:
        pairs = [(values[i, 0], values[j, 0]) for i, j in zip(a, b, strict=True)]
        counts = [6 * pairs.count(kind) for kind in ((1, 1), (1, 0), (0, 1), (0, 0))]
        passing += bool(newcombe_paired(*counts, 0.95)[1] <= 0.3)
    assert split_margin(values, 2, 0.3, rng()).passes == pytest.approx(passing / len(orders), abs=0.11)


def test_shares_on_few_prompts_pass_no_margin():
    assert split_margin(np.full((4, 6), 0.25), 2, 0.9, rng()).passes == 0


@pytest.mark.parametrize(("k", "message"), [(4, "7 seeds cannot be split into two groups of 4"), (1, "groups of 1")])
def test_too_few_seeds_are_refused(k, message):
    with pytest.raises(UsageError, match=message):
        split_power(pairwise, DISTANCES, k, 1.0, rng())
