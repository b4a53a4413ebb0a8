"""Joining the ledgers of two real git branches: nothing rewritten, one end, every run still itself."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from pydantic import ValidationError

from gates.errors import GatesError, TamperedError, UsageError
from gates.record import merging
from gates.record.anchor import committed_breaks
from gates.record.chain import Entry, ordered, stored
from gates.record.files import held
from gates.record.ledger import Ledger, Stamp
from gates.record.merging import _our_lines, _ours, merge
from gates.record.review import Review, Said
from gates.record.store import runs
from gates.records import sha256
from tests.durable import at_risk, names_in
from tests.kills import BIG, FORKED, killed_at

HASH = "ab" * 32


def stamp(hour: int) -> Stamp:
    return Stamp(f"2026-01-01T{hour:02d}:00:00+00:00", "somebody")


def git(home: Path, *words: str, check: bool = True) -> int:
    named = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", "-C", home, *named, *words], check=check, capture_output=True).returncode


def commit(home: Path, message: str) -> None:
    git(home, "add", ".")
    git(home, "commit", "-qm", message)


def enter(home: Path, gate: str, run: int, hour: int, *, finished: bool = True) -> None:
    """A run as a branch enters it, with a file in its folder."""
    ledger = Ledger(home / "prereg")
    ledger.append("run", gate, {"run": run, "seal": HASH}, stamp(hour))
    if finished:
        ledger.append("verdict", gate, {"run": run, "outcome": "PASS"}, stamp(hour))
    path = home / "reports" / gate / f"{run:03d}" / "verdict.json"
    path.parent.mkdir(parents=True)
    path.write_text(f"{gate} at {hour}", "utf-8")


def mark(home: Path, hour: int) -> None:
    """A mark on the first run of the gate `read`, as a sitting enters it."""
    review = Review(home / "reports" / "read" / "001")
    review.mark(HASH, sha256(str(hour).encode()), Said(mark="ok"), stamp(hour))
    review.enter(Ledger(home / "prereg"), "read", 1, stamp(hour))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A repository whose branches `main` (checked out) and `other` both went on from one record."""
    git(tmp_path, "init", "-q")
    Ledger(tmp_path / "prereg").append("seal", "one", {"seal": HASH}, stamp(0))
    commit(tmp_path, "seal")
    git(tmp_path, "branch", "other")
    return tmp_path


def branch_off(home: Path, ours: tuple[str, int], theirs: tuple[str, int]) -> None:
    enter(home, *ours, hour=3)
    commit(home, "ours")
    git(home, "checkout", "-q", "other")
    enter(home, *theirs, hour=2)
    commit(home, "theirs")
    git(home, "checkout", "-q", "main")


def lines(home: Path, revision: str) -> list[bytes]:
    words = ["git", "-C", home, "show", f"{revision}:prereg/ledger.jsonl"]
    return subprocess.run(words, check=True, capture_output=True).stdout.splitlines()


def test_two_branches_are_joined_and_neither_is_rewritten(home: Path) -> None:
    branch_off(home, ("one", 1), ("two", 1))
    assert git(home, "merge", "other", check=False) == 1
    ledger = Ledger(home / "prereg")
    with pytest.raises(GatesError):
        ledger.entries()
    joined = merge(home, None, stamp(4))
    commit(home, "merged")

    after = ledger.path.read_bytes().splitlines()
    assert set(after) == {*lines(home, "main~1"), *lines(home, "other"), joined.record.line}
    ends = {Ledger(home / "prereg").entries()[-1].sha256}
    assert set(ledger.heads()) == ends
    assert set(joined.record.entry.previous) == {
        json.loads(head)["head"][0]
        for head in (
            subprocess.run(
                ["git", "-C", home, "show", f"{r}:prereg/ledger.head"], check=True, capture_output=True
            ).stdout
            for r in ("main~1", "other")
        )
    }
    assert (joined.came, joined.moved) == (2, ())
    assert [(s.entry.gate, v is not None) for gate in ("one", "two") for s, v in runs(ledger.entries(), gate)] == [
        ("one", True),
        ("two", True),
    ]
    assert committed_breaks(home, ledger.path, [record.sha256 for record in ledger.entries()])[1] == []
    # It goes on from one end, and a second merge has nothing to do.
    assert len(ledger.append("run", "one", {"run": 2, "seal": HASH}, stamp(5)).entry.previous) == 1
    assert merge(home, "other", stamp(6)).record is None


