"""Killed at any write, a command leaves a ledger that verifies, and the same command then comes to the same end."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from gates.cli import main
from gates.record.ledger import Ledger
from tests.durable import at_risk, names_in
from tests.flow.conftest import gates, lines
from tests.flow.test_trust import Seat, seat  # noqa: F401 - a fixture
from tests.kills import BIG, STARTED, killed_at
from tests.small import BEATS, small_workspace

PARTS = 12


def command(cache: Path, *words: object) -> None:
    """A `gates` command in a process of its own."""
    os.environ["GATES_CACHE"] = str(cache)
    sys.argv = ["gates", *map(str, words)]
    main()


@pytest.fixture(autouse=True)
def quick_start() -> None:
    STARTED.set_forkserver_preload(["gates.cli.gate"])


@pytest.fixture
def gate(seat: Seat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: F811
    """A gate of three prompts, not sealed yet."""
    monkeypatch.setenv("GATES_CACHE", str(tmp_path / "cache"))
    made = small_workspace(
        tmp_path / "workspace", tmp_path / "cache", seat={"base_url": seat.faulty.url, "concurrency": 1}
    )
    (made.parent / "beats.txt").write_text("\n".join(BEATS[:3]), "utf-8")
    return made


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "part",
    [pytest.param(n, marks=pytest.mark.long if n else pytest.mark.slow) for n in range(PARTS)],
)
def test_a_run_killed_at_any_write(gate: Path, tmp_path: Path, part: int) -> None:
    """Each part a share of the steps, so that they can share the cores."""
    workspace, before = gate.parents[1], tmp_path / "before"
    assert gates("seal", gate, "--yes").returncode == 0
    shutil.copytree(workspace, before)
    words = ("run", gate)
    steps = killed_at(BIG, workspace, command, tmp_path / "cache", *words)
    whole = judged(workspace)
    assert {"write prereg/ledger.jsonl", "write reports/small/001/generations.jsonl"} <= set(steps)
    assert at_risk(steps, names_in(before)) == []
    for deadly in range(1 + part, len(steps) + 1, PARTS):
        where = f"step {deadly}: {steps[deadly - 1]}"
        shutil.rmtree(workspace)
        shutil.copytree(before, workspace)
        assert killed_at(deadly, workspace, command, tmp_path / "cache", *words) == [], where
        Ledger(gate.parent).entries()
        ended = gates(*words)
        assert "record:" in ended.stdout, (where, ended)
        assert judged(workspace) == whole, where
        found = json.loads(gates("verify", workspace, "--json").stdout)
        assert (found["breaks"], found["not_derived"], found["runs"]) == ([], [], 1), where


def judged(workspace: Path) -> dict:
    """What a run came to, without what times and latencies change; each generation is there once."""
    folder = workspace / "reports" / "small" / "001"
    generations = lines(folder / "generations.jsonl")
    assert len({(g["arm"], g["prompt"], g["seed"]) for g in generations}) == len(generations) == 12
    verdict = json.loads((folder / "verdict.json").read_bytes())
    return {key: value for key, value in verdict.items() if key != "measurements_sha256"}
