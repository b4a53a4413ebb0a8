"""What verdict, recheck and table hand on to the parts that decide (seeds, rules, names), and say of too little."""

import numpy as np
import pytest

from gates.errors import UsageError
from gates.judge.axes import axis_rng, validity, voice
from gates.judge.compare import _axis, compare
from gates.judge.damage import Limits, _prompts_to_decide, damage
from gates.judge.floors import RULES, Floor, FloorRule, floor_rule, pairwise_calibrated, plugged
from gates.judge.known import Known, KnownAnswer, against_known
from gates.judge.recheck import SignedFloors, _recorded, judge_recheck
from gates.judge.standing import Attempts, Counted, Tries
from gates.judge.values import SeedValue, ValuesRule, judge_values
from gates.judge.verdict import judge, outcomes_of
from gates.measure.figures import JudgeFigures, Unmeasured, ValidityFigures
from gates.records import Outcome, digest
from gates.spec.limits import DamageAxis, Memorisation, Validity
from gates.stats import paired_change
from tests.judge.arms import SEEDS, a_gate, an_arm, damage_figures, measured, memorisation_figures, voice_figures

PAIRWISE = Floor(RULES["pairwise-range@1"])
AGAIN = (11, 12, 13, 14)
POINT = {"max_rate": 0.1, "decide": "point"}
PROBE = {"file": "probe.txt", "kind": "beats", "max_rate": 0.1}


def counts(expected: int, present: int | None = None) -> ValidityFigures:
    present = expected if present is None else present
    return ValidityFigures(expected=expected, present=present, errors=0, empty=0, repeated_seeds=0, prompt_mismatches=0)


# Floors


def test_a_calibrated_rule_that_a_gate_asks_for_states_its_rate_and_wants_as_many_seeds():
    rule = pairwise_calibrated(0.05)
    assert rule.fixed_level is True
    for base, candidate in ((np.zeros((9, 4)), np.zeros((9, 5))), (np.zeros(4), np.zeros(5))):
        with pytest.raises(UsageError) as refused:
            rule.floor(base, candidate, ())
        assert refused.value.message == "pairwise-calibrated@1: 4 seeds against 5"
        assert refused.value.next_step == "give both arms as many seeds, or use pairwise-range@1"


def test_what_no_rule_can_do_is_refused_with_what_to_do():
    with pytest.raises(UsageError) as refused:
        PAIRWISE.of(np.zeros(1), np.zeros(1))
    assert (refused.value.message, refused.value.next_step) == (
        "1 seed(s) have no spread",
        "give every arm at least 2 seeds",
    )
    with pytest.raises(UsageError) as refused:
        floor_rule("pairwise-range@1", 0.05)
    assert (refused.value.message, refused.value.next_step) == (
        "pairwise-range@1 has no alpha",
        "leave alpha out, or use pairwise-calibrated@1",
    )


def test_a_foreign_rule_sees_both_arms_and_its_complaint_is_cut_at_200_characters():
    apart = plugged(FloorRule("apart@1", lambda base, candidate, others: candidate.mean() - base.mean() + len(others)))
    assert apart.floor(np.zeros(4), np.full(4, 0.25), (np.zeros(4),)) == 0.25

    def complain(*arms):
        raise ValueError("x" * 300)

    with pytest.raises(UsageError) as refused:
        plugged(FloorRule("loud@1", complain)).floor(np.zeros(4), np.zeros(4), ())
    assert refused.value.message == "loud@1 failed: ValueError: " + "x" * 200


# Axes at the edge of what can be judged


def test_one_generation_of_one_seed_is_complete():
    found = validity(an_arm(seeds=(1,), validity=counts(1)), a_gate().validity)
    assert (found.outcome, found.reason) == (Outcome.PASS, "1 of 1 generations, fit to judge")


