"""The ledger's chain: what it refuses, what a killed writer leaves, and many writers at once."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from gates.errors import RecordError, TamperedError
from gates.record.chain import Entry, Stored, heads, stored
from gates.record.files import append_line, stored_bytes
from gates.record.ledger import Ledger, Stamp
from gates.records import canonical, sha256
from tests.kills import BIG, FORKED, killed_at

STAMP = Stamp("2026-01-01T00:00:00+00:00", "somebody")


def fill(prereg: Path, count: int) -> Ledger:
    ledger = Ledger(prereg)
    for number in range(count):
        ledger.append("run", "demo", {"run": number}, STAMP)
    return ledger


def test_each_record_names_the_hash_of_the_line_before(tmp_path: Path) -> None:
    ledger = fill(tmp_path, 3)
    lines = ledger.path.read_bytes().splitlines()
    assert [json.loads(line)["previous"] for line in lines] == [[], [sha256(lines[0])], [sha256(lines[1])]]
    assert json.loads(ledger.head_path.read_bytes()) == {
        "schema": "gates.ledger.head/1",
        "head": [sha256(lines[2])],
        "records": 3,
    }


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda lines: lines[:2], "another end"),
        (lambda lines: lines[1:], "does not follow"),
        (lambda lines: [lines[0], lines[2]], "does not follow"),
        (lambda lines: [lines[0], lines[2], lines[1]], "does not follow"),
        (lambda lines: [*lines, lines[2]], "twice"),
        (lambda lines: [lines[0].replace(b"somebody", b"somebodY"), *lines[1:]], "does not follow"),
        (lambda lines: [lines[0], lines[1].replace(b'"run":1', b'"run": 1'), lines[2]], "canonical"),
        (lambda lines: [*lines[:2], lines[2].replace(b"somebody", b"somebodY")], "another end"),
        (lambda lines: [b"[" * 100_000, *lines[1:]], "canonical"),
    ],
    ids=["truncated", "first", "deleted", "swapped", "doubled", "edited", "respaced", "edited-last", "nested"],
)
def test_every_change_is_caught(tmp_path: Path, spoil, message: str) -> None:
    ledger = fill(tmp_path, 3)
    lines = ledger.path.read_bytes().splitlines()
    ledger.path.write_bytes(b"".join(line + b"\n" for line in spoil(lines)))
    with pytest.raises(TamperedError, match=message):
        ledger.entries()


def test_every_flipped_byte_is_caught(tmp_path: Path) -> None:
    ledger = fill(tmp_path, 2)
    good = ledger.path.read_bytes()
    for place in range(len(good)):
        ledger.path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        with pytest.raises(TamperedError):
            ledger.entries()


def test_unknown_schema_is_refused(tmp_path: Path) -> None:
    ledger = fill(tmp_path, 1)
    line = json.loads(ledger.path.read_bytes()) | {"schema": "gates.ledger/9"}
    data = canonical(line)
    ledger.path.write_bytes(data + b"\n")
    ledger.head_path.write_bytes(ledger.head_path.read_bytes().replace(_head(ledger), sha256(data).encode()))
    with pytest.raises(RecordError, match=r"ledger.jsonl:1: not a record of this version: schema"):
        ledger.entries()


def test_a_missing_head_is_caught(tmp_path: Path) -> None:
    ledger = fill(tmp_path, 2)
    ledger.head_path.unlink()
    with pytest.raises(TamperedError, match="head is missing"):
        ledger.entries()


def test_an_unfinished_last_line_is_cut_at_the_next_append(tmp_path: Path) -> None:
    ledger = fill(tmp_path, 2)
    with ledger.path.open("ab") as handle:
        handle.write(b'{"at":"2026')
    assert len(ledger.entries()) == 2
    ledger.append("run", "demo", {"run": 9}, STAMP)
    assert [stored.entry.body["run"] for stored in ledger.entries()] == [0, 1, 9]


def test_a_ledger_ahead_of_its_head_is_what_a_killed_writer_leaves(tmp_path: Path) -> None:
    ledger = fill(tmp_path, 2)
    behind = ledger.head_path.read_bytes()
    ledger.append("run", "demo", {"run": 2}, STAMP)
    ledger.head_path.write_bytes(behind)
    assert len(ledger.entries()) == 3


def test_a_record_that_is_added_while_the_ledger_is_read_is_no_break(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the two files that a reader reads one after the other."""
    ledger, read = fill(tmp_path, 2), []

    def slowly(path: Path) -> bytes:
        data = stored_bytes(path)
        read.append(path)
        if len(read) == 1:
            ledger.append("run", "demo", {"run": 2}, STAMP)
        return data

    monkeypatch.setattr("gates.record.ledger.stored_bytes", slowly)
    assert len(ledger.entries()) == 3


