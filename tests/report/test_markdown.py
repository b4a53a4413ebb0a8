"""report.md: figures as measured, and no text from gate, model or seat that does anything in Markdown or HTML."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from gates.judge.axes import AxisVerdict
from gates.judge.verdict import CandidateVerdict, ControlFigures, Verdict, judge
from gates.measure.figures import Run, Source, Unmeasured
from gates.record.seal import AdapterIdentity, Seal, SealOnDisk
from gates.records import Outcome
from gates.report.markdown import markdown
from gates.report.marks import code, plain, table
from gates.spec.operating import OperatingCharacteristics
from gates.spec.power import MarginPower, RatePower, VoicePower
from tests.judge.arms import HASH, a_gate, an_arm, damage_figures, measured, memorisation_figures, voice_figures
from tests.record.test_seal import binding, seal

HOSTILE = (
    "a | b\n\n# heading\n- item\n<script>alert(1)</script> <img src=x> &lt; [l](http://e.example) ![i](x.png)"
    " **b** _u_ __uu__ `c` ~~s~~ $m$ \\ http://e.example www.e.example"
    " \x1b[31mred\x1b]0;title\x07 \x9b1m \u202eback \x00"
)
POWER = VoicePower(k=4, false_pass=0.005, false_pass_error=0.0002, shift_80=2.5)


def operating(**changes: object) -> OperatingCharacteristics:
    return OperatingCharacteristics(
        **{
            "signature": "operating@1|gates:100000",
            "voice": POWER,
            "voice_by_seeds": (POWER.model_copy(update={"k": 2, "false_pass": 0.108}), POWER),
            "memorisation": RatePower(n=120, max_rate=0.1, most_hits=6, upper_at_zero=0.0247, smallest_n=29),
            "damage": {"on_beat": (MarginPower(rate=0.2, passes=0.75, passes_error=0.01),)},
            "warnings": (),
        }
        | changes
    )


def sealed(**changes: object) -> SealOnDisk:
    made: Seal = seal(**{"operating": operating().as_json()} | changes)
    return SealOnDisk(HASH, Path("prereg/seals/demo.json"), made)


def tokens(text: str) -> list[Token]:
    """The document as a CommonMark reader with tables takes it, inline tokens included."""
    found = MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough").parse(text)
    return [inner for token in found for inner in (token, *(token.children or ()))]


RUN = Run(
    prompt=3,
    seed=2,
    start=10,
    length=9,
    sources=tuple(Source(file=f"t/{n}.txt", start=n) for n in range(5)),
    sha256=HASH,
    capitalised=(),
)


def a_run():
    figures = voice_figures((0.9, 0.7, 0.8, 0.76), notes=("ceiling within one book",))
    arms = {
        "base": an_arm("base"),
        "a": an_arm(
            voice=figures,
            memorisation=memorisation_figures(60, runs=(RUN,), longest=9),
            damage={
                "ran_on": damage_figures((0.1, 0.2, 0.1, 0.2)),
                "on_beat": damage_figures((0.8, 0.8, 0.9, 0.8), "lower", name="on_beat@1"),
            },
        ),
    }
    run = measured(arms)
    return run, judge(a_gate(), run)


def test_the_report_says_what_was_measured() -> None:
    run, verdict = a_run()
    text = markdown(sealed(), 3, run, verdict)
    lines = text.split("\n")
    assert lines[:3] == ["# ✘ FAIL: demo, run 003", "", "**Question:** Does it move?"]
    # By hand from the made-up figures: mean base distance 0.93, mean of a 0.79; ranges 0.06 and 0.20; 60 of 120.
    for row in (
        "| **a** |  | **✘ FAIL** |  |  |  |",
        "|  | voice | ✘ FAIL | +0.140 | > 0.200 (0.7× the floor) | `pairwise-range@1` |",
        "|  | memorisation | ✘ FAIL | 0.500 [0.421, 0.579] | ≤ 0.100 | `clopper-pearson¦level:0.95` |",
        "| a | +0.140 | [+0.100, +0.300] | 0.200 | 0.060 | 0.500 | 50.0% | +0.165 |",
        "| base | 1 | 0.900 | 600 |",
        "| a | 2 | 0.700 | 600 |",
        "| a | 60 of 120 (0.500) | 1 of 100 (0.010) | 2.0 (at least 0.3, at most 20.0) | 9 | 10 | 0 |",
        "- a: prompt 3, seed 2, 9 words from word 10, as in t/0.txt at word 0, t/1.txt at word 1, t/2.txt at word 2 "
        "and 2 more places",
        "- a: ceiling within one book",
        "| a | 0.150 (seeds 0.10, 0.20, 0.10, 0.20) | 0.825 (seeds 0.80, 0.80, 0.90, 0.80) |",
        "| a | 120 of 120 | 0 | 0 | 0 | 0 |",
        "| 4 (this gate) | 0.50% | 2.50 |",
        "- memorisation: 0 hits of 120 leave an upper limit of 0.025; at most 6 hits pass",
        "- on_beat: an unchanged candidate passes in 75% at a rate of 0.2",
        "| sealed | 2026-01-01T00:00:00+00:00 by Zoë \\| &lt;b&gt; |",
        f"| seal | `{HASH}` |",
        f"| adapter a | `a.gguf` `{HASH}` |",
    ):
        assert row in lines, row
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_a_seal_that_came_after_a_run_is_post_hoc_and_deviations_are_shown() -> None:
    run, verdict = a_run()
    later = replace(sealed(), seal=sealed().seal.model_copy(update={"runs_before": 2, "amends": HASH}))
    text = markdown(later, 3, run, verdict, deviations=('python: sealed "3.11", now "3.12"',))
    assert "**Standing:** post-hoc: sealed after 2 earlier run(s) of this gate had begun. This is attempt 3" in text
    assert '- python: sealed "3.11", now "3.12"' in text


def test_the_verdict_stands_before_the_figures_and_the_open_questions_are_named() -> None:
    run, verdict = a_run()
    headings = [line for line in markdown(sealed(), 1, run, verdict).split("\n") if line.startswith("#")]
    assert headings == [
        "# ✘ FAIL: demo, run 001",
        "## Why",
        "## Not decided",
        "## Warnings",
        "## Deviations from the sealed context",
        "## Figures",
        "### Voice",
        "### Memorisation",
        "### Damage",
        "### Validity",
        "## What this size can prove (sealed before generation)",
        "## Record",
    ]


def test_what_was_not_measured_is_said() -> None:
    gone = an_arm(
        voice=Unmeasured(unmeasured="too short"),
        memorisation=Unmeasured(unmeasured="no train text"),
        damage={"ran_on": Unmeasured(unmeasured="gone"), "on_beat": Unmeasured(unmeasured="gone")},
    )
    run = measured({"base": an_arm("base"), "a": gone})
    text = markdown(sealed(), 1, run, judge(a_gate(), run))
    assert text.startswith("# ! INVALID: demo, run 001\n")
    for line in (
        "- a: not measured: too short",
        "- a: not measured: no train text",
        "| a | not measured | not measured |",
        "- a, voice: not fit to judge: not measured: too short",
    ):
        assert line in text.split("\n"), line


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"ratio": None, "ratio_low": None, "ratio_high": None}, "undefined"),
        ({"ratio": None, "ratio_high": None}, "at least 0.3"),
        ({"ratio_high": None}, "2.0 (at least 0.3, no upper limit)"),
    ],
)
def test_a_ratio_says_which_limits_it_has(changes: dict, said: str) -> None:
    run = measured({"base": an_arm("base"), "a": an_arm(memorisation=memorisation_figures(2, **changes))})
    assert f"| {said} |" in markdown(sealed(), 1, run, judge(a_gate(), run))


def hostile_report() -> str:
    gate = a_gate(
        question=HOSTILE, declarations={"data_seen": HOSTILE, "stopping": HOSTILE, "exclusions": HOSTILE}
    ).model_copy(update={"name": HOSTILE})
    axis = AxisVerdict(
        axis=HOSTILE, outcome=Outcome.INVALID, reason=HOSTILE, rule=HOSTILE, signature=HOSTILE, warnings=(HOSTILE,)
    )
    arm = an_arm(
        voice=voice_figures(notes=(HOSTILE,), imposters={HOSTILE: 0.1}),
        memorisation=memorisation_figures(runs=(RUN.model_copy(update={"sources": (Source(file=HOSTILE, start=1),)}),)),
        damage={HOSTILE: damage_figures((0.1, 0.1, 0.1, 0.1))},
    )
    lost = Unmeasured(unmeasured=HOSTILE)
    run = measured({"base": an_arm("base"), HOSTILE: arm, "x": an_arm(voice=lost, memorisation=lost)})
    verdict = Verdict(
        seal=HASH,
        measurements_sha256=HASH,
        outcome=Outcome.INVALID,
        exit_code=4,
        candidates={HOSTILE: CandidateVerdict(outcome=Outcome.INVALID, axes={HOSTILE: axis})},
        controls={HOSTILE: ControlFigures(outcome=Outcome.INVALID, axes={HOSTILE: axis})},
        undecided=(HOSTILE,),
        warnings=(HOSTILE,),
    )
    powers = operating(warnings=(HOSTILE,), damage={HOSTILE: ()}, signature=HOSTILE)
    bound = binding(
        seat={"version": HOSTILE, "fingerprint": HOSTILE},
        adapters={HOSTILE: AdapterIdentity(files={HOSTILE: HASH}, card=None)},
    )
    return markdown(
        sealed(gate=gate, sealed_by=HOSTILE, sealed_at=HOSTILE, binding=bound, operating=powers.as_json()),
        1,
        run,
        verdict,
    )


def test_hostile_text_does_nothing_in_markdown_or_html() -> None:
    text = hostile_report()
    assert text.count("heading") > 25
    assert all(char.isprintable() for line in text.split("\n") for char in line)
    found = tokens(text)
    used = {token.type for token in found}
    assert not used & {"html_block", "html_inline", "link_open", "image", "em_open", "s_open", "fence", "code_block"}
    # Every heading and every bold word is the report's own.
    titles = [found[place + 1].content for place, token in enumerate(found) if token.type == "heading_open"]
    assert [title for title in titles[1:] if "heading" in title] == []
    bold = [found[place + 1].content for place, token in enumerate(found) if token.type == "strong_open"]
    assert [word for word in bold if word == "b"] == []
    # Every row of every table has as many cells as its head: a pipe has opened no new one, a line break no new row.
    rows = [line for line in text.split("\n") if line.startswith("|")]
    assert sum(token.type == "tr_open" for token in found) == sum(not line.startswith("| ---") for line in rows)
    # No address is left that a reader makes a link of by itself, outside code.
    prose = [re.sub("`[^`]*`", "", line) for line in text.split("\n")]
    assert not any("http://" in line or " www." in line for line in prose)


@given(st.text(alphabet=st.characters(), min_size=1, max_size=30))
@example("1. x")
@example("- x")
@example("+ x")
@example("#")
@example("===")
@example("---")
@example("> x")
@example("\\")
@example("a\\|b")
@example("![a](b)")
@example("__x__")
@example("a__b_c_")
@example("_a_")
@example("&amp;&#60;")
@example("<!-- x")
@example("    code")
@example("[x]: y")
@example("`` ` ``")
@example("**a*")
@example("~~~")
def test_plain_text_is_shown_as_it_is(text: str) -> None:
    shown = " ".join(text.split())
    if not shown or not shown.isprintable():
        shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in shown)
    if not shown:
        return
    for document in (plain(text), f"- {plain(text)}", "\n".join(table(["a", "b"], [[plain(text), "x"]]))):
        found = tokens(document)
        inline = [token for token in found if token.type == "inline"]
        said = ["".join(inner.content for inner in token.children or ()) for token in inline]
        assert said == ([shown] if len(inline) == 1 else ["a", "b", shown, "x"])
        assert {inner.type for token in inline for inner in token.children or ()} <= {"text", "text_special"}


@given(st.text(max_size=20))
@example("`|`\n<b>")
def test_code_is_one_span_in_one_cell(text: str) -> None:
    found = tokens("\n".join(table(["a", "b"], [[code(text), "x"]])))
    assert [token.content for token in found if token.type == "inline"][3] == "x"
    assert len([token for token in found if token.type == "code_inline"]) == 1


def test_words_with_underscores_and_figures_stay_readable() -> None:
    assert plain("a, ran_on: 0.150 to 0.200 (+0.050), 1.2× - 3.5") == "a, ran_on: 0.150 to 0.200 (+0.050), 1.2× - 3.5"


def test_the_prompt_that_carries_the_move_is_named():
    influence = (0.004, -0.03, *(0.0,) * 28)
    arms = {"base": an_arm("base"), "a": an_arm(voice=voice_figures(influence=influence))}
    figures = measured(arms)
    report = markdown(sealed(), 1, figures, judge(a_gate(), figures))
    assert (
        "a: without prompt 1 the move would be +0.185, not +0.215: of all 30 prompts, counted from 0, the one that "
        "matters most"
    ) in report.replace("\\", "")
    assert "without prompt" not in markdown(sealed(), 1, measured(), judge(a_gate(), measured()))
