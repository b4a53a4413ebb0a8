"""Re-scoring on the Brontë case: both verdicts stay, standings are computed, every rule that was held is shown."""

from __future__ import annotations

import json
import pickle
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from gates.errors import UsageError
from gates.flow.inputs import load_inputs
from gates.flow.rescoring import Asked, Wanted, _ahead, weigh
from gates.flow.weighing import Weighed
from gates.record.chain import stored as as_stored
from gates.record.ledger import Ledger, Stamp
from gates.record.seal import latest_seal, write_seal
from gates.record.store import gate_lock
from gates.records import canonical, sha256
from tests.bronte import HEMINGWAY, Record, house_texts
from tests.flow.conftest import Ended, gates
from tests.record.test_merging import commit, git

RULE = "pairwise-range@1"
WHY = "the house rule | since <b>2026-09-17</b>\x1b[2J"


class House(NamedTuple):
    """The workspace in which lv-bronte ran under the retired rule and lv-hemingway was sealed under the new one."""

    record: Record
    run: Path
    rescored: Ended


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    record = Record(tmp_path_factory.mktemp("house"))
    sealed = record.seal(record.gate)
    texts = house_texts(load_inputs(record.gate, record.cache))
    store = record.run(record.gate, sealed, texts)
    record.seal(record.write("lv-hemingway", HEMINGWAY))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GATES_CACHE", str(record.cache))
        rescored = gates("rescore", store.folder, "--rule", RULE, "--reason", WHY, "--json")
    return House(record, store.folder, rescored)


