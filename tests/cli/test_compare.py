"""`gates compare` and `gates power` as commands: what they print, and how they end."""

import json
from pathlib import Path

import pytest

from gates.judge.verdict import judge
from gates.record.ledger import Ledger, Stamp
from gates.record.seal import write_seal
from gates.record.store import open_run
from gates.records import sha256
from tests.flow.conftest import gates
from tests.judge.test_compare import the_house_run
from tests.record.test_seal import seal
from tests.small import GATE, small_workspace


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a finished run with the figures of lv-hemingway 850 and 1750."""
    gate, measurements = the_house_run()
    sealed = write_seal(tmp_path / "prereg", seal(gate=gate))
    ledger, stamp = Ledger(tmp_path / "prereg"), Stamp("2026-01-02T00:00:00+00:00", "Zoë")
    store = open_run(ledger, tmp_path / "reports", gate.name, sealed.sha256, stamp)
    store.folder.mkdir(parents=True)
    store.generations_path.write_bytes(b"")
    measured = measurements.model_copy(update={"seal": sealed.sha256})
    verdict = judge(gate, measured)
    store.write("measurements.json", measured)
    store.write("verdict.json", verdict)
    store.sessions_path.write_bytes(b"")
    store.write_report("report")
    body = {
        "run": store.number,
        "seal": sealed.sha256,
        "generations_sha256": store.generations_sha256(),
        "measurements_sha256": measured.digest(),
        "verdict_sha256": verdict.digest(),
        "sessions_sha256": store.sessions_sha256(),
        "report_sha256": sha256(b"report"),
    }
    ledger.append("verdict", gate.name, body, stamp)
    return store.folder


def test_hemingway_850_is_preferred_and_the_table_says_what_resolves(run):
    ended = gates("compare", run, "ckpt850", "ckpt1750")
    assert (ended.returncode, ended.stderr) == (0, "")
    first, *table = ended.stdout.splitlines()
    assert first.endswith(
        "0.072 apart, the pairwise floor of the two is 0.113: indistinguishable; in the sealed order seed_spread is "
        "the first that resolves: ckpt850, a preference only"
    )
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in table if line.startswith("│")]
    named = {row[0]: row[1:5] for row in rows if row[0]}
    assert named == {
        "seed_spread": ["0.050", "0.113", "lower", "ckpt850"],
        "memorisation": ["0.070", "0.080", "lower", "ckpt850"],
        "ran_on": ["0.080", "0.120", "lower", "ckpt850"],
        "notes.step": ["850", "1750", "lower", "ckpt850"],
    }


def test_the_json_of_a_comparison(run):
    ended = gates("compare", run, "ckpt850", "ckpt1750", "--json")
    found = json.loads(ended.stdout)
    assert (found["schema"], found["preferred"], found["chosen_by"]) == (
        "gates.comparison/1",
        "ckpt850",
        "seed_spread",
    )
    assert [axis["resolves"] for axis in found["tie_break"]] == ["within chance"] * 3 + ["not testable"]
    assert found["rule"] == "pairwise-range@1"


@pytest.mark.parametrize(
    ("place", "arms", "code", "message"),
    [
        ("002", ("ckpt850", "ckpt1750"), 2, "this is no run that"),
        ("../../prereg", ("ckpt850", "ckpt1750"), 2, "this is no run that"),
        (
            "001",
            ("ckpt850", "nobody"),
            2,
            "'nobody' is no arm that this run judged\n  next: choose two of: ckpt1750, ckpt850",
        ),
        ("001", ("ckpt850", "ckpt850"), 2, "ckpt850 cannot be compared with itself"),
    ],
)
def test_what_cannot_be_compared(run, place, arms, code, message):
    ended = gates("compare", run.parent / place, *arms)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert message in ended.stderr


def test_a_run_that_is_not_finished_or_was_touched_is_not_compared(run):
    ledger = Ledger(run.parents[2] / "prereg")
    (started,) = [stored for stored in ledger.entries() if stored.entry.kind == "run"]
    ledger.append("run", started.entry.gate, {**started.entry.body, "run": 2}, Stamp("2026-01-03T00:00:00+00:00", "Z"))
    unfinished = gates("compare", run.parent / "002", "ckpt850", "ckpt1750")
    assert (unfinished.returncode, "002: this is not finished" in unfinished.stderr) == (2, True)
    (run / "measurements.json").write_bytes((run / "measurements.json").read_bytes() + b" ")
    touched = gates("compare", run, "ckpt850", "ckpt1750")
    assert (touched.returncode, "measurements.json: SHA-256 is" in touched.stderr) == (5, True)


def test_power_says_what_seeds_can_prove_and_marks_the_gates_own(tmp_path):
    gate = small_workspace(tmp_path / "home", tmp_path / "cache")
    ended = gates("power", gate)
    assert (ended.returncode, ended.stderr) == (0, "")
    rows = [
        [cell.strip() for cell in line.strip("│").split("│")] for line in ended.stdout.splitlines() if line[:1] == "│"
    ]
    assert [row[0] for row in rows] == ["→ 2", *map(str, range(3, 11)), "memorisation.max_rate", "", ""]
    # Two seeds: 10.8 % false passes (half of the published two-sided 21.6); 24 texts, of which 0.2 lets 1 hit pass.
    assert 10.4 < float(rows[0][1].split("%")[0]) < 11.2
    assert rows[0][3:] == ["24", "1", "0.117"]
    assert "its floor is 0 in" in ended.stdout
    assert "note: voice: a floor of 2 seeds is a rough one: use 4 or more" in ended.stdout


def test_power_says_how_often_each_rule_passes_a_candidate_without_harm(tmp_path, monkeypatch):
    monkeypatch.setenv("GATES_CACHE", str(tmp_path / "cache"))
    (tmp_path / "home/prereg").mkdir(parents=True)
    (tmp_path / "home/prereg/pairs.txt").write_text("A ship\nA dog\nA girl\n", "utf-8")
    gate = small_workspace(
        tmp_path / "home",
        tmp_path / "cache",
        memorisation={"max_excess": 0.2, "max_ratio": 5},
        probe={"file": "pairs.txt", "template": "{beat}", "kind": "beats", "max_rate": 0.5},
    )
    ended = gates("power", gate)
    table = ended.stdout.partition("P(pass | no change)")[2].splitlines()
    rows = [[cell.strip() for cell in line.strip("│┃").split("│")] for line in table if line[:1] == "│"]
    assert [row[0] for row in rows if row[0]] == ["memorisation.max_excess", "memorisation.max_ratio", "probe.max_rate"]
    assert [row[1] for row in rows[:3]] == ["0", "0.01", "0.05"]
    assert rows[3][2:] == ["0%"] * 9, "a ratio to nothing never passes"
    # Three prompts at two seeds: 0 or 1 hit of 6 leave 0.393 and 0.582, so that only 0 hits pass: 0.99 ** 6, 0.95 ** 6.
    assert [row[2] for row in rows[6:]] == ["100%", "94%", "74%"]
    assert "note: memorisation.max_ratio: a candidate that copies no more than chance passes in" in ended.stdout
    assert "memorisation.max_excess: a candidate that copies no more than chance passes in 100% at a rate of 0, " in (
        gates("check", gate).stdout
    )


def test_power_of_a_calibrated_gate_as_json(tmp_path):
    voice = {**GATE["voice"], "floor": "pairwise-calibrated@1", "alpha": 0.05}
    gate = small_workspace(tmp_path / "home", tmp_path / "cache", voice=voice)
    ended = gates("power", gate, "--json")
    found = json.loads(ended.stdout)
    assert (ended.returncode, found["gate"]) == (0, "small")
    assert "rule:pairwise-calibrated@1|alpha:0.05" in found["signature"]
    assert all(0.045 < row["false_pass"] < 0.055 for row in found["voice_by_seeds"])
    assert [row["sd_ratio"] for row in found["unequal_noise"]] == [0.3, 0.5, 1.0, 2.0, 3.0]


def test_a_retired_rule_is_refused_before_sealing(tmp_path, monkeypatch):
    gate = small_workspace(tmp_path / "home", tmp_path / "cache", voice={**GATE["voice"], "floor": "all-arms-range@1"})
    monkeypatch.setenv("GATES_CACHE", str(tmp_path / "cache"))
    for command in (["check"], ["seal", "--yes"]):
        ended = gates(*command, gate)
        assert ended.returncode == 2
        said = ended.stdout + ended.stderr
        assert "voice.floor: all-arms-range@1 is retired: a candidate's verdict must not hang on which" in said
        assert "name pairwise-range@1 or pairwise-calibrated@1" in said