def test_a_branch_is_joined_before_git_merges_it_and_git_may_stop_then(home: Path) -> None:
    branch_off(home, ("one", 1), ("two", 1))
    first = merge(home, "other", stamp(4))
    assert first.record is not None
    commit(home, "joined")
    mine = (home / "prereg" / "ledger.jsonl").read_bytes()
    assert git(home, "merge", "other", check=False) == 1
    assert merge(home, None, stamp(5)).record is None
    assert (home / "prereg" / "ledger.jsonl").read_bytes() == mine


def test_of_two_runs_with_one_number_the_other_branchs_is_moved(home: Path) -> None:
    branch_off(home, ("one", 1), ("one", 1))
    git(home, "merge", "other", check=False)
    joined = merge(home, None, stamp(4))
    assert [(m.gate, m.run, m.to) for m in joined.moved] == [("one", 1, 2)]
    ledger = Ledger(home / "prereg")
    found = {s.entry.body["run"]: (s.entry.at, v.entry.at) for s, v in runs(ledger.entries(), "one") if v}
    assert found == {1: (stamp(3).at, stamp(3).at), 2: (stamp(2).at, stamp(2).at)}
    moved = next(s for s, _ in runs(ledger.entries(), "one") if s.entry.body["run"] == 2)
    assert moved.written.body["run"] == 1
    assert (home / "reports/one/002/verdict.json").read_text("utf-8") == "one at 2"
    # What is entered of run 1 from here on is this branch's run 1.
    ledger.append("review", "one", {"run": 1}, stamp(5))
    assert ledger.entries()[-1].entry.body["run"] == 1


def test_a_run_that_both_branches_ended_stops_a_merge(home: Path) -> None:
    """Only one of two ends can be the run's: whoever merges says which, by dropping a branch."""
    enter(home, "one", 1, 3, finished=False)
    commit(home, "begun")
    git(home, "checkout", "-qB", "other")
    for branch, at in (("other", 4), ("main", 5)):
        git(home, "checkout", "-q", branch)
        git(home, "reset", "-q", "--hard", "main")
        Ledger(home / "prereg").append("verdict", "one", {"run": 1, "outcome": "PASS"}, stamp(at))
        git(home, "add", "-A")
        git(home, "commit", "-qm", f"ended on {branch}")
    before = (home / "prereg" / "ledger.jsonl").read_bytes()
    with pytest.raises(GatesError, match="both branches have ended run 001 of one"):
        merge(home, "other", stamp(6))
    assert (home / "prereg" / "ledger.jsonl").read_bytes() == before


@pytest.mark.parametrize("part", [{"record": "0" * 64}, {"gate": "two"}, {"record": None}])
def test_a_merge_moves_runs_alone(home: Path, part: dict[str, object]) -> None:
    """A forger's merge may not give a verdict to another run than the one that it was entered for."""
    branch_off(home, ("one", 1), ("two", 1))
    ledger, other = Ledger(home / "prereg"), Ledger(home / "elsewhere")
    theirs = ("other:prereg/ledger.jsonl", "other:prereg/ledger.head")
    other.prereg.mkdir()
    for path, name in zip((other.path, other.head_path), theirs, strict=True):
        shown = subprocess.run(["git", "-C", home, "show", name], check=True, capture_output=True)
        path.write_bytes(shown.stdout)
    ours, came = ledger.entries(), other.entries()
    begun, ended = (next(s for s in ours if s.entry.kind == kind) for kind in ("run", "verdict"))
    moved = {"gate": "one", "run": 1, "to": 9, "record": begun.sha256} | part
    moved["record"] = moved["record"] or ended.sha256
    ends = tuple(sorted((*ledger.heads(), *other.heads())))
    body = {"moved": [moved], "commit": "x"}
    joined = stored(Entry(previous=ends, kind="merge", at=stamp(9).at, by="mallory", gate="", body=body))
    ledger.rewrite(ours, ordered(list({s.sha256: s for s in (*ours, *came, joined)}.values())))
    with pytest.raises(TamperedError, match="and it moves one"):
        ledger.entries()


