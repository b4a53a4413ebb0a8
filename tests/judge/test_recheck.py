"""A recheck's verdict: the same voice by the run's own floor, memorisation and damage by the gate's limits."""

import numpy as np
import pytest

from gates.judge.recheck import SAME_VOICE, SignedFloors, alarm, judge_recheck
from gates.measure.figures import Unmeasured
from gates.records import Outcome
from tests.judge.arms import (
    BASE_DISTANCES,
    a_gate,
    an_arm,
    damage_figures,
    measured,
    memorisation_figures,
    voice_figures,
)

PASS, FAIL, INVALID = Outcome.PASS, Outcome.FAIL, Outcome.INVALID
FLOORS = SignedFloors(rule="pairwise-range@1", voice=0.09, damage={"ran_on": 0.2})


def now(**changes):
    """The arm as it is now: where nothing is changed, as it was."""
    return an_arm(**{"voice": voice_figures(BASE_DISTANCES)} | changes)


def judged(floors=FLOORS, gate=None, **changes):
    arms = {"base": an_arm("base"), "a": now(**changes)}
    return judge_recheck(gate or a_gate(), "a", measured(arms), floors)


def outcomes(found):
    return {name: axis.outcome for name, axis in found.axes.items()}


def moved(by):
    return voice_figures(tuple(distance - by for distance in BASE_DISTANCES))


def test_a_voice_that_answers_as_it_did_passes_on_every_axis():
    found = judged()
    assert found.outcome is PASS
    assert outcomes(found) == dict.fromkeys(("validity", SAME_VOICE, "memorisation", "ran_on", "on_beat"), PASS)


@pytest.mark.parametrize(("by", "outcome"), [(0.08, PASS), (-0.08, PASS), (0.10, FAIL), (-0.10, FAIL)])
def test_voice_may_move_by_the_runs_floor_in_either_direction(by, outcome):
    found = judged(voice=moved(by))
    assert outcomes(found)[SAME_VOICE] is outcome
    assert found.axes[SAME_VOICE].threshold == FLOORS.voice


def test_new_copying_fails_though_the_voice_is_the_same():
    found = judged(memorisation=memorisation_figures(hits=40))
    assert found.outcome is FAIL
    assert outcomes(found) | {"memorisation": PASS} == outcomes(judged())


@pytest.mark.parametrize(("rate", "outcome"), [(0.3, PASS), (0.5, FAIL)])
def test_damage_within_a_floor_is_held_against_the_signed_one(rate, outcome):
    # 0.15 then: 0.3 is inside the signed floor of 0.2, 0.5 is not, whatever the spread of now.
    figures = {"ran_on": damage_figures((rate,) * 4), "on_beat": now().damage["on_beat"]}
    assert outcomes(judged(damage=figures))["ran_on"] is outcome


def test_damage_within_a_margin_is_held_against_the_gates():
    figures = {"ran_on": now().damage["ran_on"], "on_beat": damage_figures((0.4,) * 4, "lower", name="on_beat@1")}
    found = judged(damage=figures)
    assert (found.outcome, outcomes(found)["on_beat"]) == (FAIL, FAIL)


def test_whatever_is_missing_is_invalid():
    assert judge_recheck(a_gate(), "a", measured({"base": an_arm("base")}), FLOORS).outcome is INVALID
    for changes in (
        {"voice": Unmeasured(unmeasured="no words")},
        {"voice": voice_figures(BASE_DISTANCES, words=(400,) * 4)},
    ):
        assert outcomes(judged(**changes))[SAME_VOICE] is INVALID
    assert outcomes(judged(SignedFloors("r", 0.0, {"ran_on": 0.2})))[SAME_VOICE] is INVALID
    assert outcomes(judged(SignedFloors("r", 0.09, {})))["ran_on"] is INVALID


def test_more_seeds_now_alarm_less_and_notice_a_smaller_shift():
    few, many = (alarm(5, count, np.random.default_rng(1)) for count in (2, 5))
    assert few.false_alarm > many.false_alarm
    assert few.shift_80 > many.shift_80
