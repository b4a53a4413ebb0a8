"""The table in the terminal: its whole text, and no mark-up or control sequence that is not its own."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from gates.judge.axes import AxisVerdict
from gates.judge.verdict import CandidateVerdict, Verdict, judge
from gates.measure.memorisation import Excerpt
from gates.records import Outcome
from gates.report.review import excerpt_text, lines, several_lines
from gates.report.terminal import verdict_table
from tests.judge.arms import HASH, a_gate, an_arm, measured, memorisation_figures

HOSTILE = (
    "[bold red]x[/] [link=http://e]y[/link] :smile: [/] \\[a] "
    "\x1b[31mred\x1b]8;;http://e\x07z \x9b1m \u202e | \r\n\x08 \\"
)
SEEN = (
    r"[bold red]x[/] [link=http://e]y[/link] :smile: [/] \[a] "
    r"\x1b[31mred\x1b]8;;http://e\x07z \x9b1m \u202e | \x08 " + "\\"
)


def shown(question: str, verdict: Verdict, *, terminal: bool = False, width: int = 110) -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=terminal, color_system="standard" if terminal else None).print(
        verdict_table(question, verdict)
    )
    return out.getvalue()


def test_the_whole_table() -> None:
    arms = {"base": an_arm("base"), "a": an_arm(memorisation=memorisation_figures(60))}
    text = shown("Does it move?", judge(a_gate(), measured(arms)))
    assert [line.rstrip() for line in text.split("\n")] == [
        "Does it move?",
        "┏━━━━━━━━━━━┳━━━━━━━━━━━━━━┳━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━┓",
        "┃ candidate ┃ axis         ┃ verdict ┃ figure                      ┃ against                  ┃",
        "┡━━━━━━━━━━━╇━━━━━━━━━━━━━━╇━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━┩",
        "│ a         │              │ ✘ FAIL  │                             │                          │",
        "│           │ validity     │ ✔ PASS  │ –                           │ –                        │",
        "│           │ voice        │ ✔ PASS  │ +0.215                      │ > 0.060 (3.6× the floor) │",
        "│           │ memorisation │ ✘ FAIL  │ 0.500 [0.421, 0.579]        │ ≤ 0.100                  │",
        "│           │ on_beat      │ ✔ PASS  │ harm +0.000 [-0.020, 0.020] │ ≤ 0.150                  │",
        "│           │ ran_on       │ ✔ PASS  │ harm +0.000                 │ ≤ 0.100                  │",
        "└───────────┴──────────────┴─────────┴─────────────────────────────┴──────────────────────────┘",
        "a, memorisation: 60 of 120 generations hold 8 words in a row of the training text: 0.500 (95 % limits 0.421",
        "and 0.579), at most 0.100 is allowed; the longest run is 9 words, at most 12 are allowed",
        "",
    ]


@pytest.mark.parametrize("place", ["question", "candidate", "axis", "reason", "warning"])
def test_hostile_text_is_shown_and_not_obeyed(place: str) -> None:
    said = {name: HOSTILE if name == place else name for name in ("question", "candidate", "axis", "reason", "warning")}
    axis = AxisVerdict(axis=said["axis"], outcome=Outcome.FAIL, reason=said["reason"])
    verdict = Verdict(
        seal=HASH,
        measurements_sha256=HASH,
        outcome=Outcome.FAIL,
        exit_code=1,
        candidates={said["candidate"]: CandidateVerdict(outcome=Outcome.FAIL, axes={said["axis"]: axis})},
        controls={},
        undecided=(),
        warnings=(said["warning"],),
    )
    text = shown(said["question"], verdict, width=400)
    assert "".join(SEEN.split()) in "".join(text.split())
    assert all(char.isprintable() for line in text.split("\n") for char in line)
    coloured = shown(said["question"], verdict, terminal=True, width=400)
    assert not any(sequence in coloured for sequence in ("\x1b]", "\x07", "\x9b", "\u202e", "\x08", "\r"))
    assert "\\x1b[31mred" in coloured


def test_the_outcome_is_told_by_word_and_shape_and_colour() -> None:
    text = shown("Q", judge(a_gate(), measured()), terminal=True)
    assert "\x1b[1;32m✔ PASS \x1b[0m" in text


@pytest.mark.parametrize("place", ["before", "run", "after", "text"])
def test_what_is_to_be_read_is_shown_and_not_obeyed(place: str) -> None:
    said = {
        "before": "a",
        "run": "b",
        "after": "c",
        "text": "d",
        place: "[bold]x[/] \x1b[31mred\x1b]0;t\x07 \x9b1m \u202e\x00",
    }
    out = io.StringIO()
    parts = lines([several_lines(said["text"]), excerpt_text(Excerpt(said["before"], said["run"], said["after"]))])
    Console(file=out, width=200, no_color=True).print(parts)
    assert all(line.isprintable() for line in out.getvalue().split("\n"))
    assert r"[bold]x[/] \x1b[31mred\x1b]0;t\x07 \x9b1m \u202e\x00" in out.getvalue()
