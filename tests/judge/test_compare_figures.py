"""What a comparison passes on: every field of each axis, copies as a table of prompts and seeds, and what has none."""

import numpy as np
import pytest

from gates.errors import UsageError
from gates.judge.compare import AxisComparison, Comparison, _axis, _choice, _grid, _prefers, compare, range_ratio_point
from gates.judge.verdict import judge
from gates.measure.figures import Run, Source, Unmeasured
from gates.records import Outcome
from tests.judge.arms import HASH, a_gate, an_arm, damage_figures, measured, memorisation_figures, voice_figures

NAMES = ("a", "b")


def run_of(prompt: int, seed: int) -> Run:
    source = Source(file="t.txt", start=3)
    return Run(prompt=prompt, seed=seed, start=0, length=9, sources=(source,), sha256=HASH, capitalised=())


def axis_of(axis, one, other, **changes) -> AxisComparison:
    return _axis(axis, a_gate(NAMES, **changes), measured({"base": an_arm("base"), "a": one, "b": other}), NAMES)


def untested(axis, why, better="lower") -> AxisComparison:
    return AxisComparison(
        axis=axis, a=None, b=None, better=better, prefers=None, resolves="not testable", test="", reason=why
    )


def test_every_field_of_a_comparison():
    # Distances 0.70 to 0.73 and 0.71 to 0.74: 0.01 apart, the floor is 0.03.
    arms = measured({"base": an_arm("base"), "a": an_arm(), "b": an_arm(voice=voice_figures((0.71, 0.72, 0.73, 0.74)))})
    gate = a_gate(NAMES, tie_break=["voice"])
    found = compare(gate, arms, judge(gate, arms), "a", "b")
    assert (found.difference, found.floor) == (pytest.approx(0.01), pytest.approx(0.03))
    (voice,) = found.tie_break
    assert found == Comparison(
        seal=HASH,
        measurements_sha256=arms.digest(),
        a="a",
        b="b",
        outcomes={"a": Outcome.PASS, "b": Outcome.PASS},
        comparable=True,
        difference=found.difference,
        floor=found.floor,
        indistinguishable=True,
        tie_break=(voice,),
        preferred="a",
        chosen_by="voice",
        reason=(
            "a and b are 0.010 apart, the pairwise floor of the two is 0.030: indistinguishable; in the sealed order "
            "voice is the first that resolves: a, a preference only"
        ),
    )
    assert (voice.a, voice.b) == (pytest.approx(0.215), pytest.approx(0.205))
    assert voice.model_copy(update={"a": None, "b": None}) == AxisComparison(
        axis="voice",
        a=None,
        b=None,
        better="higher",
        prefers="a",
        resolves="within chance",
        test="pairwise-range@1",
        reason="0.010 apart, floor 0.030",
    )


def test_an_arm_without_figures_of_its_voice_is_not_comparable():
    arms = measured({"base": an_arm("base"), "a": an_arm(), "b": an_arm(voice=Unmeasured(unmeasured="no words"))})
    gate = a_gate(NAMES)
    for pair in (NAMES, NAMES[::-1]):
        found = compare(gate, arms, judge(gate, arms), *pair)
        assert found == Comparison(
            seal=HASH,
            measurements_sha256=arms.digest(),
            a=pair[0],
            b=pair[1],
            outcomes={"a": Outcome.PASS, "b": Outcome.INVALID},
            comparable=False,
            reason="not fit to compare: b INVALID",
        )


def test_a_voice_further_than_the_floor_is_beyond_chance_in_either_direction():
    near, far = an_arm(), an_arm(voice=voice_figures((0.60, 0.61, 0.62, 0.63)))
    for pair in ((near, far), (far, near)):
        found = axis_of("voice", *pair)
        assert (found.resolves, found.reason) == ("beyond chance", "0.100 apart, floor 0.030")
        assert found.prefers == ("b" if pair[1] is far else "a")


@pytest.mark.parametrize("axis", ["voice", "seed_spread"])
@pytest.mark.parametrize("missing", [0, 1])
def test_a_voice_that_was_not_measured_is_no_axis(axis, missing):
    arms = [an_arm(), an_arm()]
    arms[missing] = an_arm(voice=None)
    assert axis_of(axis, *arms) == untested(axis, "not measured")


