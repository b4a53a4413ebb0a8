"""From generations to a verdict without any seat: what is missing or wrong is INVALID, and only where it belongs."""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gates.corpora.texts import Document
from gates.errors import TamperedError
from gates.flow.inputs import Inputs, frame_of
from gates.flow.measuring import measure
from gates.judge.verdict import Verdict, judge
from gates.measure.figures import MemorisationFigures, Unmeasured, VoiceFigures
from gates.records import Generation, Outcome, Usage, sha256
from gates.spec.schema import Gate
from tests.judge.arms import HASH
from tests.small import BEATS, GATE, prose

WORDS = 30
ALL = {"validity", "voice", "memorisation", "ran_on", "on_beat"}
ARMS = {
    "base": "base",
    "candidates": {"one": {"model": "voice-one", "adapter": "a"}, "two": {"model": "voice-two", "adapter": "b"}},
    "controls": {"again": {"model": "base", "seeds": [11, 12]}},
}


def document(name: str, text: str, corpus: str = "author") -> Document:
    hashes = {"sha256": HASH, "text_sha256": HASH}
    return Document(name=name, corpus=corpus, author=name, title=name, split="all", text=text, cleaner="none", **hashes)


TRAIN, HELDOUT = prose(1, 3000, 0.02), prose(2, 3000, 0.02)
REFERENCE = (document("ref.txt", prose(3, 9000), "others"),)
FRAME = frame_of(REFERENCE, 100)


def inputs(arms: dict[str, Any] = ARMS, *, train: str = TRAIN, heldout: str = HELDOUT, **changes: Any) -> Inputs:
    gate = copy.deepcopy(GATE) | {"arms": arms, "damage": {"ran_on": {"margin": 0.5}, "on_beat": {"margin": 0.5}}}
    return Inputs(
        path=Path("prereg/small.yaml"),
        workspace=Path(),
        cache=Path("cache"),
        gate=Gate.model_validate_json(json.dumps(gate | {"memorisation": {"max_rate": 0.5}} | changes)),
        beats=BEATS,
        train=(document("train.txt", train),),
        heldout=(document("heldout.txt", heldout),),
        reference=REFERENCE,
        imposters={},
        frame=FRAME,
        adapters={},
    )


def generation(arm: str, prompt: int, seed: int, **changes: Any) -> Generation:
    """An answer: the beat, then random words that lean to the author's where the arm is a candidate."""
    lean = {"base": 0.0, "again": 0.0}.get(arm, 0.02)
    number = 1000 * seed + 10 * prompt + sum(map(ord, arm))
    return Generation(
        **{
            "seal": HASH,
            "arm": arm,
            "prompt": prompt,
            "seed": seed,
            "seat": "none",
            "request": {},
            "text": f"{BEATS[prompt]}. {prose(number, WORDS, lean)}",
            "finish_reason": "stop",
            "usage": Usage(prompt_tokens=9, completion_tokens=36),
            "model": arm,
            "fingerprint": None,
            "prompt_sha256": None,
            "started": "t",
            "latency_s": 0.0,
            "attempts": 1,
            "error": None,
        }
        | changes
    )


Change = Callable[[Generation], Generation | None]


def answers(given: Inputs, change: Change = lambda one: one) -> list[Generation]:
    return [
        changed
        for arm in given.gate.arms.all()
        for seed in given.gate.seeds(arm)
        for prompt in range(len(BEATS))
        if (changed := change(generation(arm, prompt, seed))) is not None
    ]


def run(given: Inputs, change: Change = lambda one: one):
    measured = measure(given, HASH, answers(given, change), HASH)
    return measured, judge(given.gate, measured)


@functools.cache
def whole():
    """The run in which nothing is wrong."""
    return run(inputs())


def at(arm: str, prompt: int, seed: int, **changes: Any) -> Change:
    """Change one generation; without changes it is left out."""

    def change(one: Generation) -> Generation | None:
        if one.key != (arm, prompt, seed):
            return one
        return one.model_copy(update=changes) if changes else None

    return change


def outcomes(verdict: Verdict) -> dict[str, Outcome]:
    return {name: candidate.outcome for name, candidate in verdict.candidates.items()}


