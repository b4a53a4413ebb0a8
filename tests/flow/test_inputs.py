"""What a gate rests on: everything missing is named at once, and roles may not overlap."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.flow.conftest import gates, write_gate


@pytest.mark.parametrize(
    ("gate", "adapters", "corpora"),
    [
        ("lv-bronte", 2, {"house-bronte", "house-english", "house-austen", "house-hemingway"}),
        ("lv-hemingway", 2, {"house-bronte", "house-english", "house-austen", "house-hemingway"}),
        ("lv-yarros", 1, {"house-yarros", "house-english", "house-austen", "house-hemingway"}),
    ],
)
def test_house_gates_lack_their_texts_and_adapters_and_nothing_else(
    root: Path, gate: str, adapters: int, corpora: set[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GATES_CACHE", str(tmp_path))
    checked = gates("check", root / "prereg" / f"{gate}.yaml", "--json")
    found = json.loads(checked.stdout)
    assert checked.returncode == 2
    assert all("texts cannot be used" in sentence for sentence in found["missing"])
    assert {sentence.split()[1].rstrip(":").split("/")[0] for sentence in found["missing"]} == corpora
    assert len(found["warnings"]) == adapters
    assert all(sentence.startswith("adapter of ") and "missing here" in sentence for sentence in found["warnings"])


def test_everything_missing_is_named_at_once(workspace: Path) -> None:
    gate = write_gate(workspace)
    (workspace / "prereg" / "demo" / "beats.txt").unlink()
    (workspace / "prereg" / "demo" / "adapters" / "lv-bronte-e12.gguf").unlink()
    (workspace / "corpora" / "irving.yaml").unlink()
    checked = gates("check", gate)
    assert checked.returncode == 2
    for what in ("beats.txt", "lv-bronte-e12.gguf is missing", "irving.yaml"):
        assert what in checked.stdout


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("reference: [hawthorne, irving]", "reference: [hawthorne, bronte/train]", "corpora.reference: Anne Brontë"),
        (
            "reference: [hawthorne, irving]",
            "reference: [hawthorne, irving], imposters: [irving]",
            "corpora.reference: Washington Irving may not stand there",
        ),
        ("heldout: bronte/heldout", "heldout: bronte/train", "share a book: Agnes Grey"),
    ],
)
def test_roles_may_not_overlap(workspace: Path, old: str, new: str, message: str) -> None:
    gate = write_gate(workspace)
    gate.write_text(gate.read_text("utf-8").replace(old, new), "utf-8")
    checked = gates("check", gate)
    assert checked.returncode == 2
    assert message in checked.stdout


def test_a_seven_fold_mistaken_gate_yields_seven_messages(workspace: Path) -> None:
    gate = write_gate(workspace)
    text = gate.read_text("utf-8")
    for old, new in (
        ("temperature: 0.9", "temprature: 0.9"),
        ("max_tokens: 24", 'max_tokens: "24"'),
        ("top_p: 0.95", "top_p: .nan"),
        ("seeds: [1, 2]", "seeds: [1, 010]"),
        ("mfw: 100", "mfw: 5"),
        ("max_rate: 0.2", "max_rate: 1.2"),
        ("max_empty: 0.5", "max_empty: yes"),
    ):
        assert old in text
        text = text.replace(old, new)
    gate.write_text(text, "utf-8")
    checked = gates("check", gate)
    assert checked.returncode == 2
    problems = [line for line in checked.stderr.splitlines() if "small.yaml:" in line and line.startswith("  ")]
    assert len(problems) == 7, checked.stderr
    assert "did you mean" in checked.stderr
    assert "Traceback" not in checked.stderr


def test_errors_are_one_json_document_too(workspace: Path) -> None:
    gate = write_gate(workspace)
    gate.write_text("schema: gates/1\n", "utf-8")
    checked = gates("check", gate, "--json")
    assert json.loads(checked.stdout)["exit_code"] == 2
