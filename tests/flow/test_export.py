"""A finished run in other tools' forms: in-toto's test-result predicate, and Inspect's log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gates.records import sha256
from tests.flow.conftest import gates, lines

pytestmark = pytest.mark.xdist_group("flips")


@pytest.fixture
def run(signed_run: tuple[Path, Path]) -> Path:
    return signed_run[0] / "reports" / "small" / "001"


def exported(run: Path, *words: object) -> dict:
    ended = gates("export", run, *words)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_a_statement_is_about_the_adapters_bytes_and_only_pass_is_passed(run: Path) -> None:
    told = exported(run, "--format", "intoto")
    verdict = json.loads((run / "verdict.json").read_bytes())["candidates"]["one"]
    assert told["_type"] == "https://in-toto.io/Statement/v1"
    assert told["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert told["subject"] == [{"name": "one.gguf", "digest": {"sha256": sha256(b"adapter")}}]
    predicate = told["predicate"]
    assert set(predicate) == {"result", "configuration", "passedTests", "warnedTests", "failedTests"}
    assert predicate["result"] == ("PASSED" if verdict["outcome"] == "PASS" else "FAILED")
    outcomes = {name: axis["outcome"] for name, axis in verdict["axes"].items()}
    assert set(predicate["passedTests"]) == {name for name, outcome in outcomes.items() if outcome == "PASS"}
    assert set(predicate["failedTests"]) == {name for name, outcome in outcomes.items() if outcome != "PASS"}
    assert predicate["warnedTests"] == []
    by_name = {descriptor["name"]: descriptor for descriptor in predicate["configuration"]}
    for name in ("generations.jsonl", "measurements.json", "verdict.json", "sessions.jsonl", "report.md"):
        assert by_name[name]["digest"] == {"sha256": sha256((run / name).read_bytes())}
    assert by_name["verdict.json"]["annotations"] == {
        "outcome": verdict["outcome"],
        "axes": outcomes,
        "standing": "prospective: sealed before any generation of this gate.",
    }
    seal = next((run.parents[2] / "prereg" / "seals").glob("*.json"))
    assert by_name[seal.name]["digest"] == {"sha256": sha256(seal.read_bytes())}
    assert by_name["prereg/small.yaml"]["digest"] == {"sha256": json.loads(seal.read_bytes())["binding"]["gate"]}


TEXT, NUMBER, TABLE, LIST = str, (int, float), dict, list

LOG: dict[str, object] = {
    "version": int,
    "status": TEXT,
    "eval": {"eval_id": TEXT, "run_id": TEXT, "created": TEXT, "task": TEXT, "task_id": TEXT, "model": TEXT}
    | {"dataset": {"name": TEXT, "samples": int, "shuffled": bool}, "config": {"epochs": int}, "metadata": TABLE},
    "plan": {"name": TEXT, "steps": LIST, "config": TABLE},
    "results": {"total_samples": int, "completed_samples": int, "scores": LIST},
    "stats": {"started_at": TEXT, "completed_at": TEXT, "model_usage": TABLE},
    "samples": LIST,
}
SCORE: dict[str, object] = {"name": TEXT, "scorer": TEXT, "params": TABLE, "metrics": TABLE, "metadata": TABLE}
SAMPLE: dict[str, object] = {
    "id": int,
    "epoch": int,
    "input": LIST,
    "target": TEXT,
    "messages": LIST,
    "output": {"model": TEXT, "choices": LIST, "time": NUMBER},
    "scores": TABLE,
    "metadata": TABLE,
    "store": TABLE,
    "events": LIST,
    "model_usage": TABLE,
    "attachments": TABLE,
}
"""The parts of Inspect's log that we write, as `inspect_ai` 0.3.285 types them: its `read_eval_log` read such a log."""


def shaped(value: object, shape: object, place: str) -> None:
    if isinstance(shape, dict):
        assert isinstance(value, dict), place
        for key, of in shape.items():
            assert key in value, f"{place}.{key}"
            shaped(value[key], of, f"{place}.{key}")
    else:
        assert isinstance(value, shape), place


