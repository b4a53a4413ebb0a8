"""A recheck against figures worked out by hand: each bound from both sides, and what its size is worth."""

from __future__ import annotations

import numpy as np
import pytest

from gates.judge.recheck import SignedFloors, alarm, judge_recheck
from gates.measure.figures import Unmeasured
from gates.records import Outcome
from tests.judge.arms import a_gate, an_arm, damage_figures, measured, memorisation_figures, voice_figures

FLOORS = SignedFloors(rule="pairwise-range@1", voice=0.060, damage={"ran_on": 0.10})
BEFORE = (0.90, 0.90, 0.90, 0.90)


def judged(floors: SignedFloors = FLOORS, *, gate=None, then=None, **now: object):
    arms = {"base": an_arm("base") if then is None else then, "a": an_arm(**now)}
    return judge_recheck(a_gate() if gate is None else gate, "a", measured(arms), floors)


def moved(by: float):
    """The figures of a voice that has moved by so much toward the author since the run."""
    return voice_figures(tuple(0.90 - by for _ in range(4)), base=BEFORE)


@pytest.mark.parametrize(
    ("by", "outcome"),
    [(0.0, "PASS"), (0.059, "PASS"), (-0.059, "PASS"), (0.061, "FAIL"), (-0.061, "FAIL"), (0.060, "PASS")],
)
def test_a_voice_stays_within_the_floor_of_its_run_in_either_direction(by: float, outcome: str) -> None:
    found = judged(voice=moved(by)).axes["same_voice"]
    assert found.outcome.value == outcome
    assert (found.value, found.threshold, found.floor) == (pytest.approx(by), 0.060, 0.060)
    assert found.times_floor == pytest.approx(abs(by) / 0.060)
    assert found.rule == "same-voice@1|floor:pairwise-range@1"
    assert found.signature == "delta_cb@1|mfw:300"
    sign = "-" if by < 0 else "+"
    assert found.reason == (
        f"moved {sign}{abs(by):.3f} since the run (positive is toward the author), whose floor is 0.060"
    )


def test_every_axis_of_the_gate_is_judged_and_the_worst_decides() -> None:
    found = judged(voice=moved(0.01), damage=an_arm().damage)
    assert list(found.axes) == ["validity", "same_voice", "memorisation", "ran_on", "on_beat"]
    assert {name: axis.outcome.value for name, axis in found.axes.items()} == dict.fromkeys(found.axes, "PASS")
    assert found.outcome is Outcome.PASS
    copies = judged(voice=moved(0.01), memorisation=memorisation_figures(60))
    assert (copies.outcome, copies.axes["memorisation"].outcome) == (Outcome.FAIL, Outcome.FAIL)


@pytest.mark.parametrize(("rate", "outcome"), [(6 / 30, "PASS"), (7 / 30, "FAIL"), (2 / 30, "PASS")])
def test_damage_within_the_floor_is_held_against_the_floor_of_the_run(rate: float, outcome: str) -> None:
    # The seeds differ by nothing, then and now: three of thirty before, and three more are just allowed.
    kept = an_arm().damage["on_beat"]
    then = an_arm("base", damage={"ran_on": damage_figures((0.1,) * 4), "on_beat": kept})
    now = {"ran_on": damage_figures((rate,) * 4), "on_beat": kept}
    found = judged(then=then, voice=moved(0.0), damage=now).axes["ran_on"]
    assert found.value == pytest.approx(rate - 0.1)
    assert found.outcome.value == outcome
    assert found.floor == pytest.approx(0.10)
    assert found.rule == "recorded@1|under:pairwise-range@1"


def test_damage_without_a_floor_of_the_run_is_invalid_and_a_margin_needs_none() -> None:
    bare = SignedFloors(rule="pairwise-range@1", voice=0.060, damage={})
    found = judged(bare, voice=moved(0.0))
    assert found.outcome is Outcome.INVALID
    assert found.axes["ran_on"].reason == "the signed run has no floor of this axis"
    assert found.axes["on_beat"].outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("floors", "voice", "said"),
    [
        (FLOORS, Unmeasured(unmeasured="too short"), "too short"),
        (FLOORS, None, "not measured"),
        (SignedFloors("pairwise-range@1", 0.0, {"ran_on": 0.1}), moved(0.0), "floor is 0: nothing can lie within it"),
        (FLOORS, moved(0.0).model_copy(update={"words": (600, 499, 600, 600)}), "a seed has 499 words, 500 are needed"),
        (FLOORS, moved(0.0).model_copy(update={"base_words": (600, 600, 600, 498)}), "a seed has 498 words"),
    ],
)
def test_what_cannot_be_compared_is_invalid(floors: SignedFloors, voice: object, said: str) -> None:
    found = judged(floors, voice=voice)
    assert (found.outcome, found.axes["same_voice"].outcome) == (Outcome.INVALID, Outcome.INVALID)
    assert said in found.axes["same_voice"].reason


def test_just_enough_words_are_enough() -> None:
    found = judged(voice=moved(0.0).model_copy(update={"words": (500,) * 4, "base_words": (500,) * 4}))
    assert found.axes["same_voice"].outcome is Outcome.PASS


@pytest.mark.parametrize("gone", ["base", "a"])
def test_an_arm_that_is_not_there_is_invalid(gone: str) -> None:
    arms = {name: arm for name, arm in {"base": an_arm("base"), "a": an_arm()}.items() if name != gone}
    found = judge_recheck(a_gate(), "a", measured(arms), FLOORS)
    assert (found.outcome, list(found.axes)) == (Outcome.INVALID, ["validity"])
    assert found.axes["validity"].axis == "validity"
    assert found.axes["validity"].reason == "no measurements of the arm, then or now"


def test_memorisation_and_extraction_are_judged_where_the_gate_asks_for_them() -> None:
    without = a_gate(memorisation=None)
    assert "memorisation" not in judged(gate=without, voice=moved(0.0)).axes
    probed = a_gate(probe={"file": "probe.txt", "kind": "beats", "max_rate": 0.1})
    found = judged(gate=probed, voice=moved(0.0), extraction=memorisation_figures(60))
    assert found.axes["extraction"].outcome is Outcome.FAIL
    assert judged(gate=probed, voice=moved(0.0), extraction=None).axes["extraction"].outcome is Outcome.INVALID


def test_an_alarm_is_worth_what_the_tables_of_ranges_say() -> None:
    """Two seeds each: the range of two normals is |N(0, 2)|, so the floor is the larger of two such, and the move
    N(0, 1): P(|move| > floor) = (1 - P(A > B and A > C)) with the scales 1, 2**.5, 2**.5, by integration 0.2163."""
    found = alarm(2, 2, np.random.default_rng(5))
    rng = np.random.default_rng(6)
    a, b, c = rng.standard_normal((3, 200_000)) * np.array([[1.0], [2**0.5], [2**0.5]])
    assert found.false_alarm == pytest.approx(np.mean(np.abs(a) > np.maximum(np.abs(b), np.abs(c))), abs=0.01)
    assert found.shift_80 == pytest.approx(np.quantile(np.maximum(np.abs(b), np.abs(c)) - a, 0.8), abs=0.05)
    assert alarm(5, 5, np.random.default_rng(5)).false_alarm < 0.01
    more = alarm(2, 8, np.random.default_rng(5))
    assert more.false_alarm < found.false_alarm
