"""What judges pass on to one another: seeds, rules and names in full, limits from both sides, sentences as they are."""

import numpy as np
import pytest

from gates.errors import UsageError
from gates.judge.axes import axis_rng, validity, voice
from gates.judge.compare import _axis
from gates.judge.damage import damage
from gates.judge.floors import RULES, Floor, FloorRule, pairwise_calibrated, plugged
from gates.judge.known import Known, KnownAnswer
from gates.judge.recheck import SignedFloors, _recorded, judge_recheck
from gates.judge.standing import Attempts, Counted, Tries
from gates.judge.values import SeedValue, ValuesRule, judge_values
from gates.judge.verdict import judge, outcomes_of
from gates.measure.figures import Unmeasured, ValidityFigures
from gates.records import Outcome, digest
from gates.spec.limits import DamageAxis, Memorisation, Validity, Voice
from gates.stats import paired_change
from tests.judge.arms import (
    BASE_DISTANCES,
    SEEDS,
    a_gate,
    an_arm,
    damage_figures,
    measured,
    memorisation_figures,
    voice_figures,
)

PASS, FAIL, INCONCLUSIVE, INVALID = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.INVALID
PAIRWISE = Floor(RULES["pairwise-range@1"])
VOICE = Voice(mfw=300, words_per_seed=500)
PROBE = {"file": "probe.txt", "kind": "beats", "max_rate": 0.1}
OWN = (11, 12, 13, 14)


def shares(middle: float):
    """Shares that are all different, so that a bootstrap of other draws has other limits."""
    values = middle + 0.2 * np.sin(np.arange(120.0) ** 1.5 + 40 * middle).reshape(4, 30)
    rows = tuple(tuple(float(value) for value in row) for row in values)
    rates = tuple(float(row.mean()) for row in values)
    return damage_figures((1,) * 4).model_copy(update={"values": rows, "per_seed": rates, "rate": float(values.mean())})


def shared(role: str, middle: float, seeds=SEEDS, **changes):
    return an_arm(role, seeds=seeds, damage={"ran_on": shares(middle)}, **changes)


def limits(found):
    return found.low, found.high


def test_the_bootstrap_of_an_axis_is_drawn_by_its_name_and_its_arms_own_seeds():
    gate = a_gate(controls=("again",), damage={"ran_on": {"margin": 0.3}})
    arms = {"base": shared("base", 0.3), "a": shared("candidate", 0.4), "again": shared("control", 0.4, OWN)}
    found = judge(gate, measured(arms))
    for axes, arm, seeds in ((found.candidates["a"], "a", SEEDS), (found.controls["again"], "again", OWN)):
        rng = axis_rng("ran_on", seeds)
        alone = damage("ran_on", arms["base"], arms[arm], DamageAxis(margin=0.3), PAIRWISE, rng)
        assert limits(axes.axes["ran_on"]) == limits(alone)
    assert limits(found.candidates["a"].axes["ran_on"]) != limits(found.controls["again"].axes["ran_on"])


def test_a_recheck_and_a_comparison_draw_by_the_axis_as_well():
    gate = a_gate(damage={"ran_on": {"margin": 0.3}})
    then, now = shared("base", 0.3), shared("candidate", 0.4)
    found = judge_recheck(gate, "a", measured({"base": then, "a": now}), SignedFloors("r", 0.09, {}))
    alone = damage("ran_on", then, now, DamageAxis(margin=0.3), PAIRWISE, axis_rng("ran_on", SEEDS))
    assert limits(found.axes["ran_on"]) == limits(alone)
    one, other = (np.array(arm.damage["ran_on"].values).T for arm in (then, now))
    change = paired_change(one, other, 0.975, 10_000, axis_rng("ran_on", SEEDS))
    said = _axis("ran_on", gate, measured({"base": then, "a": now}), ("base", "a"))
    assert said.reason == f"change {change.low:+.3f} to {change.high:+.3f} (95 %)"
    assert said.test == "prompt-bootstrap|level:0.95"


def test_the_retired_rule_sees_the_damage_of_every_other_arm():
    gate = a_gate(("a", "b"), damage={"ran_on": {"within": "floor", "floor": "all-arms-range@1"}})
    wide = {"ran_on": damage_figures((0.1, 0.6, 0.1, 0.2))}
    found = judge(gate, measured({"base": an_arm("base"), "a": an_arm(), "b": an_arm(damage=wide)}))
    assert found.candidates["a"].axes["ran_on"].floor == pytest.approx(0.5)