def test_a_log_has_the_shape_that_inspect_reads(run: Path) -> None:
    log = exported(run, "--format", "inspect", "--arm", "one")
    shaped(log, LOG, "log")
    assert (log["version"], log["status"]) == (2, "success")
    for score in log["results"]["scores"]:
        shaped(score, SCORE, "score")
    for sample in log["samples"]:
        shaped(sample, SAMPLE, "sample")
        (choice,) = sample["output"]["choices"]
        assert choice["stop_reason"] in {"stop", "max_tokens", "content_filter", "unknown"}
        assert {message["role"] for message in sample["messages"]} <= {"system", "user", "assistant"}


def test_a_log_tells_what_the_run_holds(run: Path) -> None:
    log = exported(run, "--format", "inspect", "--arm", "one")
    texts = {(g["prompt"], g["seed"]): g["text"] for g in lines(run / "generations.jsonl") if g["arm"] == "one"}
    assert len(texts) == log["results"]["total_samples"] == 24
    assert {
        (sample["id"] - 1, sample["metadata"]["seed"]): sample["output"]["choices"][0]["message"]["content"]
        for sample in log["samples"]
    } == texts
    assert {(sample["id"], sample["epoch"]) for sample in log["samples"]} == {
        (prompt, epoch) for prompt in range(1, 13) for epoch in (1, 2)
    }
    measured = json.loads((run / "measurements.json").read_bytes())["arms"]["one"]
    ran_on = [sample["scores"]["ran_on"]["value"] for sample in log["samples"]]
    assert sum(ran_on) == sum(sum(row) for row in measured["damage"]["ran_on"]["values"])
    hits = sum(sample["scores"]["memorisation"]["value"] for sample in log["samples"])
    assert hits == measured["memorisation"]["hits"]
    verdict = json.loads((run / "verdict.json").read_bytes())["candidates"]["one"]
    told = {score["name"]: score["metrics"].get("value", {}).get("value") for score in log["results"]["scores"]}
    assert told == {name: axis["value"] for name, axis in verdict["axes"].items()}
    assert log["eval"]["metadata"]["outcome"] == verdict["outcome"]


def test_each_arm_has_a_file_that_is_never_overwritten(run: Path, tmp_path: Path) -> None:
    written = exported(run, "--format", "inspect", "--to", tmp_path, "--json")["written"]
    assert [json.loads(Path(path).read_bytes())["eval"]["model"] for path in written] == ["base", "voice-one"]
    # Inspect lists a JSON file as a log when its name begins with a time.
    assert all(Path(path).name[4] == "-" and "T" in Path(path).name for path in written)
    assert gates("export", run, "--format", "inspect", "--to", tmp_path).returncode == 0
    Path(written[0]).write_text("{}", "utf-8")
    refused = gates("export", run, "--format", "inspect", "--to", tmp_path)
    assert refused.returncode == 2
    assert "is written once" in refused.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--format", "inspect"), "several arms, and one document can be printed"),
        (("--format", "inspect", "--arm", "two"), "'two': there is no such arm to export"),
        (("--format", "intoto", "--arm", "base"), "'base': there is no such arm to export"),
    ],
)
def test_what_cannot_be_exported_is_said(run: Path, words: tuple[str, ...], message: str) -> None:
    refused = gates("export", run, *words)
    assert refused.returncode == 2
    assert message in refused.stderr


@pytest.mark.parametrize("name", ["generations.jsonl", "verdict.json"])
def test_a_changed_run_is_not_exported(run: Path, name: str, spoilt: Callable[[Path], None]) -> None:
    spoilt(run / name)
    for words in (("--format", "intoto"), ("--format", "inspect", "--arm", "one")):
        refused = gates("export", run, *words)
        assert refused.returncode == 5
        assert name in refused.stderr


@pytest.fixture
def spoilt() -> object:
    """Spoils a file, and makes it whole when the test ends."""
    kept: dict[Path, bytes] = {}

    def spoil(path: Path) -> None:
        kept[path] = path.read_bytes()
        path.write_bytes(kept[path] + b" ")

    yield spoil
    for path, data in kept.items():
        path.write_bytes(data)