def test_a_spread_of_0_has_no_ratio():
    flat = an_arm(voice=voice_figures((0.75, 0.75, 0.75, 0.75)))
    found = axis_of("seed_spread", an_arm(voice=voice_figures((0.5, 0.625, 0.75, 1.0))), flat)
    assert found == AxisComparison(
        axis="seed_spread",
        a=0.5,
        b=0.0,
        better="lower",
        prefers="b",
        resolves="not testable",
        test="",
        reason="a spread of 0 has no ratio",
    )


def test_every_field_of_a_spread_wider_than_chance():
    wide, narrow = (voice_figures((0.5, 0.5, 0.5, 0.5 + width)) for width in (0.5, 0.0625))
    found = axis_of("seed_spread", an_arm(voice=wide), an_arm(voice=narrow))
    assert found == AxisComparison(
        axis="seed_spread",
        a=0.5,
        b=0.0625,
        better="lower",
        prefers="b",
        resolves="beyond chance",
        test="range-ratio@1|level:0.95",
        reason="8.0× as wide; equal arms differ by more than 4.0× in 5 % of cases",
    )


def test_every_field_of_a_note():
    document = {
        "base": "m",
        "candidates": {
            n: {"model": n, "adapter": "x.gguf", "notes": {"step": step}} for n, step in (("a", 9), ("b", 7))
        },
    }
    gate = a_gate(arms=document, tie_break=["notes.step"])
    found = _axis("notes.step", gate, measured({"base": an_arm("base"), "a": an_arm(), "b": an_arm()}), NAMES)
    assert found == AxisComparison(
        axis="notes.step",
        a=9,
        b=7,
        better="lower",
        prefers="b",
        resolves="not testable",
        test="",
        reason="a note is declared, not measured",
    )


NOT_SCANNED = Unmeasured(unmeasured="no text")


@pytest.mark.parametrize(
    ("axis", "without"),
    [
        ("ran_on", {"damage": {}}),
        ("ran_on", {"damage": {"ran_on": NOT_SCANNED}}),
        ("memorisation", {"memorisation": NOT_SCANNED}),
        ("extraction", {"extraction": NOT_SCANNED}),
        ("extraction", {"extraction": None}),
    ],
)
@pytest.mark.parametrize("missing", [0, 1])
def test_a_rate_that_was_not_measured_is_no_axis(axis, without, missing):
    arms = [an_arm(extraction=memorisation_figures(0, 24)) for _ in range(2)]
    arms[missing] = an_arm(**without)
    assert axis_of(axis, *arms) == untested(axis, "not measured")


def test_every_field_of_a_rate_beyond_chance():
    # Eight texts, 4 prompts under 2 seeds, all hit in one arm and none in the other: McNemar's p is 2 / 2 ** 8.
    def arm(rate):
        return an_arm(seeds=(1, 2), damage={"on_beat": damage_figures((rate, rate), "lower", 4)})

    found = axis_of("on_beat", arm(1.0), arm(0.0))
    assert found.reason.startswith("change -1.000 to -0.")
    assert found.model_copy(update={"reason": ""}) == AxisComparison(
        axis="on_beat",
        a=1.0,
        b=0.0,
        better="higher",
        prefers="a",
        resolves="beyond chance",
        test="newcombe-paired|level:0.95",
        reason="",
    )


@pytest.mark.parametrize("seeds", [((1, 2), (1, 3)), ((1, 2), (2, 1))])
def test_rates_under_other_seeds_are_not_paired(seeds):
    one, other = (an_arm(seeds=own, damage={"ran_on": damage_figures((0.5, 0.5))}) for own in seeds)
    found = axis_of("ran_on", one, other)
    assert (found.a, found.b, found.resolves, found.test) == (0.5, 0.5, "not testable", "")
    assert found.reason == "the arms do not hold the same prompts and seeds"


def test_rates_of_other_prompts_are_not_paired():
    one, other = (an_arm(damage={"ran_on": damage_figures((0.5,) * 4, prompts=n)}) for n in (30, 20))
    found = axis_of("ran_on", one, other)
    assert (found.resolves, found.test) == ("not testable", "")
    assert found.reason == "the arms do not hold the same prompts and seeds"


