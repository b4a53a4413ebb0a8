"""`gates list`: every run of the ledger in its order, what became of it, and a page in which no text does anything."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from gates.flow.history import Event, history
from gates.record.chain import Source
from gates.record.ledger import Ledger, Stamp
from gates.record.store import gate_lock
from tests.finished import AT, TWO, finished_run, two_voices
from tests.flow.conftest import gates
from tests.report.test_html import Seen


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("history")
    return finished_run(home / "work", home / "cache", two_voices, **TWO)


@pytest.fixture
def workspace(finished: Path, tmp_path: Path) -> Path:
    """A copy with a sign-off, a spoiled second run and an unfinished third, all as the ledger would hold them."""
    home = tmp_path / "work"
    shutil.copytree(finished.parents[2], home)
    ledger, seal = Ledger(home / "prereg"), json.loads((finished / "verdict.json").read_bytes())["seal"]
    for kind, body in (
        ("signoff", {"run": 1, "arm": "one", "decision": "hold", "signoff_sha256": "ab" * 32}),
        ("run", {"run": 2, "seal": seal}),
        ("spoiled", {"run": 2, "why": "other weights"}),
        ("run", {"run": 3, "seal": seal}),
    ):
        ledger.append(kind, "small", body, Stamp(AT, "<i>tester</i>"))
    return home


def meanwhile(monkeypatch: pytest.MonkeyPatch, prereg: Path, seal: str) -> None:
    """Have another process enter a run as soon as this one has read the ledger once."""
    real, read = Ledger.source, []

    def source(ledger: Ledger) -> Source:
        found = real(ledger)
        read.append(ledger)
        if len(read) == 1:
            Ledger(prereg).append("run", "small", {"run": 9, "seal": seal}, Stamp(AT, "another"))
        return found

    monkeypatch.setattr(Ledger, "source", source)


def test_a_run_that_begins_meanwhile_is_not_listed_yet(
    workspace: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal = json.loads((finished / "verdict.json").read_bytes())["seal"]
    meanwhile(monkeypatch, workspace / "prereg", seal)
    assert [run.run for run in history(workspace).runs] == [1, 2, 3]
    assert [run.run for run in history(workspace).runs] == [1, 2, 3, 9]


def test_every_run_and_what_became_of_it(workspace: Path, finished: Path) -> None:
    found = history(workspace)
    verdict = json.loads((finished / "verdict.json").read_bytes())
    assert found.sealed == {"small": 1}
    assert [(run.run, run.state, run.outcome, run.standing) for run in found.runs] == [
        (1, "finished", verdict["outcome"], "prospective"),
        (2, "spoiled", "INVALID", "prospective"),
        (3, "stopped", "", "prospective"),
    ]
    first = found.runs[0]
    assert (first.author, first.begun, first.page) == ("author", AT, "small/001/report.md")
    assert {name: (one.outcome, one.move) for name, one in first.candidates.items()} == {
        name: (one["outcome"], one["axes"]["voice"]["value"]) for name, one in verdict["candidates"].items()
    }
    assert [(event.what, event.said) for event in first.events] == [("sign-off", "one, hold")]
    assert first.events[0].sentence() == f"sign-off of {AT[:10]} by <i>tester</i>: one, hold"
    computed = Event(what="re-score", at=AT, by="somebody", said="rule pairwise-range@1, post-hoc, FAIL")
    assert computed.sentence() == f"re-score of {AT[:10]}: rule pairwise-range@1, post-hoc, FAIL"
    with gate_lock(workspace / "reports", "small"):
        assert history(workspace).runs[2].state == "running"


def test_a_verdict_that_was_changed_is_none(workspace: Path) -> None:
    path = workspace / "reports" / "small" / "001" / "verdict.json"
    path.write_bytes(path.read_bytes().replace(b"FAIL", b"PASS") + b" ")
    found = history(workspace).runs[0]
    assert (found.state, found.outcome, found.candidates) == ("changed", "", {})


def test_the_list_in_the_terminal(workspace: Path) -> None:
    ended = gates("list", "--workspace", workspace)
    assert ended.returncode == 0
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in ended.stdout.splitlines() if "│" in line]
    shown = [row for row in rows if row[0]]
    assert [row[:2] for row in shown] == [["small 001", AT[:10]]] * 2 + [["small 002", AT[:10]], ["small 003", AT[:10]]]
    assert [row[3] for row in shown[2:]] == ["! INVALID", "stopped"]
    assert max(map(len, ended.stdout.splitlines())) <= 110
    document = json.loads(gates("list", "--workspace", workspace, "--json").stdout)
    assert [run["run"] for run in document["runs"]] == [1, 2, 3]


def test_the_page_links_to_the_runs_and_holds_no_markup_of_a_text(workspace: Path) -> None:
    gates("report", workspace / "reports" / "small" / "001")
    ended = gates("list", "--workspace", workspace, "--html")
    assert ended.stdout.endswith("index.html: open it in a browser\n")
    document = (workspace / "reports" / "index.html").read_text("utf-8")
    seen = Seen(document)
    links = [attributes["href"] for tag, attributes in seen.tags if tag == "a"]
    assert links == ["small/001/report.html"] * 2
    assert all((workspace / "reports" / link).is_file() for link in links)
    assert "<i>tester</i>" in seen.text
    assert not [tag for tag, _ in seen.tags if tag in ("i", "img", "script", "link")]
    (figure,) = re.findall(r"<figure.*?</figure>", document, re.DOTALL)
    assert "<h3>author over time</h3>" in figure
    assert re.search(r"<figcaption>[A-Z][^.]+\.</figcaption>", figure)
    behind = next(table for table in seen.tables if table[0] == ["candidate", "begun", "move", "required", "verdict"])
    judged = history(workspace).runs[0].candidates
    assert [[row[0], row[2], row[4]] for row in behind[1:]] == [
        [f"small 001 {name}", f"{one.move:+.3f}", one.outcome] for name, one in judged.items() if one.move is not None
    ]
    policy = next(attributes["content"] for _, attributes in seen.tags if attributes.get("http-equiv"))
    assert re.fullmatch(r"default-src 'none'; style-src 'sha256-[^']+'; base-uri 'none'; form-action 'none'", policy)


def test_an_empty_workspace_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "corpora").mkdir()
    ended = gates("list", "--workspace", tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "nothing is sealed here yet: gates seal GATE\n")
