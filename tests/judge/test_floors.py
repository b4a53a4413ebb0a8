"""Floor rules: house figures, published rates, and what the rules promise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gates.errors import UsageError
from gates.judge.axes import superiority
from gates.judge.floors import RULES, Floor, calibration, floor_rule, pairwise_calibrated, pairwise_level
from gates.judge.verdict import judge
from gates.records import Outcome
from tests.judge.arms import a_gate, an_arm, measured, voice_figures

PAIRWISE, ALL_ARMS, CALIBRATED = (
    RULES[f"{name}@1"] for name in ("pairwise-range", "all-arms-range", "pairwise-calibrated")
)


def ranging(width: float, *, middle: float = 0.9) -> np.ndarray:
    """Five seeds' distances whose max - min is `width`."""
    return middle + width * np.array([-0.5, -0.2, 0.0, 0.1, 0.5])


@pytest.mark.parametrize(
    ("delta", "own", "others", "pairwise", "all_arms"),
    [
        (0.193, 0.091, [0.251], (Outcome.PASS, 2.1), Outcome.FAIL),
        (0.210, 0.251, [0.091], (Outcome.FAIL, 0.8), Outcome.FAIL),
    ],
    ids=["lv-bronte ckpt475", "lv-bronte ckpt925"],
)
def test_bronte_figures_under_both_rules(delta, own, others, pairwise, all_arms):
    base, candidate, rest = ranging(0.06), ranging(own), [ranging(width) for width in others]
    floor = Floor(PAIRWISE, rest).of(base, candidate)
    assert floor == pytest.approx(own)
    assert (superiority(delta, floor), round(delta / floor, 1)) == pairwise
    assert superiority(delta, Floor(ALL_ARMS, rest).of(base, candidate)) is all_arms


def test_hemingway_850_clears_both_floors():
    base, candidate, other = ranging(0.413 / 6.4), ranging(0.050), ranging(0.113)
    floor = Floor(PAIRWISE, [other]).of(base, candidate)
    assert round(0.413 / floor, 1) == 6.4
    assert superiority(0.413, floor) is Outcome.PASS
    assert Floor(ALL_ARMS, [other]).of(base, candidate) == pytest.approx(0.113)
    assert superiority(0.413, 0.113) is Outcome.PASS


def test_a_floor_must_be_exceeded_strictly_and_a_floor_of_zero_measures_nothing():
    assert superiority(0.1 + 0.2, 0.3) is Outcome.FAIL
    assert superiority(0.31, 0.3) is Outcome.PASS
    assert superiority(0.31, 0.3, times=2.0) is Outcome.FAIL
    assert superiority(5.0, 0.0) is Outcome.INVALID


values = arrays(np.float64, 4, elements=st.floats(0, 2, width=16))


@settings(deadline=None)
@given(values, values, st.lists(values, max_size=3))
def test_other_arms_move_only_the_retired_rule(base, candidate, others):
    for rule in (PAIRWISE, CALIBRATED):
        assert rule.floor(base, candidate, others) == rule.floor(base, candidate, ())
    assert ALL_ARMS.floor(base, candidate, others) >= PAIRWISE.floor(base, candidate, ())


@settings(deadline=None)
@given(arrays(np.float64, (3, 2, 4), elements=st.floats(0, 2, width=16)))
@pytest.mark.parametrize("name", sorted(RULES))
def test_many_gates_at_once_have_the_floors_of_each_alone(name, stack):
    base, candidate = stack[:, 0], stack[:, 1]
    alone = [float(RULES[name].floor(one, other, ())) for one, other in zip(base, candidate, strict=True)]
    assert RULES[name].floor(base, candidate, ()).tolist() == alone


@pytest.mark.parametrize("name", sorted(RULES))
def test_one_seed_has_no_floor(name):
    with pytest.raises(UsageError, match=r"1 seed\(s\) have no spread|no calibrated floor for 1 seeds"):
        RULES[name].floor(np.zeros(1), np.zeros(1), ())


@pytest.mark.parametrize(
    ("k", "two_sided", "rounding"), [(2, 21.6, 0.05), (3, 4.9, 0.05), (4, 1.1, 0.05), (5, 0.2, 0.05)]
)
def test_the_integrated_rate_is_half_the_published_two_sided_one(k, two_sided, rounding):
    # A separate simulation of "difference of means beyond the larger of the two ranges", in percent, one decimal.
    assert 200 * pairwise_level(k) == pytest.approx(two_sided, abs=rounding)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("ratio", [0.3, 1.0, 3.0])
def test_calibrated_level_by_simulation_at_unequal_noise(k, ratio):
    gates = 200_000
    rng = np.random.Generator(np.random.PCG64(7))
    base, candidate = rng.standard_normal((gates, k)), ratio * rng.standard_normal((gates, k))
    passed = np.mean(base.mean(axis=1) - candidate.mean(axis=1) > CALIBRATED.floor(base, candidate, ()))
    expected = pairwise_level(k, calibration(k, 0.025), ratio)
    assert passed == pytest.approx(expected, abs=4 * np.sqrt(expected / gates))
    if ratio == 1.0:
        assert passed == pytest.approx(0.025, abs=0.0014)
    else:
        assert 0.02 < passed < 0.045


