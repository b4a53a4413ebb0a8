"""`gates status`: a run seen from outside while it is written, when it stopped, and when it has ended."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gates.flow.watching import RunStatus, latest_run, status_of
from gates.record.ledger import Ledger, Stamp
from gates.record.store import gate_lock
from tests.finished import AT, finished_run
from tests.flow.conftest import gates


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("watched")
    return finished_run(home / "work", home / "cache")


def unfinished(finished: Path, home: Path, lines: int, *, cut: int = 0) -> Path:
    """A second run of that workspace, entered in the ledger, with the first so many lines of the first run."""
    shutil.copytree(finished.parents[2], home / "work")
    folder = home / "work" / "reports" / "small" / "002"
    seal = json.loads((finished / "verdict.json").read_bytes())["seal"]
    Ledger(home / "work" / "prereg").append("run", "small", {"run": 2, "seal": seal}, Stamp(AT, "tester"))
    folder.mkdir()
    written = (finished / "generations.jsonl").read_bytes().splitlines(keepends=True)[:lines]
    whole = b"".join(written)
    (folder / "generations.jsonl").write_bytes(whole[: len(whole) - cut])
    return folder


def test_a_finished_run_in_one_line(finished: Path) -> None:
    ended = gates("status", finished)
    assert ended.returncode == 0
    outcome = json.loads((finished / "verdict.json").read_bytes())["outcome"]
    sign = {"PASS": "✔", "FAIL": "✘", "INCONCLUSIVE": "?", "INVALID": "!"}[outcome]
    # 48 answers of 30 tokens, each of a tenth of a second, all begun at once.
    assert ended.stdout == (
        f"small 001: {sign} {outcome} (one {outcome}), 48 texts in 0 s, 14400 tokens/s, 0 errors, 0 retries, "
        "attempt 1 of 1\n"
    )


def test_a_run_while_it_is_written(finished: Path, tmp_path: Path) -> None:
    # 37 answers, the last of which is being written: 24 of the base and 12 of the candidate are whole.
    folder = unfinished(finished, tmp_path, 37, cut=20)
    with gate_lock(tmp_path / "work" / "reports", "small"):
        found = status_of(folder)
    assert (found.state, found.done, found.total, found.attempts) == ("running", 36, 48, 2)
    assert {name: (arm.done, arm.total, arm.errors) for name, arm in found.arms.items()} == {
        "base": (24, 24, 0),
        "one": (12, 24, 0),
    }
    assert found.left_s == pytest.approx(0.1 * 12 / 36)
    assert status_of(folder).state == "stopped"
    told = gates("status", folder).stdout
    assert told.startswith("small 002: stopped, 36 of 48 texts, ")
    assert told.endswith("the same `gates run` continues\n  base: 24 of 24\n  one: 12 of 24\n")


def test_errors_and_retries_are_counted_by_arm(finished: Path, tmp_path: Path) -> None:
    folder = unfinished(finished, tmp_path, 2)
    path = folder / "generations.jsonl"
    first, second = (json.loads(line) for line in path.read_bytes().splitlines())
    first |= {"error": "no answer", "text": "", "usage": None, "attempts": 3}
    path.write_text("".join(json.dumps(line) + "\n" for line in (first, second)), "utf-8")
    found = status_of(folder)
    assert (found.retries, found.completion_tokens, found.arms["base"].errors) == (2, 30, 1)
    assert "  base: 2 of 24, 1 errors\n" in gates("status", folder).stdout


def test_a_pause_between_two_starts_is_no_time_at_work(finished: Path, tmp_path: Path) -> None:
    folder = unfinished(finished, tmp_path, 3)
    path = folder / "generations.jsonl"
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    for line, begun in zip(lines, ("00:00:00", "00:00:10", "09:00:00"), strict=True):
        line |= {"started": f"2026-01-01T{begun}+00:00", "latency_s": 5.0}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    assert status_of(folder).elapsed_s == pytest.approx(20.0)


def test_the_run_begun_last_is_meant_without_a_name(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = unfinished(finished, tmp_path, 0)
    assert latest_run(tmp_path / "work") == folder
    monkeypatch.chdir(tmp_path / "work" / "prereg")
    found = json.loads(gates("status", "--json").stdout)
    assert (found["run"], found["state"], found["done"], found["left_s"]) == (2, "stopped", 0, None)


def test_a_spoiled_run_says_why(finished: Path, tmp_path: Path) -> None:
    folder = unfinished(finished, tmp_path, 1)
    ledger = Ledger(tmp_path / "work" / "prereg")
    ledger.append("spoiled", "small", {"run": 2, "why": "other weights answered"}, Stamp(AT, "tester"))
    assert gates("status", folder).stdout == "small 002: spoiled, INVALID for good: other weights answered\n"


def test_without_its_beats_a_run_has_no_total(finished: Path, tmp_path: Path) -> None:
    folder = unfinished(finished, tmp_path, 5)
    (tmp_path / "work" / "prereg" / "beats.txt").unlink()
    found: RunStatus = status_of(folder)
    assert (found.total, found.left_s) == (None, None)
    assert "5 of ? texts" in gates("status", folder).stdout


def test_what_is_no_run_is_refused(finished: Path, tmp_path: Path) -> None:
    ended = gates("status", finished.parent)
    assert ended.returncode == 2
    assert "this is no run that" in ended.stderr
    (tmp_path / "corpora").mkdir()
    ended = gates("status", tmp_path)
    assert ended.returncode == 2
