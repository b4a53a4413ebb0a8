"""The tutorial on signing a release off, command by command, on a finished run of its names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.walk import walk
from tests.finished import finished_run
from tests.small import prose


def texts(arm: str, prompt: int, seed: int) -> str:
    return prose(1000 * seed + prompt + 7 * (arm == "base"), 60, 0.03 * (arm == "base"))


@pytest.mark.slow
def test_the_tutorial_does_what_it_says(tmp_path: Path, root: Path) -> None:
    cache, home = tmp_path / "cache", tmp_path / "work"
    one = {"model": "lv-bronte-475", "adapter": "one.gguf"}
    arms = {"base": "voices-base", "candidates": {"ckpt475": one}}
    finished_run(home, cache, texts, name="lv-bronte", arms=arms)
    environment = {"GATES_CACHE": str(cache), "PYTHONPATH": str(root)}
    assert walk(root / "docs" / "tutorial-release.md", home, **environment) == []
