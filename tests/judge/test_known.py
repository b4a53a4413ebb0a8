"""Known answers: whatever is missing, unexpected, unfit or of another size is never right."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from gates.judge.known import SHOWN, TOLERANCE, Known, KnownAnswer, against_known
from gates.judge.verdict import Verdict, judge
from gates.records import Outcome
from gates.report.terminal import known_tables
from tests.judge.arms import a_gate, measured

PASS, FAIL, INCONCLUSIVE, INVALID = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.INVALID


def sound() -> Verdict:
    return judge(a_gate(), measured())


def known(**changes: dict[str, Any]) -> list[Known]:
    """What the sound verdict says, as known answers; `changes` by axis."""
    return [
        Known(
            **{
                "arm": "a",
                "axis": name,
                "answer": axis.outcome,
                "value": axis.value,
                "low": axis.low,
                "high": axis.high,
                "threshold": axis.threshold,
            }
            | changes.get(name, {})
        )
        for name, axis in sound().candidates["a"].axes.items()
    ]


def wrong(verdict: Verdict, answers: list[Known]) -> list[tuple[str, str]]:
    return [(row.arm, row.axis) for row in against_known("g", verdict, answers) if row.wrong]


def test_the_known_answers_are_right_and_others_are_not() -> None:
    assert wrong(sound(), known()) == []
    for axis in sound().candidates["a"].axes:
        for other in (FAIL, INCONCLUSIVE, INVALID):
            assert wrong(sound(), known(**{axis: {"answer": other}})) == [("a", axis)]


@pytest.mark.parametrize("figure", ["value", "low", "high", "threshold"])
def test_a_figure_is_as_known_within_the_tolerance(figure: str) -> None:
    said = getattr(sound().candidates["a"].axes["on_beat"], figure)
    for off in (-0.9 * TOLERANCE, 0.9 * TOLERANCE):
        assert wrong(sound(), known(on_beat={figure: said + off})) == []
    for other in (said - 1.1 * TOLERANCE, said + 1.1 * TOLERANCE, None):
        assert wrong(sound(), known(on_beat={figure: other})) == [("a", "on_beat")]
    assert wrong(sound(), known(validity={figure: 0.0})) == [("a", "validity")]


def test_what_the_gate_does_not_say_is_not_right() -> None:
    more = [
        Known(arm="b", axis="voice", answer=answer, value=None, low=None, high=None, threshold=None)
        for answer in (PASS, SHOWN)
    ]
    for one in more:
        assert wrong(sound(), [*known(), one]) == [("b", "voice")]


def test_what_nobody_expected_is_not_right() -> None:
    assert wrong(sound(), []) == [("a", axis) for axis in sound().candidates["a"].axes]
    unfit = judge(a_gate(controls=("again",)), measured())
    assert ("a", "run") in wrong(unfit, known())
    assert "again" in {arm for arm, _ in wrong(unfit, known())}


@pytest.mark.parametrize("outcome", list(Outcome))
def test_what_is_only_shown_may_be_anything_but_unfit(outcome: Outcome) -> None:
    answer = next(one for one in known(voice={"answer": SHOWN}) if one.axis == "voice")
    said = sound().candidates["a"].axes["voice"].model_copy(update={"outcome": outcome})
    row = KnownAnswer(gate="g", arm="a", axis="voice", known=answer, found=said)
    assert bool(row.wrong) is (outcome is INVALID)


def test_the_table_names_every_answer_that_is_not_right(capsys: pytest.CaptureFixture[str]) -> None:
    more = Known(arm="b", axis="voice", answer=PASS, value=None, low=None, high=None, threshold=None)
    answers = [*known(voice={"answer": FAIL}, on_beat={"value": 0.5}), more]
    Console(width=200).print(known_tables(against_known("g", sound(), answers)))
    told = capsys.readouterr().out
    assert "unexpected: g, a, voice: PASS for FAIL: moved +0.215" in told
    assert "unexpected: g, a, on_beat: value 0.000 for 0.500" in told
    assert "unexpected: g, b, voice: the gate says nothing of it" in told
    assert told.count("unexpected") == 3
