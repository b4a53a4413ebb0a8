"""What the damage axes pass on: every field of a decision, by hand, and what is asked of the figures before it."""

import pytest

from gates.judge.axes import AxisVerdict, axis_rng
from gates.judge.damage import Limits, _prompts_to_decide, damage
from gates.judge.floors import RULES, Floor
from gates.measure.figures import DamageFigures, ValidityFigures
from gates.records import Outcome
from gates.spec.limits import DamageAxis
from tests.judge.arms import an_arm, damage_figures

LAX = "within the floor: the noisier the measure, the more harm passes; a preset margin is recommended"
BARE = "bare figures compared: without an interval chance may have decided"


def judged(before, after, axis, *, expected=None, seeds=None, base_seeds=None, errors=0):
    seeds = tuple(range(len(after.values))) if seeds is None else seeds
    expected = sum(map(len, after.values)) if expected is None else expected
    counts = ValidityFigures(
        expected=expected, present=expected, errors=errors, empty=0, repeated_seeds=0, prompt_mismatches=0
    )
    base = an_arm("base", seeds=seeds if base_seeds is None else base_seeds, damage={"ran_on": before})
    arm = an_arm(seeds=seeds, validity=counts, damage={"ran_on": after})
    return damage("ran_on", base, arm, axis, Floor(RULES["pairwise-range@1"]), axis_rng("ran_on", seeds))


def test_every_field_of_a_decision_by_the_floor():
    # Rates 0, 0.5, 0.5, 1 of four prompts before: they range over 1. All hit after: harm 0.5, half the floor.
    found = judged(
        damage_figures((0, 0.5, 0.5, 1), prompts=4),
        damage_figures((1, 1, 1, 1), prompts=4),
        DamageAxis(within="floor"),
    )
    assert found == AxisVerdict(
        axis="ran_on",
        outcome=Outcome.PASS,
        value=0.5,
        threshold=1.0,
        floor=1.0,
        times_floor=0.5,
        rule="pairwise-range@1",
        signature="ran_on@1",
        reason="0.500 to 1.000 (+0.500, worse is higher): harm +0.500, floor 1.000",
        warnings=(LAX,),
    )


def test_every_field_of_a_decision_by_bare_figures():
    before, after = damage_figures((1, 1), "lower", prompts=4), damage_figures((0.5, 0.5), "lower", prompts=4)
    assert judged(before, after, DamageAxis(margin=0.25, decide="point")) == AxisVerdict(
        axis="ran_on",
        outcome=Outcome.FAIL,
        value=0.5,
        threshold=0.25,
        rule="point",
        signature="ran_on@1",
        reason="1.000 to 0.500 (-0.500, worse is lower): harm +0.500, margin 0.250",
        warnings=(BARE,),
    )


def test_every_field_of_a_decision_by_an_interval():
    # 0 and 0 of 36: the upper limit of the change is z² / (36 + z²) = 2.7055 / 38.7055, the lower one its mirror.
    silent = damage_figures((0, 0, 0), prompts=12)
    found = judged(silent, silent, DamageAxis(margin=0.06))
    limit = 2.705543454095404 / 38.705543454095404
    assert (found.low, found.high) == (pytest.approx(-limit), pytest.approx(limit))
    assert found.model_copy(update={"low": None, "high": None}) == AxisVerdict(
        axis="ran_on",
        outcome=Outcome.INCONCLUSIVE,
        value=0.0,
        threshold=0.06,
        rule="newcombe-paired|level:0.95",
        signature="ran_on@1",
        reason="0.000 to 0.000 (+0.000, worse is higher): harm +0.000 (95 % limits -0.070 and +0.070), margin 0.060",
        # (0.0699 / 0.06)² × 12 = 16.3
        to_decide="about 17 prompts at this harm would decide; there are 12",
    )


def test_shares_without_an_interval_say_what_they_are():
    half = damage_figures((1, 1), prompts=8)
    half = half.model_copy(update={"values": ((0.5,) * 8,) * 2, "per_seed": (0.5, 0.5)})
    found = judged(half, half, DamageAxis(margin=0.9))
    assert (found.rule, found.low, found.high) == ("none", None, None)
    assert found.reason == ("0.500 to 0.500 (+0.000, worse is higher): harm +0.000 without an interval, margin 0.900")


