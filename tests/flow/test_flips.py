"""Every file of a record, one byte changed after the other: each is found, exit 5, its file named.

The record: a run read, signed off, judged again, rechecked and read blind, its gate amended, and texts imported.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from gates.errors import ExitCode, TamperedError
from gates.flow import this_world
from gates.flow.blind import BlindDesk, BlindReading, enter_votes
from gates.flow.review import open_reading
from gates.flow.verifying import verify
from gates.record.ledger import Ledger
from gates.record.vouching import vouch
from tests.flow.conftest import Ended, gates, lines
from tests.flow.threaded import Seat, running

pytestmark = pytest.mark.xdist_group("flips")

RECORDS = (
    "prereg/ledger.jsonl",
    "prereg/ledger.head",
    "prereg/seals/*.json",
    "prereg/signatures/*.sig",
    "reports/small/001/*.*",
    "reports/small/001/signoffs/*.json",
    "reports/small/001/rescores/*/*",
    "reports/small/001/rechecks/*/*",
    "reports/small/002/*",
)


@pytest.fixture(scope="module")
def signed(signed_run: tuple[Path, Path], cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That workspace with everything else that a record may hold, each made by its own command."""
    workspace = shutil.copytree(signed_run[0], tmp_path_factory.mktemp("later") / "workspace")
    gate, run = workspace / "prereg" / "small.yaml", workspace / "reports" / "small" / "001"
    with running(Seat) as seat, mock.patch.dict(os.environ, GATES_CACHE=str(cache)):
        scored = gates("rescore", run, "--rule", "all-arms-range@1", "--reason", "as it was judged once")
        assert "record: " in scored.stdout, scored
        assert_head_told(scored, workspace)
        checked = gates("recheck", run, "--seat", seat.faulty.url)
        assert "record: " in checked.stdout, checked
        assert_head_told(checked, workspace)
        changed = json.loads(gate.read_text("utf-8"))
        changed["seat"]["base_url"], changed["memorisation"]["max_rate"] = seat.faulty.url, 0.1
        gate.write_text(json.dumps(changed), "utf-8")
        amended = gates("amend", gate, "--reason", "a stricter limit", "--yes")
        assert amended.returncode == 0, amended
        assert_head_told(amended, workspace)
        texts = workspace / "old.jsonl"
        kept = ("arm", "seed", "prompt", "text", "finish_reason")
        old = [{name: line[name] for name in kept} for line in lines(run / "generations.jsonl")]
        texts.write_text("".join(f"{json.dumps(one)}\n" for one in old), "utf-8")
        brought = gates("import", texts, "--gate", gate)
        assert "imported, not sealed before generation" in brought.stdout, brought
        assert_head_told(brought, workspace)
        world = this_world(print, by="bob")
        blind = BlindReading(open_reading(run, cache), "one", "bob")
        BlindDesk(blind, world, (next(blind.trials()),)).say("1", {"author": 0, "best": 1})
        enter_votes(blind, world)
    return workspace


def assert_head_told(ended: Ended, workspace: Path) -> None:
    records = Ledger(workspace / "prereg").entries()
    assert f"ledger head {records[-1].sha256} ({len(records)} records)" in ended.stderr.splitlines(), ended


@pytest.fixture(scope="module")
def cache(signed_run: tuple[Path, Path]) -> Path:
    return signed_run[1]


def records(workspace: Path) -> list[Path]:
    """Every file of the record."""
    found = [path for pattern in RECORDS for path in sorted(workspace.glob(pattern)) if path.is_file()]
    return [path for path in found if not path.name.endswith(".lock")]


def breaks(workspace: Path, cache: Path, path: Path) -> tuple[str, ...]:
    """What verification finds broken; of a changed signature the signatures' own check is the one that must see it."""
    if path.suffix == ".sig":
        mine = [record for record in Ledger(workspace / "prereg").entries() if record.sha256 == path.stem]
        return tuple(vouch(workspace / "prereg", mine, None).breaks)
    found = verify(workspace, cache)
    assert found.exit_code == ExitCode.TAMPERED or not found.breaks
    return found.breaks


def flip(workspace: Path, cache: Path, path: Path, places: list[int]) -> None:
    good = path.read_bytes()
    try:
        for place in places:
            # Of odd places the lowest bit, of even ones that of upper and lower case.
            was = (good[place : place + 1] or b"\n")[0]
            path.write_bytes(good[:place] + bytes([was ^ (1 if place % 2 else 32)]) + good[place + 1 :])
            named = any(str(path) in sentence for sentence in breaks(workspace, cache, path))
            assert named, (path.name, place, good[max(0, place - 30) : place + 30])
    finally:
        path.write_bytes(good)


def test_a_signed_and_read_run_holds_and_its_files_are_all_known(signed: Path, cache: Path) -> None:
    found = verify(signed, cache)
    assert (found.breaks, found.not_derived) == ((), ())
    names = {path.relative_to(signed).parts[-2:] for path in records(signed)}
    run = {"generations.jsonl", "measurements.json", "verdict.json", "report.md", "sessions.jsonl"}
    known = {
        "prereg/ledger.jsonl",
        "prereg/ledger.head",
        *(f"001/{one}" for one in (*run, "review.jsonl", "votes.jsonl")),
    }
    assert {"/".join(name) for name in names} > known | {f"002/{one}" for one in (*run, "received.jsonl")}
    later = sorted(path.name for folder in ("rescores", "rechecks") for path in signed.rglob(f"{folder}/*/*"))
    assert later == sorted(
        ["rescore.json", "verdict.json", "report.md", "plan.json", "generations.jsonl", "recheck.json", "report.md"]
    )
    assert (sum(name.endswith(".sig") for _, name in names), found.records) == (7, 15)
    assert found.seals == sum(folder == "seals" for folder, _ in names) == 3
    assert sum(folder == "signoffs" for folder, _ in names) == 1


@pytest.mark.slow
def test_changed_bytes_of_every_file_are_found_by_who_has_no_texts(signed: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for path in records(signed):
        size = max(1, path.stat().st_size)
        flip(signed, tmp_path, path, sorted({size - 1, int(rng.integers(0, size))}))


@pytest.mark.long
def test_every_changed_byte_of_the_ledger_is_found(signed: Path) -> None:
    ledger = Ledger(signed / "prereg")
    good = ledger.path.read_bytes()
    try:
        for place in range(len(good)):
            ledger.path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
            with pytest.raises(TamperedError, match=r"ledger\.jsonl"):
                ledger.entries()
    finally:
        ledger.path.write_bytes(good)


@pytest.mark.long
@pytest.mark.parametrize("name", ["ledger.jsonl", "ledger.head", "small-*.json", "*.sig", "*.json", "*.jsonl", "*.md"])
def test_every_changed_byte_is_found(signed: Path, tmp_path: Path, name: str) -> None:
    """Of files over 2,500 bytes 250 places, drawn anew for each file."""
    rng = np.random.default_rng(4)
    for path in [path for path in records(signed) if path.match(name)]:
        size = max(1, path.stat().st_size)
        places = range(size) if size <= 2500 else sorted(set(map(int, rng.integers(0, size, 250))))
        flip(signed, tmp_path, path, list(places))


@pytest.mark.parametrize("missing", RECORDS)
def test_a_missing_file_is_found(signed: Path, tmp_path: Path, missing: str) -> None:
    path = next(path for path in records(signed) if path.match(missing))
    kept = path.with_name("kept")
    path.rename(kept)
    try:
        assert any(str(path) in sentence for sentence in breaks(signed, tmp_path, path))
    finally:
        kept.rename(path)
