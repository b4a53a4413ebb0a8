"""Records that somebody has made anew with all their hashes right: what they say still has to follow."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gates.errors import TamperedError, UsageError
from gates.flow.finished import read_run, sealed_inputs
from gates.flow.generating import check_recorded
from gates.flow.inputs import Inputs
from gates.flow.review import open_reading
from gates.flow.signoff import Decided, Signer, draft, known_then
from gates.flow.verifying import Verified, verify
from gates.record.ledger import Ledger, Stamp
from gates.records import canonical, sha256
from tests.flow.conftest import gates

Edit = Callable[[str, dict[str, Any]], None]


@pytest.fixture
def work(made_run: Path, tmp_path: Path) -> Path:
    """A copy of a finished run's workspace, to be forged."""
    return Path(shutil.copytree(made_run, tmp_path / "work"))


@pytest.fixture
def verified(work: Path, made_cache: Path) -> Callable[[], Verified]:
    return lambda: verify(work, made_cache)


def rebuild(workspace: Path, edit: Edit) -> None:
    """Write the whole chain anew, as a forger can; `edit` changes the body of each record, by its kind."""
    ledger = Ledger(workspace / "prereg")
    entries = ledger.entries()
    for name in ("ledger.jsonl", "ledger.head"):
        (workspace / "prereg" / name).unlink()
    for stored in entries:
        body = dict(stored.entry.body)
        edit(stored.entry.kind, body)
        ledger.append(stored.entry.kind, stored.entry.gate, body, Stamp(stored.entry.at, stored.entry.by))


def replaced(path: Path, old: bytes, new: bytes) -> str:
    """Put other bytes into a file; returns its hash."""
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))
    return sha256(path.read_bytes())


def of_verdict(**hashes: str) -> Edit:
    return lambda kind, body: body.update(hashes) if kind == "verdict" else None


def test_what_the_ledger_says_of_a_verdict_follows_from_it(work: Path, verified: Callable[[], Verified]) -> None:
    def better(kind: str, body: dict[str, Any]) -> None:
        if kind == "verdict":
            body["candidates"] = {**body["candidates"], "one": "PASS"}

    rebuild(work, better)
    (found,) = verified().breaks
    assert found.endswith("derived again it says otherwise: candidates.one: stored PASS, derived INVALID")


def test_a_verdict_is_on_the_measurements_beside_it(work: Path, verified: Callable[[], Verified]) -> None:
    folder = work / "reports/small/001"
    known = sha256((folder / "measurements.json").read_bytes()).encode()
    made = {name: replaced(folder / name, known, b"0" * 64) for name in ("verdict.json", "report.md")}
    rebuild(work, of_verdict(verdict_sha256=made["verdict.json"], report_sha256=made["report.md"]))
    (found,) = verified().breaks
    assert found.endswith("verdict.json: it is a verdict on other measurements")


def test_generations_that_no_look_at_the_seat_closes_are_found(work: Path, verified: Callable[[], Verified]) -> None:
    sessions = work / "reports/small/001/sessions.jsonl"
    lines = sessions.read_bytes().splitlines(keepends=True)
    sessions.write_bytes(lines[0])
    ledger = Ledger(work / "prereg")
    entries = [one for one in ledger.entries() if one.entry.body.get("phase") != "end"]
    for name in ("ledger.jsonl", "ledger.head"):
        (work / "prereg" / name).unlink()
    for stored in entries:
        body = dict(stored.entry.body)
        of_verdict(sessions_sha256=sha256(lines[0]))(stored.entry.kind, body)
        ledger.append(stored.entry.kind, stored.entry.gate, body, Stamp(stored.entry.at, stored.entry.by))
    (found,) = verified().breaks
    assert found.endswith("sessions.jsonl: no look at the seat closes generations.jsonl")


