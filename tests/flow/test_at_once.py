"""Two commands on one gate at once: the second says that it has to wait, and enters nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gates.flow.review import Reading
from gates.record.ledger import Ledger
from gates.record.store import gate_lock
from tests.flow.conftest import gates
from tests.flow.test_trust import Seat, gate, kinds, seat  # noqa: F401 - fixtures
from tests.small import BEATS, prose

BUSY = (2, "another process is running this gate")


def busy(*words: object) -> tuple[int, str]:
    """How a command ended, and whether it said so."""
    ended = gates(*words)
    return ended.returncode, BUSY[1] if BUSY[1] in ended.stderr else ended.stderr


def test_while_a_gate_is_run_it_is_neither_run_nor_sealed_nor_imported_under(gate: Path, seat: Seat) -> None:  # noqa: F811
    old = gate.parents[1] / "old.jsonl"
    lines = (
        {"arm": a, "seed": s, "prompt": n, "text": prose(n, 30)}
        for a in ("base", "one")
        for s in (1, 2)
        for n in range(len(BEATS))
    )
    old.write_text("".join(json.dumps(line | {"finish_reason": "stop"}) + "\n" for line in lines), "utf-8")
    asked = seat.told
    with gate_lock(gate.parents[1] / "reports", "small"):
        assert busy("run", gate) == BUSY
        assert busy("import", old, "--gate", gate) == BUSY
        assert seat.told == asked
        (gate.parent / "one.gguf").write_bytes(b"trained again")
        assert busy("amend", gate, "--reason", "trained again", "--yes") == BUSY
    assert kinds(gate) == ["seal"]


def test_while_a_gate_is_run_its_runs_are_neither_scored_nor_checked_again(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATES_CACHE", str(reading.cache))
    run, ledger = reading.run.store.folder, Ledger(reading.run.workspace / "prereg")
    before = ledger.entries()
    with gate_lock(reading.run.workspace / "reports", "small"):
        assert busy("rescore", run, "--rule", "pairwise-calibrated@1", "--reason", "asked") == BUSY
        assert busy("recheck", run, "--arm", "one") == BUSY
    assert ledger.entries() == before