@pytest.fixture
def copy(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run's folder in a copy of the workspace."""
    monkeypatch.setenv("GATES_CACHE", str(house.record.cache))
    shutil.copytree(house.record.workspace, tmp_path / "copy")
    return tmp_path / "copy" / house.run.relative_to(house.record.workspace)


def rescored(run: Path, *options: object) -> dict:
    ended = gates("rescore", run, "--reason", "because", "--json", *options)
    found = json.loads(ended.stdout)
    assert ended.returncode == found.get("exit_code"), found
    return found


def outcomes(verdict: dict) -> dict[str, str]:
    return {name: candidate["outcome"] for name, candidate in verdict["candidates"].items()}


def test_the_house_case_is_told_again(house: House) -> None:
    found = json.loads(house.rescored.stdout)
    assert house.rescored.returncode == 1
    assert outcomes(found["old"]) == {"ckpt475": "FAIL", "ckpt925": "FAIL"}
    assert outcomes(found) == {"ckpt475": "PASS", "ckpt925": "FAIL"}
    then = {name: one["axes"]["voice"] for name, one in found["old"]["candidates"].items()}
    now = {name: one["axes"]["voice"] for name, one in found["candidates"].items()}
    figures = {name: (round(one["value"], 3), round(one["floor"], 3)) for name, one in then.items()}
    assert figures == {"ckpt475": (0.193, 0.251), "ckpt925": (0.210, 0.251)}
    figures = {name: (round(one["value"], 3), round(one["floor"], 3)) for name, one in now.items()}
    assert figures == {"ckpt475": (0.193, 0.091), "ckpt925": (0.210, 0.251)}
    assert round(now["ckpt475"]["times_floor"], 1) == 2.1
    made = found["rescore"]
    assert found["standing"]["name"] == made["standing"]["name"] == "fixed elsewhere, not blind"
    assert made["axes"]["memorisation"]["name"] == "prospective"
    why = {(one["candidate"], one["axis"]): one["why"] for one in made["changes"]}
    assert why["ckpt475", "voice"] == (
        "FAIL becomes PASS; rule all-arms-range@1 becomes pairwise-range@1; threshold 0.251 becomes 0.091"
    )
    assert why["ckpt925", "voice"] == "FAIL as before; rule all-arms-range@1 becomes pairwise-range@1"
    assert why["ckpt475", "memorisation"] == "PASS as before: nothing differs"


def test_the_old_verdict_stays_and_the_report_shows_both(house: House, copy: Path) -> None:
    stored = json.loads((copy / "verdict.json").read_bytes())
    assert outcomes(stored) == {"ckpt475": "FAIL", "ckpt925": "FAIL"}
    report = (next((copy / "rescores").glob("001-*")) / "report.md").read_text("utf-8")
    assert "\n| voice | all-arms-range@1 | lv-bronte, sealed 2026-09-01T12:00:00 | ckpt475 | ✘ FAIL" in report
    assert report.startswith("# ✘ FAIL (fixed elsewhere, not blind): lv-bronte, run 001 re-scored\n")
    assert "| ckpt475 | voice | ✘ FAIL +0.193 &gt; 0.251 (0.8× the floor) | ✔ PASS +0.193 &gt; 0.091 (2.1×" in report
    assert "<b>" not in report
    assert all(char.isprintable() for line in report.split("\n") for char in line)
    shown = gates("run", copy.parents[2] / "prereg" / "lv-bronte.yaml")
    assert shown.returncode == 1
    assert "re-scored 001, rule pairwise-range@1: FAIL (fixed elsewhere, not blind)" in shown.stdout


@pytest.mark.slow
def test_many_runs_in_one_command_are_judged_as_one_by_one(house: House, copy: Path, tmp_path: Path) -> None:
    alone = shutil.copytree(copy.parents[2], tmp_path / "alone") / copy.relative_to(copy.parents[2])
    expected = rescored(alone, "--rule", RULE)
    command = ("rescore", copy, tmp_path / "nowhere", copy, "--rule", RULE, "--reason", "because")
    ended = gates(*command, "--json")
    document = json.loads(ended.stdout)
    one, failed, two = document["rescores"]
    assert ended.returncode == document["exit_code"] == failed["exit_code"] == 2
    assert "nowhere" in failed["error"]
    assert "not judged again" in ended.stderr
    assert one == two  # the same asked again
    assert (one["candidates"], one["attempts"]) == (expected["candidates"], expected["attempts"])
    assert len(one["rescore"]["earlier"]) == len(expected["rescore"]["earlier"])
    assert one["rescore"]["held"] == expected["rescore"]["held"]
    said = gates("rescore", copy, copy, "--rule", RULE, "--reason", "because")
    assert said.returncode == 1
    assert said.stdout.count(": FAIL then, FAIL now (fixed elsewhere, not blind); record: ") == 2
    assert gates(*command, "--candidate", "ckpt475").returncode == 2
    assert verified(copy)[1] == []


def test_the_next_run_is_weighed_while_one_is_written() -> None:
    made: list[int] = []
    weighed = threading.Event()

    def weighing() -> Iterator[int]:
        for number in range(3):
            made.append(number)
            if number == 1:
                weighed.set()
            yield number
        raise UsageError("the last one")

    ahead = _ahead(weighing())
    assert next(ahead) == 0
    assert weighed.wait(60)
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(UsageError, match="the last one"):
        next(ahead)
    assert made == [0, 1, 2]
    assert list(_ahead(iter("abc"))) == ["a", "b", "c"]


def test_what_was_read_of_a_run_does_not_travel(house: House) -> None:
    found = weigh({}, Wanted(house.run, house.record.cache, Asked("to see", rule=RULE)))
    assert isinstance(found, Weighed)
    assert found.case is not None
    again = pickle.loads(pickle.dumps(found))
    assert again == replace(found, case=None)


def test_every_rule_that_was_sealed_elsewhere_shows(house: House, copy: Path) -> None:
    """Sealing several rules and picking one afterwards: each stands in the report with what it says."""
    record = house.record
    voice = HEMINGWAY["voice"]
    for name, changes in (
        ("lv-third", {"floor": "pairwise-calibrated@1"}),
        ("lv-fourth", {"times_floor": 3.0}),
        ("lv-fifth", {"mfw": 50}),
    ):
        path = record.write(name, HEMINGWAY, voice=voice | changes)
        shutil.copy(path, copy.parents[2] / "prereg")
        other = Record.__new__(Record)
        other.workspace, other.cache, other._days = copy.parents[2], record.cache, record._days
        other.seal(copy.parents[2] / "prereg" / path.name)
    made = rescored(copy, "--rule", "pairwise-calibrated@1")["rescore"]
    rows = {(row["rule"]["floor"], row["rule"]["times_floor"], row["rule"]["mfw"]): row for row in made["held"]}
    assert {key: (row["overall"], [who.split(",")[0] for who in row["held_by"]]) for key, row in rows.items()} == {
        ("all-arms-range@1", 1.0, 100): ({"ckpt475": "FAIL", "ckpt925": "FAIL"}, ["lv-bronte"]),
        (RULE, 1.0, 100): ({"ckpt475": "PASS", "ckpt925": "FAIL"}, ["lv-hemingway"]),
        ("pairwise-calibrated@1", 1.0, 100): ({"ckpt475": "PASS", "ckpt925": "PASS"}, ["lv-third"]),
        (RULE, 3.0, 100): ({"ckpt475": "FAIL", "ckpt925": "FAIL"}, ["lv-fourth"]),
        # Another measure: the texts were measured again for it.
        (RULE, 1.0, 50): (rows[RULE, 1.0, 50]["overall"], ["lv-fifth"]),
    }
    assert rows[RULE, 1.0, 50]["overall"].keys() == {"ckpt475", "ckpt925"}
    assert made["texts"] == "used"
    assert made["earlier"] == ["re-scored 001, rule pairwise-range@1: FAIL (fixed elsewhere, not blind)"]
    assert [row["judges_now"] for row in made["held"]].count(True) == 1
    assert verified(copy) == (0, [])


def verified(run: Path) -> tuple[int, list[str]]:
    ended = gates("verify", run.parents[2], "--json")
    return ended.returncode, [*json.loads(ended.stdout)["breaks"], *json.loads(ended.stdout)["not_derived"]]


@pytest.mark.slow
def test_another_gate_that_measures_otherwise_measures_again(house: House, copy: Path) -> None:
    path = copy.parents[2] / "prereg" / "again.yaml"
    gate = json.loads((copy.parents[2] / "prereg" / "lv-bronte.yaml").read_text("utf-8"))
    gate["voice"] |= {"words_per_seed": 900, "floor": RULE}
    gate["damage"] = {"empty": {"margin": 0.1}}
    path.write_text(json.dumps(gate), "utf-8")
    found = rescored(copy, "--gate", path)
    made = found["rescore"]
    assert made["first"] == ["the gate measures otherwise: the same texts were measured again"]
    assert made["standing"]["name"] == "post-hoc"
    assert made["axes"]["empty"]["name"] == "post-hoc"
    assert found["candidates"]["ckpt475"]["axes"]["voice"]["signature"].find("words_per_seed:900") > 0
    assert {one["why"] for one in made["changes"] if one["axis"] == "empty"} == {"was not judged"}
    folder = Path(found["folder"])
    assert sha256((folder / "measurements.json").read_bytes()) == found["measurements_sha256"]
    assert verified(copy) == (0, [])


def test_a_gate_that_asks_for_other_texts_is_refused_field_by_field(house: House, copy: Path) -> None:
    path = copy.parents[2] / "prereg" / "again.yaml"
    gate = json.loads((copy.parents[2] / "prereg" / "lv-bronte.yaml").read_text("utf-8"))
    gate["sampling"] |= {"temperature": 0.5}
    del gate["arms"]["candidates"]["ckpt925"]
    path.write_text(json.dumps(gate), "utf-8")
    ended = gates("rescore", copy, "--gate", path, "--reason", "x")
    assert ended.returncode == 2
    assert "this gate asks for other texts than the run's:" in ended.stderr
    assert "sampling.temperature: sealed 0.9, now 0.5" in ended.stderr
    assert "arms.ckpt925: sealed" in ended.stderr
    assert not (copy / "rescores" / "002").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rule", "no-such@1"], "no-such@1: no such floor rule is installed"),
        ([], "name what judges the run again: either --rule NAME@VERSION or --gate FILE"),
        (["--rule", RULE, "--gate", "x.yaml"], "name what judges the run again"),
        (["--gate", "nowhere.yaml"], "there is no such file"),
    ],
)
def test_what_cannot_judge_is_refused(copy: Path, options: list[str], message: str) -> None:
    ended = gates("rescore", copy, "--reason", "x", *options)
    assert (ended.returncode, message in ended.stderr) == (2, True), ended.stderr