def test_two_seeds_of_just_enough_words_are_enough_for_voice():
    two = voice_figures((0.70, 0.73), (0.90, 0.96), words=(500, 500), base_words=(500, 500))
    found = voice(an_arm(seeds=(1, 2), voice=two), a_gate().voice, None, PAIRWISE)
    assert (found.outcome, found.value, found.floor) == (Outcome.PASS, pytest.approx(0.215), pytest.approx(0.06))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"words": (600, 600, 600, 499)}, "a seed has 499 words, 500 are needed"),
        ({"base_words": (600, 600, 600, 499)}, "base: a seed has 499 words, 500 are needed"),
        ({"words": (600,) * 3}, "4 distances and 3 word counts for 4 seeds; at least 2 are needed"),
    ],
)
def test_a_voice_that_is_too_short_says_whose_words_are_few(changes, reason):
    found = voice(an_arm(voice=voice_figures(**changes)), a_gate().voice, None, PAIRWISE)
    assert (found.outcome, found.reason) == (Outcome.INVALID, reason)


def test_one_generation_that_recites_nothing_is_measured():
    one = an_arm(memorisation=memorisation_figures(0, 1))
    found = voice(one, a_gate().voice, Memorisation(max_rate=0.1, max_heldout_rate=0.02), PAIRWISE)
    assert found.outcome is Outcome.PASS
    assert found.reason.endswith("; 0 of 1 generations recite the held-out text, at most 0.020 of them may")


def test_one_seed_has_no_floor():
    one = voice_figures((0.70,), (0.90,))
    found = voice(an_arm(seeds=(1,), voice=one), a_gate().voice, None, PAIRWISE)
    said = "1 distances and 1 word counts for 1 seeds; at least 2 are needed"
    assert (found.outcome, found.reason) == (Outcome.INVALID, said)


def test_what_no_generation_shows_is_not_judged():
    none = an_arm(memorisation=memorisation_figures(0, 0))
    found = voice(none, a_gate().voice, Memorisation(max_rate=0.1, max_heldout_rate=0.02), PAIRWISE)
    assert found.outcome is Outcome.INVALID


@pytest.mark.parametrize(
    ("expected", "seeds", "fit"),
    [(1, (1,), True), (3, (1,), True), (0, (1,), False), (3, (1, 2), False), (3, (), False)],
)
def test_generations_are_the_same_prompts_under_every_seed(expected, seeds, fit):
    seen = ValidityFigures(
        expected=expected, present=expected, errors=0, empty=0, repeated_seeds=0, prompt_mismatches=0
    )
    found = validity(an_arm(seeds=seeds, validity=seen), Validity())
    said = f"{expected} generations cannot be the same prompts under {len(seeds)} seeds"
    assert (found.outcome, found.reason) == (
        (Outcome.PASS, f"{expected} of {expected} generations, fit to judge") if fit else (Outcome.INVALID, said)
    )


# Verdicts


def test_the_ledger_hears_the_outcome_of_the_run_and_of_each_candidate():
    copies = an_arm(memorisation=memorisation_figures(60))
    found = judge(a_gate(("a", "b")), measured({"base": an_arm("base"), "a": an_arm(), "b": copies}))
    assert outcomes_of(found) == {"outcome": "FAIL", "candidates": {"a": "PASS", "b": "FAIL"}}


def test_a_rule_sees_every_arm_but_the_two_it_compares():
    seen = {}

    def noted(axis):
        def floor(base, candidate, others):
            seen[axis, tuple(candidate)] = [tuple(other) for other in others]
            return np.float64(0.05)

        return FloorRule(f"noted-{axis}@1", floor)

    rules = RULES | {f"noted-{axis}@1": noted(axis) for axis in ("voice", "ran_on")}
    gate = a_gate(("a", "b"))
    ran_on = gate.damage.ran_on.model_copy(update={"floor": "noted-ran_on@1"})
    gate = gate.model_copy(
        update={
            "voice": gate.voice.model_copy(update={"floor": "noted-voice@1"}),
            "damage": gate.damage.model_copy(update={"ran_on": ran_on}),
        }
    )
    on_beat = an_arm().damage["on_beat"]
    voices = {"a": (0.70, 0.71, 0.72, 0.73), "b": (0.60, 0.61, 0.62, 0.63)}
    rates = {"a": (0.0, 0.1, 0.2, 0.3), "b": (0.1, 0.3, 0.1, 0.4)}
    arms = {
        name: an_arm(
            voice=voice_figures(voices[name]), damage={"ran_on": damage_figures(rates[name]), "on_beat": on_beat}
        )
        for name in ("a", "b")
    }
    judge(gate, measured({"base": an_arm("base"), **arms}), rules)
    assert seen == {
        ("voice", voices["a"]): [voices["b"]],
        ("voice", voices["b"]): [voices["a"]],
        ("ran_on", rates["a"]): [rates["b"]],
        ("ran_on", rates["b"]): [rates["a"]],
    }


