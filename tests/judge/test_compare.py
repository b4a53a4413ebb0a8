"""Two arms side by side: the house case, what resolves and by which test, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.errors import UsageError
from gates.judge.compare import compare, range_ratio_point
from gates.judge.verdict import judge
from gates.measure.figures import Run, Source, Unmeasured, ValidityFigures
from tests.judge.arms import (
    HASH,
    a_gate,
    an_arm,
    damage_figures,
    measured,
    memorisation_figures,
    voice_figures,
)

FIVE = (1, 2, 3, 4, 5)
BASE = tuple(0.950 + shift for shift in (-0.030, -0.010, 0.0, 0.0, 0.034))


def distances(mean: float, width: float) -> tuple[float, ...]:
    """Five distances of that mean whose max - min is `width`."""
    shape = np.array([-0.5, -0.1, 0.0, 0.1, 0.5])
    return tuple(float(value) for value in mean + width * shape)


def run_of(prompt: int, seed: int) -> Run:
    source = Source(file="t.txt", start=3)
    return Run(prompt=prompt, seed=seed, start=0, length=9, sources=(source,), sha256=HASH, capitalised=())


def the_house_run(order=("seed_spread", "memorisation", "ran_on", "notes.step")):
    """lv-hemingway 850 and 1750: 0.072 apart, spreads 0.050 and 0.113, memorisation 0.07 and 0.08, ran-on 0.08 and
    0.12; 100 texts an arm, 20 prompts under 5 seeds."""
    candidates = {
        "ckpt850": {"model": "m-850", "adapter": "850.gguf", "notes": {"step": 850}},
        "ckpt1750": {"model": "m-1750", "adapter": "1750.gguf", "notes": {"step": 1750}},
    }
    gate = a_gate(
        arms={"base": "m", "candidates": candidates},
        sampling={"seeds": list(FIVE), "temperature": 0.9, "top_p": 0.95, "max_tokens": 300},
        voice={"mfw": 300, "words_per_seed": 500},
        memorisation={"max_rate": 0.2},
        damage={"ran_on": {"margin": 0.3}},
        tie_break=list(order),
    )
    mean = float(np.mean(BASE))

    def arm(delta: float, width: float, hits: int, ran_on: tuple[float, ...]):
        return an_arm(
            seeds=FIVE,
            validity=ValidityFigures(
                expected=100, present=100, errors=0, empty=0, repeated_seeds=0, prompt_mismatches=0
            ),
            voice=voice_figures(distances(mean - delta, width), BASE),
            memorisation=memorisation_figures(
                hits, 100, runs=tuple(run_of(n % 20, FIVE[n // 20]) for n in range(hits))
            ),
            damage={"ran_on": damage_figures(ran_on, prompts=20)},
        )

    base = arm(0.0, 0.064, 0, (0.0,) * 5).model_copy(update={"role": "base", "voice": None})
    arms = {
        "base": base,
        "ckpt850": arm(0.413, 0.050, 7, (0.10, 0.10, 0.10, 0.05, 0.05)),
        "ckpt1750": arm(0.341, 0.113, 8, (0.15, 0.15, 0.10, 0.10, 0.10)),
    }
    return gate, measured(arms)


def compared(order=("seed_spread", "memorisation", "ran_on", "notes.step"), a="ckpt850", b="ckpt1750"):
    gate, measurements = the_house_run(order)
    return compare(gate, measurements, judge(gate, measurements), a, b)


def test_hemingway_850_is_preferred_to_1750():
    found = compared()
    assert (round(found.difference, 3), round(found.floor, 3)) == (0.072, 0.113)
    assert (found.comparable, found.indistinguishable) == (True, True)
    assert (found.preferred, found.chosen_by) == ("ckpt850", "seed_spread")
    spread, memorisation, ran_on, step = found.tie_break
    assert [axis.prefers for axis in found.tie_break] == ["ckpt850"] * 4
    assert [round(axis.a, 3) for axis in found.tie_break] == [0.050, 0.070, 0.080, 850]
    assert [round(axis.b, 3) for axis in found.tie_break] == [0.113, 0.080, 0.120, 1750]
    assert spread.reason == "2.3× as wide; equal arms differ by more than 3.2× in 5 % of cases"
    assert [axis.resolves for axis in found.tie_break] == ["within chance"] * 3 + ["not testable"]
    assert memorisation.test.startswith("prompt-bootstrap")
    assert ran_on.reason.startswith("change ")
    assert step.reason == "a note is declared, not measured"
    assert found.reason == (
        "ckpt850 and ckpt1750 are 0.072 apart, the pairwise floor of the two is 0.113: indistinguishable; in the "
        "sealed order seed_spread is the first that resolves: ckpt850, a preference only"
    )


@pytest.mark.parametrize("first", ["memorisation", "ran_on", "notes.step", "seed_spread"])
def test_whatever_axis_comes_first_in_the_sealed_order_chooses(first):
    found = compared((first,))
    assert (found.preferred, found.chosen_by) == ("ckpt850", first)


def test_the_order_of_the_two_does_not_matter():
    one, other = compared(), compared(a="ckpt1750", b="ckpt850")
    assert (one.preferred, one.floor) == (other.preferred, other.floor)
    assert one.difference == -other.difference
    assert [axis.resolves for axis in one.tie_break] == [axis.resolves for axis in other.tie_break]


def test_a_larger_move_than_seeds_explain_needs_no_tie_break():
    arms = {
        "base": an_arm("base"),
        "a": an_arm(),
        "b": an_arm(voice=voice_figures((0.60, 0.61, 0.62, 0.63))),
    }
    gate = a_gate(("a", "b"), tie_break=["memorisation"])
    found = compare(gate, measured(arms), judge(gate, measured(arms)), "a", "b")
    assert (found.indistinguishable, found.preferred, found.chosen_by) == (False, "b", "voice")
    assert found.reason.endswith("b moved further than seeds explain")


def test_equal_arms_and_no_tie_break_prefer_nobody():
    arms = {"base": an_arm("base"), "a": an_arm(), "b": an_arm()}
    for order in ([], ["seed_spread", "memorisation", "ran_on", "voice", "notes.epochs"]):
        gate = a_gate(("a", "b"), tie_break=order)
        found = compare(gate, measured(arms), judge(gate, measured(arms)), "a", "b")
        assert (found.indistinguishable, found.preferred, found.chosen_by) == (True, None, None)
        assert found.reason.endswith("indistinguishable, and no axis of the sealed tie-break resolves")


def test_an_axis_whose_interval_excludes_nothing_beyond_chance_says_so():
    arms = {
        "base": an_arm("base"),
        "a": an_arm(),
        "b": an_arm(damage={**an_arm().damage, "ran_on": damage_figures((0.7, 0.7, 0.8, 0.7))}),
    }
    gate = a_gate(("a", "b"), tie_break=["ran_on", "on_beat", "memorisation"])
    found = compare(gate, measured(arms), judge(gate, measured(arms)), "a", "b")
    ran_on, on_beat, memorisation = found.tie_break
    assert (ran_on.resolves, ran_on.prefers, ran_on.better) == ("beyond chance", "a", "lower")
    assert (on_beat.resolves, on_beat.prefers, on_beat.better) == ("within chance", None, "higher")
    # Two hits are counted and no run says where: the pairs are not to be had.
    assert (memorisation.resolves, memorisation.prefers) == ("not testable", None)
    assert "only the counts of hits are recorded" in memorisation.reason


def test_a_spread_beyond_the_null_ratio_resolves():
    # Four seeds: 0.03 against 0.15 is 5 times, the null point is 3.97.
    arms = {
        "base": an_arm("base"),
        "a": an_arm(),
        "b": an_arm(voice=voice_figures((0.65, 0.70, 0.74, 0.80))),
    }
    gate = a_gate(("a", "b"), tie_break=["seed_spread"])
    (spread,) = compare(gate, measured(arms), judge(gate, measured(arms)), "b", "a").tie_break
    assert (spread.resolves, spread.prefers) == ("beyond chance", "a")
    assert spread.reason == "5.0× as wide; equal arms differ by more than 4.0× in 5 % of cases"


@pytest.mark.parametrize(
    "change",
    [
        {"voice": Unmeasured(unmeasured="no words")},
        {"voice": voice_figures((0.9,) * 4)},
        {
            "validity": ValidityFigures(
                expected=120, present=119, errors=0, empty=0, repeated_seeds=0, prompt_mismatches=0
            )
        },
    ],
    ids=["unmeasured", "no spread and none beside it", "incomplete"],
)
def test_an_arm_that_is_not_fit_is_not_compared(change):
    flat = {"voice": voice_figures((0.9,) * 4)} if isinstance(change.get("voice"), type(voice_figures())) else {}
    arms = {"base": an_arm("base"), "a": an_arm(**flat), "b": an_arm(**change)}
    gate = a_gate(("a", "b"), tie_break=["memorisation"])
    verdict = judge(gate, measured(arms))
    found = compare(gate, measured(arms), verdict, "a", "b")
    assert (found.comparable, found.preferred, found.indistinguishable) == (False, None, None)
    assert found.reason.startswith(("not fit to compare: b INVALID", "the floor of the two is 0"))


def test_a_control_is_compared_and_has_no_notes():
    control = an_arm("control", seeds=(11, 12, 13, 14), voice=voice_figures((0.71, 0.72, 0.73, 0.74)))
    gate = a_gate(("a",), ("again",), tie_break=["notes.epochs", "ran_on"])
    arms = measured({"base": an_arm("base"), "a": an_arm(), "again": control})
    found = compare(gate, arms, judge(gate, arms), "a", "again")
    notes, ran_on = found.tie_break
    assert (notes.a, notes.b, notes.prefers) == (None, None, None)
    assert (ran_on.resolves, ran_on.reason) == ("not testable", "the arms do not hold the same prompts and seeds")


@pytest.mark.parametrize(("a", "b"), [("ckpt850", "ckpt850"), ("ckpt850", "base"), ("nobody", "ckpt850")])
def test_only_two_arms_that_were_judged_are_compared(a, b):
    with pytest.raises(UsageError, match=r"(cannot be compared with itself|no arm that this run judged)\n.*ckpt1750"):
        compared(a=a, b=b)


PROBE = {"file": "pairs.txt", "template": "{beat}", "kind": "beats", "max_rate": 0.9}


@pytest.mark.parametrize("more", [0, 7])
def test_extraction_is_compared_by_the_answers_to_the_probe(more):
    # Six probe prompts after thirty open ones, four seeds: 12 hits of 24 against 12, and against 5.
    def arm(hits: int):
        runs = tuple(run_of(30 + n // 4, 1 + n % 4) for n in range(hits))
        return an_arm(extraction=memorisation_figures(hits, 24, runs=runs))

    gate = a_gate(("a", "b"), probe=PROBE, tie_break=["extraction"])
    probed = an_arm("base", extraction=memorisation_figures(0, 24))
    figures = measured({"base": probed, "a": arm(12 - more), "b": arm(12)})
    found = compare(gate, figures, judge(gate, figures), "a", "b")
    (extraction,) = found.tie_break
    assert (extraction.a, extraction.b, extraction.better) == ((12 - more) / 24, 0.5, "lower")
    assert (found.preferred, found.chosen_by) == (("a", "extraction") if more else (None, None))
    # Seven pairs change one way and none the other: McNemar's exact p is 2 / 2 ** 7 = 0.016.
    assert extraction.resolves == ("beyond chance" if more else "within chance")
    assert extraction.test == "newcombe-paired|level:0.95"


def test_extraction_without_a_probe_is_no_axis():
    with pytest.raises(ValueError, match="tie_break names 'extraction', which this gate does not measure"):
        a_gate(tie_break=["extraction"])


def test_a_sealed_gate_whose_notes_are_missing_is_read_as_it_is():
    assert a_gate(tie_break=["notes.epochs"]).tie_break == ("notes.epochs",)


def test_null_points_of_the_range_ratio():
    # k = 2: the ratio of two half-normals, P(ratio <= r) = 4 arctan(r) / pi - 1, exactly.
    assert range_ratio_point(2) == pytest.approx(math.tan(1.95 * math.pi / 4), rel=1e-5)
    # Published for k = 3 and 5 with one decimal; a simulation of a million pairs gave 3.97 (k = 4), 2.108 (k = 10).
    assert [round(range_ratio_point(k), 1) for k in (3, 5)] == [6.3, 3.2]
    assert range_ratio_point(4) == pytest.approx(3.97, abs=0.02)
    assert range_ratio_point(10) == pytest.approx(2.108, abs=0.006)
    with pytest.raises(UsageError, match=r"no range ratio for 1 seeds at 0\.95"):
        range_ratio_point(1)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.integers(400, 990).map(lambda d: d / 1000), min_size=4, max_size=4),
    st.sampled_from(["voice", "seed_spread"]),
)
def test_a_preference_never_comes_from_an_equal_value(own, axis):
    gate = a_gate(("a", "b"), tie_break=[axis])
    arms = measured({"base": an_arm("base"), "a": an_arm(voice=voice_figures(tuple(own))), "b": an_arm()})
    found = compare(gate, arms, judge(gate, arms), "a", "b")
    for row in found.tie_break:
        assert (row.prefers is None) == (round(row.a, 3) == round(row.b, 3))
    if found.comparable and found.indistinguishable:
        assert abs(found.difference) <= found.floor + 1e-9
