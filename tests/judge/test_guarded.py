"""What stands between figures and a verdict: the judge's own errors, foreign floor rules, twins of the train split."""

from __future__ import annotations

import numpy as np
import pytest

from gates.judge.floors import RULES, FloorRule, plugged
from gates.judge.verdict import Judged, judge
from gates.measure.figures import JudgeFigures, Leak, SeatFigures, SeatsFigures, SelfCollision, Source, Unmeasured
from gates.records import Outcome
from gates.stats import clopper_pearson, newcombe_unpaired, poisson_ratio
from tests.judge.arms import HASH, a_gate, an_arm, damage_figures, measured, memorisation_figures, voice_figures

JUDGE = JudgeFigures(
    signature="judge@1",
    on_beat=20,
    off_beat=30,
    missed=3,
    taken=1,
    swayed=2,
    error_rate=0.08,
    error_low=0.03,
    error_high=0.18,
)
SAID = (
    "the judge errs in 4 of 50 labelled texts: 0.080 (95 % limits 0.030 and 0.180); 3 missed, 1 wrongly taken, "
    "2 swayed by the order"
)


def tried(judged: object, max_error: float = 0.2, **changes: object):
    """The verdict on an axis that a model has judged, base and candidate alike."""
    damage = {"judged_on_beat": damage_figures((0.8,) * 4, "lower", name="judged_on_beat@1")}
    run = measured({"base": an_arm("base", damage=damage), "a": an_arm(damage=damage)})
    asked = {"judge": {"labelled": "l.jsonl", "max_error": max_error}, "damage": {"judged_on_beat": {"margin": 0.15}}}
    return judge(a_gate(**asked | changes), run.model_copy(update={"judge": judged})).candidates["a"]


def test_what_a_judge_is_worth_is_said_once() -> None:
    damage = {"judged_on_beat": damage_figures((0.8,) * 4, "lower", name="judged_on_beat@1")}
    run = measured({"base": an_arm("base", damage=damage), "a": an_arm(damage=damage)}).model_copy(
        update={"judge": JUDGE}
    )
    gate = a_gate(
        judge={"labelled": "l.jsonl", "max_error": 0.2}, damage={"judged_on_beat": {"margin": 0.15, "decide": "point"}}
    )
    assert judge(gate, run, earlier=Judged(gate, judge(gate, run))) == judge(gate, run)


def test_what_a_judge_is_worth_stands_beside_what_it_says() -> None:
    found = tried(JUDGE).axes["judged_on_beat"]
    assert found.outcome is Outcome.PASS
    assert found.reason.endswith(f"; {SAID}")
    assert len(found.reason) > len(SAID) + 20
    assert list(tried(JUDGE).axes) == ["validity", "voice", "memorisation", "judged_on_beat"]


@pytest.mark.parametrize(
    ("judged", "max_error", "reason"),
    [
        (JUDGE, 0.17, f"{SAID}; its upper limit may be 0.170 at most"),
        (Unmeasured(unmeasured="none was asked"), 0.2, "the judge's error rate: not measured: none was asked"),
    ],
)
def test_a_judge_that_errs_too_often_or_was_not_tried_judges_nothing(
    judged: object, max_error: float, reason: str
) -> None:
    candidate = tried(judged, max_error)
    found = candidate.axes["judged_on_beat"]
    assert (found.outcome, found.axis, found.reason) == (Outcome.INVALID, "judged_on_beat", reason)
    assert candidate.outcome is Outcome.INVALID
    assert candidate.axes["voice"].outcome is Outcome.PASS


def test_an_upper_limit_that_is_just_allowed_is_allowed() -> None:
    assert tried(JUDGE, 0.18).axes["judged_on_beat"].outcome is Outcome.PASS


def given(floor: object) -> FloorRule:
    return plugged(FloorRule("foreign@1", lambda base, candidate, others: floor(base, others)))  # type: ignore[operator]


def under(rule: FloorRule):
    gate = a_gate()
    gate = gate.model_copy(update={"voice": gate.voice.model_copy(update={"floor": "foreign@1"})})
    return judge(gate, measured(), RULES | {"foreign@1": rule}).candidates["a"].axes["voice"]


def test_a_foreign_floor_is_believed_where_it_is_one() -> None:
    found = under(given(lambda base, others: np.full(base.shape[:-1], 0.05)))
    assert (found.outcome, found.floor, found.rule) == (Outcome.PASS, 0.05, "foreign@1")
    seen: list[object] = []
    under(given(lambda base, others: seen.append(others) or 0.05))
    assert seen == [()], "it sees no other arm"


def test_a_foreign_floor_of_zero_is_a_floor() -> None:
    assert given(lambda base, others: 0.0).floor(np.ones(4), np.ones(4), ()) == 0.0
    assert given(lambda base, others: [0, 1]).floor(np.ones((2, 4)), np.ones((2, 4)), ()).dtype == np.float64


@pytest.mark.parametrize(
    ("floor", "said"),
    [
        (lambda base, others: 1 / 0, "foreign@1 failed: ZeroDivisionError: division by zero"),
        (lambda base, others: [0.1, 0.1], "foreign@1 gave floors of shape (2,) for arms of shape (4,)"),
        (lambda base, others: -0.1, "foreign@1 gave a floor that is no finite number of at least 0"),
        (lambda base, others: float("nan"), "foreign@1 gave a floor that is no finite number of at least 0"),
        (lambda base, others: float("inf"), "foreign@1 gave a floor that is no finite number of at least 0"),
    ],
)
def test_a_foreign_floor_that_is_none_makes_its_axis_invalid(floor: object, said: str) -> None:
    found = under(given(floor))
    assert (found.outcome, found.axis) == (Outcome.INVALID, "voice")
    assert found.reason == said


