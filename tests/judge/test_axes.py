"""Decisions on voice, memorisation and validity."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.errors import UsageError
from gates.judge.axes import axis_rng, inside, validity, voice
from gates.judge.floors import RULES, Floor
from gates.judge.memorisation import memorisation
from gates.measure.figures import Unmeasured, ValidityFigures
from gates.records import Outcome
from gates.spec.limits import Memorisation, Validity, Voice
from tests.judge.arms import an_arm, memorisation_figures, voice_figures

PASS, FAIL, INCONCLUSIVE, INVALID = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.INVALID
VOICE = Voice(mfw=300, words_per_seed=500)
PAIRWISE = Floor(RULES["pairwise-range@1"])


def judged_voice(arm=None, memorised=None, floor=PAIRWISE, **threshold):
    return voice(arm or an_arm(), VOICE.model_copy(update=threshold), memorised, floor)


def test_bronte_475_is_told_in_the_house_words():
    # Five seeds, delta_cb +0.193, the candidate's range 0.091 the larger one: PASS at 2.1 times the floor.
    base = (0.87, 0.88, 0.89, 0.90, 0.91)
    own = tuple(0.697 + shift for shift in (-0.045, -0.01, 0.0, 0.009, 0.046))
    arm = an_arm(seeds=(1, 2, 3, 4, 5), voice=voice_figures(own, base))
    found = judged_voice(arm)
    assert (found.outcome, found.rule, found.warnings) == (PASS, "pairwise-range@1", ())
    assert (round(found.value, 3), round(found.floor, 3), round(found.times_floor, 1)) == (0.193, 0.091, 2.1)
    assert (
        found.reason == "moved +0.193 toward the held-out author, 2.1× the floor of 0.091; more than 1.0× is required"
    )


@pytest.mark.parametrize(
    ("changes", "threshold", "outcome", "message"),
    [
        ({}, {"times_floor": 4.0}, FAIL, "more than 4.0× is required"),
        ({"distances": (0.95, 0.96, 0.97, 0.98)}, {}, FAIL, "moved -0.035"),
        ({"distances": (0.7,) * 4, "base": (0.9,) * 4}, {}, INVALID, "the floor is 0: seeds changed nothing"),
        ({"specificity": 0.01}, {"min_specificity": 0.05}, FAIL, "specificity +0.010, at least +0.050 is required"),
        ({"specificity": 0.05}, {"min_specificity": 0.05}, PASS, "specificity +0.050"),
        ({"specificity": None}, {"min_specificity": 0.05}, INVALID, "specificity was not measured"),
        ({"words": (600, 600, 499, 600)}, {}, INVALID, "a seed has 499 words, 500 are needed"),
        ({"base_words": (600, 600, 600, 12)}, {}, INVALID, "base: a seed has 12 words, 500 are needed"),
        ({"distances": (0.7, 0.72, 0.73)}, {}, INVALID, "3 distances and 3 word counts for 4 seeds"),
        ({"base_words": (600,)}, {}, INVALID, "base: 4 distances and 1 word counts for 4 seeds"),
    ],
)
def test_what_voice_says(changes, threshold, outcome, message):
    found = judged_voice(an_arm(voice=voice_figures(**changes)), **threshold)
    assert found.outcome is outcome
    assert message in found.reason


@pytest.mark.parametrize(
    ("hits", "outcome"), [(2, PASS), (3, INVALID)], ids=["2.4 of 120 are allowed: 2", "3 are too many"]
)
def test_reciting_the_yardstick_makes_voice_invalid(hits, outcome):
    arm = an_arm(memorisation=memorisation_figures(heldout_hits=hits))
    found = judged_voice(arm, Memorisation(max_rate=0.1, max_heldout_rate=0.02))
    assert found.outcome is outcome
    assert f"{hits} of 120 generations recite the held-out text, at most 0.020 of them may" in found.reason
    assert found.warnings == (f"{hits} of 120 generations recite the held-out text",)


@pytest.mark.parametrize(("hits", "outcome", "warned"), [(0, PASS, 0), (1, PASS, 1), (12, PASS, 1), (13, INVALID, 1)])
def test_a_tenth_may_recite_the_yardstick_where_the_gate_says_nothing(hits, outcome, warned):
    found = judged_voice(an_arm(memorisation=memorisation_figures(heldout_hits=hits)), Memorisation(max_rate=0.1))
    assert (found.outcome, len(found.warnings)) == (outcome, warned)


def test_held_out_hits_that_nobody_counted_make_voice_invalid():
    arm = an_arm(memorisation=Unmeasured(unmeasured="no train split"))
    assert judged_voice(arm).outcome is PASS, "a gate without memorisation limits nothing"
    found = judged_voice(arm, Memorisation(max_rate=0.1))
    assert (found.outcome, "held-out hits were not measured" in found.reason) == (INVALID, True)


def test_few_seeds_warn_and_a_calibrated_floor_takes_no_multiple():
    three = an_arm(seeds=(1, 2, 3), voice=voice_figures((0.7, 0.71, 0.72), (0.9, 0.91, 0.92)))
    assert judged_voice(three).warnings == ("a floor of 3 seeds is a rough one: use 4 or more",)
    calibrated = Floor(RULES["pairwise-calibrated@1"])
    assert judged_voice(three, floor=calibrated).rule == "pairwise-calibrated@1|alpha:0.025"
    with pytest.raises(UsageError, match=r"pairwise-calibrated@1 takes no times_floor\n  next: leave"):
        judged_voice(three, floor=calibrated, times_floor=2.0)


@pytest.mark.parametrize(
    ("hits", "generations", "threshold", "outcome"),
    [
        (0, 30, {"max_rate": 0.10}, PASS),  # upper limit 1 - 0.05 ** (1/30) = 0.0950
        (0, 30, {"max_rate": 0.09}, INCONCLUSIVE),
        (7, 100, {"max_rate": 0.10}, INCONCLUSIVE),
        (7, 100, {"max_rate": 0.03}, FAIL),
        (7, 100, {"max_rate": 0.10, "decide": "point"}, PASS),
        (10, 100, {"max_rate": 0.07, "decide": "point"}, FAIL),
        (0, 30, {"max_rate": 0.10, "max_run_words": 8}, FAIL),
        (0, 30, {"max_rate": 0.10, "max_run_words": 9}, PASS),
        (7, 100, {"max_rate": 0.10, "max_run_words": 8}, FAIL),
    ],
)
def test_memorisation_decides_by_the_limit_that_matters(hits, generations, threshold, outcome):
    counts = ValidityFigures(
        expected=generations, present=generations, errors=0, empty=0, repeated_seeds=0, prompt_mismatches=0
    )
    arm = an_arm(validity=counts, memorisation=memorisation_figures(hits, generations))
    found = memorisation(arm, Memorisation(**threshold))
    assert found.outcome is outcome
    assert found.low < max(found.value, 1e-9)
    assert found.value < found.high
    assert bool(found.to_decide) == (outcome is INCONCLUSIVE)
    assert bool(found.warnings) == (threshold.get("decide") == "point")


def test_memorisation_says_its_figures_and_what_would_decide():
    counts = ValidityFigures(expected=30, present=30, errors=0, empty=0, repeated_seeds=0, prompt_mismatches=0)
    found = memorisation(
        an_arm(validity=counts, memorisation=memorisation_figures(0, 30)), Memorisation(max_rate=0.05, max_run_words=8)
    )
    assert found.reason == (
        "0 of 30 generations hold 8 words in a row of the training text: 0.000 (95 % limits 0.000 and 0.095; "
        "0 of 30 still allows 9.5 %), "
        "at most 0.050 is allowed; the longest run is 9 words, at most 8 are allowed"
    )
    open_rate = memorisation(
        an_arm(validity=counts, memorisation=memorisation_figures(0, 30)), Memorisation(max_rate=0.05)
    )
    needed = int(open_rate.to_decide.split()[1])
    assert 59 <= needed <= 63, "the fewest that can prove 0.05 are 59; the search steps by 5 %"


def test_what_was_not_scanned_is_no_evidence_and_is_said():
    # 12 of 24 failed: 0 of 12 allows 1 - 0.05 ** (1/12) = 0.221, 0 of 24 would allow 0.117.
    counts = ValidityFigures(expected=24, present=24, errors=12, empty=0, repeated_seeds=0, prompt_mismatches=0)
    arm = an_arm(validity=counts, memorisation=memorisation_figures(0, 12, unscanned=12))
    found = memorisation(arm, Memorisation(max_rate=0.2))
    assert (found.outcome, round(found.high, 3)) == (INCONCLUSIVE, 0.221)
    assert found.reason.endswith("; 12 more failed or hold fewer than 8 words: no evidence, and not counted")


@pytest.mark.parametrize("figures", [None, Unmeasured(unmeasured="no texts"), memorisation_figures(2, 119)])
def test_memorisation_not_fully_measured_is_invalid(figures):
    found = memorisation(an_arm(memorisation=figures), Memorisation(max_rate=0.9))
    assert found.outcome is INVALID
    assert "not measured" in found.reason or "120 are expected" in found.reason


@pytest.mark.parametrize(
    ("counts", "limits", "outcome", "message"),
    [
        ({}, {}, PASS, "120 of 120 generations, fit to judge"),
        ({"present": 119}, {}, INVALID, "1 of 120 generations missing"),
        ({"present": 121}, {}, INVALID, "1 of 120 generations too many"),
        ({"expected": 0, "present": 0}, {}, INVALID, "0 generations cannot be the same prompts under 4 seeds"),
        ({"expected": 118, "present": 118}, {}, INVALID, "118 generations cannot be the same prompts"),
        ({"errors": 1}, {}, INVALID, "1 of 120 generations are errors, at most 0.000"),
        ({"errors": 1}, {"max_errors": 0.01}, PASS, "fit to judge"),
        ({"empty": 3}, {"max_empty": 0.02}, INVALID, "3 of 120 generations are empty, at most 0.020"),
        ({"empty": 2}, {"max_empty": 0.02}, PASS, "fit to judge"),
        # Of 30 prompts under 4 seeds 90 texts can repeat an earlier one; a fifth of these is 18.
        ({"repeated_seeds": 90}, {}, INVALID, "90 of 90 texts repeat an earlier seed of their prompt word for word"),
        ({"repeated_seeds": 19}, {}, INVALID, "at most 0.200 of them may: the seeds change too little"),
        ({"repeated_seeds": 18}, {}, PASS, "fit to judge"),
        ({"repeated_seeds": 1}, {}, PASS, "fit to judge"),
        ({"prompt_mismatches": 1}, {}, INVALID, "1 prompts were not the same tokens for every seed and arm"),
    ],
)
def test_what_validity_says(counts, limits, outcome, message):
    full = {"expected": 120, "present": 120, "errors": 0, "empty": 0, "repeated_seeds": 0, "prompt_mismatches": 0}
    found = validity(an_arm(validity=ValidityFigures(**(full | counts))), Validity(**limits))
    assert found.outcome is outcome
    assert message in found.reason
    imperfect = {"errors", "empty", "repeated_seeds"} & counts.keys()
    assert bool(found.warnings) == (outcome is PASS and bool(imperfect))


@settings(deadline=None)
@given(st.floats(-1, 1), st.floats(0, 0.5), st.floats(0, 0.5), st.floats(0, 1))
def test_inside_passes_and_fails_only_where_the_whole_interval_agrees(value, below, above, limit):
    found = inside(value - below, value + above, limit)
    assert found is not INVALID
    if found is PASS:
        assert value <= limit + 1e-9
    if found is FAIL:
        assert value > limit - 1e-9
    assert inside(value, value, limit) is not INCONCLUSIVE


def test_the_bootstrap_generator_hangs_on_axis_and_seeds_alone():
    draws = {
        tuple(axis_rng(name, seeds).integers(0, 2**60, 2))
        for name, seeds in [("x", (1, 2)), ("x", (1, 3)), ("y", (1, 2))]
    }
    assert len(draws) == 3
    # printf '["x",[1,2]]' | sha256sum
    expected = 0xC959E2527457492D8EB0A7728D3285804AEF6BBCA88BB2149B0650946CE2AB0E
    assert axis_rng("x", (1, 2)).bit_generator.seed_seq.entropy == expected


def test_twice_the_floor_is_told_as_the_threshold():
    found = judged_voice(times_floor=2.0)
    assert (found.floor, found.threshold) == (pytest.approx(0.06), pytest.approx(0.12))
