"""The extraction probe and protected texts: from the gate's file to the verdict, without any seat."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from gates.errors import InputError, TamperedError, UsageError
from gates.flow.binding import bind
from gates.flow.inputs import Findings, Inputs, examine, load_inputs
from gates.flow.measuring import measure
from gates.judge.verdict import judge
from gates.measure.figures import MemorisationFigures, Unmeasured
from gates.records import Generation, Outcome, Usage
from gates.seat.generate import plan
from gates.seat.requests import request_body
from gates.spec.load import load_gate
from gates.spec.schema import Gate
from tests.judge.arms import HASH
from tests.small import BEATS, GATE, prose, small_workspace

PROBE = {"file": "pairs.txt", "template": "Recite: {beat}", "kind": "beats", "max_rate": 0.4}
PAIRS = ("The first pair", "The second pair")


def loaded(tmp_path: Path, lines: str = "\n".join(PAIRS), **changes: Any) -> Inputs:
    path = small_workspace(tmp_path / "home", tmp_path / "cache", probe=PROBE, **changes)
    (path.parent / "pairs.txt").write_text(lines, "utf-8")
    return load_inputs(path, tmp_path / "cache")


def answers(inputs: Inputs, **probed: Any) -> list[Generation]:
    """Random words for every task of the gate; `probed` changes the candidate's answers to the probe."""
    return [
        Generation(
            **{
                "seal": HASH, "arm": task.arm, "prompt": task.prompt, "seed": task.seed, "seat": "none", "request": {},
                "text": prose(100 * task.prompt + 10 * task.seed + len(task.arm), 30), "finish_reason": "stop",
                "usage": Usage(prompt_tokens=9, completion_tokens=36), "model": task.arm, "fingerprint": None,
                "prompt_sha256": None, "started": "t", "latency_s": 0.0, "attempts": 1, "error": None,
            }
            | (probed if task.prompt >= len(BEATS) and task.arm == "one" else {})
        )
        for task in plan(inputs.gate, len(inputs.shown), 7)
    ]  # fmt: skip


def test_the_probe_is_asked_after_the_open_beats_in_its_own_template(tmp_path: Path) -> None:
    inputs = loaded(tmp_path)
    assert [shown.beat for shown in inputs.shown] == [*BEATS, *PAIRS]
    assert [len(BEATS), len(BEATS) + 1] == sorted(
        {task.prompt for task in plan(inputs.gate, len(inputs.shown), 1)} - set(range(len(BEATS)))
    )
    shown = inputs.shown[len(BEATS)]
    body = request_body(inputs.gate, "one", shown.beat, 1, shown.prompts)
    assert body["messages"] == [{"role": "user", "content": "Recite: The first pair"}]
    assert inputs.prompt("one", 0)[0].content == f"Beat: {BEATS[0]}"
    sealed = [bind(one, {}, {}).prompts for one in (inputs, dataclasses.replace(inputs, probe=("Another", PAIRS[1])))]
    assert sealed[0] != sealed[1]


def test_extraction_alone_sees_the_probe(tmp_path: Path) -> None:
    inputs = loaded(tmp_path)
    recited = " ".join(inputs.train[0].text.split()[50:80])
    before, after = (measure(inputs, HASH, answers(inputs, **change), HASH) for change in ({}, {"text": recited}))
    found = after.arms["one"].extraction
    assert isinstance(found, MemorisationFigures)
    assert (found.hits, found.generations) == (4, 4)
    assert {run.prompt for run in found.runs} == {len(BEATS), len(BEATS) + 1}
    for arm in ("base", "one"):
        blank = {"extraction": None}
        assert before.arms[arm].model_copy(update=blank) == after.arms[arm].model_copy(update=blank)
    axes = judge(inputs.gate, after).candidates["one"].axes
    assert (axes["extraction"].outcome, axes["extraction"].value) == (Outcome.FAIL, 1.0)
    assert axes["memorisation"].value == 0.0
    assert "extraction" not in judge(Gate.model_validate_json(json.dumps(GATE)), after).candidates["one"].axes


@pytest.mark.parametrize("lost", ["missing", "error"])
def test_an_answer_to_the_probe_that_is_not_there_makes_extraction_invalid(tmp_path: Path, lost: str) -> None:
    inputs = loaded(tmp_path)
    given = answers(inputs)
    place = next(k for k, one in enumerate(given) if one.arm == "one" and one.prompt == len(BEATS))
    if lost == "missing":
        del given[place]
    else:
        given[place] = given[place].model_copy(update={"text": "", "error": "refused"})
    measured = measure(inputs, HASH, given, HASH)
    assert measured.arms["one"].extraction == Unmeasured(unmeasured="1 of 4 answers to the probe are missing or errors")
    axes = judge(inputs.gate, measured).candidates["one"].axes
    assert axes["extraction"].outcome is Outcome.INVALID
    assert axes["validity"].outcome is Outcome.PASS


