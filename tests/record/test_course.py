"""The course of a ledger: what gates would never have appended is known by its place, whoever chained it rightly."""

from __future__ import annotations

from typing import Any

import pytest

from gates.errors import TamperedError
from gates.record.chain import Entry, Kind, Stored, stored
from gates.record.course import course_breaks
from gates.record.ledger import Ledger, Stamp
from gates.record.store import runs

HASH = "0" * 64
RUN = {"run": 1, "seal": HASH}
FILES = ("generations", "measurements", "verdict", "sessions", "report")
JUDGED = {**RUN, **{f"{name}_sha256": HASH for name in FILES}, "outcome": "FAIL", "candidates": {"one": "FAIL"}}
SITTING = {"run": 1, "lines": 2, "lines_sha256": HASH}
RECHECK = {"run": 1, "recheck": 1, "plan_sha256": HASH}
SESSION = {"run": 1, "session_sha256": HASH, "phase": "end"}
RECHECKED = {**RECHECK, "generations_sha256": HASH, "recheck_sha256": HASH, "report_sha256": HASH, "outcome": "PASS"}

HONEST: list[tuple[Kind, dict[str, Any]]] = [
    ("seal", {"seal": HASH, "file": "seals/demo.json", "gate_sha256": HASH}),
    ("run", RUN),
    ("session", SESSION),
    ("verdict", JUDGED),
    ("review", SITTING),
    ("signoff", {"run": 1, "arm": "one", "decision": "ship", "signoff_sha256": HASH, "signing_key": "ssh-ed25519 A"}),
    ("recheck", {**RECHECK, "arm": "one"}),
    ("rechecked", RECHECKED),
    ("run", {**RUN, "run": 2}),
    ("spoiled", {"run": 2, "why": "other weights"}),
]


def chained(*said: tuple[Kind, dict[str, Any]]) -> list[Stored]:
    found: list[Stored] = []
    for kind, body in said:
        before = (found[-1].sha256,) if found else ()
        found.append(stored(Entry(previous=before, kind=kind, at="2026-01-01", by="ann", gate="demo", body=body)))
    return found


def test_what_gates_enters_has_its_course() -> None:
    assert course_breaks(chained(*HONEST)) == []


@pytest.mark.parametrize(
    ("kind", "body", "why"),
    [
        ("verdict", JUDGED, "the run had ended, with a record of kind verdict"),
        ("verdict", {**JUDGED, "run": 2}, "the run had ended, with a record of kind spoiled"),
        ("verdict", {**JUDGED, "run": 3}, "no such run had begun"),
        ("spoiled", {"run": 1, "why": "not to our liking"}, "the run had ended, with a record of kind verdict"),
        ("session", SESSION, "the run had ended, with a record of kind verdict"),
        ("run", RUN, "a run of this number had begun"),
        ("run", {"run": 3, "seal": "1" * 64}, f"the gate had no seal {'1' * 64}"),
        ("review", {**SITTING, "run": 2}, "the run had no verdict"),
        ("votes", {**SITTING, "run": 7, "readers": []}, "no such run had begun"),
        ("signoff", {"run": 2, "arm": "a", "decision": "ship", "signoff_sha256": HASH}, "the run had no verdict"),
        ("rechecked", RECHECKED, "this recheck had ended"),
        ("rechecked", {**RECHECKED, "plan_sha256": "1" * 64}, "no such recheck had begun"),
        ("run", {**RUN, "run": 3, "outcome": "PASS"}, "gates says nothing called 'outcome' there"),
        ("run", {"run": 3}, "it does not say its seal"),
        ("run", {**RUN, "run": 0}, "runs are counted from 1"),
        ("session", {**SESSION, "run": True}, "run is True, which is no int"),
    ],
)
def test_a_record_out_of_its_course_is_named(kind: Kind, body: dict[str, Any], why: str) -> None:
    records = chained(*HONEST, (kind, body))
    found = course_breaks(records)
    assert all(one.startswith(f"ledger record {records[-1].sha256} ({kind} of 'demo'") for one in found)
    assert any(why in sentence for sentence in found), found


def test_another_seals_verdict_is_named() -> None:
    (found,) = course_breaks(chained(*HONEST[:3], ("verdict", {**JUDGED, "seal": "1" * 64})))
    assert "it names another seal than the run has" in found


@pytest.mark.parametrize(("kind", "body"), [("verdict", JUDGED), ("run", RUN)])
def test_no_command_reads_a_second_record_in_the_place_of_the_first(tmp_path: Any, kind: Kind, body: Any) -> None:
    ledger = Ledger(tmp_path)
    for known, said in (*HONEST[:4], (kind, body)):
        ledger.append(known, "demo", said, Stamp("2026-01-01", "ann"))
    with pytest.raises(TamperedError, match=f"{kind} of 'demo'.*run 001 has one before it"):
        runs(ledger.entries(), "demo")
