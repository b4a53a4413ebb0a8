"""Every file of a read and signed run, one byte changed after the other: each is found, exit 5, its file named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gates.errors import ExitCode, TamperedError
from gates.flow.verifying import verify
from gates.record.ledger import Ledger
from gates.record.vouching import vouch

pytestmark = pytest.mark.xdist_group("flips")

RECORDS = (
    "prereg/ledger.jsonl",
    "prereg/ledger.head",
    "prereg/seals/*.json",
    "prereg/signatures/*.sig",
    "reports/small/001/**/*",
)


@pytest.fixture
def signed(signed_run: tuple[Path, Path]) -> Path:
    return signed_run[0]


@pytest.fixture
def cache(signed_run: tuple[Path, Path]) -> Path:
    return signed_run[1]


def records(workspace: Path) -> list[Path]:
    """Every file of the record."""
    found = [path for pattern in RECORDS for path in sorted(workspace.glob(pattern)) if path.is_file()]
    return [path for path in found if not path.name.endswith(".lock")]


def breaks(workspace: Path, cache: Path, path: Path) -> tuple[str, ...]:
    """What verification finds broken; of a changed signature the signatures' own check is the one that must see it."""
    if path.suffix == ".sig":
        return tuple(vouch(workspace / "prereg", Ledger(workspace / "prereg").entries(), None).breaks)
    found = verify(workspace, cache)
    assert found.exit_code == (ExitCode.TAMPERED if found.breaks else ExitCode.PASS)
    return found.breaks


def flip(workspace: Path, cache: Path, path: Path, places: list[int]) -> None:
    good = path.read_bytes()
    try:
        for place in places:
            # Of odd places the lowest bit, of even ones that of upper and lower case.
            path.write_bytes(good[:place] + bytes([good[place] ^ (1 if place % 2 else 32)]) + good[place + 1 :])
            named = any(path.name in sentence for sentence in breaks(workspace, cache, path))
            assert named, (path.name, place, good[max(0, place - 30) : place + 30])
    finally:
        path.write_bytes(good)


def test_a_signed_and_read_run_holds_and_its_files_are_all_known(signed: Path, cache: Path) -> None:
    found = verify(signed, cache)
    assert (found.breaks, found.not_derived) == ((), ())
    names = {path.name for path in records(signed)}
    assert names > {
        "ledger.jsonl",
        "ledger.head",
        "sessions.jsonl",
        "generations.jsonl",
        "measurements.json",
        "verdict.json",
        "report.md",
        "review.jsonl",
    }
    assert sum(name.endswith(".sig") for name in names) == found.records == 7
    assert sum("signoff" in str(path) for path in records(signed)) == 1


@pytest.mark.slow
def test_changed_bytes_of_every_file_are_found(signed: Path, cache: Path) -> None:
    rng = np.random.default_rng(3)
    for path in records(signed):
        size = path.stat().st_size
        flip(signed, cache, path, sorted({0, size - 1, *map(int, rng.integers(0, size, 2))}))


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
def test_every_changed_byte_is_found(signed: Path, cache: Path, name: str) -> None:
    """Of files over 2,500 bytes 250 places, drawn anew for each file."""
    rng = np.random.default_rng(4)
    for path in [path for path in records(signed) if path.match(name)]:
        size = path.stat().st_size
        places = range(size) if size <= 2500 else sorted(set(map(int, rng.integers(0, size, 250))))
        flip(signed, cache, path, list(places))


@pytest.mark.parametrize("missing", RECORDS)
def test_a_missing_file_is_found(signed: Path, cache: Path, missing: str) -> None:
    path = next(path for path in records(signed) if path.match(missing))
    kept = path.with_name("kept")
    path.rename(kept)
    try:
        assert breaks(signed, cache, path)
    finally:
        kept.rename(path)
