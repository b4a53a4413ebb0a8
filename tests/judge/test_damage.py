"""Decisions on the damage axes."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.judge.axes import axis_rng
from gates.judge.damage import damage
from gates.judge.floors import RULES, Floor, FloorRule
from gates.measure.figures import Unmeasured, ValidityFigures
from gates.records import Outcome
from gates.spec.limits import DamageAxis
from tests.judge.arms import an_arm, damage_figures

PASS, FAIL, INCONCLUSIVE, INVALID = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.INVALID
PAIRWISE = Floor(RULES["pairwise-range@1"])
RECORDED = Floor(FloorRule("recorded@1", lambda base, candidate, others: np.array(0.217)))


def judged(before, after, axis: DamageAxis, *, floor=PAIRWISE, name="ran_on"):
    seeds = tuple(range(len(after.values)))
    expected = sum(map(len, after.values))
    counts = ValidityFigures(
        expected=expected, present=expected, errors=0, empty=0, repeated_seeds=0, prompt_mismatches=0
    )
    base = an_arm("base", seeds=seeds[: len(before.values)], validity=counts, damage={name: before})
    arm = an_arm(seeds=seeds, validity=counts, damage={name: after})
    return damage(name, base, arm, axis, floor, axis_rng(name, seeds))


def test_hemingway_damage_lies_inside_its_recorded_floor():
    # Ran-on +0.08, on-beat -0.14, one recorded floor of 0.217: both inside.
    within = DamageAxis(within="floor")
    ran_on = judged(
        damage_figures((0.0, 0.0), prompts=50), damage_figures((0.08, 0.08), prompts=50), within, floor=RECORDED
    )
    before, after = (damage_figures((rate, rate), "lower", prompts=50) for rate in (0.80, 0.66))
    on_beat = judged(before, after, within, floor=RECORDED, name="on_beat")
    assert (ran_on.outcome, on_beat.outcome) == (PASS, PASS)
    assert (round(ran_on.value, 12), round(on_beat.value, 12)) == (0.08, 0.14)
    assert (on_beat.floor, on_beat.rule, on_beat.low, on_beat.high) == (0.217, "recorded@1", None, None)
    assert on_beat.reason == "0.800 to 0.660 (-0.140, worse is lower): harm +0.140, floor 0.217"


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        ((0.1, 0.3, 0.2), (0.4, 0.4, 0.4), PASS),
        ((0.1, 0.3, 0.2), (0.5, 0.4, 0.4), FAIL),
        ((0.2, 0.2, 0.2), (0.2, 0.2, 0.2), PASS),
        ((0.2, 0.2, 0.2), (0.3, 0.3, 0.3), FAIL),
        ((0.5, 0.5, 0.5), (0.0, 0.0, 0.0), PASS),
    ],
    ids=["harm 0.2 on the floor of 0.2", "harm 0.23 over it", "no change, no noise", "harm without noise", "improved"],
)
def test_within_the_floor(before, after, outcome):
    found = judged(damage_figures(before), damage_figures(after), DamageAxis(within="floor"))
    assert found.outcome is outcome
    assert found.warnings == (
        "within the floor: the noisier the measure, the more harm passes; a preset margin is recommended",
        "a floor of 3 seeds is a rough one: use 4 or more",
    )


@pytest.mark.parametrize(
    ("before", "after", "margin", "outcome"),
    [
        ((0.2, 0.2), (0.2, 0.2), 0.10, PASS),
        ((0.2, 0.2), (0.8, 0.8), 0.10, FAIL),
        ((0.2, 0.2), (0.3, 0.3), 0.12, INCONCLUSIVE),
        ((0.8, 0.8), (0.2, 0.2), 0.00, PASS),
    ],
)
@pytest.mark.parametrize("worse", ["higher", "lower"])
def test_margin_by_interval_in_either_direction(before, after, margin, outcome, worse):
    if worse == "lower":
        before, after = (tuple(1 - rate for rate in rates) for rates in (before, after))
    found = judged(damage_figures(before, worse), damage_figures(after, worse), DamageAxis(margin=margin))
    assert found.outcome is outcome
    assert found.low < found.value < found.high
    assert bool(found.to_decide) == (outcome is INCONCLUSIVE)


def test_margin_names_the_interval_it_used():
    few = judged(damage_figures((0.2, 0.2), prompts=10), damage_figures((0.3, 0.3), prompts=10), DamageAxis(margin=0.1))
    many = judged(damage_figures((0.2, 0.2)), damage_figures((0.3, 0.4)), DamageAxis(margin=0.1))
    assert few.rule == "newcombe-paired|level:0.95"
    assert many.rule == "prompt-bootstrap|level:0.95|resamples:10000"
    assert re.fullmatch(r"about \d+ prompts at this harm would decide; there are 30", many.to_decide)
    on_the_margin = judged(damage_figures((0.2, 0.2)), damage_figures((0.3, 0.3)), DamageAxis(margin=0.1))
    assert on_the_margin.to_decide == "the harm is too close to its margin for any feasible number of prompts"


def test_two_silent_arms_pass_only_what_their_number_can_prove():
    # 0 of 36 in both arms: the upper limit of the change is 2.7055 / 38.7055 = 0.0699.
    silent = damage_figures((0.0, 0.0, 0.0), prompts=12)
    assert judged(silent, silent, DamageAxis(margin=0.07)).outcome is PASS
    assert judged(silent, silent, DamageAxis(margin=0.06)).outcome is INCONCLUSIVE


@pytest.mark.parametrize(("after", "outcome"), [((0.3, 0.3), PASS), ((0.4, 0.3), FAIL)])
def test_bare_figures_decide_on_request_and_warn(after, outcome):
    found = judged(damage_figures((0.2, 0.2)), damage_figures(after), DamageAxis(margin=0.1, decide="point"))
    assert (found.outcome, found.rule, found.low) == (outcome, "point", None)
    assert found.warnings == ("bare figures compared: without an interval chance may have decided",)


def test_shares_on_few_prompts_stay_undecided():
    share = damage_figures((0.5, 0.5), prompts=8)
    share = share.model_copy(update={"values": tuple(tuple(v / 2 for v in row) for row in share.values)})
    found = judged(share, share, DamageAxis(margin=0.9))
    assert (found.outcome, found.to_decide) == (INCONCLUSIVE, "more prompts are needed for an interval")
    assert "shares on 8 prompts have no interval here" in found.warnings[0]


@pytest.mark.parametrize(("size", "outcome"), [(0.05, PASS), (0.9, FAIL)])
def test_shares_are_judged_even_where_the_base_has_none(size, outcome):
    def shares(rate):
        found = damage_figures((rate, rate))
        values = tuple(tuple(size * value for value in row) for row in found.values)
        return found.model_copy(update={"values": values, "per_seed": (rate * size,) * 2, "rate": rate * size})

    found = judged(shares(0.0), shares(0.5), DamageAxis(margin=0.15))
    assert (found.outcome, found.rule) == (outcome, "newcombe-paired|level:0.95")
    assert found.value == pytest.approx(0.5 * size)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (damage_figures((0.2, 0.2)), Unmeasured(unmeasured="no beats"), "not measured: no beats"),
        (Unmeasured(unmeasured="no beats"), damage_figures((0.2, 0.2)), "base: not measured: no beats"),
        (damage_figures((0.2, 0.2), prompts=29), damage_figures((0.2, 0.2)), "do not hold the same prompts"),
        (damage_figures((0.2, 0.2)), damage_figures((0.2, 0.2), "lower"), "the base was measured as ran_on@1"),
        (damage_figures((0.2, 0.2)), damage_figures((0.2, 0.2), name="x@2"), "the candidate as x@2"),
    ],
)
def test_what_cannot_be_compared_is_invalid(before, after, message):
    seeds = (1, 2)
    counts = ValidityFigures(expected=60, present=60, errors=0, empty=0, repeated_seeds=0, prompt_mismatches=0)
    base = an_arm("base", seeds=seeds, validity=counts, damage={"ran_on": before})
    arm = an_arm(seeds=seeds, validity=counts, damage={"ran_on": after})
    found = damage("ran_on", base, arm, DamageAxis(margin=0.5), PAIRWISE, axis_rng("ran_on", seeds))
    assert found.outcome is INVALID
    assert message in found.reason


@pytest.mark.parametrize("failed", [(1, 0), (0, 1)], ids=["base", "candidate"])
def test_a_floor_widened_by_failures_is_none(failed):
    base, arm = (
        an_arm(role, damage={"ran_on": damage_figures((0.1, 0.2, 0.1, 0.2))}).model_copy(
            update={
                "validity": ValidityFigures(
                    expected=120, present=120, errors=errors, empty=0, repeated_seeds=0, prompt_mismatches=0
                )
            }
        )
        for role, errors in zip(("base", "candidate"), failed, strict=True)
    )
    rng = axis_rng("ran_on", arm.seeds)
    found = damage("ran_on", base, arm, DamageAxis(within="floor"), PAIRWISE, rng)
    assert found.outcome is INVALID
    assert found.reason == "1 generations failed, which makes a floor wider; `margin` can be judged with them"
    assert damage("ran_on", base, arm, DamageAxis(margin=0.5), PAIRWISE, rng).outcome is PASS


rates = st.lists(st.integers(0, 20).map(lambda hits: hits / 20), min_size=2, max_size=2)


@settings(deadline=None, max_examples=50)
@given(rates, rates, st.sampled_from(["higher", "lower"]), st.floats(0, 1), st.booleans())
def test_improvement_never_fails(one, other, worse, margin, by_floor):
    bad, good = sorted((one, other), key=sum, reverse=worse == "higher")
    axis = DamageAxis(within="floor") if by_floor else DamageAxis(margin=margin)
    before, after = (damage_figures(tuple(r), worse, prompts=20) for r in (bad, good))
    assert judged(before, after, axis).outcome is not FAIL