def test_bare_figures_decide_on_the_probe_where_the_gate_says_so():
    gate = a_gate(probe=PROBE, memorisation={"max_rate": 0.1, "decide": "point"})
    arm = an_arm(extraction=memorisation_figures(4, 40))
    run = measured({"base": an_arm("base", extraction=memorisation_figures(0, 40)), "a": arm})
    now = measured({"base": an_arm("base"), "a": arm})
    for axes in (judge(gate, run).candidates["a"].axes, judge_recheck(gate, "a", now, SignedFloors("r", 1, {})).axes):
        assert (axes["extraction"].outcome, axes["extraction"].rule) == (PASS, "point")


def test_axes_are_named_where_they_are_invalid():
    gate = a_gate(controls=("again",))
    found = judge(gate, measured({"a": an_arm(), "again": an_arm("control")}))
    (validity_of_a,) = [axis for name, axis in found.candidates["a"].axes.items() if name != "run"]
    assert (validity_of_a.axis, validity_of_a.reason) == ("validity", "there is no base to compare with")
    said = "measured with seeds [1, 2, 3, 4], the gate fixes [11, 12, 13, 14]"
    assert found.controls["again"].axes["validity"].reason == said
    assert "a, validity: not fit to judge: there is no base to compare with" in found.undecided

    def broken(*_arms):
        raise ValueError("x" * 300)

    rule = plugged(FloorRule("mine@1", broken))
    voiced = a_gate(damage={"ran_on": {"within": "floor", "floor": "all-arms-range@1"}}).damage.named()["ran_on"]
    mine = a_gate()
    document = mine.model_copy(
        update={"damage": mine.damage.model_copy(update={"ran_on": voiced.model_copy(update={"floor": "mine@1"})})}
    )
    axis = judge(document, measured(), {**RULES, "mine@1": rule}).candidates["a"].axes["ran_on"]
    assert (axis.axis, axis.outcome) == ("ran_on", INVALID)
    assert axis.reason == f"mine@1 failed: ValueError: {'x' * 200}"


def test_a_rule_of_foreign_code_sees_both_arms():
    rule = plugged(FloorRule("sum@1", lambda base, candidate, others: base[..., 0] + candidate[..., 0] + len(others)))
    assert rule.floor(np.array([1.0, 0.0]), np.array([2.0, 0.0]), (np.zeros(2),)) == 3.0


def test_a_judge_adds_no_axis_to_an_arm_that_is_not_there():
    asked = {"judge": {"labelled": "l.jsonl", "max_error": 0.2}, "damage": {"judged_on_beat": {"margin": 0.15}}}
    run = measured({"base": an_arm("base")}).model_copy(update={"judge": Unmeasured(unmeasured="none")})
    assert list(judge(a_gate(**asked), run).candidates["a"].axes) == ["run", "validity"]


def test_a_control_that_is_unfit_is_warned_of():
    few = ValidityFigures(expected=120, present=119, errors=0, empty=0, repeated_seeds=0, prompt_mismatches=0)
    control = an_arm("control", seeds=OWN, validity=few)
    found = judge(a_gate(controls=("again",)), measured({"base": an_arm("base"), "a": an_arm(), "again": control}))
    assert found.warnings == ("again: 1 of 120 generations missing",)


def test_the_ledger_is_told_the_outcome_of_each_candidate():
    arms = {"base": an_arm("base"), "a": an_arm(), "b": an_arm(memorisation=memorisation_figures(60))}
    found = outcomes_of(judge(a_gate(("a", "b")), measured(arms)))
    assert found == {"outcome": "FAIL", "candidates": {"a": "PASS", "b": "FAIL"}}


@pytest.mark.parametrize("seeds", [(1, 2), (1,)])
def test_two_seeds_have_a_floor_and_one_has_none(seeds):
    figures = voice_figures((0.70, 0.72)[: len(seeds)], (0.90, 0.92)[: len(seeds)])
    found = voice(an_arm(seeds=seeds, voice=figures), VOICE, None, PAIRWISE)
    assert found.outcome is (PASS if len(seeds) == 2 else INVALID)
    if len(seeds) == 1:
        assert found.reason == "1 distances and 1 word counts for 1 seeds; at least 2 are needed"


def test_just_enough_words_are_enough_for_a_voice():
    enough, short = (voice_figures(words=(words,) * 4) for words in (500, 499))
    assert voice(an_arm(voice=enough), VOICE, None, PAIRWISE).outcome is PASS
    found = voice(an_arm(voice=short), VOICE, None, PAIRWISE)
    assert (found.outcome, found.reason) == (INVALID, "a seed has 499 words, 500 are needed")


