"""P(pass | no change) against whole enumeration, closed forms, and what is known of small gates."""

import json
import math

import numpy as np
import pytest

from gates.spec.operating import OperatingCharacteristics, own_rules, with_unchanged
from gates.spec.power import VoicePower
from gates.spec.unchanged import Size, unchanged
from gates.stats import clopper_pearson, newcombe_unpaired, poisson_ratio
from tests.judge.arms import a_gate

PROBE = {"file": "pairs.txt", "template": "{beat}", "kind": "beats", "max_rate": 0.2}
CORPORA = {"train": "t/train", "heldout": "t/heldout", "reference": "r", "imposters": ["i"], "protected": ["p"]}
RULES = {"max_rate": 0.1, "max_excess": 0.2, "max_ratio": 20, "max_protected_rate": 0.15}


def rng() -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(4))


def gate(rules=RULES, **changes):
    protected = {"corpora": CORPORA} if "max_protected_rate" in rules else {}
    return a_gate(memorisation=rules, probe=PROBE, **protected, **changes)


def chance(hits: int, n: int, rate: float) -> float:
    return math.comb(n, hits) * rate**hits * (1 - rate) ** (n - hits)


def passes(rule: str, hits: int, n: int, own: int, windows: int) -> bool:
    if rule in ("memorisation.max_rate", "memorisation.max_protected_rate", "probe.max_rate"):
        limit = {"memorisation.max_rate": 0.1, "memorisation.max_protected_rate": 0.15, "probe.max_rate": 0.2}[rule]
        return clopper_pearson(hits, n)[1] <= limit
    if rule == "memorisation.max_excess":
        return newcombe_unpaired(hits, n, own, windows)[1] <= 0.2
    high = poisson_ratio(hits, n, own, windows)[2]
    return high is not None and high <= 20


def test_every_rule_agrees_with_the_sum_over_all_tables():
    found = unchanged(gate(damage={}), Size(prompts=7, probe=5, windows=9), (2, 5), rng())
    assert list(found) == [
        *("memorisation.max_rate", "memorisation.max_protected_rate", "memorisation.max_excess"),
        *("memorisation.max_ratio", "probe.max_rate"),
    ]
    for rule, rows in found.items():
        for k, row in zip((2, 5), rows, strict=True):
            n = k * (5 if rule == "probe.max_rate" else 7)
            assert (row.k, row.n) == (k, n)
            assert row.windows == (9 if rule in ("memorisation.max_excess", "memorisation.max_ratio") else None)
            for at in row.passes:
                whole = math.fsum(
                    chance(hits, n, at.rate) * chance(own, 9, at.rate)
                    for hits in range(n + 1)
                    for own in range(10)
                    if passes(rule, hits, n, own, 9)
                )
                assert at.passes == pytest.approx(whole, abs=1e-10), (rule, k, at.rate)
                assert at.passes_error == 0


def test_a_ratio_to_nothing_never_passes_and_an_excess_does():
    found = unchanged(gate(), Size(40, 5, 100), (5,), rng())
    assert found["memorisation.max_ratio"][0].passes[0].passes == 0
    assert found["memorisation.max_excess"][0].passes[0].passes == 1


def test_more_seeds_prove_more():
    found = unchanged(gate(damage={}), Size(12, 12, 100), range(2, 11), rng())
    for rows in found.values():
        by_k = [row.passes[-1].passes for row in rows]
        assert by_k[-1] > by_k[0], rows


def test_margins_come_at_every_number_of_seeds_and_say_their_error():
    damage = {"ran_on": {"margin": 0.1}, "empty": {"margin": 0.1}, "echo": {"within": "floor"}}
    found = unchanged(gate(damage=damage), Size(24, 5, 9), (2, 6), rng())
    rows = found["damage.ran_on.margin"]
    assert found["damage.empty.margin"] == rows
    assert "damage.echo.margin" not in found
    assert [row.n for row in rows] == [48, 144]
    few, many = (row.passes[1] for row in rows)
    assert 0 < few.passes < many.passes <= 1
    assert 0 < few.passes_error <= math.sqrt(0.25 / 300)


@pytest.mark.parametrize(
    ("size", "rules", "gone"),
    [
        (Size(12, 12, None), RULES, {"memorisation.max_excess", "memorisation.max_ratio"}),
        (Size(12, 0, 9), RULES, {"probe.max_rate"}),
        (Size(12, 12, 9), {"max_rate": 0.1, "decide": "point"}, {"memorisation.max_rate", "probe.max_rate"}),
    ],
)
def test_what_is_not_known_is_left_out(size, rules, gone):
    assert gone.isdisjoint(unchanged(gate(rules, damage={}), size, (3,), rng()))


def test_without_a_window_nothing_that_compares_with_one_passes():
    found = unchanged(gate(), Size(12, 12, 0), (3,), rng())
    assert {at.passes for at in found["memorisation.max_excess"][0].passes} == {0.0}


def test_a_gate_is_warned_of_what_it_can_hardly_pass():
    voice = VoicePower(k=4, false_pass=0.01, false_pass_error=0.001, shift_80=3.0)
    bare = OperatingCharacteristics(
        signature="operating@1", voice=voice, voice_by_seeds=(voice,), memorisation=None, damage={}
    )
    short = gate(damage={})
    found = with_unchanged(bare, short, Size(12, 1, 30), seed=3)
    assert list(own_rules(found)) == [name for name in found.unchanged if not name.startswith("damage.")]
    told = [warning.split(":")[0] for warning in found.warnings]
    assert "probe.max_rate" in told
    assert "memorisation.max_ratio" in told
    assert "memorisation.max_excess" not in told
    assert "passes in 0 % of gates at best, with 4 texts" in " ".join(found.warnings)
    blind = with_unchanged(bare, short, Size(12, 1), seed=3)
    assert "memorisation: the held-out text is not here" in blind.warnings[-1]
    assert with_unchanged(bare, short, Size(12, 1, 30), seed=3) == found
    assert json.loads(json.dumps(found.as_json())) == found.as_json()