def test_the_limits_of_a_bootstrap_are_drawn_from_the_generator_that_is_passed_in():
    before, after = damage_figures((0.2, 0.2)), damage_figures((0.3, 0.4))
    first, second = (judged(before, after, DamageAxis(margin=0.1)) for _ in range(2))
    assert (first.low, first.high) == (second.low, second.high)
    # 2 × 30 differences of which 9 are +1 more often than -1: the limits are sixtieths, on either side of 0.15.
    assert first.low == pytest.approx(round(60 * first.low) / 60)
    assert first.low < first.value < first.high


@pytest.mark.parametrize(
    ("limits", "harm", "margin", "said"),
    [
        # Half as wide is four times the prompts, of the limit on the margin's side.
        ((0.0, 0.30), 0.20, 0.25, "about 32 prompts at this harm would decide; there are 8"),
        ((0.20, 0.90), 0.30, 0.25, "about 32 prompts at this harm would decide; there are 8"),
        ((0.0, 31.0), 0.0, 1.0, "about 7688 prompts at this harm would decide; there are 8"),
        ((0.0, 32.0), 0.0, 1.0, "the harm is too close to its margin for any feasible number of prompts"),
        ((None, 0.3), 0.3, 0.2, "more prompts are needed for an interval"),
        ((0.1, None), 0.1, 0.2, "more prompts are needed for an interval"),
    ],
)
def test_how_many_prompts_would_decide(limits, harm, margin, said):
    assert _prompts_to_decide(harm, Limits(*limits, "r", ()), margin, 8) == said


FINE = damage_figures((0.5, 0.5), prompts=4)
TWO = (1, 2)


def changed(**changes) -> DamageFigures:
    return FINE.model_copy(update=changes)


@pytest.mark.parametrize(
    ("before", "after", "given", "said"),
    [
        (changed(values=FINE.values[:1]), FINE, {}, "base and candidate do not hold the same prompts for every seed"),
        (FINE, FINE, {"base_seeds": (1,)}, "base and candidate do not hold the same prompts for every seed"),
        (FINE, FINE, {"seeds": (1, 2, 3)}, "base and candidate do not hold the same prompts for every seed"),
        *(
            (both, both, {}, "base and candidate do not hold the same prompts for every seed")
            for both in [changed(values=((1.0, 0.0), (1.0, 0.0, 1.0)))]
        ),
        (changed(per_seed=(0.5,)), FINE, {}, "the rates of some seeds are missing"),
        (FINE, changed(per_seed=(0.5,)), {}, "the rates of some seeds are missing"),
        (FINE, FINE, {"expected": 9}, "8 values, 9 are expected"),
        (changed(values=((), ())), changed(values=((), ())), {}, "0 values, 0 are expected"),
        (changed(signature="x@2"), FINE, {}, "the base was measured as x@2, the candidate as ran_on@1"),
        (changed(worse="lower"), FINE, {}, "the base was measured as ran_on@1, the candidate as ran_on@1"),
    ],
)
def test_values_that_cannot_be_paired_are_invalid(before, after, given, said):
    found = judged(before, after, DamageAxis(margin=0.5), **{"seeds": TWO, **given})
    assert found == AxisVerdict(axis="ran_on", outcome=Outcome.INVALID, reason=said)


def test_one_prompt_is_enough_to_be_paired():
    one = damage_figures((1, 1), prompts=1)
    assert judged(one, one, DamageAxis(margin=0.5, decide="point")).outcome is Outcome.PASS


def test_failures_leave_the_axis_named():
    found = judged(FINE, FINE, DamageAxis(within="floor"), errors=2)
    said = "2 generations failed, which makes a floor wider; `margin` can be judged with them"
    # The base of these arms has none.
    assert found == AxisVerdict(axis="ran_on", outcome=Outcome.INVALID, reason=said)


@pytest.mark.parametrize("missing", ["base", "candidate"])
def test_an_axis_that_was_not_measured_is_named(missing):
    base, arm = (an_arm(role, damage={} if role == missing else {"ran_on": FINE}) for role in ("base", "candidate"))
    found = damage("ran_on", base, arm, DamageAxis(margin=0.5), Floor(RULES["pairwise-range@1"]), axis_rng("x", TWO))
    said = "base: not measured" if missing == "base" else "not measured"
    assert found == AxisVerdict(axis="ran_on", outcome=Outcome.INVALID, reason=said)


def test_a_harm_is_told_in_times_of_its_floor():
    before, after = damage_figures((0.25, 0.5, 0.5, 0.75), prompts=4), damage_figures((0.75,) * 4, prompts=4)
    found = judged(before, after, DamageAxis(within="floor"))
    assert (found.value, found.floor, found.times_floor) == (0.25, 0.5, 0.5)
