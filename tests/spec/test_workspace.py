"""Paths in a gate file stay inside the workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from gates.errors import UsageError
from gates.spec.workspace import adapter_path, find_workspace, resolve_inside


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    (tmp_path / "top" / "corpora").mkdir(parents=True)
    (tmp_path / "top" / "prereg" / "deep").mkdir(parents=True)
    (tmp_path / "outside.txt").write_text("secret")
    return tmp_path / "top" / "prereg" / "deep" / "gate.yaml"


def test_the_workspace_is_the_nearest_folder_with_corpora(gate: Path, tmp_path: Path) -> None:
    assert find_workspace(gate) == tmp_path / "top"
    (gate.parent / "corpora").mkdir()
    assert find_workspace(gate) == gate.parent


def test_without_corpora_the_workspace_is_the_folder_of_the_gate(tmp_path: Path) -> None:
    assert find_workspace(tmp_path / "gate.yaml") == tmp_path


def test_a_path_is_relative_to_the_gate_file(gate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        resolve_inside(tmp_path / "top", gate, "../beats.txt", field="f") == tmp_path / "top" / "prereg" / "beats.txt"
    )
    monkeypatch.chdir(gate.parent)
    assert resolve_inside(tmp_path / "top", Path("gate.yaml"), "beats.txt", field="f") == gate.parent / "beats.txt"


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("../../../outside.txt", "may not leave the workspace"),
        ("link", "may not leave the workspace"),
        ("folder/../../../../outside.txt", "may not leave the workspace"),
        ("/etc/passwd", "this one is absolute"),
        ("C:\\beats.txt", "this one is absolute"),
        ("\\\\server\\share", "this one is absolute"),
        ("", "may not be empty"),
        ("a\0b", "control characters"),
        ("a\x1b[31m", "control characters"),
        ("loop", "the path cannot be followed"),
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(gate: Path, tmp_path: Path, value: str, rule: str) -> None:
    (gate.parent / "link").symlink_to(tmp_path / "outside.txt")
    (gate.parent / "loop").symlink_to(gate.parent / "loop")
    with pytest.raises(UsageError) as caught:
        resolve_inside(tmp_path / "top", gate, value, field="prompts.file")
    assert caught.value.message.startswith("prompts.file = ")
    assert rule in caught.value.message
    assert caught.value.next_step
    assert "\x1b" not in str(caught.value)


def test_an_adapter_may_lie_anywhere_when_its_path_is_absolute(gate: Path, tmp_path: Path) -> None:
    assert adapter_path(tmp_path / "top", gate, "/adapters/lv") == Path("/adapters/lv")
    assert adapter_path(tmp_path / "top", gate, "../lv.gguf") == tmp_path / "top" / "prereg" / "lv.gguf"
    with pytest.raises(UsageError, match=r"^adapter = .*may not leave the workspace"):
        adapter_path(tmp_path / "top", gate, "../../../lv.gguf")
    with pytest.raises(UsageError, match="control characters"):
        adapter_path(tmp_path / "top", gate, "/a\nb")
