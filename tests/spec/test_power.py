"""Operating characteristics against a published table, closed forms and the normal approximation."""

import json

import numpy as np
import pytest
from scipy.special import ndtr

from gates.errors import UsageError
from gates.judge.floors import RULES
from gates.spec.power import margin_power, operating_characteristics, rate_power, voice_power
from gates.spec.schema import Gate

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
        (lambda: margin_power(5, 3, 0.1, 1.2, rng()), "at a rate of 1.2 cannot be simulated"),
        (lambda: rate_power(0, 0.1), "0 hits of 0 is no rate"),
    ],
)
def test_impossible_sizes_are_refused(call, message):
    with pytest.raises(UsageError, match=message):
        call()


def gate(seeds: list[int]) -> Gate:
    document = {
        "schema": "gates/1",
        "name": "demo",
        "question": "Does it move?",
        "seat": "embedded",
        "arms": {"base": "m", "candidates": {"a": {"model": "m-a", "adapter": "a.gguf"}}},
        "corpora": {"train": "t/train", "heldout": "t/heldout", "reference": "r"},
        "prompts": {"file": "beats.txt"},
        "sampling": {"seeds": seeds, "temperature": 0.9, "top_p": 0.95, "max_tokens": 300},
        "voice": {"mfw": 300, "words_per_seed": 500},
        "memorisation": {"max_rate": 0.05},
        "damage": {"ran_on": {"within": "floor"}, "on_beat": {"margin": 0.10}},
    }
    return Gate.model_validate_json(json.dumps(document))


def test_a_small_gate_is_told_what_it_cannot_prove():
    found = operating_characteristics(gate([1, 2]), 12, pairwise, seed=5, gates=20_000)
    assert found.signature == "operating@1|rule:pairwise-range@1|times:1.0|seed:5|gates:20000"
    assert [power.k for power in found.voice_by_seeds] == list(range(2, 11))
    assert found.voice == found.voice_by_seeds[0]
    assert found.damage.keys() == {"on_beat"}
    voice, rate, floor, margin = found.warnings
    assert voice.startswith("voice: with 2 seeds a candidate that moved nothing passes in 1")
    assert rate == (
        "memorisation: 0 hits of 24 still allow a rate of 0.117, so nothing can prove max_rate 0.050: "
        "at least 59 generations are needed"
    )
    assert floor.startswith("ran_on: `within: floor` lets more harm pass")
    assert margin.startswith("on_beat: an unchanged candidate passes this margin in only")


def test_a_large_gate_is_warned_of_its_floor_alone_and_the_seed_decides_every_digit():
    large = gate(list(range(12)))
    found = operating_characteristics(large, 100, pairwise, seed=5, gates=2_000)
    assert [warning.split(":")[0] for warning in found.warnings] == ["ran_on"]
    assert found.voice.k == 12
    assert operating_characteristics(large, 100, pairwise, seed=5, gates=2_000).digest() == found.digest()
    assert operating_characteristics(large, 100, pairwise, seed=6, gates=2_000).digest() != found.digest()