def test_hits_that_no_run_places_are_not_paired():
    found = axis_of("memorisation", an_arm(memorisation=memorisation_figures(3)), an_arm())
    assert (found.a, found.b, found.prefers, found.resolves, found.test) == (0.025, 2 / 120, "b", "not testable", "")
    assert found.reason == "only the counts of hits are recorded, not which texts they are, or some were not scanned"


def test_shares_on_too_few_prompts_have_no_test():
    few = damage_figures((1, 1), prompts=4)
    few = few.model_copy(update={"values": ((0.5,) * 4,) * 2})
    arm = an_arm(seeds=(1, 2), damage={"ran_on": few})
    found = axis_of("ran_on", arm, arm)
    assert (found.a, found.resolves, found.test) == (0.5, "not testable", "")
    assert "shares on 4 prompts have no interval here" in found.reason


def test_copies_are_a_table_of_prompts_and_seeds():
    # Eight generations, two of them not scanned, under two seeds: four prompts. What lies outside them is left out.
    runs = [run_of(0, 1), run_of(3, 2), run_of(3, 2), run_of(4, 1), run_of(1, 9)]
    figures = memorisation_figures(2, 6, unscanned=2, runs=tuple(runs))
    hits, lower = _grid(an_arm(seeds=(1, 2), memorisation=figures), "memorisation")
    assert lower is True
    assert hits.tolist() == [[1, 0], [0, 0], [0, 0], [0, 1]]


def test_answers_to_a_probe_are_numbered_after_the_open_prompts():
    # 60 generations under two seeds are 30 open prompts: the probe's first is 30.
    runs = tuple(run_of(prompt, seed) for prompt, seed in ((29, 1), (30, 1), (31, 2), (32, 2)))
    hits, lower = _grid(an_arm(seeds=(1, 2), extraction=memorisation_figures(2, 4, runs=runs)), "extraction")
    assert lower is True
    assert hits.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("worse", ["higher", "lower"])
def test_values_are_turned_to_prompts_and_seeds(worse):
    figures = damage_figures((0.5, 1.0), worse, 2).model_copy(update={"values": ((1.0, 0.0), (0.5, 0.25))})
    values, lower = _grid(an_arm(seeds=(1, 2), damage={"ran_on": figures}), "ran_on")
    assert values.tolist() == [[1.0, 0.5], [0.0, 0.25]]
    assert lower is (worse == "higher")


@pytest.mark.parametrize(
    ("a", "b", "better", "prefers"),
    [
        (0.1, 0.2, "lower", "a"),
        (0.1, 0.2, "higher", "b"),
        (0.2, 0.1, "lower", "b"),
        (0.2, 0.1, "higher", "a"),
        (0.1001, 0.1004, "lower", None),
        (0.1, 0.101, "lower", "a"),
        (True, 0.2, "lower", None),
        (0.2, "x", "lower", None),
        (None, 3, "lower", None),
    ],
)
def test_the_better_value_at_three_decimals_is_preferred(a, b, better, prefers):
    assert _prefers(NAMES, a, b, better) == prefers


def test_a_choice_in_words():
    assert _choice(False, "a", "voice") == "a moved further than seeds explain"
    assert _choice(True, None, None) == "indistinguishable, and no axis of the sealed tie-break resolves"


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_the_ratio_of_ranges_at_other_levels(level):
    # k = 2: P(ratio <= r) = 4 arctan(r) / pi - 1, exactly.
    assert range_ratio_point(2, level) == pytest.approx(np.tan((1 + level) * np.pi / 4), rel=1e-5)


@pytest.mark.parametrize(("k", "level"), [(1, 0.95), (2, 0.0), (2, 1.0), (2, 1.5)])
def test_no_ratio_of_ranges(k, level):
    with pytest.raises(UsageError, match=f"no range ratio for {k} seeds at {level}"):
        range_ratio_point(k, level)


def test_names_that_are_no_arm_are_told_the_arms_there_are():
    arms = measured({"base": an_arm("base"), "a": an_arm(), "b": an_arm()})
    gate = a_gate(NAMES)
    for pair in (("a", "x"), ("a", "a")):
        with pytest.raises(UsageError) as caught:
            compare(gate, arms, judge(gate, arms), *pair)
        assert caught.value.next_step == "choose two of: a, b"
