"""`gates seat status` and `load` against a real seat."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.flow.conftest import gates

pytestmark = pytest.mark.xdist_group("ran")


def test_status_of_a_real_seat(served: str, tmp_path: Path) -> None:
    compose = tmp_path / "c.yaml"
    compose.write_text("services: {s: {image: vllm, command: [--enable-lora, --lora-modules, other=/x]}}", "utf-8")
    ended = gates("seat", "status", "--seat", served, "--compose", compose, "--json")
    assert ended.returncode == 1
    found = json.loads(ended.stdout)
    assert found["bases"] == ["voices-base"]
    assert "lv-bronte-e12 is loaded but not listed: gone at the next restart" in found["drift"]
    ended = gates("seat", "load", "x", "/nowhere", "--seat", served)
    assert ended.returncode == 4
    assert "VLLM_ALLOW_RUNTIME_LORA_UPDATING=1" in ended.stderr
    assert gates("seat", "status", "--seat", served).returncode == 0
