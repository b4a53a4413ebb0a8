"""Signing where there are several verdicts: which one is signed, what the others do to it, and who has signed which."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gates.errors import RefusedError, TamperedError, UsageError
from gates.flow.adapters import identify
from gates.flow.inputs import load_inputs
from gates.flow.review import Reading, open_reading
from gates.flow.signed import check_signoffs
from gates.flow.signoff import Decided
from gates.flow.verifying import verify
from gates.judge.standing import STANDINGS
from gates.record.ledger import Ledger, Stamp
from gates.record.signoff import write_signoff
from gates.record.verdicts import given, named, weighs
from tests.finished import TWO, finished_run, sealed_gate, two_voices
from tests.flow.conftest import gates
from tests.flow.test_signoff import key, make_key, read_all, signed
from tests.small import GATE

__all__ = ["key"]

RANGE, STRICTER = "pairwise-range@1", "pairwise-calibrated@1"


def seal_elsewhere(workspace: Path, cache: Path, floor: str) -> None:
    """Another gate's seal holds the rule from now on."""
    path = workspace / "prereg" / "elsewhere.yaml"
    rule = {"voice": GATE["voice"] | {"floor": floor}, "damage": {"ran_on": {"within": "floor", "floor": floor}}}
    path.write_text(json.dumps(GATE | {"name": "elsewhere"} | rule), "utf-8")
    sealed_gate(load_inputs(path, cache))


