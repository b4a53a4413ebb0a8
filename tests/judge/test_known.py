"""Known answers: whatever is missing, unexpected or unfit is never right."""

from __future__ import annotations

import pytest
from rich.console import Console

from gates.judge.known import SHOWN, Answers, KnownAnswer, against_known
from gates.judge.verdict import Verdict, judge
from gates.records import Outcome
from gates.report.terminal import known_tables
from tests.judge.arms import a_gate, measured

PASS, FAIL, INCONCLUSIVE, INVALID = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.INVALID
ALL: Answers = {"a": dict.fromkeys(("validity", "voice", "memorisation", "ran_on", "on_beat"), PASS)}


def sound() -> Verdict:
    return judge(a_gate(), measured())


def wrong(verdict: Verdict, known: Answers) -> list[tuple[str, str]]:
    return [(row.arm, row.axis) for row in against_known("g", verdict, known) if not row.right]


def test_the_known_answers_are_right_and_others_are_not() -> None:
    assert wrong(sound(), ALL) == []
    for axis in ALL["a"]:
        for other in (FAIL, INCONCLUSIVE, INVALID):
            assert wrong(sound(), {"a": {**ALL["a"], axis: other}}) == [("a", axis)]


def test_what_the_gate_does_not_say_is_not_right() -> None:
    assert wrong(sound(), {**ALL, "b": {"voice": PASS, "on_beat": SHOWN}}) == [("b", "voice"), ("b", "on_beat")]
    assert wrong(sound(), {"a": {**ALL["a"], "extraction": PASS}}) == [("a", "extraction")]


def test_what_nobody_expected_is_not_right() -> None:
    assert wrong(sound(), {}) == [("a", axis) for axis in sound().candidates["a"].axes]
    unfit = judge(a_gate(controls=("again",)), measured())
    assert ("a", "run") in wrong(unfit, ALL)
    assert "again" in {arm for arm, _ in wrong(unfit, ALL)}


@pytest.mark.parametrize("outcome", list(Outcome))
def test_what_is_only_shown_may_be_anything_but_unfit(outcome: Outcome) -> None:
    said = sound().candidates["a"].axes["voice"].model_copy(update={"outcome": outcome})
    row = KnownAnswer(gate="g", arm="a", axis="voice", expected=SHOWN, found=said)
    assert row.right is (outcome is not INVALID)


def test_the_table_names_every_answer_that_is_not_right(capsys: pytest.CaptureFixture[str]) -> None:
    known = {"a": {**ALL["a"], "voice": FAIL}, "b": {"voice": PASS}}
    Console(width=200).print(known_tables(against_known("g", sound(), known)))
    told = capsys.readouterr().out
    assert "unexpected: g, a, voice: moved +0.215" in told
    assert "unexpected: g, b, voice: the gate says nothing of it" in told
    assert told.count("unexpected") == 2
