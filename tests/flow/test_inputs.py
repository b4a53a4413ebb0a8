"""What a gate rests on: everything missing is named at once, and roles may not overlap."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gates.flow.inputs import Findings, examine
from gates.records import sha256
from gates.spec.load import load_gate
from tests.flow.conftest import gates, write_gate
from tests.small import GATE, small_workspace


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


def retold(tmp_path: Path, corpora: dict[str, Any], **changes: dict[str, Any]) -> list[str]:
    """What `examine` finds missing of the small workspace when files of its manifests are told otherwise.

    `changes` name a manifest each: the fields to replace in a file of a split.
    """
    path = small_workspace(tmp_path / "home", tmp_path / "cache", corpora={**GATE["corpora"], **corpora})
    for name, splits in changes.items():
        place = tmp_path / "home" / "corpora" / f"{name}.yaml"
        manifest = json.loads(place.read_text("utf-8"))
        for file in manifest["files"]:
            file.update(splits.get(file["split"], {}))
        place.write_text(json.dumps(manifest), "utf-8")
    findings = Findings()
    examine(path, tmp_path / "cache", load_gate(path), findings)
    return findings.missing


@pytest.mark.parametrize("split", ["train", "heldout"])
def test_another_author_and_title_hide_no_text_in_the_frame(tmp_path: Path, split: str) -> None:
    same = {"sha256": sha256(b"one text")}
    missing = retold(tmp_path, {}, author={split: same}, others={"all": same})
    message = "corpora.reference: the same text stands in another role: all.txt"
    assert any(sentence.startswith(message) for sentence in missing), missing
    unpinned = {"sha256": "unpinned"}
    missing = retold(tmp_path / "unpinned", {}, author={split: unpinned}, others={"all": unpinned})
    assert not any("another role" in sentence for sentence in missing)


def test_one_text_under_two_titles_is_no_split(tmp_path: Path) -> None:
    same = {"sha256": sha256(b"one text")}
    missing = retold(tmp_path, {}, author={"train": same, "heldout": same})
    assert any(s.startswith("corpora.heldout: the same text stands in another role: heldout.txt") for s in missing)


def test_a_protected_text_may_be_a_reference_and_no_training_text(tmp_path: Path) -> None:
    limits = {"max_rate": 0.2, "max_protected_rate": 0.1}
    for protected, refused in (("others", False), ("author/train", True)):
        corpora = {**GATE["corpora"], "protected": [protected]}
        home, cache = tmp_path / protected / "home", tmp_path / protected / "cache"
        path = small_workspace(home, cache, corpora=corpora, memorisation=limits)
        findings = Findings()
        examine(path, cache, load_gate(path), findings)
        assert [s.split(": ")[0] for s in findings.missing] == (["corpora.protected"] if refused else [])


@pytest.mark.parametrize("author", ["ANN AUTHOR", "ann author"])
def test_letter_case_hides_no_author(tmp_path: Path, author: str) -> None:
    missing = retold(tmp_path, {}, others={"all": {"author": author}})
    assert any(s.startswith(f"corpora.reference: {author} may not stand there") for s in missing), missing


def test_the_way_an_accent_is_written_hides_no_author(tmp_path: Path) -> None:
    author = {split: {"author": "Anne Bront\u00eb"} for split in ("train", "heldout")}
    missing = retold(tmp_path, {}, author=author, others={"all": {"author": "ANNE BRONTE\u0308"}})
    assert any(s.startswith("corpora.reference: ANNE BRONTE\u0308 may not stand there") for s in missing), missing


@pytest.mark.parametrize("reference", [["others", "others"], ["others", "others/all"]])
def test_a_reference_named_twice_is_refused(tmp_path: Path, reference: list[str]) -> None:
    missing = retold(tmp_path, {"reference": reference})
    assert any(s.startswith("corpora.reference: the same text stands there twice: all.txt") for s in missing), missing


def test_a_seven_fold_mistaken_gate_yields_seven_messages(workspace: Path) -> None:
    gate = write_gate(workspace)
    text = gate.read_text("utf-8")
    for old, new in (
        ("temperature: 0.9", "temprature: 0.9"),
        ("max_tokens: 16", 'max_tokens: "16"'),
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
