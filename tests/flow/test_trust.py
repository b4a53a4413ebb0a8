"""What answers must be what was sealed, from first to last: seats that change, and records that change."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import yaml

from gates.record.ledger import Ledger
from gates.record.seal import latest_seal, write_seal
from gates.record.store import gate_lock
from tests.flow.conftest import gates, lines, under_lock
from tests.flow.threaded import Seat, running
from tests.seat.faulty import status
from tests.small import small_workspace


@pytest.fixture
def seat() -> Iterator[Seat]:
    with running(Seat) as made:
        yield made


@pytest.fixture
def gate(seat: Seat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a sealed gate that names the seat."""
    monkeypatch.setenv("GATES_CACHE", str(tmp_path / "cache"))
    made = small_workspace(
        tmp_path / "workspace", tmp_path / "cache", seat={"base_url": seat.faulty.url, "concurrency": 1}
    )
    assert gates("seal", made, "--yes").returncode == 0
    return made


def kinds(gate: Path) -> list[str]:
    return [stored.entry.kind for stored in Ledger(gate.parent).entries()]


def test_weights_that_change_during_a_run_spoil_it_for_good(gate: Path, seat: Seat) -> None:
    seat.at[30] = lambda: setattr(seat, "weights", "other")
    spoiled = gates("run", gate)
    assert spoiled.returncode == 4
    assert "run 001 is INVALID for good: other weights answer than when this run began: 'voice-one'" in spoiled.stderr
    assert kinds(gate) == ["seal", "run", "session", "spoiled"]

    seat.weights = "voice-one"
    again = gates("run", gate, "--json")
    assert json.loads(again.stdout)["attempts"] == 2
    assert json.loads(again.stdout)["run"].endswith("002")
    assert kinds(gate)[4:] == ["run", "session", "session", "verdict"]


def test_an_adapter_that_is_no_longer_applied_spoils_the_run_and_its_return_does_not_mend_it(
    gate: Path, seat: Seat
) -> None:
    seat.at[47] = lambda: setattr(seat, "weights", "base")
    spoiled = gates("run", gate)
    assert spoiled.returncode == 4
    assert "run 001 is INVALID for good" in spoiled.stderr
    assert "the adapter is not applied" in spoiled.stderr
    seat.weights = "voice-one"
    assert json.loads(gates("run", gate, "--json").stdout)["run"].endswith("002")


def test_a_fingerprint_that_changes_during_a_run_stops_it(gate: Path, seat: Seat) -> None:
    seat.at[20] = lambda: setattr(seat, "fingerprint", "f-2")
    stopped = gates("run", gate)
    assert stopped.returncode == 4
    assert "'f-1'" in stopped.stderr
    assert "'f-2'" in stopped.stderr
    assert len(lines(gate.parents[1] / "reports/small/001/generations.jsonl")) == 19


def test_other_weights_do_not_continue_a_run(gate: Path, seat: Seat) -> None:
    seat.at[3] = lambda: setattr(seat, "fault", status(400))
    seat.at[5] = lambda: setattr(seat, "fault", None)
    seat.at[10] = lambda: setattr(seat, "fingerprint", "f-2")
    assert gates("run", gate).returncode == 4
    seat.fingerprint, seat.weights = "f-1", "other"
    other = gates("run", gate)
    assert other.returncode == 4
    assert "gates: other weights answer than when this run began" in other.stderr
    assert "spoiled" not in kinds(gate)

    seat.weights = "voice-one"
    finished = json.loads(gates("run", gate, "--json").stdout)
    assert finished["attempts"] == 1
    texts = lines(gate.parents[1] / "reports/small/001/generations.jsonl")
    assert (len(texts), sum(text["error"] is not None for text in texts)) == (48, 2), "an error is not asked again"


def test_an_adapter_served_from_another_path_is_refused(gate: Path, seat: Seat) -> None:
    seat.root = "/somewhere/else"
    refused = gates("run", gate)
    assert refused.returncode == 2
    assert 'adapters.one.card.root: sealed "/models/voice-one", now "/somewhere/else"' in refused.stderr


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda line: line.replace('"text":"', '"text":"x', 1), "lines are not those that were recorded"),
        (lambda line: line.replace('"temperature":0.9', '"temperature":0.1'), "lines are not those that were recorded"),
        (lambda line: "", "lines are not those that were recorded"),
    ],
    ids=["text", "request", "removed"],
)
def test_what_was_recorded_before_a_start_cannot_change(
    gate: Path, seat: Seat, spoil: Callable[[str], str], message: str
) -> None:
    for stop in (5, 10):  # the second start saw what the first one recorded
        seat.at[stop] = lambda: setattr(seat, "fingerprint", "f-2")
        assert gates("run", gate).returncode == 4
        seat.fingerprint = "f-1"
    path = gate.parents[1] / "reports/small/001/generations.jsonl"
    recorded = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join([spoil(recorded[0]), *recorded[1:]]), "utf-8")
    tampered = gates("run", gate)
    assert tampered.returncode == 5
    assert message in tampered.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"temperature":0.9', '"temperature":0.1', "its request is not the one that the sealed gate makes"),
        ('"arm":"one"', '"arm":"two"', "the sealed gate has no such arm"),
        ('"seed":1,', '"seed":9,', "the sealed gate has no such arm, prompt or seed"),
    ],
)
def test_a_line_that_the_gate_would_not_have_asked_for_is_tampered(
    gate: Path, seat: Seat, old: str, new: str, message: str
) -> None:
    seat.at[30] = lambda: setattr(seat, "fingerprint", "f-2")
    assert gates("run", gate).returncode == 4
    seat.fingerprint = "f-1"
    path = gate.parents[1] / "reports/small/001/generations.jsonl"
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
    told = seat.told
    tampered = gates("run", gate)
    assert tampered.returncode == 5, tampered
    assert message in tampered.stderr
    assert seat.told == told


