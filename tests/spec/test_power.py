"""Power of rules against a published table, closed forms and the normal approximation."""

import numpy as np
import pytest
from scipy.special import ndtr

from gates.errors import UsageError
from gates.judge.floors import RULES, calibration, pairwise_level
from gates.spec.power import margin_power, noise_power, pass_curve, rate_power, voice_power, zero_floor
from gates.stats import normal_range

KS = (2, 3, 4, 5, 10)


def rng() -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(11))


def pairwise(base, candidate):
    return RULES["pairwise-range@1"].floor(base, candidate, ())


def base_range(base, candidate):
    return np.ptp(base, axis=-1)


def below_the_base(base, candidate):
    """The candidate's single run lies outside the base's range when the difference exceeds this."""
    return base.mean(axis=-1) - base.min(axis=-1)


ROWS = {
    "A: one candidate run against the base's range": (base_range, 1, (45.4, 24.0, 14.1, 8.9, 1.6)),
    "B: candidate mean against the base's range": (base_range, None, (39.2, 14.5, 5.1, 1.8, 0.01)),
    "C: candidate mean against the larger range": (pairwise, None, (21.6, 4.9, 1.1, 0.2, 0.0)),
    "D: one candidate run outside the base's range, 2 / (k + 1)": (below_the_base, 1, (66.7, 50.0, 40.0, 33.3, 18.2)),
}


@pytest.mark.parametrize("row", sorted(ROWS))
def test_false_pass_rates_are_half_the_published_two_sided_ones(row):
    # The published rates, in percent, are two-sided and the noise is symmetric: one direction is half of each.
    floor, candidate_k, percents = ROWS[row]
    for k, percent in zip(KS, percents, strict=True):
        power = voice_power(floor, k, 1.0, rng(), candidate_k=candidate_k)
        allowed = 0.05 + 4 * 200 * power.false_pass_error
        assert 200 * power.false_pass == pytest.approx(percent, abs=allowed), k


ONE_WAY = {
    "A1: one candidate run": (base_range, 1, (22.7, 12.0, 7.0, 4.4, 0.8)),
    "B1: candidate mean": (base_range, None, (19.6, 7.2, 2.6, 0.9, 0.005)),
}


@pytest.mark.parametrize("row", sorted(ONE_WAY))
def test_false_pass_rates_in_one_direction_are_the_published_ones(row):
    floor, candidate_k, percents = ONE_WAY[row]
    for k, percent in zip(KS, percents, strict=True):
        power = voice_power(floor, k, 1.0, rng(), candidate_k=candidate_k)
        assert 100 * power.false_pass == pytest.approx(percent, abs=0.05 + 4 * 100 * power.false_pass_error), k


RANGES = [
    # k, mean range, coefficient of variation, 5 % and 95 % points, upper 95 % limit of sigma in ranges, where given
    (2, 1.128, 0.755, 0.09, 2.77, 11.3),
    (3, 1.693, 0.524, 0.43, 3.31, 2.32),
    (4, 2.059, 0.428, 0.76, 3.63, 1.32),
    (5, 2.326, 0.372, 1.03, 3.86, 0.97),
    (6, 2.534, 0.335, 1.25, 4.03, None),
    (8, 2.847, 0.288, 1.60, 4.29, None),
    (10, 3.078, 0.259, 1.86, 4.47, 0.54),
]


@pytest.mark.parametrize(("k", "mean", "variation", "low", "high", "sigma"), RANGES)
def test_the_range_that_floors_rest_on_has_the_published_distribution(k, mean, variation, low, high, sigma):
    # d2 from the tables of control charts, the 95 % points from the tables of the studentized range (infinite degrees
    # of freedom; a simulation gave 3.64, 3.87 and 4.28 at 4, 5 and 8); moments by integrating 1 - F and 2 w (1 - F).
    widths = np.linspace(0, 12, 24_001)
    tail = 1 - normal_range(widths, k)
    first, second = np.trapezoid(tail, widths), np.trapezoid(2 * widths * tail, widths)
    assert first == pytest.approx(mean, abs=0.0006)
    assert np.sqrt(second - first**2) / first == pytest.approx(variation, abs=0.0015)  # simulated, three decimals
    points = np.interp([0.05, 0.95], 1 - tail, widths)
    assert points == pytest.approx([low, high], abs=0.006)
    if sigma is not None:
        assert 1 / points[0] == pytest.approx(sigma, rel=0.01)