@pytest.mark.parametrize(("n", "outcome"), [(0, INVALID), (1, PASS)])
def test_what_is_recited_is_counted_in_one_generation_at_least(n, outcome):
    arm = an_arm(memorisation=memorisation_figures(0, n))
    limit = Memorisation(max_rate=0.1, max_heldout_rate=0.02)
    assert voice(arm, VOICE, limit, PAIRWISE).outcome is outcome


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
        (PASS, f"{expected} of {expected} generations, fit to judge") if fit else (INVALID, said)
    )


def test_a_calibrated_rule_has_its_level_and_needs_as_many_seeds_in_both_arms():
    rule = pairwise_calibrated(0.05)
    assert rule.fixed_level is True
    with pytest.raises(UsageError, match=r"^pairwise-calibrated@1: 4 seeds against 5\n") as caught:
        rule.floor(np.zeros((3, 4)), np.zeros((3, 5)), ())
    assert caught.value.next_step == "give both arms as many seeds, or use pairwise-range@1"


def test_a_recorded_floor_is_one_for_every_gate():
    assert _recorded(0.25, "r").floor(np.zeros((3, 4)), np.zeros((3, 4)), ()).tolist() == [0.25] * 3


def test_a_recheck_without_any_word_is_invalid():
    silent = voice_figures(BASE_DISTANCES, words=(), base_words=())
    run = measured({"base": an_arm("base"), "a": an_arm(voice=silent)})
    found = judge_recheck(a_gate(), "a", run, SignedFloors("r", 0.09, {"ran_on": 0.2})).axes["same_voice"]
    assert (found.outcome, found.reason) == (INVALID, "a seed has 0 words, 500 are needed")


def counted(*rates, arm="a"):
    return [
        SeedValue(arm=arm, seed=seed, axis="memorisation", value=hits / max(n, 1), n=n, hits=hits)
        for seed, (hits, n) in enumerate(rates, 1)
    ]


def test_a_limit_of_nothing_is_a_limit():
    table = [*counted((7, 100)), *counted((7, 100), arm="base")]
    for rule in ("max-rate@1", "max-ratio@1"):
        found = judge_values(table, ValuesRule(rule=rule, threshold=0.0)).candidates["a"].axes["memorisation"]
        assert (found.outcome, found.threshold) == (FAIL, 0.0)


def test_a_seed_without_texts_adds_none():
    found = judge_values(counted((7, 100), (0, 0)), ValuesRule(rule="max-rate@1", threshold=0.5))
    assert found.candidates["a"].axes["memorisation"].value == 0.07


def test_a_verdict_on_values_names_the_values():
    table = counted((7, 100))
    found = judge_values(table, ValuesRule(rule="max-rate@1", threshold=0.5))
    assert found.values_sha256 == digest([row.as_json() for row in table])


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"rule": "max-rate@1"}, "max-rate@1 needs a threshold"),
        ({"rule": "pairwise-range@1"}, "the table holds no arm 'base' to compare with; the table holds: a"),
    ],
)
def test_what_a_rule_cannot_judge_is_said_in_full(rule, said):
    with pytest.raises(UsageError) as caught:
        judge_values(counted((7, 100)), ValuesRule(**rule))
    assert (caught.value.message, caught.value.next_step) == (said, "see `gates judge --help`")


def test_a_figure_that_is_not_there_is_told_as_none():
    found = judge(a_gate(), measured()).candidates["a"].axes["validity"]
    known = Known(arm="a", axis="validity", answer=PASS, value=0.5, low=None, high=None, threshold=None)
    assert KnownAnswer(gate="g", arm="a", axis="validity", known=known, found=found).wrong == "value none for 0.500"


def test_one_try_is_a_try_and_two_are_tries():
    before = Counted(seals=1, runs=2, floors=0)
    tries = {"a": Tries(tries=1, chance=0.05), "b": Tries(tries=2, chance=0.1)}
    assert Attempts(this_gate=before, other_gates={"g": before}, candidates=tries).sentences() == [
        "this gate so far: 1 seal, 2 runs, 0 floors before",
        "the same adapter bytes under gate g: 1 seal, 2 runs, 0 floors before",
        "a: 1 try; one of as many that moved nothing passes voice with a chance of 5.0%",
        "b: 2 tries; one of as many that moved nothing passes voice with a chance of 10.0%",
    ]