@pytest.mark.parametrize(
    ("k", "alpha", "g"),
    [
        (2, 0.025, 2.4233752127128794),
        (3, 0.025, 0.9911571920829693),
        (5, 0.025, 0.5136490273076494),
        (10, 0.01, 0.32880162834006915),
    ],
)
def test_the_multiple_is_the_one_that_scipys_studentized_range_gives(k, alpha, g):
    # Found once by root-finding over scipy.stats.studentized_range.cdf, Gauss-Legendre over the difference.
    assert calibration(k, alpha) == pytest.approx(g, rel=1e-9)


def documented(root) -> list[list[float]]:
    """The table of levels in docs/floors.md: k, g, then levels in percent."""
    lines = (root / "docs/floors.md").read_text("utf-8").partition("| seeds | g(k, 0.025) |")[2].splitlines()[2:]
    rows = lines[: lines.index("")]
    return [[float(cell.strip().removesuffix(" %")) for cell in row.strip("| ").split("|")] for row in rows]


def test_the_table_of_levels_in_the_docs_is_what_simulated_gates_show(root):
    # By simulation, an independent way: 400,000 gates a row; the second arm's sd is 0.3, 1 and 3 times the first's.
    table = documented(root)
    assert [row[0] for row in table] == list(range(2, 11))
    rng = np.random.Generator(np.random.PCG64(3))
    for k, g, *percents in table:
        base, candidate = rng.standard_normal((2, 400_000, int(k)))
        assert calibration(int(k), 0.025) == pytest.approx(g, abs=0.0005)
        for column, ratio in enumerate((0.3, 1.0, 3.0)):
            own = ratio * candidate
            move, floor = base.mean(axis=1) - own.mean(axis=1), PAIRWISE.floor(base, own, ())
            for times, percent in ((g, percents[column]), (1.0, percents[column + 3])):
                allowed = 0.006 + 4 * 100 * np.sqrt(max(percent, 0.01) / 100 / 400_000)
                assert 100 * np.mean(move > times * floor) == pytest.approx(percent, abs=allowed), (k, ratio, times)


def test_calibration_falls_with_seeds_and_rises_as_alpha_falls():
    by_seeds = [calibration(k, 0.025) for k in (2, 3, 4, 5, 10)]
    assert by_seeds == sorted(by_seeds, reverse=True)
    assert calibration(3, 0.001) > calibration(3, 0.025) > calibration(3, 0.2)


def test_calibrated_rule_says_its_alpha_and_refuses_unequal_arms():
    assert pairwise_calibrated(0.05).signature == "pairwise-calibrated@1|alpha:0.05"
    with pytest.raises(UsageError, match="pairwise-calibrated@1: 4 seeds against 5"):
        CALIBRATED.floor(np.arange(4.0), np.arange(5.0), ())
    with pytest.raises(UsageError, match=r"no calibrated floor for 3 seeds at alpha 0\.5"):
        calibration(3, 0.5)


def test_a_gate_may_name_any_rule_for_voice_and_for_damage():
    voice = {"mfw": 300, "words_per_seed": 500, "floor": "pairwise-calibrated@1", "alpha": 0.05}
    damage = {"ran_on": {"within": "floor", "floor": "pairwise-calibrated@1"}}
    found = judge(a_gate(voice=voice, damage=damage), measured()).candidates["a"].axes
    assert (found["voice"].rule, found["ran_on"].rule) == (
        "pairwise-calibrated@1|alpha:0.05",
        "pairwise-calibrated@1|alpha:0.025",
    )
    # The larger range is the base's 0.06; of ran-on both arms range over 0.1.
    assert found["voice"].floor == pytest.approx(calibration(4, 0.05) * 0.06)
    assert found["ran_on"].floor == pytest.approx(calibration(4, 0.025) * 0.1)


def test_an_old_run_can_be_judged_again_under_the_retired_rule():
    arms = {"base": an_arm("base"), "a": an_arm(), "b": an_arm(voice=voice_figures((0.4, 0.6, 0.7, 0.9)))}
    voice = {"mfw": 300, "words_per_seed": 500, "floor": "all-arms-range@1"}
    found = judge(a_gate(("a", "b"), voice=voice), measured(arms)).candidates["a"].axes["voice"]
    assert (found.outcome, found.rule, round(found.floor, 9)) == (Outcome.FAIL, "all-arms-range@1", 0.5)


def test_unknown_rules_and_an_alpha_without_meaning_are_refused():
    assert floor_rule("pairwise-range@1") is PAIRWISE
    assert floor_rule("pairwise-calibrated@1", 0.1).signature == "pairwise-calibrated@1|alpha:0.1"
    with pytest.raises(UsageError, match=r"no floor rule is called 'mean@1'\n  next: choose one of: pairwise-range@1"):
        floor_rule("mean@1")
    with pytest.raises(UsageError, match="pairwise-range@1 has no alpha"):
        floor_rule("pairwise-range@1", 0.1)
