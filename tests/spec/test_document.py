"""Gate files with mistakes: every mistake is told once, at its line, in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gates.errors import InputError, Problem
from gates.spec import source, tree
from gates.spec.load import load_gate
from gates.spec.source import located

LINES = (Path(__file__).parent / "gate.yaml").read_text(encoding="utf-8").splitlines()


def problems(path: Path, changes: dict[int, str | None]) -> tuple[Problem, ...]:
    """The problems of the valid gate after its lines (from 1) are replaced; None removes a line."""
    lines = [changes.get(number, line) for number, line in enumerate(LINES, 1)]
    file = path / "gate.yaml"
    file.write_text("\n".join(line for line in lines if line is not None), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_gate(file)
    return caught.value.problems


def test_seven_mistakes_are_seven_problems_with_their_lines(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        {
            2: "name: lv bronte",
            11: "prompts: {file: beats.txt, template: 5}",
            14: "  temperature: warm",
            16: "  max_token: 400",
            17: "voice: {measure: delta_cb@1, mfw: 3, words_per_seed: 1900}",
            20: "  ran_on: {}",
            22: "validity: {max_empty: 0.02, max_errors: .nan}",
        },
    )
    file = tmp_path / "gate.yaml"
    assert [str(problem) for problem in found] == [
        f"{file}:2: name = 'lv bronte': must be a name of letters, digits, dots, underscores and hyphens, at most 64",
        f'{file}:11: prompts.template = 5: text or a list is needed, this is a whole number (write "5" with quotes)',
        f"{file}:14: sampling.temperature = 'warm': a number is needed, this is text",
        f"{file}:16: sampling.max_token = 400: unknown key (did you mean `max_tokens`, which is missing?)",
        f"{file}:17: voice.mfw = 3: must be at least 10",
        f"{file}:20: damage.ran_on: name exactly one rule: `margin: NUMBER` (recommended) or `within: floor`",
        f"{file}:22: validity.max_errors = nan: a finite number is needed; infinity and not-a-number are refused",
    ]


def test_mistakes_in_the_yaml_and_in_the_values_are_told_together(tmp_path: Path) -> None:
    found = problems(tmp_path, {3: "question: &q why", 9: LINES[7], 16: "  max_tokens: 0", 23: "tie_break: *q"})
    assert [(problem.where.rsplit(":", 1)[1], problem.path) for problem in found] == [
        ("3", "question"),
        ("9", "arms.candidates.ckpt475"),
        ("16", "sampling.max_tokens"),
        ("23", "tie_break"),
    ]


VOICE = "voice: {mfw: 300, words_per_seed: 1900"

ONE = [
    (4, "seat: embeded", "seat = 'embeded': must be `embedded` or a mapping (did you mean `embedded`?)"),
    (4, "seat: 5", "seat = 5: `embedded` or a mapping is needed, this is a whole number"),
    (4, "seat: {concurrency: 8}", "seat.base_url: a required key is missing (add `base_url: ...`)"),
    (4, "seat: {base_url: ftp://x}", "seat.base_url = 'ftp://x': must be an http or https address"),
    (4, "seats: [{base_url: http://a}]", "seats = [{'base_url': 'http://a'}]: needs at least 2 entries, this has 1"),
    (4, "seats: [{base_url: http://a}, {base_url: http://a/}]", "http://a: one seat twice"),
    (4, "seats: [{base_url: http://b:80/v1}, {base_url: HTTP://B/v1}]", "must be an http or https address"),
    (
        4,
        "seats: [{base_url: http://b:80/v1}, {base_url: http://B./v1}]",
        "http://b:80/v1, http://B./v1: one seat twice",
    ),
    (4, "seats: [{base_url: http://localhost:81}, {base_url: http://127.0.0.1:81/}]", "http://127.0.0.1:81: one seat"),
    (4, "seats: [{base_url: 'http://[::1]:81'}, {base_url: http://LOCALHOST:81}]", "http://LOCALHOST:81: one seat"),
    (4, "seats: [{base_url: http://a}, {base_ul: b}]", "seats[1].base_ul = 'b': unknown key (did you mean `base_url`"),
    (6, "  base: {model: a, sytem: b}", "arms.base.sytem = 'b': unknown key (did you mean `system`?)"),
    (6, "  base: 5", "arms.base = 5: text or a mapping is needed, this is a whole number"),
    (6, "  base: ''", "arms.base = '': must not be empty"),
    (8, "    475: {model: a, adapter: b}", "arms.candidates = '475': a key must be text (put it in quotes)"),
    (8, "    a b: {model: a, adapter: b}", "arms.candidates.'a b' = 'a b': must be a name of letters"),
    (8, "    x: {model: a, adapter: b, notes: {epochs: [1]}}", "arms.candidates.x.notes.epochs = [1]: text or a whole"),
    (8, "    x: {model: lv-bronte-925, adapter: b}", "arms: base and candidates must each have a model name"),
    (10, "corpora: {train: ../x, heldout: b, reference: c}", "corpora.train = '../x': must be the name of a corpus"),
    (
        10,
        "corpora: {train: a, heldout: b, reference: []}",
        "corpora.reference = []: needs at least 1 entry, this has 0",
    ),
    (10, "corpora: {train: a, heldout: b, reference: c, imposters: d}", "corpora.imposters = 'd': a list is needed"),
    (11, "prompts: {file: a, template: [{role: usr, content: '{beat}'}]}", "prompts.template[0].role = 'usr': must be"),
    (11, "prompts: {file: a, template: ''}", "prompts.template = '': must not be empty"),
    (11, "prompts: {file: a, template: x}", "prompts: the template must hold {beat} exactly once"),
    (
        11,
        "prompts: {file: a, template: [{role: system, content: '{beat}'}]}",
        "prompts: {beat} may not stand in a system message",
    ),
    (
        13,
        "  seeds: [1, 2.0]",
        "sampling.seeds[1] = 2.0: a whole number is needed, this is a number with a point (write 2)",
    ),
    (13, "  seeds: [1, true]", "sampling.seeds[1] = true: a whole number is needed, this is true or false"),
    (13, "  seeds: [1, 1]", "sampling.seeds = [1, 1]: seeds must differ"),
    (13, "  seeds: [1]", "sampling.seeds = [1]: needs at least 2 entries, this has 1"),
    (13, "  seeds: 3", "sampling.seeds = 3: a list is needed, this is a whole number (write [3])"),
    (14, "  temperature: 3", "sampling.temperature = 3: must be at most 2"),
    (14, "  temperature:", "sampling.temperature = null: a number is needed, this is empty"),
    (15, "  top_p: 0", "sampling.top_p = 0: must be above 0"),
    (16, "  max_tokens: '400'", "this is text (write 400 without quotes)"),
    (16, "  max_tokens: 0400", "this is text (write 400)"),
    (16, "  max_tokens: 1_000", "this is text (write 1000)"),
    (16, "  max_tokens: 0x1f", "sampling.max_tokens = '0x1f': a whole number is needed, this is text"),
    (17, "voice: {mfw: 300, words_per_seed: 1900, floor: all}", "voice.floor = 'all': must be `pairwise-range@1` or"),
    (17, f"{VOICE}, floor: pairwise-calibrated@1, times_floor: 2}}", "pairwise-calibrated@1 takes no times_floor"),
    (17, f"{VOICE}, alpha: 0.05}}", "alpha is the error rate of `floor: pairwise-calibrated@1`; pairwise-range@1 has"),
    (17, f"{VOICE}, floor: pairwise-calibrated@1, alpha: 0.5}}", "voice.alpha = 0.5: must be at most 0.4"),
    (20, "  ran_on: {margin: 0.1, floor: pairwise-calibrated@1, alpha: 0.1}", "alpha belongs to `within: floor`"),
    (18, "memorisation: {max_rate: 0, decide: pont}", "must be `interval` or `point` (did you mean `point`?)"),
    (18, "memorization: {max_rate: 0}", "unknown key (did you mean `memorisation`?)"),
    (18, "memorisation: {max_rate: 0, read_every_run: yes}", "true or false is needed, this is text (yes, no, on and"),
    (20, "  Ran_On: {within: floor}", "damage.Ran_On: unknown key (did you mean `ran_on`?)"),
    (20, "  zzz: {within: floor}", "damage.zzz: unknown key (allowed here: ran_on, on_beat, empty, repetition, echo, "),
    (22, "validity: [1]", "validity = [1]: a mapping is needed, this is a list"),
    (22, "schema_: gates/1", "schema_ = 'gates/1': unknown key"),
    (23, "tie_break: [notes.epoch]", "tie_break names notes.epoch, and ckpt475, ckpt925 have no note 'epoch': without"),
    (23, "tie_break: [extraction]", "tie_break: tie_break names 'extraction', which this gate does not measure"),
    (17, "voice: {mfw: 300, words_per_seed: 1900, floor: pairwise-rang@1}", "(did you mean `pairwise-range@1`?)"),
    (23, "tie_break: [garble]", "tie_break: tie_break names 'garble', which this gate does not measure"),
]


@pytest.mark.parametrize(("line", "text", "message"), ONE)
def test_one_mistake_is_one_problem(tmp_path: Path, line: int, text: str, message: str) -> None:
    (problem,) = problems(tmp_path, {line: text})
    assert message in str(problem)
    assert problem.where == f"{tmp_path / 'gate.yaml'}:{5 if problem.path == 'arms' else line}"


@pytest.mark.parametrize(
    "address",
    [
        "http://user:hunter2@h/v1",
        "http://hunter2@h/v1",
        "http://h/v1?api_key=hunter2",
        "http://h?api_key=hunter2",
        "http://h/v1#hunter2",
        "http://hunter2:8000@h/v1",
    ],
)
@pytest.mark.parametrize("line", ["seat: {base_url: '%s'}", "seats: [{base_url: http://g}, {base_url: '%s'}]"])
def test_an_address_holds_no_secret(tmp_path: Path, address: str, line: str) -> None:
    (problem,) = problems(tmp_path, {4: line % address})
    assert "must be an http or https address without user name, query or fragment" in str(problem)
    assert "hunter2" not in str(problem)


def test_a_missing_section_and_an_unlike_key_are_two_mistakes(tmp_path: Path) -> None:
    found = problems(tmp_path, {3: None, 22: "zzzz: 1"})
    assert [(problem.path, problem.rule) for problem in found] == [
        ("question", "a required key is missing"),
        ("zzzz", "unknown key"),
    ]


def test_a_broken_rule_is_not_told_of_a_mapping_that_could_not_be_read(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, {21: "  on_beat: {margin: 1e999}"})
    assert problem.path == "damage.on_beat.margin"


def test_messages_hold_no_control_characters_and_no_long_values(tmp_path: Path) -> None:
    hostile = '"\\e[31m' + "x" * 5000 + '"'
    for line, text in ((3, f"question: [{hostile}]"), (8, f"    {hostile}: 5"), (9, f"    a: {{model: {hostile}}}")):
        for problem in problems(tmp_path, {line: text}):
            assert str(problem).isprintable()
            assert len(problem.value) <= 60


def test_a_flood_of_mistakes_is_counted_and_cut(tmp_path: Path) -> None:
    path = tmp_path / "gate.yaml"
    path.write_text(
        "\n".join(["damage:", *(f"  a{number}: 1" for number in range(500)), *LINES[:18]]), encoding="utf-8"
    )
    with pytest.raises(InputError, match=r"500 problems, the first 100 of them") as caught:
        load_gate(path)
    assert [problem.path for problem in caught.value.problems] == [f"damage.a{number}" for number in range(100)]


def test_what_is_counted_and_not_shown_is_not_written_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []

    def counting(*arguments: Any) -> Problem:
        written.append(arguments)
        return located(*arguments)

    monkeypatch.setattr(tree, "located", counting)
    monkeypatch.setattr(source, "located", counting)
    path = tmp_path / "gate.yaml"
    for text, count in ((f"sampling: {{seeds: [{'x, ' * 5000}]}}", 5011), ("\1\n" * 5000, 5000)):
        written.clear()
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=f"{count} problems, the first 100 of them") as caught:
            load_gate(path)
        assert len(caught.value.problems) == 100
        assert len(written) <= 101


def test_a_document_that_is_no_mapping(tmp_path: Path) -> None:
    path = tmp_path / "gate.yaml"
    path.write_text("- a\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"gate\.yaml:1: document = \['a'\]: a mapping is needed, this is a list"):
        load_gate(path)