def test_a_whole_run_is_measured_on_every_axis_and_judged() -> None:
    measured, verdict = whole()
    assert {name: (arm.role, arm.seeds) for name, arm in measured.arms.items()} == {
        "base": ("base", (1, 2)),
        "one": ("candidate", (1, 2)),
        "two": ("candidate", (1, 2)),
        "again": ("control", (11, 12)),
    }
    one = measured.arms["one"]
    assert one.validity.model_dump() == {
        "expected": 24,
        "present": 24,
        "errors": 0,
        "empty": 0,
        "repeated_seeds": 0,
        "prompt_mismatches": 0,
    }
    assert isinstance(one.voice, VoiceFigures)
    # Each text is six words of the beat and thirty of its own.
    assert one.voice.words == one.voice.base_words == (12 * (6 + WORDS),) * 2
    assert one.damage["on_beat"].rate == 1.0
    assert isinstance(one.memorisation, MemorisationFigures)
    assert (one.memorisation.hits, one.memorisation.generations) == (0, 24)
    assert measured.arms["base"].voice is None
    assert set(verdict.candidates["one"].axes) == ALL
    assert outcomes(verdict) == {"one": Outcome.PASS, "two": Outcome.PASS}
    # The base under other seeds moves by chance alone, not half as far as a candidate.
    again = measured.arms["again"].voice
    assert isinstance(again, VoiceFigures)
    assert abs(again.delta) < 0.5 * one.voice.delta


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "1 of 24 generations missing"),
        ({"text": "", "error": "the seat hung up"}, "1 of 24 generations are errors, at most 0.000 of them may be"),
        ({"text": " \n"}, "1 of 24 generations are empty, at most 0.000 of them may be"),
    ],
    ids=["missing", "error", "empty"],
)
def test_trouble_in_one_candidate_is_its_own(changes: dict[str, Any], said: str) -> None:
    _, verdict = run(inputs(), at("one", 3, 2, **changes))
    assert outcomes(verdict) == {"one": Outcome.INVALID, "two": Outcome.PASS}
    assert verdict.candidates["one"].axes["validity"].reason == said
    assert (verdict.outcome, verdict.exit_code) == (Outcome.INVALID, 4)


@pytest.mark.parametrize(
    "changes", [{}, {"text": "", "error": "hung up"}, {"text": ""}], ids=["missing", "error", "empty"]
)
def test_trouble_in_the_base_is_everybodys(changes: dict[str, Any]) -> None:
    _, verdict = run(inputs(), at("base", 3, 2, **changes))
    assert outcomes(verdict) == {"one": Outcome.INVALID, "two": Outcome.INVALID}
    assert verdict.candidates["two"].axes["run"].reason.startswith("base: 1 of 24 generations")


def test_a_missing_generation_leaves_nothing_to_measure_pair_by_pair() -> None:
    measured, verdict = run(inputs(), at("one", 0, 1))
    arm = measured.arms["one"]
    assert arm.voice == Unmeasured(unmeasured="generations of the arm are missing")
    assert arm.damage == dict.fromkeys(("ran_on", "on_beat"), Unmeasured(unmeasured="generations are missing"))
    assert {axis.outcome for axis in verdict.candidates["one"].axes.values()} == {Outcome.INVALID}
    measured, _ = run(inputs(), at("base", 0, 1))
    assert measured.arms["one"].voice == Unmeasured(unmeasured="generations of base are missing")


@pytest.mark.parametrize("arm", ["base", "one"])
def test_an_arm_that_never_answered_is_invalid(arm: str) -> None:
    _, verdict = run(inputs(), lambda one: None if one.arm == arm else one)
    assert outcomes(verdict) == {"one": Outcome.INVALID, "two": Outcome.INVALID if arm == "base" else Outcome.PASS}


def test_no_generation_at_all_is_invalid() -> None:
    _, verdict = run(inputs(), lambda one: None)
    assert set(outcomes(verdict).values()) == {Outcome.INVALID}


@pytest.mark.parametrize("arm", ["base", "one"])
def test_seeds_that_change_nothing_are_invalid(arm: str) -> None:
    def same(one: Generation) -> Generation:
        return one if one.arm != arm else one.model_copy(update={"text": generation(arm, one.prompt, 1).text})

    measured, verdict = run(inputs(), same)
    assert measured.arms[arm].validity.repeated_seeds == 12
    assert verdict.candidates["one"].outcome is Outcome.INVALID
    axis = verdict.candidates["one"].axes["run" if arm == "base" else "validity"]
    assert "12 of 12 texts repeat an earlier seed of their prompt word for word, at most 0.200" in axis.reason
    assert verdict.candidates["two"].outcome is (Outcome.INVALID if arm == "base" else Outcome.PASS)