def shares(middle: float):
    """Shares that are all different, so that a bootstrap of other draws has other limits."""
    values = middle + 0.2 * np.sin(np.arange(120.0) ** 1.5 + 40 * middle).reshape(4, 30)
    rows = tuple(tuple(float(value) for value in row) for row in values)
    rates = tuple(float(row.mean()) for row in values)
    return damage_figures((1,) * 4).model_copy(update={"values": rows, "per_seed": rates, "rate": float(values.mean())})


def shared(role: str, middle: float, seeds=SEEDS, **changes):
    return an_arm(role, seeds=seeds, damage={"ran_on": shares(middle)}, **changes)


def test_the_bootstrap_of_an_axis_is_drawn_by_its_name_and_its_arms_own_seeds():
    gate = a_gate(controls=("again",), damage={"ran_on": {"margin": 0.3}})
    arms = {"base": shared("base", 0.3), "a": shared("candidate", 0.4), "again": shared("control", 0.4, AGAIN)}
    found = judge(gate, measured(arms))
    for axes, arm, seeds in ((found.candidates["a"], "a", SEEDS), (found.controls["again"], "again", AGAIN)):
        rng = axis_rng("ran_on", seeds)
        alone = damage("ran_on", arms["base"], arms[arm], DamageAxis(margin=0.3), PAIRWISE, rng)
        assert axes.axes["ran_on"] == alone
    assert found.candidates["a"].axes["ran_on"].low != found.controls["again"].axes["ran_on"].low


def test_the_probe_is_decided_as_memorisation_is():
    probed = an_arm(extraction=memorisation_figures(3, 40))
    gate = a_gate(memorisation=POINT, probe=PROBE)
    found = judge(gate, measured({"base": an_arm("base"), "a": probed})).candidates["a"].axes["extraction"]
    assert (found.outcome, found.rule) == (Outcome.PASS, "point")
    now = judge_recheck(gate, "a", measured({"base": probed, "a": probed}), SignedFloors("r@1", 0.5, {"ran_on": 0.5}))
    assert (now.axes["extraction"].outcome, now.axes["extraction"].rule) == (Outcome.PASS, "point")


def test_a_broken_rule_of_a_damage_axis_makes_that_axis_invalid():
    gate = a_gate()
    ran_on = gate.damage.ran_on.model_copy(update={"floor": "broken@1"})
    gate = gate.model_copy(update={"damage": gate.damage.model_copy(update={"ran_on": ran_on})})
    broken = plugged(FloorRule("broken@1", lambda base, candidate, others: np.float64(-1)))
    found = judge(gate, measured(), RULES | {"broken@1": broken}).candidates["a"].axes["ran_on"]
    assert (found.axis, found.outcome) == ("ran_on", Outcome.INVALID)
    assert found.reason == "broken@1 gave a floor that is no finite number of at least 0"


def test_an_arm_without_measurements_has_one_axis_whatever_judge_was_tried():
    gate = a_gate(judge={"labelled": "l.jsonl", "max_error": 0.2}, damage={"judged_on_beat": {"margin": 0.15}})
    tried = JudgeFigures(
        signature="judge@1",
        on_beat=2,
        off_beat=3,
        missed=0,
        taken=0,
        swayed=0,
        error_rate=0.0,
        error_low=0.0,
        error_high=0.1,
    )
    found = judge(gate, measured({"base": an_arm("base")}).model_copy(update={"judge": tried})).candidates["a"].axes
    assert found["validity"].axis == "validity"
    assert found["validity"].reason == "no measurements of this arm"
    assert list(found) == ["run", "validity"]


def test_a_control_with_other_seeds_than_its_own_is_told_them():
    gate = a_gate(("a",), ("again",))
    found = judge(gate, measured({"base": an_arm("base"), "a": an_arm(), "again": an_arm("control")}))
    assert found.controls["again"].axes["validity"].reason == (
        "measured with seeds [1, 2, 3, 4], the gate fixes [11, 12, 13, 14]"
    )