@pytest.mark.parametrize("count", [0, 3])
def test_a_writer_killed_at_any_write_leaves_a_ledger_that_goes_on(tmp_path: Path, count: int) -> None:
    def append(prereg: Path) -> None:
        Ledger(prereg).append("run", "demo", {"run": 9}, STAMP)

    fill(tmp_path / "0", count)
    steps = killed_at(BIG, tmp_path / "0", append, tmp_path / "0", context=FORKED)
    assert {"write ledger.jsonl", "fsync ledger.jsonl"} <= set(steps)
    for deadly in range(1, len(steps) + 1):
        ledger = fill(tmp_path / str(deadly), count)
        assert killed_at(deadly, ledger.prereg, append, ledger.prereg, context=FORKED) == []
        left = len(ledger.entries())
        assert count <= left <= count + 1
        append(ledger.prereg)
        assert [record.entry.body["run"] for record in ledger.entries()] == [*range(count), *[9] * (left - count + 1)]


def branched(prereg: Path) -> tuple[Ledger, list[Stored]]:
    """A ledger of one record; that one, two that follow it, and the record that joins them."""
    ledger = fill(prereg, 1)
    first = ledger.entries()[0]
    entries = [
        Entry(previous=(first.sha256,), kind="run", at=f"2026-01-0{day}", by="b", gate="g", body={}) for day in (2, 3)
    ]
    both = [stored(entry) for entry in entries]
    ends = tuple(sorted(heads(both)))
    merge = stored(Entry(previous=ends, kind="merge", at="2026-01-04", by="b", gate="", body={"moved": []}))
    return ledger, [first, *both, merge]


def test_a_ledger_whose_joining_is_killed_is_as_before_or_whole(tmp_path: Path) -> None:
    def join(ledger: Ledger, records: list[Stored]) -> None:
        with ledger.writing():
            ledger.rewrite(records[:1], records)

    steps = killed_at(BIG, tmp_path / "0", join, *branched(tmp_path / "0"), context=FORKED)
    assert steps.count("write ledger.jsonl") == 0 < len(steps)
    for deadly in range(1, len(steps) + 1):
        ledger, records = branched(tmp_path / str(deadly))
        assert killed_at(deadly, ledger.prereg, join, ledger, records, context=FORKED) == []
        names = [record.sha256 for record in records]
        assert [record.sha256 for record in ledger.entries()] in (names[:1], names)
        join(ledger, records)
        assert json.loads(ledger.head_path.read_bytes())["head"] == names[-1:]


def test_an_order_of_lines_that_no_writer_made_is_caught(tmp_path: Path) -> None:
    ledger, records = branched(tmp_path)
    with ledger.writing():
        ledger.rewrite(records[:1], records)
    assert [record.sha256 for record in ledger.entries()] == [record.sha256 for record in records]
    good = ledger.path.read_bytes().splitlines(keepends=True)
    ledger.path.write_bytes(b"".join([good[0], good[2], good[1], good[3]]))
    with pytest.raises(TamperedError, match="do not stand in the order they were written in"):
        ledger.entries()


@pytest.mark.parametrize(("kind", "count"), [("run", 2), ("merge", 1)])
def test_only_a_merge_follows_two_records(tmp_path: Path, kind: str, count: int) -> None:
    ledger = fill(tmp_path, 2)
    ends = tuple(sorted(record.sha256 for record in ledger.entries()[-count:]))
    line = stored(Entry(previous=ends, kind=kind, at="t", by="b", gate="g", body={})).line
    append_line(ledger.path, line)
    with pytest.raises(
        TamperedError, match=r"ledger\.jsonl:3: a merge, and nothing else, follows more than one record"
    ):
        ledger.entries()


def test_every_flipped_byte_of_the_head_is_caught(tmp_path: Path) -> None:
    ledger = fill(tmp_path, 2)
    good = ledger.head_path.read_bytes()
    for place in range(len(good)):
        ledger.head_path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        with pytest.raises((TamperedError, RecordError), match=r"ledger\.head"):
            ledger.entries()


def _head(ledger: Ledger) -> bytes:
    return json.loads(ledger.head_path.read_bytes())["head"][0].encode()


def _append_ten(prereg: str) -> None:
    for number in range(10):
        Ledger(Path(prereg)).append("run", "demo", {"run": number}, STAMP)


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4) as pool:
        list(pool.map(_append_ten, [str(tmp_path)] * 4))
    assert len(Ledger(tmp_path).entries()) == 40