def rescored(run: Path, rule: str) -> None:
    ended = gates("rescore", run, "--rule", rule, "--reason", "because", "--candidate", "two")
    assert ended.returncode in {0, 1}, ended.stderr


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory, made_cache: Path) -> Path:
    """A run whose candidate `two` fails by its own rule, and passes when re-scored: post-hoc, then fixed elsewhere."""
    home = tmp_path_factory.mktemp("failed")
    changes = {"voice": GATE["voice"] | {"floor": STRICTER}, "sign_off": {"signers": 2, "samples": 1}}
    folder = finished_run(home / "work", made_cache, two_voices, **TWO, **changes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GATES_CACHE", str(made_cache))
        rescored(folder, RANGE)
        seal_elsewhere(home / "work", made_cache, RANGE)
        rescored(folder, RANGE)
    return home / "work"


@pytest.fixture
def failing(failed: Path, tmp_path: Path, made_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Reading:
    monkeypatch.setenv("GATES_CACHE", str(made_cache))
    return open_reading(shutil.copytree(failed, tmp_path / "work") / "reports" / "small" / "001", made_cache)


@pytest.fixture
def passing(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> Reading:
    """A run whose candidate `two` passes, read by ann."""
    monkeypatch.setenv("GATES_CACHE", str(reading.cache))
    read_all(reading, "two", "ann")
    return reading


def on(rescore: str | None, decision: str = "waive") -> Decided:
    return Decided(arm="two", decision=decision, reason="the house rule", rescore=rescore)  # type: ignore[arg-type]


def test_only_a_waiver_ships_what_another_rule_passes_afterwards(failing: Reading, key: Path) -> None:
    read_all(failing, "two", "ann")
    with pytest.raises(
        RefusedError, match=r"the re-score is post-hoc: .*the run's own verdict is FAIL \(prospective\)"
    ):
        signed(failing, key, decided=on("1", "ship"))
    with pytest.raises(RefusedError, match=r"cannot ship as it is: the run's own verdict is FAIL \(prospective\)"):
        signed(failing, key, decided=on("002", "ship"))
    with pytest.raises(UsageError, match="'7' is no re-score of this run"):
        signed(failing, key, decided=on("7"))
    made = signed(failing, key, decided=on("002")).signoff
    folder = next((failing.run.store.folder / "rescores").glob("002-*"))
    assert made.rescored is not None
    assert (made.rescored.folder, made.rescored.outcome, made.outcome) == (folder.name, "PASS", "FAIL")
    assert made.rescored.standing.name == "fixed elsewhere, not blind"
    assert [one.folder[:3] for one in made.others] == ["001"]
    disagree, told, own, *held = made.caveats
    assert disagree.startswith(
        "THE VERDICTS DO NOT AGREE: the run's own verdict is FAIL (prospective); signed is re-score 002"
    )
    assert told == f"{made.rescored}: PASS; the rule is {made.rescored.standing}"
    assert own.startswith(
        "the run's own verdict: FAIL, prospective: sealed before any generation of this gate; voice: FAIL"
    )
    assert held[0].startswith(f"voice under {STRICTER}")
    assert held[0].endswith("; two would be FAIL")
    assert "(held by elsewhere, sealed 2026-01-01T00:00:00): PASS" in held[1]
    assert held[2].startswith("re-score 001-")
    assert signed(failing, key, decided=on(folder.name)).signoff == made, "the same, named otherwise"


def test_signatures_count_together_on_one_verdict_alone(failing: Reading, key: Path, tmp_path: Path) -> None:
    other = make_key(tmp_path / "keys", "second")
    for by in ("ann", "bob"):
        read_all(failing, "two", by)
    made = signed(failing, key, decided=on(None))
    assert (str(made.release), made.readme) == (
        "not released: 1 of 2 signatures by different people with different keys",
        "",
    )
    apart = signed(failing, other, "bob", on("002"))
    assert not apart.release.complete
    assert "1 of 2 signatures" in str(apart.release)
    assert str(apart.release).endswith("1 more on another verdict do not count with them")
    assert not signed(failing, key, "bob", on("002")).release.complete, "one person with two keys"
    both = signed(failing, key, "ann", on("002"))
    assert str(both.release).startswith("released, 2 of 2 signatures on re-score 002-")
    headline = next(line for line in both.readme.split("\n") if line.startswith("**"))
    assert headline.startswith("**✔ PASS (fixed elsewhere, not blind)** by re-score 002-")
    assert ", but **✘ FAIL** by the run's own verdict, released, 2 of 2" in headline
    assert "| the run&#39;s own | ✘ FAIL |" in both.readme.replace("'", "&#39;")
    workspace = failing.run.workspace
    adapter = workspace / "prereg" / "one.gguf"
    assert any(match.released for match in identify(workspace, adapter).matches)
    # Names and keys as somebody outside knows them: two people; one person with both keys; one of them unknown.
    keys = {by: path.with_suffix(".pub").read_text("utf-8") for by, path in (("ann", key), ("bob", other))}
    listed = tmp_path / "allowed"
    for people, released in (("ann ann, bob bob", True), ("ann ann, ann bob", False), ("bob bob", False)):
        named = [one.split() for one in people.split(", ")]
        listed.write_text("".join(f"{who} {keys[by]}" for who, by in named), "utf-8")
        assert any(match.released for match in identify(workspace, adapter, listed).matches) is released, people
    held = signed(failing, other, "bob", Decided(arm="two", decision="hold", reason="second thoughts"))
    assert str(held.release) == "held by bob"
    shown = gates("verify", workspace, "--adapter", workspace / "prereg" / "one.gguf").stdout
    assert "everything holds" in shown
    assert "run 001: FAIL" in shown
    assert f"run 001, re-scored 002, rule {RANGE}: two PASS (fixed elsewhere, not blind)" in shown
    events = json.loads(gates("list", "--workspace", workspace, "--json").stdout)["runs"][0]["events"]
    assert any(f"two, waive, re-score 002-{'{'}".rstrip("{") in event["said"] for event in events)


def test_both_verdicts_stand_in_cards_and_exports(failing: Reading) -> None:
    run = failing.run.store.folder
    card = json.loads(gates("card", run, "--arm", "two", "--json").stdout)["card"]
    heading = next(line for line in card.split("\n") if line.startswith("## Gate: "))
    assert heading.startswith("## Gate: ✘ FAIL; but re-scored 001, rule pairwise-range@1: two PASS (post-hoc)")
    statement = json.loads(gates("export", run, "--format", "intoto", "--arm", "two").stdout)["predicate"]
    assert statement["result"] == "FAILED"
    told = {one["name"]: one["annotations"] for one in statement["configuration"] if "re-score" in one["name"]}
    assert told["re-score 001 verdict.json"] == {"asked": f"rule {RANGE}", "standing": "post-hoc", "outcome": "PASS"}
    log = json.loads(gates("export", run, "--format", "inspect", "--arm", "two").stdout)["eval"]["metadata"]
    assert (log["outcome"], [one.split(": ")[1] for one in log["rescores"]]) == (
        "FAIL",
        ["two PASS (post-hoc)", "two PASS (fixed elsewhere, not blind)"],
    )


def test_a_later_rule_that_fails_what_passed_cannot_be_missed(passing: Reading, key: Path) -> None:
    """A rule that was looked for afterwards is told; one that a seal holds takes the signature its force."""
    run, workspace = passing.run.store.folder, passing.run.workspace
    before = signed(passing, key).signoff
    assert {"rescored", "others"}.isdisjoint(before.as_json())
    rescored(run, STRICTER)
    adapter = workspace / "prereg" / "one.gguf"
    assert identify(workspace, adapter).exit_code == 0
    after = signed(passing, key)
    first, told, *same = after.signoff.caveats
    assert first.startswith("THE VERDICTS DO NOT AGREE: re-score 001-")
    assert first.endswith("says FAIL (post-hoc); signed is the run's own verdict, PASS")
    assert "; the rule is post-hoc: " in told
    assert tuple(same) == before.caveats
    assert f"**✔ PASS**, but **✘ FAIL** by {after.signoff.others[0]} (post-hoc), released" in after.readme
    seal_elsewhere(workspace, passing.cache, STRICTER)
    rescored(run, STRICTER)
    known = identify(workspace, adapter)
    assert known.exit_code == 3
    assert "ann signed before re-scored 002, rule pairwise-calibrated@1: two FAIL" in str(known.matches)
    statement = json.loads(gates("export", run, "--format", "intoto", "--arm", "two").stdout)["predicate"]
    assert statement["result"] == "WARNED"
    assert [one[:13] for one in statement["warnedTests"]] == ["re-scored 002"]
    with pytest.raises(RefusedError, match=r"re-score 002-\w+, rule \S+ says FAIL \(fixed elsewhere, not blind\)"):
        signed(passing, key)
    assert signed(passing, key, decided=on(None)).release.complete
    assert identify(workspace, adapter).exit_code == 0
    assert check_signoffs(passing, Ledger(workspace / "prereg").entries()) == []


def test_a_re_score_that_comes_while_one_signs_is_not_missed(
    passing: Reading, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is entered after the marks and before the signature, when the decision has been drafted once."""
    enter = Reading.enter

    def meanwhile(reading: Reading, world: object) -> None:
        enter(reading, world)  # type: ignore[arg-type]
        rescored(reading.run.store.folder, STRICTER)

    monkeypatch.setattr(Reading, "enter", meanwhile)
    made = signed(passing, key).signoff
    kinds = [one.entry.kind for one in Ledger(passing.run.workspace / "prereg").entries()]
    assert kinds[-3:] == ["review", "rescore", "signoff"]
    assert [one.outcome for one in made.others] == ["FAIL"]
    assert made.caveats[0].startswith("THE VERDICTS DO NOT AGREE")


def test_what_a_sign_off_says_of_a_re_score_is_checked(passing: Reading, key: Path) -> None:
    """Written past the command, with a good signature: another outcome, one that is unknown, and the older form."""
    run, ledger = passing.run, Ledger(passing.run.workspace / "prereg")
    rescored(run.store.folder, RANGE)
    good = signed(passing, key, decided=on("1", "ship")).signoff
    assert good.rescored is not None

    def told() -> str:
        try:
            return " ".join(check_signoffs(passing, ledger.entries()))
        except TamperedError as error:
            return error.message

    wrong = good.rescored.model_copy(update={"verdict_sha256": "0" * 64})
    nowhere = good.rescored.model_copy(update={"folder": "009-000000000000"})
    for forged, said in (
        (good.model_copy(update={"rescored": wrong}), "derived again it differs"),
        (good.model_copy(update={"rescored": nowhere}), "could not have been made: --rescore '009-000000000000' is no"),
        (good.model_copy(update={"rescored": None}), "an earlier gates wrote it, without the verdicts of re-scores"),
    ):
        lines, head = ledger.path.read_bytes(), ledger.head_path.read_bytes()
        with ledger.writing():
            write_signoff(run.store, ledger, forged, Stamp(forged.at, "ann", key))
        assert said in told(), said
        ledger.path.write_bytes(lines)
        ledger.head_path.write_bytes(head)
    assert told() == ""


def test_what_a_re_score_measured_otherwise_and_nobody_has_read_stands_against_it(passing: Reading, key: Path) -> None:
    run = passing.run
    path = run.workspace / "prereg" / "shorter.yaml"
    path.write_text(json.dumps(GATE | TWO | {"memorisation": {"max_rate": 1.0, "n": 3}}), "utf-8")
    gates("rescore", run.store.folder, "--gate", path, "--reason", "x")
    with pytest.raises(RefusedError, match=r"the re-score found \d+ items that are on no reading list"):
        signed(passing, key, decided=on("1", "ship"))
    made = signed(passing, key, decided=on("1"))
    first = "the gate measures otherwise: the same texts were measured again"
    assert made.signoff.caveats[0] == first
    assert f"[{first}] **! INVALID (post-hoc)** by re-score 001" in made.readme.replace("\\[", "[").replace("\\]", "]")


def test_a_re_scores_gate_that_asks_for_more_signers_has_its_way(passing: Reading, key: Path, tmp_path: Path) -> None:
    """The sealed gate is content with one, and nobody takes fewer for it than the gate whose verdict they sign."""
    run, workspace = passing.run.store.folder, passing.run.workspace
    stricter = workspace / "prereg" / "stricter.yaml"
    stricter.write_text(json.dumps(GATE | TWO | {"sign_off": {"signers": 2}}), "utf-8")
    assert gates("rescore", run, "--gate", stricter, "--reason", "two of us").returncode in {0, 1, 4}
    adapter = workspace / "prereg" / "one.gguf"

    def released() -> bool:
        return any(match.released for match in identify(workspace, adapter).matches)

    first = signed(passing, key, decided=on("1", "ship"))
    assert (first.signoff.signers, first.readme) == (2, "")
    assert str(first.release).startswith(
        "not released: 1 of 2 signatures by different people with different keys on re-"
    )
    told = gates("verify", workspace, "--adapter", adapter).stdout
    assert ("everything holds" in told, "not released: 1 of 2 signatures" in told, released()) == (True, True, False)
    # Somebody writes the sealed gate's number past the command, with a good signature.
    ledger = Ledger(workspace / "prereg")
    lines, head = ledger.path.read_bytes(), ledger.head_path.read_bytes()
    with ledger.writing():
        fewer = first.signoff.model_copy(update={"signers": 1})
        write_signoff(passing.run.store, ledger, fewer, Stamp(fewer.at, "ann", key))
    assert any(found.endswith("derived again it differs") for found in verify(workspace, passing.cache).breaks)
    ledger.path.write_bytes(lines)
    ledger.head_path.write_bytes(head)
    read_all(passing, "two", "bob")
    both = signed(passing, make_key(tmp_path / "keys", "second"), "bob", on("1", "ship"))
    assert (both.release.complete, both.release.given, released()) == (True, 2, True)


def test_a_number_that_two_branches_gave_names_neither(failing: Reading) -> None:
    one, two = given(failing.run.store, Ledger(failing.run.workspace / "prereg").entries(), "two")
    with pytest.raises(UsageError, match="names 2 re-scores") as refused:
        named([one, replace(two, number=1)], "001")
    assert refused.value.next_step == f"name its folder: {one.said.folder}, {two.said.folder}"
    assert named([one, replace(two, number=1)], two.said.folder).said == two.said


def test_which_verdicts_count_against_which() -> None:
    """One that a seal fixed always; one of afterwards only against its like or worse."""
    counts = {signed: [other for other in STANDINGS if weighs(other, signed)] for signed in STANDINGS}
    sealed = ["prospective", "fixed elsewhere, blind", "fixed elsewhere, not blind"]
    assert counts == {
        **dict.fromkeys(sealed, sealed),
        "post-hoc": [*sealed, "post-hoc"],
        "imported": [*sealed, "post-hoc", "imported"],
    }