def test_a_control_that_is_unfit_is_a_warning_of_the_run():
    control = an_arm("control", seeds=AGAIN, validity=counts(120, 119))
    found = judge(a_gate(("a",), ("again",)), measured({"base": an_arm("base"), "a": an_arm(), "again": control}))
    assert found.warnings == ("again: 1 of 120 generations missing",)


def test_an_axis_that_is_not_fit_to_judge_is_undecided_and_says_why():
    arms = {"base": an_arm("base"), "a": an_arm(voice=Unmeasured(unmeasured="too short"))}
    assert judge(a_gate(), measured(arms)).undecided == ("a, voice: not fit to judge: not measured: too short",)


def test_a_run_without_its_base_is_not_fit_to_judge():
    found = judge(a_gate(), measured({"a": an_arm()}))
    (validity_of_a,) = [axis for name, axis in found.candidates["a"].axes.items() if name != "run"]
    assert (validity_of_a.axis, validity_of_a.reason) == ("validity", "there is no base to compare with")
    assert "a, validity: not fit to judge: there is no base to compare with" in found.undecided


# Damage and comparisons


def test_one_text_before_and_after_is_a_pair():
    one = damage_figures((1,), prompts=1)
    base, arm = (an_arm(role, seeds=(1,), validity=counts(1), damage={"ran_on": one}) for role in ("base", "candidate"))
    found = damage("ran_on", base, arm, DamageAxis(margin=0.1, decide="point"), PAIRWISE, axis_rng("ran_on", (1,)))
    assert (found.outcome, found.value) == (Outcome.PASS, 0.0)


@pytest.mark.parametrize(
    ("limits", "harm", "margin", "said"),
    [
        # (0.55 / 0.50)² × 8 = 9.68; a harm that mirrors its margin is not close to it.
        ((-0.50, 0.30), -0.25, 0.25, "about 10 prompts at this harm would decide; there are 8"),
        # 31.62² = 999.8 and 31.63² = 1000.5
        ((0.0, 31.62), 0.0, 1.0, "about 7999 prompts at this harm would decide; there are 8"),
        ((0.0, 31.63), 0.0, 1.0, "the harm is too close to its margin for any feasible number of prompts"),
    ],
)
def test_a_thousand_times_as_many_prompts_are_no_advice(limits, harm, margin, said):
    assert _prompts_to_decide(harm, Limits(*limits, "r", ()), margin, 8) == said


def test_the_arm_that_moved_further_is_preferred_whichever_is_named_first():
    arms = measured({"base": an_arm("base"), "a": an_arm(), "b": an_arm(voice=voice_figures((0.60, 0.61, 0.62, 0.63)))})
    gate = a_gate(("a", "b"))
    for pair in (("a", "b"), ("b", "a")):
        found = compare(gate, arms, judge(gate, arms), *pair)
        assert (found.indistinguishable, found.preferred, found.chosen_by) == (False, "b", "voice")


# Rechecks


def test_a_recheck_and_a_comparison_draw_by_the_axis_as_well():
    gate = a_gate(damage={"ran_on": {"margin": 0.3}})
    then, now = shared("base", 0.3), shared("candidate", 0.4)
    found = judge_recheck(gate, "a", measured({"base": then, "a": now}), SignedFloors("r", 0.09, {}))
    alone = damage("ran_on", then, now, DamageAxis(margin=0.3), PAIRWISE, axis_rng("ran_on", SEEDS))
    assert found.axes["ran_on"] == alone
    one, other = (np.array(arm.damage["ran_on"].values).T for arm in (then, now))
    change = paired_change(one, other, 0.975, 10_000, axis_rng("ran_on", SEEDS))
    said = _axis("ran_on", gate, measured({"base": then, "a": now}), ("base", "a"))
    assert said.reason == f"change {change.low:+.3f} to {change.high:+.3f} (95 %)"
    assert said.test == "prompt-bootstrap|level:0.95"


def test_a_recorded_floor_is_one_for_every_gate():
    assert _recorded(0.25, "r").floor(np.zeros((3, 4)), np.zeros((3, 4)), ()).tolist() == [0.25] * 3


