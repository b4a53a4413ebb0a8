"""The demonstration as a stranger runs it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.flow.conftest import gates


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_demonstration_says_what_it_must(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(root / "corpora", tmp_path / "corpora")
    (tmp_path / "prereg").mkdir()
    shutil.copy(root / "prereg" / "demo.yaml", tmp_path / "prereg")
    shutil.copytree(root / "prereg" / "demo", tmp_path / "prereg" / "demo")
    monkeypatch.chdir(tmp_path)
    demonstrated = gates("demo", "--json")
    found = json.loads(demonstrated.stdout)
    assert demonstrated.returncode == 0, found
    assert found["as_expected"] is True
    outcomes = {name: candidate["outcome"] for name, candidate in found["candidates"].items()}
    assert outcomes == {"lv-bronte-e12": "PASS", "lv-bronte-ranon": "FAIL"}
