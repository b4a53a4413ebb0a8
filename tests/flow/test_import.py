"""`gates import`: a file that is older than the record becomes a run that says so wherever it is shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from gates.record.ledger import Ledger
from gates.records import sha256
from tests.flow.conftest import gates, under_lock
from tests.small import BEATS, prose, small_workspace

Line = dict[str, object]


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GATES_CACHE", str(tmp_path / "cache"))
    voice = {"mfw": 100, "words_per_seed": 100, "floor": "all-arms-range@1"}
    return small_workspace(tmp_path / "workspace", tmp_path / "cache", voice=voice)


def rows() -> list[Line]:
    """Every text that the gate asks for, in the words of another tool."""
    return [
        {
            "model": model,
            "seed": seed,
            "beat": beat if number % 2 else f"Beat: {beat}",
            "completion": prose(100 * seed + number, 30, 0.02 * (model == "base")),
            "finish_reason": "stop",
            "usage": {"prompt_tokens": 8, "completion_tokens": 30},
            "latency": 1.5,
        }
        for model in ("base", "voice-one")
        for seed in (1, 2)
        for number, beat in enumerate(BEATS)
    ]


MAP = [
    argument
    for pair in (
        "arm=model",
        "prompt=beat",
        "text=completion",
        "prompt_tokens=usage.prompt_tokens",
        "completion_tokens=usage.completion_tokens",
    )
    for argument in ("--map", pair)
]


def write(gate: Path, lines: list[Line], name: str = "old | <b>.jsonl") -> Path:
    path = gate.parents[1] / name
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n", "utf-8")
    return path


def test_texts_are_imported_under_a_gate_of_several_seats(gate: Path) -> None:
    """None of its seats is asked, so that none is said to have answered."""
    several = json.loads(gate.read_text("utf-8"))
    one = several.pop("seat")
    several["seats"] = [one, {**one, "base_url": "http://127.0.0.1:10/v1"}]
    gate.write_text(json.dumps(several), "utf-8")
    found = json.loads(gates("import", write(gate, rows()), "--gate", gate, *MAP, "--json").stdout)
    assert found["standing"]["name"] == "imported"
    assert {axis["outcome"] for axis in found["candidates"]["one"]["axes"].values()} <= {"PASS", "FAIL", "INCONCLUSIVE"}
    folder = Path(found["run"])
    assert "seats" not in json.loads((folder / "measurements.json").read_bytes())
    report = (folder / "report.md").read_text("utf-8")
    assert "| seat | unknown |" in report
    assert "127.0.0.1" not in report
    assert gates("verify", gate.parents[1]).returncode == 0


def test_old_texts_become_a_run_that_says_for_ever_that_it_was_imported(gate: Path) -> None:
    file = write(gate, rows())
    ended = gates("import", file, "--gate", gate, *MAP, "--json")
    found = json.loads(ended.stdout)
    assert ended.returncode == found["exit_code"], ended
    assert found["standing"]["name"] == "imported"
    assert found["warnings"][-1].startswith("imported: not sealed before generation")
    axes = found["candidates"]["one"]["axes"]
    assert {name for name, axis in axes.items() if axis["outcome"] == "INVALID"} == set()
    assert axes["voice"]["rule"] == "all-arms-range@1"
    folder = Path(found["run"])
    assert (folder / "received.jsonl").read_bytes() == file.read_bytes()
    kinds = [stored.entry.kind for stored in Ledger(gate.parent).entries()]
    assert kinds == ["import", "run", "verdict"]

    report = (folder / "report.md").read_text("utf-8")
    assert report.split("\n")[0].endswith("(imported, not sealed before generation): small, run 001")
    assert f"| received | old \\| &lt;b&gt;.jsonl `{sha256(file.read_bytes())}` |" in report
    assert "| adapter one | declared, nothing shows that it wrote the texts: `one.gguf` `" in report
    assert "sealed before generation)\n" not in report.replace("(imported, not sealed before generation)", "")
    shown = gates("import", file, "--gate", gate, *MAP)
    assert "imported already" in shown.stderr
    assert "Does it move? (imported, not sealed before generation)" in shown.stdout
    assert len(Ledger(gate.parent).entries()) == 3

    # An import holds no requests: the page names its prompts by the gate's beats.
    assert gates("report", folder).returncode == 0
    assert f"</span> {BEATS[3]}" in (folder / "report.html").read_text("utf-8")

    # No gate is run under it: it is no seal in force.
    refused = gates("run", gate)
    assert (refused.returncode, "has no seal" in refused.stderr) == (2, True)
    verified = json.loads(gates("verify", gate.parents[1], "--json").stdout)
    assert (verified["breaks"], verified["not_derived"]) == ([], [])

    rescored = gates("rescore", folder, "--rule", "pairwise-range@1", "--reason", "x", "--json")
    assert json.loads(rescored.stdout)["standing"]["name"] == "imported"
    compared = gates("compare", folder, "base", "one")
    assert compared.returncode in (2, 4)
    statement = gates("export", folder, "--format", "intoto", "--arm", "one")
    assert (statement.returncode, "nothing shows that the adapter of one wrote them" in statement.stderr) == (2, True)
    log = json.loads(gates("export", folder, "--format", "inspect", "--arm", "one").stdout)
    assert log["eval"]["metadata"]["standing"].startswith("imported: ")
    said = gates("show", "small", "--workspace", gate.parents[1]).stdout
    assert ", after its texts: old | <b>.jsonl (" in said


def test_nobody_enters_a_run_while_an_import_counts_those_before(gate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = under_lock(monkeypatch, "gates.flow.importing.runs", gate.parent / ".ledger.lock")
    gates("import", write(gate, rows()), "--gate", gate, *MAP)
    assert seen[0] is True


def test_what_comes_after_an_import_is_post_hoc(gate: Path) -> None:
    gates("import", write(gate, rows()), "--gate", gate, *MAP)
    again = write(gate, rows()[:-1])
    found = json.loads(gates("import", again, "--gate", gate, *MAP, "--json").stdout)
    assert found["run"].endswith("002")
    assert found["attempts"] == 2
    assert found["candidates"]["one"]["outcome"] == "INVALID"
    assert "1 of 24 generations missing" in found["candidates"]["one"]["axes"]["validity"]["reason"]

    stricter = yaml.safe_load(gate.read_text("utf-8"))
    stricter["memorisation"]["max_rate"] = 0.1
    gate.write_text(yaml.safe_dump(stricter), "utf-8")
    other = json.loads(gates("import", again, "--gate", gate, *MAP, "--json").stdout)
    assert other["run"].endswith("003"), "the same texts under another gate"
    other = json.loads(gates("import", again, "--gate", gate, *MAP[:-2], "--json").stdout)
    assert other["run"].endswith("004"), "the same file read otherwise"


@pytest.mark.parametrize("file", ["received.jsonl", "generations.jsonl"])
def test_a_changed_byte_is_found(gate: Path, file: str) -> None:
    gates("import", write(gate, rows()), "--gate", gate, *MAP)
    path = gate.parents[1] / "reports" / "small" / "001" / file
    path.write_bytes(path.read_bytes().replace(b" b", b" d", 1))
    verified = gates("verify", gate.parents[1], "--json")
    assert verified.returncode == 5
    assert any(file in sentence for sentence in json.loads(verified.stdout)["breaks"])


def changed(**values: object) -> Callable[[list[Line]], list[Line]]:
    return lambda lines: [lines[0], lines[1] | values, *lines[2:]]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (changed(model="other"), "2: arm = 'other': must be an arm of the gate or its model: base, one"),
        (changed(model=None), "2: arm = null: must be an arm"),
        (changed(seed=9), "2: seed = 9: must be a seed of this arm: 1, 2"),
        (changed(seed=True), "2: seed = true: must be a seed of this arm"),
        (changed(seed=1.0), "2: seed = 1.0: must be a seed of this arm"),
        (changed(beat="Nobody asked"), "2: prompt = 'Nobody asked': must be a prompt of the gate"),
        (changed(beat=12), "2: prompt = 12: must be a prompt of the gate: its number, 0 to 11"),
        (changed(completion=3), "2: text = 3: a text is needed (read from 'completion'; --map text=NAME"),
        (changed(completion="\ud800"), "2: text = '': half of a surrogate pair is no text"),
        (changed(finish_reason=["stop"]), "2: finish_reason = ['stop']: a text is needed"),
        (changed(usage={"prompt_tokens": 8, "completion_tokens": -1}), "2: completion_tokens = -1: a whole number"),
        (lambda lines: [*lines, lines[3]], "49: line: arm, seed and prompt are those of line 4 (keep one of them)"),
        (lambda lines: [], "the file holds no text"),
        (lambda lines: [{"id": 7}], "there is no arm, seed, prompt, text; the fields are called: 'id'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_is_named_by_its_line_and_leaves_no_trace(gate: Path, spoil, message: str) -> None:
    ended = gates("import", write(gate, spoil(rows())), "--gate", gate, *MAP)
    assert ended.returncode == 2
    assert message in ended.stderr
    assert not (gate.parent / "ledger.jsonl").exists()
    assert not (gate.parents[1] / "reports" / "small" / "001").exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"model": "base", "model": "voice-one"}', "1: line = "),
        (b"[1]", "a JSON object is needed"),
        (b'{"seed": NaN}', "NaN is no JSON"),
        (b"\xff", "the file is not UTF-8 here"),
        (b"[" * 100_000, "a JSON object is needed"),
    ],
    ids=["twice", "list", "nan", "bytes", "deep"],
)
def test_what_is_no_line_of_texts(gate: Path, data: bytes, message: str) -> None:
    path = gate.parents[1] / "old.jsonl"
    path.write_bytes(data)
    ended = gates("import", path, "--gate", gate)
    assert (ended.returncode, message in ended.stderr) == (2, True), ended.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--map", "text"], "--map 'text': FIELD=NAME is needed"),
        (["--map", "text=a", "--map", "text=b"], "FIELD=NAME is needed, once a field"),
        (["--map", "txt=a"], "--map txt: there is no such field"),
    ],
)
def test_what_cannot_be_mapped(gate: Path, arguments: list[str], message: str) -> None:
    ended = gates("import", write(gate, rows()), "--gate", gate, *arguments)
    assert (ended.returncode, message in ended.stderr) == (2, True), ended.stderr


def test_a_text_that_the_old_tool_never_got_is_an_error_and_no_answer(gate: Path) -> None:
    lines = changed(error="timed out", completion=None)(rows())
    found = json.loads(gates("import", write(gate, lines), "--gate", gate, *MAP, "--json").stdout)
    assert found["candidates"]["one"]["outcome"] == "INVALID"
    measurements = json.loads((Path(found["run"]) / "measurements.json").read_bytes())
    assert measurements["arms"]["base"]["validity"]["errors"] == 1


def test_an_import_that_was_killed_goes_on(gate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(gate, rows())

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("gates.flow.importing.conclude", killed)
        assert gates("import", file, "--gate", gate, *MAP).returncode == 130
    ended = gates("import", file, "--gate", gate, *MAP, "--json")
    assert json.loads(ended.stdout)["run"].endswith("001")
    kinds = [stored.entry.kind for stored in Ledger(gate.parent).entries()]
    assert kinds == ["import", "run", "verdict"]


def test_a_gate_with_a_judge_is_refused(gate: Path) -> None:
    judged = yaml.safe_load(gate.read_text("utf-8")) | {"judge": {"labelled": "labelled.jsonl"}}
    judged["damage"]["judged_on_beat"] = {"margin": 0.5}
    gate.write_text(yaml.safe_dump(judged), "utf-8")
    known = [{"beat": BEATS[0], "text": f"Text {number}.", "on_beat": number < 10} for number in range(20)]
    (gate.parent / "labelled.jsonl").write_text("\n".join(map(json.dumps, known)), "utf-8")
    ended = gates("import", write(gate, rows()), "--gate", gate, *MAP)
    assert (ended.returncode, "judge: an import asks no seat" in ended.stderr) == (2, True), ended.stderr