def test_a_voice_without_any_word_is_not_the_same_voice():
    silent = an_arm(voice=voice_figures(words=(), base_words=()))
    arms = measured({"base": an_arm("base"), "a": silent})
    found = judge_recheck(a_gate(), "a", arms, SignedFloors("r@1", 0.5, {"ran_on": 0.5})).axes["same_voice"]
    assert (found.outcome, found.reason) == (Outcome.INVALID, "a seed has 0 words, 500 are needed")


# Tables of values


def rows(rates: dict[str, float], axis="memorisation", n: int | None = 30, hits: int | None = 0) -> list[SeedValue]:
    return [
        SeedValue(arm=arm, seed=seed, axis=axis, value=rate, n=n, hits=hits)
        for arm, rate in rates.items()
        for seed in (1, 2)
    ]


def test_a_verdict_on_a_table_names_its_values():
    table, other = rows({"base": 0.1, "a": 0.1}), rows({"base": 0.1, "a": 0.2})
    rule = ValuesRule(rule="pairwise-range@1")
    assert judge_values(table, rule).values_sha256 == digest([row.as_json() for row in table])
    assert judge_values(table, rule).values_sha256 != judge_values(other, rule).values_sha256


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (ValuesRule(rule="max-rate@1"), "max-rate@1 needs a threshold"),
        (
            ValuesRule(rule="pairwise-range@1", base="who"),
            "the table holds no arm 'who' to compare with; the table holds: a, base",
        ),
    ],
)
def test_a_table_that_cannot_be_judged_says_what_it_holds_where_that_helps(rule, message):
    with pytest.raises(UsageError) as refused:
        judge_values(rows({"base": 0.1, "a": 0.2}), rule)
    assert (refused.value.message, refused.value.next_step) == (message, "see `gates judge --help`")


@pytest.mark.parametrize("rule", ["max-rate@1", "max-ratio@1"])
def test_a_limit_of_zero_is_a_limit(rule):
    table = rows({"base": 0.1, "a": 0.1}, hits=3)
    found = judge_values(table, ValuesRule(rule=rule, threshold=0.0)).candidates["a"].axes["memorisation"]
    assert (found.outcome, found.threshold) == (Outcome.FAIL, 0.0)


def test_a_seed_of_no_texts_counts_none():
    table = [
        SeedValue(arm="a", seed=1, axis="memorisation", value=0.1, n=30, hits=3),
        SeedValue(arm="a", seed=2, axis="memorisation", value=0.0, n=0, hits=0),
    ]
    found = judge_values(table, ValuesRule(rule="max-rate@1", threshold=0.5)).candidates["a"].axes["memorisation"]
    assert found.value == pytest.approx(0.1)
    assert found.reason.startswith("3 of 30: ")


# What is said beside a verdict


def test_one_try_is_a_try_and_two_are_tries():
    before = Counted(seals=1, runs=2, floors=0)
    tries = {"a": Tries(tries=1, chance=0.05), "b": Tries(tries=2, chance=0.1)}
    assert Attempts(this_gate=before, other_gates={"g": before}, candidates=tries).sentences() == [
        "this gate so far: 1 seal, 2 runs, 0 floors before",
        "the same adapter bytes under gate g: 1 seal, 2 runs, 0 floors before",
        "a: 1 try; one of as many that moved nothing passes voice with a chance of 5.0%",
        "b: 2 tries; one of as many that moved nothing passes voice with a chance of 10.0%",
    ]


def test_a_figure_that_is_not_there_is_called_none():
    found = judge(a_gate(), measured())
    ran_on = found.candidates["a"].axes["ran_on"]
    known = Known(arm="a", axis="ran_on", answer=Outcome.PASS, value=ran_on.value, low=0.01, high=None, threshold=None)
    (row,) = (row for row in against_known("g", found, [known]) if row.axis == "ran_on")
    assert row.wrong == f"low none for 0.010; threshold {ran_on.threshold:.3f} for none"


def test_a_figure_that_is_not_there_is_told_as_none():
    found = judge(a_gate(), measured()).candidates["a"].axes["validity"]
    known = Known(arm="a", axis="validity", answer=Outcome.PASS, value=0.5, low=None, high=None, threshold=None)
    assert KnownAnswer(gate="g", arm="a", axis="validity", known=known, found=found).wrong == "value none for 0.500"