@pytest.mark.parametrize(("prompts", "outcome"), [(2, Outcome.PASS), (3, Outcome.INVALID)])
def test_seeds_that_change_signs_alone_change_nothing(prompts: int, outcome: Outcome) -> None:
    def signs(one: Generation) -> Generation:
        if (one.arm, one.seed) != ("one", 2) or one.prompt >= prompts:
            return one
        return one.model_copy(update={"text": f" {generation('one', one.prompt, 1).text.upper()}!\n"})

    measured, verdict = run(inputs(), signs)
    assert measured.arms["one"].validity.repeated_seeds == prompts
    assert outcomes(verdict) == {"one": outcome, "two": Outcome.PASS}
    if outcome is Outcome.PASS:
        said = "2 of 12 texts repeat an earlier seed of their prompt word for word"
        assert verdict.candidates["one"].axes["validity"].warnings == (said,)


def tokens(one: Generation) -> Generation:
    """An answer whose seat tells the tokens of its prompt."""
    return one.model_copy(update={"prompt_sha256": sha256(str(one.prompt).encode())})


@pytest.mark.parametrize(
    ("altered", "counts"),
    [
        ({("one", 1), ("one", 2)}, {"base": 0, "one": 1, "two": 0, "again": 0}),
        ({("one", 2)}, {"base": 0, "one": 1, "two": 0, "again": 0}),
        ({("again", 11)}, {"base": 0, "one": 0, "two": 0, "again": 1}),
        ({("base", 1)}, {"base": 1, "one": 1, "two": 1, "again": 1}),
        ({("base", 1), ("base", 2)}, {"base": 0, "one": 1, "two": 1, "again": 1}),
    ],
    ids=["candidate", "one seed", "control", "one seed of the base", "base"],
)
def test_a_prompt_that_reached_the_model_altered_is_invalid(
    altered: set[tuple[str, int]], counts: dict[str, int]
) -> None:
    def change(one: Generation) -> Generation:
        if one.prompt != 3 or (one.arm, one.seed) not in altered:
            return tokens(one)
        return one.model_copy(update={"prompt_sha256": sha256(b"cut short")})

    measured, verdict = run(inputs(), change)
    assert {name: arm.validity.prompt_mismatches for name, arm in measured.arms.items()} == counts
    assert outcomes(verdict) == {
        name: Outcome.INVALID if counts[name] or counts["base"] else Outcome.PASS for name in ("one", "two")
    }


def test_prompts_are_compared_among_arms_that_are_shown_the_same_where_the_seat_tells() -> None:
    lined = {"model": "base", "system": "Be brief."}
    given = inputs(ARMS | {"controls": {"lined": lined, "again": lined}})

    def change(one: Generation) -> Generation:
        said = f"{one.prompt} {'again' if one.arm in silent else ''} {one.arm in ('lined', 'again')}"
        return one.model_copy(update={"prompt_sha256": None if one.arm == "base" else sha256(said.encode())})

    def mismatches() -> list[int]:
        arms = measure(given, HASH, answers(given, change), HASH).arms
        return [arms[name].validity.prompt_mismatches for name in ("base", "one", "two", "lined", "again")]

    silent: set[str] = set()
    assert mismatches() == [0, 0, 0, 0, 0]
    silent = {"again"}
    assert mismatches() == [0, 0, 0, 12, 12]
    silent = {"two"}
    assert mismatches() == [0, 12, 12, 0, 0], "without the base's word nobody knows whose prompt was altered"


def test_what_failed_is_harm_in_a_candidate_and_none_in_the_base() -> None:
    failed = {"text": "", "error": "hung up"}

    def change(one: Generation) -> Generation:
        ran = one.model_copy(update={"finish_reason": "length"})
        return one.model_copy(update=failed) if one.arm == "base" and one.prompt < 3 else ran

    measured, _ = run(inputs(), change)
    # Every answer runs on and stands on its beat; the base failed at 3 of 12 prompts.
    assert (measured.arms["base"].damage["ran_on"].rate, measured.arms["one"].damage["ran_on"].rate) == (0.75, 1.0)
    assert measured.arms["base"].damage["on_beat"].rate == 1.0
    measured, _ = run(inputs(), at("one", 0, 1, **failed))
    one = measured.arms["one"].damage
    assert (one["ran_on"].values[0][0], one["on_beat"].values[0][0]) == (1.0, 0.0)


def test_a_failed_generation_is_not_scanned_whatever_text_it_left() -> None:
    measured, _ = run(inputs(), at("one", 0, 1, error="hung up"))
    found = measured.arms["one"].memorisation
    assert isinstance(found, MemorisationFigures)
    assert (found.generations, found.unscanned) == (23, 1)