def test_every_session_saw_the_generations_that_are_there(work: Path, verified: Callable[[], Verified]) -> None:
    """A session that is appended may not take the place of those before it."""
    folder, ledger = work / "reports/small/001", Ledger(work / "prereg")
    sessions, generations = folder / "sessions.jsonl", folder / "generations.jsonl"
    known = sha256(generations.read_bytes())
    now = replaced(generations, b'"latency_s":0.1', b'"latency_s":0.2')
    last = sessions.read_bytes().splitlines()[-1].replace(known.encode(), now.encode())
    sessions.write_bytes(sessions.read_bytes() + last + b"\n")
    entries = ledger.entries()
    for name in ("ledger.jsonl", "ledger.head"):
        (work / "prereg" / name).unlink()
    for stored in entries:
        kind, body, stamp = stored.entry.kind, dict(stored.entry.body), Stamp(stored.entry.at, stored.entry.by)
        if kind == "verdict":
            ledger.append("session", "small", {"run": 1, "session_sha256": sha256(last), "phase": "end"}, stamp)
            body |= {"generations_sha256": now, "sessions_sha256": sha256(sessions.read_bytes())}
        ledger.append(kind, stored.entry.gate, body, stamp)
    (found,) = verified().breaks
    assert "generations.jsonl: the first 72 lines are not those that were recorded" in found


def test_a_record_means_one_thing_whoever_reads_it(work: Path, verified: Callable[[], Verified]) -> None:
    """Of a name that stands twice this program reads the last value, and others the first."""
    measurements = work / "reports/small/001/measurements.json"
    now = replaced(measurements, b'{"arms":', b'{"arms":{},"arms":')
    rebuild(work, of_verdict(measurements_sha256=now))
    (found,) = verified().breaks
    assert found.endswith("measurements.json:1: it is not the canonical JSON it was written as")


@pytest.mark.parametrize(
    ("part", "value", "why"),
    [
        ("sealed_at", "2020-01-01T00:00:00+00:00", "it is not of the time or person that the ledger names"),
        ("previous", ["0" * 64], "it names records before it that were not"),
        ("order_seed", 7, "the order of its requests is not the one that the gate gives"),
        ("operating", {"voice": {"false_pass": 0.01}}, "it says that 0.01 of unmoved candidates pass voice"),
    ],
)
def test_a_seal_says_of_itself_what_the_ledger_says(
    work: Path, verified: Callable[[], Verified], part: str, value: object, why: str
) -> None:
    (path,) = (work / "prereg/seals").glob("*.json")
    data = canonical({**json.loads(path.read_bytes()), part: value})
    path.write_bytes(data)

    def sealed(_kind: str, body: dict[str, Any]) -> None:
        body.update({"seal": sha256(data)} if "seal" in body else {})

    rebuild(work, sealed)
    assert any(f"{path}: {why}" in found for found in verified().breaks)


def test_what_no_record_names_is_said_to_be_unchecked(work: Path, verified: Callable[[], Verified]) -> None:
    """A page that was edited, a sign-off and a run that nobody entered look like part of the record."""
    folder = work / "reports/small/001"
    planted = [folder / "signoffs/ffffffffffff.json", work / "reports/ghost/001/report.md", folder / "votes.jsonl"]
    page, last = folder / "report.html", "no record of this ledger names it, not checked"
    for path in (*planted, page):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("PASS", "utf-8")
    with (work / "prereg/ledger.jsonl").open("ab") as handle:
        handle.write(b'{"half a record')
    found = verified()
    assert found.exit_code == 0
    assert set(found.not_checked) == {
        *(f"{path}: {last}" for path in planted),
        f"{page}: made from the record and not checked; `gates report` makes a page anew",
        f"{work / 'prereg/ledger.jsonl'}: its last line is unfinished, and no record",
    }