@pytest.mark.slow
def test_errors_and_another_version_of_a_measure_are_said_first(
    house: House, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = Record.__new__(Record)
    record.workspace, record.cache, record._days = copy.parents[2], house.record.cache, iter(range(20, 29))
    path = copy.parents[2] / "prereg" / "lv-bronte.yaml"
    sealed = record.seal(path)
    texts = house_texts(load_inputs(path, record.cache))
    texts["ckpt475", 3, 2] = ""
    store = record.run(path, sealed, texts, failed=[("ckpt475", 3, 2)])
    monkeypatch.setattr("gates.flow.binding.NEAR", "near_runs@2")
    found = rescored(store.folder, "--rule", RULE)
    made = found["rescore"]
    assert next(iter(found)) == "first"
    assert made["first"] == [
        "ckpt475: 1 of 60 texts are errors, 0 missing",
        "near was measured as near_runs@1, this version of gates has near_runs@2: the figures are as they were "
        "recorded",
    ]
    shown = gates("rescore", store.folder, "--rule", RULE, "--reason", "x").stdout
    assert shown.startswith("first: ckpt475: 1 of 60 texts are errors, 0 missing\n")
    again = gates("rescore", store.folder, "--rule", RULE, "--reason", "x")
    assert "re-scored already, and nothing has been entered since" in again.stderr
    assert (again.stdout, len(list((store.folder / "rescores").iterdir()))) == (shown, 2)
    report = next(iter(sorted((store.folder / "rescores").glob("*/report.md")))).read_text("utf-8")
    assert report.startswith("**First: ckpt475: 1 of 60 texts are errors, 0 missing**\n")
    assert report.index("near_runs@2") < report.index("# ! INVALID")
    told = "[ckpt475: 1 of 60 texts are errors, 0 missing] [near was measured as near_runs@1"
    (*_, listed) = json.loads(gates("list", "--workspace", record.workspace, "--json").stdout)["runs"]
    events = [event["said"] for event in listed["events"]]
    later = rescored(store.folder, "--rule", RULE)["rescore"]["earlier"]
    assert (len(events), len(later)) == (2, 2)
    assert all(0 < line.index(told) < line.index("INVALID") for line in (*events, *later)), (events, later)
    many = gates("rescore", store.folder, store.folder, "--rule", RULE, "--reason", "x").stdout
    assert many.startswith(f"{store.folder} {told}")


@pytest.mark.parametrize("name", ["rescore.json", "verdict.json", "report.md"])
def test_a_changed_byte_of_a_rescore_is_found(copy: Path, name: str) -> None:
    path = next((copy / "rescores").glob("001-*")) / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    code, said = verified(copy)
    assert code == 5
    assert re.search(rf"rescores/001-[0-9a-f]{{12}}/{name}: SHA-256 is", said[0])


def test_a_seal_that_is_entered_meanwhile_is_weighed(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the judging, which takes long, and the record of it."""
    prereg = copy.parents[2] / "prereg"

    def late(reports: Path, name: str) -> AbstractContextManager[None]:
        sealed = latest_seal(prereg, "lv-hemingway")
        assert sealed is not None
        gate = sealed.seal.gate.model_copy(update={"name": "late"})
        binding = sealed.seal.binding.model_copy(update={"gate": gate.digest()})
        write_seal(prereg, sealed.seal.model_copy(update={"gate": gate, "binding": binding, "amends": None}))
        return gate_lock(reports, name)

    monkeypatch.setattr("gates.flow.rescoring.gate_lock", late)
    made = Path(rescored(copy, "--rule", "pairwise-calibrated@1")["folder"])
    held = json.loads((made / "rescore.json").read_bytes())["held"]
    assert any("late, sealed" in holder for row in held for holder in row["held_by"])


def test_a_standing_that_was_forged_with_its_ledger_is_found(copy: Path) -> None:
    folder, prereg = next((copy / "rescores").glob("001-*")), copy.parents[2] / "prereg"
    forged = json.loads((folder / "rescore.json").read_bytes())
    forged["standing"] = {"name": "prospective", "reason": "of course"}
    (folder / "rescore.json").write_bytes(canonical(forged))
    entries = Ledger(prereg).entries()
    for name in ("ledger.jsonl", "ledger.head"):
        (prereg / name).unlink()
    for stored in entries:
        body = dict(stored.entry.body)
        if stored.entry.kind == "rescore":
            body["rescore_sha256"] = sha256(canonical(forged))
        Ledger(prereg).append(stored.entry.kind, stored.entry.gate, body, Stamp(stored.entry.at, stored.entry.by))
    folder.rename(folder.with_name(f"001-{sha256(canonical(forged))[:12]}"))
    code, said = verified(copy)
    assert code == 5
    assert "rescore.json: derived again it differs" in said[0]
    assert "standing.name: stored prospective, derived fixed elsewhere, not blind" in said[0]


def test_words_of_the_ledger_that_the_rescore_does_not_say_are_found(copy: Path) -> None:
    """The files stay as they are, and the ledger is written anew with a better outcome."""
    ledger = Ledger(copy.parents[2] / "prereg")
    (*before, last), words = ledger.entries(), {"outcome": "PASS", "candidates": {"ckpt475": "PASS", "ckpt925": "PASS"}}
    ledger.path.write_bytes(b"".join(one.line + b"\n" for one in before))
    ledger.head_path.unlink()
    forged = as_stored(last.entry.model_copy(update={"body": {**last.entry.body, **words}}))
    ledger.rewrite(before, [*before, forged])
    code, said = verified(copy)
    assert code == 5
    assert said[0].endswith("rescore.json: the ledger says otherwise of outcome, candidates")


def test_a_rescore_is_not_derived_where_its_texts_are_gone(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = copy.parents[2] / "prereg" / "again.yaml"
    gate = json.loads((copy.parents[2] / "prereg" / "lv-bronte.yaml").read_text("utf-8"))
    gate["voice"] |= {"mfw": 60}
    path.write_text(json.dumps(gate), "utf-8")
    rescored(copy, "--gate", path)
    monkeypatch.setenv("GATES_CACHE", str(tmp_path / "empty"))
    code, said = verified(copy)
    assert code == 3
    assert any("corpus author" in sentence for sentence in said)


def test_two_branches_that_both_rescored_one_run_are_joined_without_loss(house: House, copy: Path) -> None:
    """Both give their re-score the same number; neither takes the other's folder."""
    home = copy.parents[2]
    git(home, "init", "-q")
    commit(home, "run")
    git(home, "branch", "other")
    rescored(copy, "--rule", "pairwise-calibrated@1")
    commit(home, "ours")
    git(home, "checkout", "-q", "other")
    rescored(copy, "--rule", "all-arms-range@1")
    commit(home, "theirs")
    git(home, "checkout", "-q", "main")
    assert git(home, "merge", "other", check=False) == 1
    assert gates("ledger", "merge", "--workspace", home).returncode == 0
    commit(home, "joined")
    assert sorted(path.name[:3] for path in (copy / "rescores").iterdir()) == ["001", "002", "002"]
    assert verified(copy) == (0, [])
    assert [s.entry.body["rescore"] for s in Ledger(home / "prereg").entries() if s.entry.kind == "rescore"] == [
        1,
        2,
        2,
    ]
