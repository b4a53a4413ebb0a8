"""A made-up page: every kind of figure that a picture is drawn from, and texts that would like to be mark-up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gates.judge.verdict import judge
from gates.measure.figures import NearFigures, NearRun, Run, SelfCollision, Source
from gates.measure.memorisation import Excerpt
from gates.measure.movers import Mover, Movers
from gates.record.seal import SealOnDisk
from gates.record.votes import Trial, Vote, Who, tallies
from gates.records import Generation
from gates.report.html.model import Line, Matched, Page, Place
from tests.injections import CORPUS
from tests.judge.arms import (
    HASH,
    PROMPTS,
    SEEDS,
    a_gate,
    an_arm,
    damage_figures,
    measured,
    memorisation_figures,
    voice_figures,
)
from tests.record.test_seal import seal

HOSTILE = (
    "<script>document.body.id='owned'</script><img src=x onerror=\"document.body.id='owned'\"></p></style>"
    "<a href=javascript:alert(1)>a</a> {{ 7*7 }} {% x %} ]]> --> & \" ' \x1b[31m \u202eback " + " ".join(CORPUS["html"])
)
SOURCE = "the words of the source that nobody may see here"
RUN = Run(
    prompt=3,
    seed=2,
    start=0,
    length=9,
    sources=(Source(file=f"t/{HOSTILE}.txt", start=77),),
    sha256=HASH,
    capitalised=(),
    elsewhere=(Source(file="other/book.txt", start=5),),
)
NEAR = NearRun(prompt=0, seed=1, start=2, length=11, changed=(4,), sources=RUN.sources, sha256=HASH)


def a_generation(arm: str, prompt: int, seed: int, text: str, **changes: object) -> Generation:
    return Generation(
        **{
            "seal": HASH,
            "arm": arm,
            "prompt": prompt,
            "seed": seed,
            "seat": "embedded",
            "request": {"messages": [{"role": "user", "content": f"Beat: {prompt}"}]},
            "text": text,
            "finish_reason": "stop",
            "usage": None,
            "model": arm,
            "fingerprint": None,
            "prompt_sha256": None,
            "started": "2026-01-01T00:00:00+00:00",
            "latency_s": 1.0,
            "attempts": 1,
            "error": None,
        }
        | changes
    )


def a_vote(by: str, author: Who) -> Vote:
    """A reader's vote on `a`: the passage of `author` is the author's, the candidate's reads best."""
    trial = Trial(
        arm="a", prompt=0, seed=1, words=40, author_file="t/x", author_start=0, order=("author", "base", "candidate")
    )
    return Vote(
        previous=None,
        seal=HASH,
        generations_sha256=HASH,
        trial=trial,
        author=author,
        best="candidate",
        at="2026-01-01T00:00:00+00:00",
        by=by,
    )


def a_page(said: str = HOSTILE, **changes: object) -> Page:
    """Two candidates and a control; `a` passes, `b` copies and runs on."""
    near = NearFigures(signature="near", hits=1, rate=0.01, longest=11, unseen_longest=9, runs=(NEAR,))
    copies = memorisation_figures(
        60, runs=(RUN,), longest=9, near=near, self_collision=SelfCollision(windows=100, hits=1, rate=0.01, longest=10)
    )
    arms = {
        "base": an_arm("base"),
        "a": an_arm(),
        "b": an_arm(
            voice=voice_figures((0.9, 0.7, 0.8, 0.76)),
            memorisation=copies,
            damage={
                "ran_on": damage_figures((0.9, 0.9, 1.0, 0.8)),
                "on_beat": damage_figures((0.8, 0.8, 0.9, 0.8), "lower", name="on_beat@1"),
            },
        ),
        "again": an_arm("control", seeds=(11, 12, 13, 14)),
    }
    gate = a_gate(candidates=("a", "b"), controls=("again",), question=said)
    run = measured(arms)
    mover = Mover(word="shall", base=-1.0, arm=2.0, author=1.5, spread=0.25)
    return Page(
        **{
            "sealed": SealOnDisk(HASH, Path("prereg/seals/demo.json"), seal(gate=gate, sealed_by=said)),
            "number": 3,
            "attempts": 4,
            "measurements": run,
            "verdict": judge(gate, run),
            "prompts": {prompt: f"Beat: {prompt} {said}" for prompt in range(PROMPTS)},
            "generations": tuple(
                a_generation(arm, prompt, seed, f"{arm} says {said}\n\nand {seed}")
                for arm in arms
                for prompt in range(PROMPTS)
                for seed in (run.arms[arm].seeds)
            ),
            "matched": (
                Matched(
                    arm="b",
                    kind="word for word",
                    prompt=3,
                    seed=2,
                    length=9,
                    sha256=HASH,
                    answer=Excerpt(said, "one two three four five six seven eight nine", "after"),
                    changed=(1,),
                    places=(Place(RUN.sources[0]),),
                    elsewhere=RUN.elsewhere,
                ),
            ),
            "power": ((0.0, 0.005), (1.0, 0.2), (2.0, 0.7), (3.0, 0.9)),
            "deviations": (said,),
            "movers": {"a": Movers(signature="movers@1", up=(mover,), down=(), toward=0.625)},
            "own_runs": (8, 8, 10),
            "readers": tallies(a_vote(said, author=who) for who in ("author", "base")),
        }
        | changes
    )


def some_lines(said: str = HOSTILE) -> list[Line]:
    """Runs of two authors over time: judged, spoiled, still running."""
    lines = []
    for place, (outcome, move) in enumerate((("FAIL", 0.05), ("INCONCLUSIVE", 0.1), ("PASS", 0.4), ("INVALID", None))):
        for author in ("bronte", "hemingway"):
            one = Line(
                place=f"lv-{author} {place + 1:03d}",
                author=author,
                begun=f"2026-0{place + 1}-01",
                state="finished",
                standing="prospective",
                page=f"lv-{author}/{place + 1:03d}/report.html",
                candidate=f"{author}-{place} {said}",
                outcome=outcome,
                move=move,
                required=None if move is None else 0.12,
                events=(f"sign-off by {said}: hold",) if place == 2 else (),
            )
            lines.append(one)
    return [*lines, replace(lines[-1], state="running", outcome="", candidate="", page="")]


__all__ = ["HOSTILE", "SEEDS", "SOURCE", "a_generation", "a_page", "some_lines"]
