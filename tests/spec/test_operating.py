"""The operating characteristics of whole gates: what each size is told, and that the seed decides every digit."""

import json

import pytest

from gates.judge.floors import RULES, rule_of
from gates.spec.operating import operating_characteristics
from gates.spec.schema import Gate


def pairwise(base, candidate):
    return RULES["pairwise-range@1"].floor(base, candidate, ())


def gate(seeds: list[int], **voice: object) -> Gate:
    document = {
        "schema": "gates/1",
        "name": "demo",
        "question": "Does it move?",
        "seat": "embedded",
        "arms": {"base": "m", "candidates": {"a": {"model": "m-a", "adapter": "a.gguf"}}},
        "corpora": {"train": "t/train", "heldout": "t/heldout", "reference": "r"},
        "prompts": {"file": "beats.txt"},
        "sampling": {"seeds": seeds, "temperature": 0.9, "top_p": 0.95, "max_tokens": 300},
        "voice": {"mfw": 300, "words_per_seed": 500, **voice},
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
    voice, few, rate, floor, margin, zero = found.warnings
    assert voice.startswith("voice: with 2 seeds a candidate that moved nothing passes in 1")
    assert few == "voice: a floor of 2 seeds is a rough one: use 4 or more"
    assert rate == (
        "memorisation: 0 hits of 24 still allow a rate of 0.117, so nothing can prove max_rate 0.050: "
        "at least 59 generations are needed"
    )
    assert floor.startswith("ran_on: `within: floor` lets more harm pass")
    assert margin.startswith("on_beat: an unchanged candidate passes this margin in only")
    # Of 12 texts at 0.05: P(two seeds alike) = .5404² + .3413² + .0988² + .0173² = 0.419, both arms 0.175.
    assert zero == (
        "ran_on: where the rate is 0.05, the counts are so small that the floor is 0 in 18 % of gates, and any harm "
        "at all then fails: use more prompts or a margin"
    )
    assert [rate.n for rate in found.memorisation_by_seeds] == [12 * k for k in range(2, 11)]
    assert found.memorisation == found.memorisation_by_seeds[0]


def test_a_large_gate_is_warned_of_its_floor_alone_and_the_seed_decides_every_digit():
    large = gate(list(range(12)))
    found = operating_characteristics(large, 100, pairwise, seed=5, gates=2_000)
    assert [warning.split(":")[0] for warning in found.warnings] == ["ran_on"]
    assert found.voice.k == 12
    assert operating_characteristics(large, 100, pairwise, seed=5, gates=2_000).digest() == found.digest()
    assert operating_characteristics(large, 100, pairwise, seed=6, gates=2_000).digest() != found.digest()


def test_without_temperature_seeds_change_nothing_and_the_gate_is_told():
    cold = gate(list(range(5)))
    cold = cold.model_copy(update={"sampling": cold.sampling.model_copy(update={"temperature": 0.0})})
    found = operating_characteristics(cold, 12, pairwise, seed=5, gates=2_000)
    assert any("at temperature 0 seeds change next to nothing" in warning for warning in found.warnings)


@pytest.mark.parametrize(("alpha", "said"), [(None, 0.025), (0.1, 0.1)])
def test_a_calibrated_gate_has_its_alpha_at_every_number_of_seeds(alpha, said):
    calibrated = gate([1, 2, 3], floor="pairwise-calibrated@1", **({} if alpha is None else {"alpha": alpha}))
    rule = rule_of(calibrated.voice)
    found = operating_characteristics(calibrated, 12, lambda b, c: rule.floor(b, c, ()), seed=5)
    assert found.signature.startswith(f"operating@1|rule:pairwise-calibrated@1|alpha:{said}|")
    for power in found.voice_by_seeds:
        assert power.false_pass == pytest.approx(said, abs=4 * power.false_pass_error), power.k
    assert [row.sd_ratio for row in found.unequal_noise] == [0.3, 0.5, 1.0, 2.0, 3.0]
    assert found.unequal_noise[0].false_pass > said + 0.005, "unequal noise raises the level"