def test_no_file_name_writes_a_line_of_its_own(work: Path, made_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATES_CACHE", str(made_cache))
    (work / "prereg/seals/x\nanchor: a notary\n.proof.ots").write_bytes(b"")
    (work / "prereg/ledger.jsonl").write_bytes(b"")
    assert not any(line.startswith("anchor: a notary") for line in gates("verify", work).stdout.splitlines())
    by = "ann\n0123456789ab  2026-01-01  signoff   small"
    (work / "prereg/ledger.head").unlink()
    Ledger(work / "prereg").append("run", "small", {"run": 1, "seal": "0" * 64}, Stamp("2026-01-01", by))
    assert len(gates("ledger", "--workspace", work).stdout.splitlines()) == 2


def test_what_is_no_file_is_named_and_never_read(work: Path, verified: Callable[[], Verified]) -> None:
    for path in (work / "reports/small/001/review.jsonl", work / "prereg/ledger.jsonl"):
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        assert f"{path}: a record is a file, and this is none" in verified().breaks


def test_a_run_is_read_under_the_ledger_that_its_path_names(
    work: Path, made_run: Path, made_cache: Path, tmp_path: Path
) -> None:
    """Reports may lie on another disk; a link may not bring in the ledger of where it leads."""
    (work / "reports").rename(tmp_path / "elsewhere")
    (work / "reports").symlink_to(tmp_path / "elsewhere")
    assert verify(work, made_cache).exit_code == 0
    (work / "reports").unlink()
    (work / "reports").symlink_to(made_run / "reports")
    assert read_run(work / "reports/small/001").workspace == work
    (tmp_path / "latest").symlink_to(work / "reports/small/001")
    assert read_run(tmp_path / "latest").workspace == made_run


def changed(path: Path, change: Callable[[Any], object]) -> str:
    """Change what a record says, canonically; returns the file's new hash."""
    document = json.loads(path.read_bytes())
    change(document)
    path.write_bytes(canonical(document))
    return sha256(path.read_bytes())


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found["arms"]["two"]["damage"]["ran_on"]["values"].pop(),
        lambda found: found["arms"]["two"]["damage"].clear(),
        lambda found: found["arms"].pop("two"),
        lambda found: found["arms"]["two"]["seeds"].append(3),
    ],
)
def test_measurements_that_do_not_fit_together_are_a_break(
    work: Path, verified: Callable[[], Verified], change: Callable[[Any], object]
) -> None:
    """Whatever stops the verification of a forged record may not look like a text that is missing, nor end it."""
    made = changed(work / "reports/small/001/measurements.json", change)
    verdict = changed(work / "reports/small/001/verdict.json", lambda found: found.update(measurements_sha256=made))
    rebuild(work, of_verdict(measurements_sha256=made, verdict_sha256=verdict))
    assert verified().exit_code == 5


def test_a_verdict_that_leaves_a_part_out_is_not_called_whole(work: Path, verified: Callable[[], Verified]) -> None:
    path = work / "reports/small/001/verdict.json"
    old, new = (
        sha256(path.read_bytes()),
        changed(path, lambda found: found["candidates"]["two"]["axes"]["voice"].pop("low")),
    )
    assert old != new
    rebuild(work, of_verdict(verdict_sha256=new))
    found = verified()
    assert (found.exit_code, found.breaks) == (3, ())
    assert found.not_derived == (f"{path}: it leaves out what this version of gates writes there",)


def test_nobody_re_scores_amends_or_waives_without_saying_why(work: Path, made_cache: Path) -> None:
    reading, unseen = open_reading(work / "reports/small/001", made_cache), "\u200b"
    for command in (
        ("rescore", reading.run.store.folder, "--rule", "pairwise-range@1"),
        ("amend", work / "prereg/small.yaml", "--yes"),
    ):
        refused = gates(*command, "--reason", unseen)
        assert (refused.returncode, "--reason: it says nothing" in refused.stderr) == (2, True), refused
    waived = Decided(arm="one", decision="waive", reason=unseen)
    with pytest.raises(UsageError, match="--reason: it says nothing"):
        draft(reading, waived, Signer("ann", "2026-01-01", "SHA256:x"), known_then(reading, (), waived))


@pytest.mark.parametrize(
    ("part", "value", "why"),
    [
        ("model", "another", "it asked for model 'voice-two' and 'another' answered"),
        ("fingerprint", "x", "the sealed seat's fingerprint is 'vllm-0.9.0-x' and 'x' answered"),
    ],
)
def test_what_would_have_stopped_the_run_is_no_text_of_it(
    work: Path, made_cache: Path, part: str, value: str, why: str
) -> None:
    run = read_run(work / "reports/small/001")
    inputs = sealed_inputs(work, made_cache, run.sealed)
    assert isinstance(inputs, Inputs)
    assert len(check_recorded(inputs, run.sealed, run.store)) == 72
    path = run.store.generations_path
    *others, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*others, canonical(json.loads(last) | {part: value}) + b"\n"]))
    with pytest.raises(TamperedError, match=why):
        check_recorded(inputs, run.sealed, run.store)