def test_a_text_short_of_words_is_invalid_alone() -> None:
    def short(one: Generation) -> Generation:
        return one.model_copy(update={"text": "one word"}) if (one.arm, one.seed) == ("one", 2) else one

    _, verdict = run(inputs(), short)
    assert verdict.candidates["one"].axes["voice"].reason == (
        "not measured: the arm is short of words_per_seed = 100: seed 2 has 24 words"
    )
    assert outcomes(verdict) == {"one": Outcome.INVALID, "two": Outcome.PASS}


SHARED = prose(77, 20)


def test_twenty_words_shared_by_train_and_heldout_make_all_invalid_unless_accepted() -> None:
    leaky = {"train": f"{TRAIN} unlike {SHARED} likewise {TRAIN}", "heldout": f"{HELDOUT} otherwise {SHARED} elsewhere"}
    measured, verdict = run(inputs(**leaky))
    (leak,) = measured.leaks
    assert (leak.length, leak.train.start, leak.heldout.start) == (20, 3001, 3001)
    assert set(outcomes(verdict).values()) == {Outcome.INVALID}
    assert verdict.candidates["two"].axes["run"].reason == (
        "20 words of author/train.txt (word 3001) stand in held-out author/heldout.txt (word 3001); "
        f"validity.accept_leaks would name it {leak.sha256}"
    )
    _, accepted = run(inputs(**leaky, validity={"accept_leaks": [leak.sha256]}))
    assert set(outcomes(accepted).values()) == {Outcome.PASS}
    assert accepted.warnings == ("1 runs of words shared by train and held-out text, accepted by the gate",)


def test_nineteen_shared_words_are_no_leak() -> None:
    shorter = SHARED.rsplit(" ", 1)[0]
    measured, _ = run(inputs(train=f"{TRAIN} unlike {shorter} so", heldout=f"{HELDOUT} otherwise {shorter} elsewhere"))
    assert measured.leaks == ()


def test_recited_training_text_is_a_hit_unless_the_prompt_says_it() -> None:
    recited = " ".join(TRAIN.split()[100:112])
    measured, _ = run(inputs(), at("one", 4, 2, text=f"Well then {recited} and on"))
    found = measured.arms["one"].memorisation
    assert isinstance(found, MemorisationFigures)
    (only,) = found.runs
    assert (found.hits, only.prompt, only.seed, only.start, only.length) == (1, 4, 2, 2, 12)
    assert [(source.file, source.start) for source in only.sources] == [("author/train.txt", 100)]
    prompted = inputs(prompts={"file": "b", "template": f"Begin with: {recited}. Beat: {{beat}}"})
    measured, _ = run(prompted, at("one", 4, 2, text=f"Well then {recited} and on"))
    found = measured.arms["one"].memorisation
    assert isinstance(found, MemorisationFigures)
    assert found.hits == 0


def test_other_candidates_and_the_order_of_answers_change_nothing() -> None:
    both = inputs()
    measured, verdict = whole()
    alone = inputs(ARMS | {"candidates": {"one": ARMS["candidates"]["one"]}})
    more = inputs(ARMS | {"candidates": {"zero": {"model": "z", "adapter": "z"}, **ARMS["candidates"]}, "controls": {}})
    for other in (alone, more):
        figures, judged = run(other)
        assert figures.arms["one"] == measured.arms["one"]
        assert judged.candidates["one"] == verdict.candidates["one"]
    shuffled = measure(both, HASH, reversed(answers(both)), HASH)
    assert shuffled == measured


def test_a_renamed_candidate_keeps_its_figures() -> None:
    renamed = inputs(ARMS | {"candidates": {"other-name": ARMS["candidates"]["one"]}})
    found = [
        one.model_copy(update={"arm": "other-name"} if one.arm == "one" else {})
        for one in answers(inputs())
        if one.arm != "two"
    ]
    measured, _ = whole()
    assert measure(renamed, HASH, found, HASH).arms["other-name"] == measured.arms["one"]


@pytest.mark.parametrize(
    "foreign", [{"arm": "three"}, {"prompt": 12}, {"seed": 3}, {"arm": "again", "seed": 1}], ids=str
)
def test_a_generation_that_the_gate_does_not_ask_for_is_tampered(foreign: dict[str, Any]) -> None:
    given = inputs()
    extra = generation("one", 0, 1).model_copy(update=foreign)
    with pytest.raises(TamperedError, match=r"a generation of arm '\w+', prompt \d+, seed \d is recorded, and gate"):
        measure(given, HASH, [*answers(given), extra], HASH)


def test_measuring_needs_no_path() -> None:
    nowhere = dataclasses.replace(inputs(), path=Path("/nonexistent"), workspace=Path("/nonexistent"))
    assert run(nowhere)[0] == whole()[0]
