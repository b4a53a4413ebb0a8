"""`gates ledger`: the records, the head, and where there are none."""

from __future__ import annotations

import json
from pathlib import Path

from gates.record.ledger import Ledger, Stamp
from tests.flow.conftest import gates


def test_the_records_and_the_head_are_listed(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "prereg")
    one = ledger.append("seal", "demo", {"seal": "x"}, Stamp("2026-01-01T00:00:00+00:00", "ann\x1b[2J"))
    two = ledger.append("run", "demo", {"run": 1}, Stamp("2026-01-02T00:00:00+00:00", "bob"))
    listed = gates("ledger", "--workspace", tmp_path)
    assert listed.returncode == 0
    assert listed.stdout.splitlines() == [
        f"{one.sha256[:12]}  2026-01-01T00:00:00+00:00  seal      demo  by ann\\x1b[2J",
        f"{two.sha256[:12]}  2026-01-02T00:00:00+00:00  run       demo run 001  by bob",
        f"2 records, head {two.sha256}",
    ]
    told = json.loads(gates("ledger", "--workspace", tmp_path, "--json").stdout)
    assert told["head"] == [two.sha256]
    assert [record["sha256"] for record in told["records"]] == [one.sha256, two.sha256]


def test_a_workspace_without_records_has_no_head(tmp_path: Path) -> None:
    assert gates("ledger", "--workspace", tmp_path).stdout == "0 records, head none\n"


def test_a_changed_ledger_is_not_listed(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "prereg")
    ledger.append("seal", "demo", {}, Stamp("2026", "ann"))
    ledger.path.write_bytes(ledger.path.read_bytes().replace(b"ann", b"bob"))
    listed = gates("ledger", "--workspace", tmp_path)
    assert listed.returncode == 5
    assert "ledger.jsonl" in listed.stderr