def test_what_the_other_branch_enters_later_of_a_moved_run_is_still_of_that_run(home: Path) -> None:
    enter(home, "one", 1, 3)
    commit(home, "ours")
    git(home, "checkout", "-q", "other")
    enter(home, "one", 1, 2, finished=False)
    commit(home, "theirs")
    git(home, "checkout", "-q", "main")
    merge(home, "other", stamp(4))
    commit(home, "joined")
    git(home, "checkout", "-q", "other")
    Ledger(home / "prereg").append("verdict", "one", {"run": 1, "outcome": "FAIL"}, stamp(5))
    commit(home, "their verdict")
    git(home, "checkout", "-q", "main")
    assert merge(home, "other", stamp(6)).moved == ()
    found = {
        s.entry.body["run"]: v.entry.body["outcome"] for s, v in runs(Ledger(home / "prereg").entries(), "one") if v
    }
    assert found == {1: "PASS", 2: "FAIL"}


def join_crosswise(home: Path) -> None:
    """Each branch joins the other as it was before, so that two merges of the same ends stand side by side."""
    merge(home, "other", stamp(4))
    commit(home, "joined here")
    git(home, "checkout", "-q", "other")
    merge(home, "main~1", stamp(5))
    commit(home, "joined there")
    git(home, "checkout", "-q", "main")


def test_branches_that_joined_each_other_crosswise_are_joined(home: Path) -> None:
    branch_off(home, ("one", 1), ("two", 1))
    join_crosswise(home)
    joined = merge(home, "other", stamp(6))
    assert len(Ledger(home / "prereg").entries()) == 8
    assert len(joined.record.entry.previous) == 2


def test_crosswise_moves_of_one_run_are_refused_and_nothing_is_written(home: Path) -> None:
    branch_off(home, ("one", 1), ("one", 1))
    join_crosswise(home)
    before = (home / "prereg" / "ledger.jsonl").read_bytes()
    with pytest.raises(GatesError, match="run 002 of one is now two"):
        merge(home, "other", stamp(6))
    assert (home / "prereg" / "ledger.jsonl").read_bytes() == before


def test_a_broken_branch_is_not_joined(home: Path) -> None:
    branch_off(home, ("one", 1), ("two", 1))
    git(home, "checkout", "-q", "other")
    path = home / "prereg" / "ledger.jsonl"
    path.write_bytes(path.read_bytes().replace(b"somebody", b"somebodY"))
    commit(home, "spoilt")
    git(home, "checkout", "-q", "main")
    with pytest.raises(TamperedError, match=r"ledger\.jsonl:2: it does not follow"):
        merge(home, "other", stamp(4))


def test_a_record_of_neither_branch_stops_a_merge(home: Path) -> None:
    branch_off(home, ("one", 1), ("two", 1))
    git(home, "merge", "other", check=False)
    with (home / "prereg" / "ledger.jsonl").open("ab") as handle:
        handle.write(b"{}\n")
    with pytest.raises(GatesError, match="this record is in neither of the branches"):
        merge(home, None, stamp(4))


def test_a_hostile_gate_name_chooses_no_folder(home: Path) -> None:
    with pytest.raises(ValidationError):
        Ledger(home / "prereg").append("run", "../../x", {"run": 1, "seal": HASH}, stamp(3))
    branch_off(home, ("one", 1), ("two", 1))
    git(home, "checkout", "-q", "other")
    ledger = Ledger(home / "prereg")
    last = ledger.entries()[-1]
    forged = last.line.replace(b'"gate":"two"', b'"gate":"../../x"')
    ledger.path.write_bytes(ledger.path.read_bytes().replace(last.line, forged))
    head = ledger.head_path.read_bytes().replace(last.sha256.encode(), sha256(forged).encode())
    ledger.head_path.write_bytes(head)
    commit(home, "hostile")
    git(home, "checkout", "-q", "main")
    with pytest.raises(GatesError, match=r"gate\.?.*: String should match pattern"):
        merge(home, "other", stamp(4))