def seal_meanwhile(patch: pytest.MonkeyPatch, where: str, prereg: Path) -> None:
    """Have another process seal the gate again just before a command gets the gate's lock."""

    def late(reports: Path, name: str) -> AbstractContextManager[None]:
        before = latest_seal(prereg, name)
        assert before is not None
        write_seal(prereg, before.seal.model_copy(update={"sealed_by": "another", "amends": before.sha256}))
        return gate_lock(reports, name)

    patch.setattr(where, late)


def test_a_run_does_not_begin_under_a_seal_that_is_amended_meanwhile(
    gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        seal_meanwhile(patch, "gates.flow.gate_lock", gate.parent)
        stopped = gates("run", gate)
    assert (stopped.returncode, "another process has sealed this gate meanwhile" in stopped.stderr) == (2, True)
    assert kinds(gate) == ["seal", "seal"]
    gates("run", gate)
    assert kinds(gate)[2:] == ["run", "session", "session", "verdict"]


def test_nothing_of_a_gate_is_entered_between_what_its_seal_knows_and_the_seal(
    gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (gate.parent / "one.gguf").write_bytes(b"trained again")
    words = ("amend", gate, "--reason", "trained again", "--yes")
    with monkeypatch.context() as patch:
        seal_meanwhile(patch, "gates.flow.sealing.gate_lock", gate.parent)
        stopped = gates(*words)
    assert (stopped.returncode, "another process has sealed this gate meanwhile" in stopped.stderr) == (2, True)
    assert kinds(gate) == ["seal", "seal"]
    counted = under_lock(monkeypatch, "gates.flow.sealing.runs", gate.parent / ".ledger.lock")
    assert gates(*words).returncode == 0
    assert (counted, kinds(gate)) == ([True], ["seal", "seal", "seal"])


def test_a_seal_after_a_run_is_post_hoc_and_an_unchanged_gate_keeps_its_seal(gate: Path) -> None:
    gates("run", gate)
    unchanged = gates("seal", gate, "--yes")
    assert "sealed already" in unchanged.stderr
    assert kinds(gate).count("seal") == 1

    relaxed = yaml.safe_load(gate.read_text("utf-8"))
    relaxed["memorisation"]["max_rate"] = 0.9
    gate.write_text(json.dumps(relaxed), "utf-8")
    refused = gates("run", gate)
    assert refused.returncode == 2
    assert "gate.memorisation.max_rate: sealed 0.2, now 0.9" in refused.stderr
    unreasoned = gates("seal", gate, "--yes")
    assert unreasoned.returncode == 2
    assert "gate.memorisation.max_rate: sealed 0.2, now 0.9" in unreasoned.stderr
    assert f"next: amend the seal: `gates amend {gate} --reason TEXT`" in unreasoned.stderr
    sealed = json.loads(gates("amend", gate, "--reason", "too | strict\x1b[2J", "--yes", "--json").stdout)
    seal = json.loads(Path(sealed["file"]).read_bytes())
    assert seal["runs_before"] == 1
    assert seal["amends"] == Ledger(gate.parent).entries()[0].entry.body["seal"]
    differs = "gate.memorisation.max_rate: sealed 0.2, now 0.9"
    assert seal["amendment"]["changes"] == [differs]
    shown = gates("show", "small", "--workspace", gate.parents[1]).stdout
    assert "after 1 run(s) of this gate had begun: post-hoc" in shown
    assert f"amends {seal['amends']}\nbecause: too | strict\\x1b[2J\nwhat differs:\n  {differs}\n" in shown
    assert "max_run_words: null" in shown, "a default is written out"
    assert (
        json.loads(gates("show", sealed["seal"][:8], "--workspace", gate.parents[1], "--json").stdout)["sha256"]
        == sealed["seal"]
    )
    nothing = gates("amend", gate, "--reason", "again", "--yes")
    assert (nothing.returncode, "nothing to amend" in nothing.stderr) == (2, True)
    same = gates("amend", gate, "--reason", seal["amendment"]["reason"], "--yes", "--json")
    assert json.loads(same.stdout)["seal"] == sealed["seal"], "given again, as after an interruption, it is the same"
    assert json.loads(gates("run", gate, "--json").stdout)["attempts"] == 2, "those under the first seal count"
    report = (gate.parents[1] / "reports/small/002/report.md").read_text("utf-8")
    assert "**Standing:** post-hoc: sealed after 1 earlier run(s) of this gate had begun. This is attempt 2" in report
    # Wherever an outcome stands alone, what it is worth stands beside it.
    run = gate.parents[1] / "reports/small/002"
    outcome = json.loads((run / "verdict.json").read_bytes())["outcome"]
    assert report.split("\n")[0].endswith(f"{outcome} (post-hoc): small, run 002")
    assert gates("ci", run, "--junit", gate.parent / "j.xml").stdout == f"small 002: {outcome} (post-hoc)\n"
    assert 'testsuites name="small 002 (post-hoc)"' in (gate.parent / "j.xml").read_text("utf-8")
    known = gates("verify", gate.parents[1], "--adapter", gate.parent / "one.gguf").stdout
    assert f"run 002: {outcome} (post-hoc)" in known
    assert f"Gate: {report[2]} {outcome} (post-hoc)" in gates("card", run).stdout