def test_a_probe_is_judged_as_an_axis_of_its_own() -> None:
    gate = a_gate(probe={"file": "probe.txt", "kind": "beats", "max_rate": 0.1})
    arms = {"base": an_arm("base"), "a": an_arm(extraction=memorisation_figures(60))}
    found = judge(gate, measured(arms)).candidates["a"]
    assert list(found.axes) == ["validity", "voice", "memorisation", "extraction", "ran_on", "on_beat"]
    assert (found.axes["extraction"].axis, found.axes["extraction"].outcome) == ("extraction", Outcome.FAIL)


def test_near_verbatim_twins_are_counted_and_the_longest_is_named() -> None:
    place = Source(file="t/x.txt", start=0)
    leaks = tuple(Leak(train=place, heldout=place, length=length, sha256=HASH, changed=(3,)) for length in (21, 30, 25))
    found = judge(a_gate(), measured(leaks=leaks)).warnings
    assert "3 near-verbatim twins stand in train and held-out text, the longest of 30 words" in found


def test_seats_that_differ_make_the_run_invalid_and_a_lost_one_is_a_warning() -> None:
    one = {"texts": {"base": 1}, "errors": {}, "lost": (), "closed": True}
    same = SeatFigures(seat="http://a/v1", unlike=(), **one)
    other = SeatFigures(seat="http://b/v1", unlike=("version is 2",), **one)
    seats = [{"base_url": "http://a/v1"}, {"base_url": "http://b/v1"}]
    unlike = measured().model_copy(update={"seats": SeatsFigures(seats=(same, other), blocks=1, split=0)})
    found = judge(a_gate(seat=None, seats=seats), unlike)
    assert found.outcome is Outcome.INVALID
    assert found.candidates["a"].axes["run"].axis == "run"
    assert "http://b/v1 differs" in found.candidates["a"].axes["run"].reason
    gone = other.model_copy(update={"unlike": (), "lost": ("lost http://b/v1",)})
    lost = measured().model_copy(update={"seats": SeatsFigures(seats=(same, gone), blocks=1, split=0)})
    told = judge(a_gate(seat=None, seats=seats), lost)
    assert (told.outcome, "lost http://b/v1" in told.warnings) == (Outcome.PASS, True)


LOST = Unmeasured(unmeasured="too short")
RATIO = poisson_ratio(2, 120, 1, 100, 0.95)


@pytest.mark.parametrize(
    ("changes", "axis", "said"),
    [
        ({"voice": LOST}, "voice", "too short"),
        ({"voice": voice_figures(words=(600, 600, 600, 499))}, "voice", "499"),
        ({"memorisation": LOST}, "memorisation", "too short"),
        ({"memorisation": memorisation_figures(2, 119)}, "memorisation", "2 hits of 119 scanned"),
        ({"memorisation": memorisation_figures(121)}, "memorisation", "121 hits of 120 scanned"),
        ({"extraction": LOST}, "extraction", "too short"),
    ],
)
def test_what_is_unfit_says_so_under_its_own_name(changes: dict, axis: str, said: str) -> None:
    gate = a_gate(probe={"file": "probe.txt", "kind": "beats", "max_rate": 0.1})
    arms = {"base": an_arm("base"), "a": an_arm(**{"extraction": memorisation_figures(2)} | changes)}
    axes = judge(gate, measured(arms)).candidates["a"].axes
    assert {name: found.axis for name, found in axes.items()} == {name: name for name in axes}
    assert axes[axis].outcome is Outcome.INVALID
    assert said in axes[axis].reason


@pytest.mark.parametrize(
    ("rule", "value", "threshold", "limits"),
    [
        ({"max_ratio": 900.0}, RATIO[0], 900.0, RATIO[1:]),
        ({"max_excess": 0.2}, 2 / 120 - 1 / 100, 0.2, newcombe_unpaired(2, 120, 1, 100, 0.95)),
        ({"max_rate": 0.1}, 2 / 120, 0.1, clopper_pearson(2, 120, 0.95)),
        ({"max_run_words": 12}, 9.0, 12.0, (None, None)),
    ],
)
def test_a_rule_of_memorisation_shows_what_it_rests_on(
    rule: dict, value: float, threshold: float, limits: tuple
) -> None:
    found = judge(a_gate(memorisation=rule), measured()).candidates["a"].axes["memorisation"]
    assert found.outcome is Outcome.PASS
    assert (found.value, found.threshold) == (pytest.approx(value), threshold)
    assert (found.low, found.high) == (pytest.approx(limits[0]), pytest.approx(limits[1]))
    assert found.signature == "ngram_hits@1|n:8"


def test_a_point_decision_is_named_as_one() -> None:
    found = judge(a_gate(memorisation={"max_rate": 0.1, "decide": "point"}), measured()).candidates["a"].axes
    assert found["memorisation"].rule == "point"
    assert found["voice"].signature == "delta_cb@1|mfw:300"


@pytest.mark.parametrize("rule", [{"max_ratio": 5.0}, {"max_excess": 0.2}])
def test_without_the_authors_own_windows_nothing_can_be_compared(rule: dict) -> None:
    none = memorisation_figures(2, self_collision=SelfCollision(windows=0, hits=0, rate=0.0, longest=0))
    arms = {"base": an_arm("base"), "a": an_arm(memorisation=none)}
    found = judge(a_gate(memorisation=rule), measured(arms)).candidates["a"].axes["memorisation"]
    assert found.outcome is Outcome.INVALID
    assert next(iter(rule)).removeprefix("max_") in found.reason