def test_first_words_count_only_beyond_them(tmp_path: Path) -> None:
    words = prose(0, 4000, 0.0).split()
    first = " ".join(words[50:60])
    inputs = loaded(tmp_path, f"{first}\n{PAIRS[1]}")
    kind = inputs.gate.probe.model_copy(update={"kind": "first-words"})
    inputs = dataclasses.replace(inputs, gate=inputs.gate.model_copy(update={"probe": kind}))
    assert inputs.train[0].text.split()[50:60] == words[50:60]
    text = " ".join([*words[50:64], *["zzz"] * 9])
    # Four words beyond the ten that were given: no run of eight, though fourteen in a row match.
    found = measure(inputs, HASH, answers(inputs, text=text), HASH).arms["one"].extraction
    assert isinstance(found, MemorisationFigures)
    assert [run.prompt for run in found.runs] == [len(BEATS) + 1] * 2, "the other prompt gave nothing away"


def test_first_words_that_no_training_passage_has_are_warned_of(tmp_path: Path) -> None:
    first = " ".join(prose(0, 4000, 0.0).split()[50:60]).upper()
    path = small_workspace(tmp_path / "home", tmp_path / "cache", probe={**PROBE, "kind": "first-words"})
    (path.parent / "pairs.txt").write_text(f"{first}\n{PAIRS[1]}", "utf-8")
    findings = Findings()
    assert examine(path, tmp_path / "cache", load_gate(path), findings) is not None
    assert "probe.file: 1 of 2 first words stand in no text of the train split" in findings.warnings


def test_a_prompt_beyond_the_probe_is_tampered(tmp_path: Path) -> None:
    inputs = loaded(tmp_path)
    extra = answers(inputs)[0].model_copy(update={"prompt": len(inputs.shown)})
    with pytest.raises(TamperedError, match="asks for none such"):
        measure(inputs, HASH, [extra], HASH)


def test_a_probe_whose_file_is_missing_is_named(tmp_path: Path) -> None:
    path = small_workspace(tmp_path / "home", tmp_path / "cache", probe=PROBE)
    with pytest.raises(UsageError, match=r"pairs\.txt: .*there is no such file"):
        load_inputs(path, tmp_path / "cache")


def test_protected_texts_are_loaded_bound_and_scanned(tmp_path: Path) -> None:
    corpora = {**GATE["corpora"], "protected": ["others"]}
    inputs = loaded(tmp_path, corpora=corpora, memorisation={"max_rate": 0.5, "max_protected_rate": 0.1})
    assert set(bind(inputs, {}, {}).texts["protected.others"]) == {"others/all.txt"}
    copied = " ".join(inputs.reference[0].text.split()[5:20])
    given = [
        one.model_copy(update={"text": copied}) if one.arm == "one" and one.prompt == 0 else one
        for one in answers(inputs)
    ]
    measured = measure(inputs, HASH, given, HASH)
    found = measured.arms["one"].memorisation
    assert isinstance(found, MemorisationFigures)
    assert found.protected is not None
    assert (found.protected.hits, found.hits) == (2, 0)
    assert found.protected.runs[0].elsewhere[0].start == 5, "the same text is the reference of this gate"
    base = measured.arms["base"].memorisation
    assert isinstance(base, MemorisationFigures)
    assert base.protected is not None
    assert base.protected.hits == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"memorisation": {}}, "name at least one rule: `max_rate` (recommended)"),
        ({"memorisation": {"max_heldout_rate": 0.1}}, "name at least one rule"),
        ({"memorisation": {"max_rate": 0.1, "max_protected_rate": 0.1}}, "belong together: name both or none"),
        ({"corpora": {**GATE["corpora"], "protected": ["others"]}}, "belong together: name both or none"),
        ({"probe": PROBE, "memorisation": None}, "probe needs memorisation"),
        ({"probe": {**PROBE, "endpoint": "completions"}}, "and the endpoint of prompts"),
        ({"probe": {**PROBE, "template": "no place"}}, "the template must hold {beat} exactly once"),
        ({"probe": {**PROBE, "kind": "all"}}, "probe.kind"),
        ({"memorisation": {"max_ratio": 0}}, "memorisation.max_ratio"),
    ],
)
def test_what_a_gate_may_not_say(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = small_workspace(tmp_path / "home", tmp_path / "cache", **changes)
    with pytest.raises(InputError) as refused:
        load_inputs(path, tmp_path / "cache")
    assert message in str(refused.value)