def test_what_is_no_branch_is_said(home: Path) -> None:
    with pytest.raises(UsageError, match="no git merge is under way"):
        merge(home, None, stamp(4))
    with pytest.raises(UsageError, match="git knows no commit '--help'"):
        merge(home, "--help", stamp(4))


def test_a_branch_that_only_went_on_is_taken_as_it_is(home: Path) -> None:
    git(home, "checkout", "-q", "other")
    enter(home, "one", 1, hour=2)
    commit(home, "theirs")
    git(home, "checkout", "-q", "main")
    joined = merge(home, "other", stamp(3))
    assert (joined.record, joined.came) == (None, 2)
    assert (home / "prereg" / "ledger.jsonl").read_bytes().splitlines() == lines(home, "other")


def test_marks_on_a_run_that_is_moved_stay_its_own(home: Path) -> None:
    for branch, hour in (("other", 2), ("main", 3)):
        git(home, "checkout", "-q", branch)
        enter(home, "read", 1, hour)
        mark(home, hour)
        commit(home, f"run and read on {branch}")
    merge(home, "other", stamp(4))
    for number, hour in ((1, 3), (2, 2)):
        review = Review(home / "reports" / "read" / f"{number:03d}")
        assert [one.at for one in review.read()] == [stamp(hour).at]
        assert review.check(Ledger(home / "prereg").entries(), "read", number) == 0


def test_nobody_enters_a_record_while_ledgers_are_joined(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    branch_off(home, ("one", 1), ("two", 1))
    seen = []

    def watched(*about: object) -> object:
        seen.append(held(home / "prereg" / ".ledger.lock"))
        return _ours(*about)

    monkeypatch.setattr(merging, "_ours", watched)
    merge(home, "other", stamp(4))
    assert seen == [True]


def test_nobody_adds_a_mark_while_marks_are_joined(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that came between the reading of them and the writing would be lost."""
    enter(home, "read", 1, hour=1)
    mark(home, 2)
    commit(home, "a run that we read")
    git(home, "branch", "-f", "other")
    seen = []

    def watched(workspace: Path, lines: Review) -> bytes:
        seen.append(held(lines.path.with_name(".review.jsonl.lock")))
        return _our_lines(workspace, lines)

    monkeypatch.setattr(merging, "_our_lines", watched)
    merge(home, "other", stamp(4))
    assert seen == [True]


@pytest.mark.slow
def test_a_merge_killed_at_any_write_is_made_by_the_next_one(
    home: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    enter(home, "read", 1, hour=1)
    commit(home, "a run that both read")
    git(home, "branch", "-f", "other")
    mark(home, 3)
    enter(home, "one", 1, hour=3)
    commit(home, "ours")
    git(home, "checkout", "-q", "other")
    mark(home, 2)
    enter(home, "one", 1, hour=2)
    commit(home, "theirs")
    git(home, "checkout", "-q", "main")
    git(home, "merge", "other", check=False)
    before = Path(shutil.copytree(home, tmp_path_factory.mktemp("before") / "home"))

    def join() -> None:
        merge(home, None, stamp(4))

    steps = killed_at(BIG, home, join, context=FORKED)
    assert at_risk(steps, names_in(before)) == []
    assert len({step.split()[0] for step in steps} & {"write", "fsync", "link", "replace"}) == 4
    for deadly in range(1, len(steps) + 1):
        shutil.rmtree(home)
        shutil.copytree(before, home)
        assert killed_at(deadly, home, join, context=FORKED) == []
        join()
        records = Ledger(home / "prereg").entries()
        kinds = [record.entry.kind for record in records]
        assert (len(records), kinds.count("merge"), kinds.count("review")) == (11, 1, 3), steps[deadly - 1]
        review = Review(home / "reports" / "read" / "001")
        assert ([one.at for one in review.read()], review.state().lines) == ([stamp(2).at, stamp(3).at], 3)
        assert review.check(records, "read", 1) == 0
        assert (home / "reports" / "one" / "002" / "verdict.json").read_text("utf-8") == "one at 2"