def test_shift_caught_lies_where_the_published_power_says():
    # Power at shifts of 1, 2, 3 sd. k=3: base's range, one direction, 29 62 86 %; larger range 15 45 76 %.
    # k=5: base's range 10 40 74 %.
    assert 2.5 < voice_power(base_range, 3, 1.0, rng()).shift_80 < 3.0
    assert 3.0 < voice_power(pairwise, 3, 1.0, rng()).shift_80 < 3.3
    assert 3.0 < voice_power(base_range, 5, 1.0, rng()).shift_80 < 3.4


def test_twice_the_floor_is_passed_less_often_and_needs_a_larger_shift():
    once, twice = (voice_power(pairwise, 3, times, rng()) for times in (1.0, 2.0))
    assert twice.false_pass < once.false_pass / 4
    assert twice.shift_80 > once.shift_80 + 1


@pytest.mark.parametrize(("prompts", "seeds", "rate"), [(120, 1, 0.5), (120, 1, 0.2), (200, 5, 0.5)])
def test_an_unchanged_candidate_passes_a_margin_as_the_normal_approximation_says(prompts, seeds, rate):
    # P(pass) = Phi(margin / se - 1.645) with se = sqrt(2 p (1 - p) / n); at 120 texts and p = 0.5 about a half.
    power = margin_power(prompts, seeds, 0.10, rate, rng())
    expected = ndtr(0.10 / np.sqrt(2 * rate * (1 - rate) / (prompts * seeds)) - 1.645)
    assert power.passes == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize(("prompts", "margin", "rate"), [(100, 0.03, 0.5), (12, 0.08, 0.2)])
