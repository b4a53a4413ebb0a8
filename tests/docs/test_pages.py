"""The pages whose commands must do what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.walk import walk


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_operate(root: Path, workspace: Path, cache: Path, port: str, tmp_path: Path) -> None:
    page = tmp_path / "operate.md"
    page.write_text((root / "docs" / "operate.md").read_text("utf-8").replace("8027", port), "utf-8")
    assert walk(page, workspace, GATES_CACHE=str(cache)) == []