def test_many_seeds_pass_a_margin_as_the_normal_approximation_says(prompts, margin, rate):
    expected = ndtr(margin / np.sqrt(2 * rate * (1 - rate) / (prompts * 50)) - 1.645)
    assert margin_power(prompts, 50, margin, rate, rng()).passes == pytest.approx(expected, abs=0.06)
    # Ten million texts an arm, far more than could be drawn one by one: noise is a thousandth of the margin.
    assert margin_power(prompts, 10_000_000 // prompts, 0.05, rate, rng(), gates=50_000 // prompts).passes == 1


def test_many_seeds_are_simulated_in_fewer_gates_and_the_error_says_so():
    shapes = []

    def watched(base, candidate):
        shapes.append(base.shape)
        return below_the_base(base, candidate)

    few, many = (voice_power(watched, k, 1.0, rng(), candidate_k=1) for k in (10, 100))
    noise_power(watched, 1_000, 1.0, 1.0, rng())
    assert shapes == [(100_000, 10), (10_000, 100), (1_000, 1_000)]
    for power, gates in ((few, 100_000), (many, 10_000)):
        # One run lies below the smallest of k others in 1 of k + 1 cases.
        assert power.false_pass == pytest.approx(1 / (power.k + 1), abs=4 * power.false_pass_error)
        assert power.false_pass_error == pytest.approx(np.sqrt(power.k / (power.k + 1) ** 2 / gates), rel=0.1)


def test_a_wider_margin_is_passed_more_often():
    passes = [margin_power(24, 3, margin, 0.2, rng()).passes for margin in (0.05, 0.1, 0.2)]
    assert passes == sorted(passes)
    assert passes[0] < passes[2]


@pytest.mark.parametrize(("max_rate", "smallest"), [(0.10, 29), (0.05, 59), (0.01, 299)])
def test_smallest_number_that_proves_a_rate(max_rate, smallest):
    # The classical numbers: the smallest n with 1 - 0.05 ** (1/n) <= max_rate.
    assert rate_power(30, max_rate).smallest_n == smallest
    assert rate_power(smallest, max_rate).most_hits == 0
    assert rate_power(smallest - 1, max_rate).most_hits is None


def test_hits_that_still_pass_at_120_generations():
    # One-sided exact limits: 6 of 120 leave 0.0967, 7 of 120 leave 0.1072 (sum of binomial terms at those rates).
    power = rate_power(120, 0.10)
    assert power.most_hits == 6
    assert power.upper_at_zero == pytest.approx(1 - 0.05 ** (1 / 120))
    assert binomial_cdf(6, 120, 0.10) < 0.05 < binomial_cdf(7, 120, 0.10)


def binomial_cdf(most: int, n: int, p: float) -> float:
    term, total = (1 - p) ** n, 0.0
    for hits in range(most + 1):
        total += term
        term *= (n - hits) / (hits + 1) * p / (1 - p)
    return total


def test_a_rate_of_zero_can_never_be_proven_and_a_rate_of_one_always_is():
    assert rate_power(100, 0.0).smallest_n is None
    assert (rate_power(5, 1.0).smallest_n, rate_power(5, 1.0).most_hits) == (1, 5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: voice_power(pairwise, 1, 1.0, rng()), "100000 gates of 1 seeds cannot be simulated"),
        (lambda: margin_power(0, 3, 0.1, 0.2, rng()), "0 prompts under 3 seeds at a rate of 0.2"),
        (lambda: margin_power(5, 3, 0.1, 1.2, rng()), "at a rate of 1.2 are no gate"),
        (lambda: zero_floor(5, 0, 0.1), "5 prompts under 0 seeds at a rate of 0.1 are no gate"),
        (lambda: rate_power(0, 0.1), "0 hits of 0 is no rate"),
    ],
)
def test_impossible_sizes_are_refused(call, message):
    with pytest.raises(UsageError, match=message):
        call()


@pytest.mark.parametrize("sd_ratio", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("k", [3, 5])
def test_the_level_at_unequal_noise_is_the_integrated_one(k, sd_ratio):
    # Quadrature over the ranges' exact distribution against simulation with the rule itself.
    rule = RULES["pairwise-calibrated@1"]
    power = noise_power(lambda base, candidate: rule.floor(base, candidate, ()), k, 1.0, sd_ratio, rng())
    expected = pairwise_level(k, calibration(k, 0.025), sd_ratio)
    assert power.false_pass == pytest.approx(expected, abs=4 * power.false_pass_error)
    assert power.sd_ratio == sd_ratio


def test_the_chance_of_a_floor_of_zero_is_the_published_one():
    # One arm of three seeds, 50 prompts at 2 % or 100 at 1 %: P(range = 0) = 10.6 % each; both arms: its square.
    assert np.sqrt(zero_floor(50, 3, 0.02).chance) == pytest.approx(0.106, abs=0.0005)
    assert np.sqrt(zero_floor(100, 3, 0.01).chance) == pytest.approx(0.106, abs=0.0005)
    assert zero_floor(1, 2, 0.5).chance == pytest.approx(0.25), "two coins agree half the time, in both arms a quarter"
    assert zero_floor(10, 4, 0.0).chance == 1.0


def test_the_curve_of_a_rule_goes_through_its_known_points() -> None:
    # The pairwise range at k = 2 passes 10.8 % of candidates without a move, by a quadrature that is not this code.
    power = voice_power(pairwise, 2, 1.0, rng(), 20_000)
    curve = pass_curve(pairwise, 2, 1.0, rng(), np.array([0.0, power.shift_80, 50.0]))
    assert [shift for shift, _ in curve] == pytest.approx([0.0, power.shift_80, 50.0])
    assert [share for _, share in curve] == pytest.approx([pairwise_level(2), 0.8, 1.0], abs=0.012)
