"""`gates verify` on a finished run: everything is derived again, and every change is found and named."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from gates import __version__
from gates.flow.adapters import identify
from gates.flow.differing import unlike
from gates.record.ledger import Ledger, Stamp
from gates.record.seal import AdapterIdentity, write_seal
from gates.records import canonical, sha256
from tests.flow.conftest import Ran, gates
from tests.judge.arms import HASH
from tests.record.test_seal import binding, seal
from tests.record.test_signing import allowed, make_key

# One process for both files: they share a finished run, which takes half a minute to make.
pytestmark = pytest.mark.xdist_group("ran")


@pytest.fixture
def copy(ran: Ran, tmp_path: Path) -> Path:
    """A copy of the finished workspace, to be spoilt."""
    return Path(shutil.copytree(ran.workspace, tmp_path / "copy"))


def verified(workspace: Path) -> tuple[int, dict]:
    ended = gates("verify", workspace, "--json")
    return ended.returncode, json.loads(ended.stdout)


def rebuild(prereg: Path, key: Path | None = None, **verdict: str) -> None:
    """Write the whole chain anew, as a forger can: `verdict` replaces what the verdict's record says."""
    entries = Ledger(prereg).entries()
    for name in ("ledger.jsonl", "ledger.head"):
        (prereg / name).unlink()
    for stored in entries:
        body = {**stored.entry.body, **(verdict if stored.entry.kind == "verdict" else {})}
        Ledger(prereg).append(stored.entry.kind, stored.entry.gate, body, Stamp(stored.entry.at, stored.entry.by, key))


def test_an_untouched_record_is_derived_again(copy: Path) -> None:
    status, found = verified(copy)
    assert found["breaks"] == []
    assert found["not_derived"] == []
    assert status == 0
    assert found["runs"] == 1
    assert "the head file alone" in found["anchor"]


@pytest.mark.parametrize(
    "file",
    [
        "prereg/ledger.jsonl",
        "prereg/ledger.head",
        "prereg/seals/*.json",
        "reports/small/001/generations.jsonl",
        "reports/small/001/measurements.json",
        "reports/small/001/verdict.json",
        "reports/small/001/report.md",
    ],
)
def test_a_changed_byte_is_found_and_its_file_named(copy: Path, file: str) -> None:
    path = next(copy.glob(file))
    good = path.read_bytes()
    for place in random.Random(7).sample(range(len(good)), 4):
        path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        status, found = verified(copy)
        assert status == 5, (place, good[max(0, place - 20) : place + 20], found)
        assert any(path.name in sentence for sentence in found["breaks"])


def test_a_verdict_that_was_rewritten_with_its_ledger_is_found(copy: Path) -> None:
    """A forger who rebuilds the whole chain still has to make the figures follow from the generations."""
    prereg, folder = copy / "prereg", copy / "reports" / "small" / "001"
    forged = json.loads((folder / "verdict.json").read_bytes())
    forged["candidates"]["e12"]["outcome"] = "PASS" if forged["candidates"]["e12"]["outcome"] != "PASS" else "FAIL"
    data = canonical(forged)
    (folder / "verdict.json").write_bytes(data)
    rebuild(prereg, verdict_sha256=sha256(data))
    status, found = verified(copy)
    assert status == 5
    assert any("verdict.json: derived again it differs: candidates.e12.outcome" in said for said in found["breaks"])


def test_a_text_that_is_not_there_is_named_not_rederived(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATES_CACHE", str(tmp_path / "empty"))
    status, found = verified(copy)
    assert status == 3
    assert found["breaks"] == []
    assert "measurements.json: not derived again: corpus bronte" in found["not_derived"][0]


def test_a_stranger_needs_no_adapter_to_derive_a_run_again(copy: Path) -> None:
    shutil.rmtree(copy / "prereg" / "demo" / "adapters")
    status, found = verified(copy)
    assert (status, found["not_derived"], found["breaks"]) == (0, [], [])


def test_a_changed_prompt_file_is_named_not_rederived(copy: Path) -> None:
    beats = copy / "prereg" / "demo" / "beats.txt"
    beats.write_text(beats.read_text("utf-8").replace("Two sisters", "Three sisters"), "utf-8")
    status, found = verified(copy)
    assert status == 3
    assert "its inputs have changed: prompts: sealed" in found["not_derived"][0]


def test_git_remembers_a_cut_tail(copy: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(copy), "-c", "user.name=t", "-c", "user.email=t@t", *words], check=True)

    git("init", "-q")
    git("add", "prereg")
    git("commit", "-qm", "records")
    prereg = copy / "prereg"
    first = Ledger(prereg).entries()[0].entry
    for name in ("ledger.jsonl", "ledger.head"):
        (prereg / name).unlink()
    Ledger(prereg).append(first.kind, first.gate, dict(first.body), Stamp(first.at, first.by))
    status, found = verified(copy)
    assert status == 5
    assert "every commit of the ledger" in found["anchor"]
    assert sum("was committed and is no longer in the ledger" in sentence for sentence in found["breaks"]) == 4


def test_counts_must_be_equal_and_figures_within_the_tolerance() -> None:
    assert unlike({"a": [1, 0.5]}, {"a": [1, 0.5 + 1e-12]}) == []
    assert unlike({"a": [1, 0.5]}, {"a": [2, 0.5]}) == ["a[0]: stored 1, derived 2"]
    assert unlike({"a": 0.5}, {"a": 0.5001}) == ["a: stored 0.5, derived 0.5001"]
    assert unlike({"a": True}, {"a": 1.0}) == ["a: stored True, derived 1.0"]
    assert unlike({"a": [1]}, {"a": [1, 2]}) == ["a: stored [1], derived [1, 2]"]


def test_a_run_that_a_merge_has_moved_is_derived_again_in_its_new_place(copy: Path) -> None:
    """The finished run stands on one branch, another run 001 of the same seal on the other."""

    def git(*words: str, check: bool = True) -> None:
        subprocess.run(["git", "-C", str(copy), "-c", "user.name=t", "-c", "user.email=t@t", *words], check=check)

    prereg, reports = copy / "prereg", copy / "reports"
    done = {path: path.read_bytes() for path in (prereg / "ledger.jsonl", prereg / "ledger.head")}
    sealed = Ledger(prereg).entries()[0].entry
    reports.rename(copy / "kept")
    for path in done:
        path.unlink()
    Ledger(prereg).append(sealed.kind, sealed.gate, dict(sealed.body), Stamp(sealed.at, sealed.by))
    assert done[prereg / "ledger.jsonl"].startswith((prereg / "ledger.jsonl").read_bytes())
    git("init", "-q", "-b", "main")
    git("add", "prereg")
    git("commit", "-qm", "sealed")
    git("checkout", "-qb", "other")
    for path, data in done.items():
        path.write_bytes(data)
    (copy / "kept").rename(reports)
    git("add", "prereg", "reports")
    git("commit", "-qm", "run there")
    git("checkout", "-q", "main")
    Ledger(prereg).append("run", "small", {"run": 1, "seal": sealed.body["seal"]}, Stamp("2000-01-01", "b"))
    git("add", "prereg")
    git("commit", "-qm", "run here")
    git("merge", "other", check=False)

    merged = gates("ledger", "merge", "--workspace", copy)
    assert merged.returncode == 0, merged.stderr
    assert "small run 001 of the other branch is now run 002" in merged.stdout
    status, found = verified(copy)
    assert found["breaks"] == []
    assert found["not_derived"] == ["run 1 of small is not finished"]
    assert (status, found["runs"], found["records"]) == (3, 2, 7)
    path = reports / "small" / "002" / "verdict.json"
    path.write_bytes(path.read_bytes().replace(b'"PASS"', b'"FAIL"', 1))
    assert verified(copy)[0] == 5


def test_a_forged_workspace_that_is_signed_again_is_known_by_trust_from_outside_alone(
    copy: Path, tmp_path: Path
) -> None:
    ann, mallory = make_key(tmp_path, "ann"), make_key(tmp_path, "mallory")
    listed = allowed(tmp_path, ann)
    rebuild(copy / "prereg", ann)
    honest = gates("verify", copy, "--allowed-signers", listed)
    assert honest.returncode == 0, honest
    assert f"5 records are signed by ann@example.org, as {listed} lists" in honest.stdout

    shutil.rmtree(copy / "prereg" / "signatures")
    entries = Ledger(copy / "prereg").entries()
    for name in ("ledger.jsonl", "ledger.head"):
        (copy / "prereg" / name).unlink()
    for stored in entries:
        stamp = Stamp(stored.entry.at, stored.entry.by, mallory)
        Ledger(copy / "prereg").append(stored.entry.kind, stored.entry.gate, dict(stored.entry.body), stamp)
    alone = gates("verify", copy)
    assert alone.returncode == 0
    assert "5 records are signed by a key this workspace itself lists: integrity, not identity (SHA256:" in alone.stdout
    assert "ann@" not in alone.stdout
    asked = gates("verify", copy, "--allowed-signers", listed)
    assert asked.returncode == 5
    assert f"BROKEN: 5 records are signed by a key that {listed} does not trust" in asked.stdout


def test_an_attached_proof_is_hashed_and_not_checked(copy: Path) -> None:
    seal_file = next((copy / "prereg" / "seals").glob("*.json"))
    proof = seal_file.with_name(f"{seal_file.stem}.proof.ots")
    proof.write_bytes(b"a time stamp")
    (proof.parent / "other.proof.tsr").write_bytes(b"")
    status, found = verified(copy)
    assert status == 0
    assert set(found["not_checked"]) == {
        f"{proof}: a proof attached to seal {seal_file.stem}, not checked; SHA-256 {sha256(b'a time stamp')}",
        f"{proof.parent}/other.proof.tsr: a proof attached to no seal of this ledger, not checked; "
        f"SHA-256 {sha256(b'')}",
    }


def test_an_adapter_is_known_by_its_bytes_alone(copy: Path, tmp_path: Path) -> None:
    sealed = copy / "prereg" / "demo" / "adapters" / "lv-bronte-e12.gguf"
    renamed = Path(shutil.copy(sealed, tmp_path / "final.gguf"))
    known = gates("verify", copy, "--adapter", renamed)
    assert known.returncode == 3
    outcome = json.loads((copy / "reports/small/001/verdict.json").read_bytes())["candidates"]["e12"]["outcome"]
    assert "this adapter is e12 of small, sealed " in known.stdout
    assert f": run 001: {outcome}\n" in known.stdout
    assert "nobody has signed these bytes off" in known.stdout

    renamed.write_bytes(renamed.read_bytes()[:-1] + b"?")
    other = gates("verify", copy, "--adapter", renamed, "--json")
    assert other.returncode == 1
    assert json.loads(other.stdout)["adapter"]["matches"] == []

    (copy / "prereg" / "ledger.head").unlink()
    assert gates("verify", copy, "--adapter", sealed).returncode == 5


def test_an_adapter_that_differs_in_one_of_its_files_is_told_apart(tmp_path: Path) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (adapter / name).write_bytes(name.encode())
    here = {path.name: sha256(path.read_bytes()) for path in adapter.iterdir()}

    def seal_it(files: dict[str, str] | None) -> None:
        identity = AdapterIdentity(files=files, card=None)
        write_seal(tmp_path / "prereg", seal(binding=binding(adapters={"one": identity})))

    seal_it(here | {"adapter_model.safetensors": HASH})
    found = identify(tmp_path, adapter)
    assert found.exit_code == 1
    differs = f'adapter_model.safetensors: sealed "{HASH}", now "'
    assert found.near[0].startswith(f"demo, one, sealed 2026-01-01T00:00:00+00:00: {differs}")
    seal_it(here)
    assert identify(tmp_path, adapter).exit_code == 3
    seal_it(None)
    assert "demo, one: sealed by its model card alone, no file can be compared" in identify(tmp_path, adapter).near


def test_an_empty_record_is_no_proof(tmp_path: Path) -> None:
    (tmp_path / "prereg").mkdir()
    ended = gates("verify", tmp_path)
    assert (ended.returncode, "nothing is recorded here" in ended.stdout) == (3, True)


def test_another_versions_wording_of_a_report_is_no_break(
    made_run: Path, made_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update that words reports otherwise must not call honest records tampered with, nor whole."""
    monkeypatch.setenv("GATES_CACHE", str(made_cache))
    workspace = shutil.copytree(made_run, tmp_path / "work")
    report = workspace / "reports/small/001/report.md"
    monkeypatch.setattr("gates.flow.verifying_run.markdown", lambda *_, **__: "in other words")
    same = gates("verify", workspace)
    assert (same.returncode, f"{report}: not the report of these measurements" in same.stdout) == (5, True), same
    monkeypatch.setattr("gates.record.body.__version__", "9.9")
    later = gates("verify", workspace)
    assert (later.returncode, f"{report}: worded by gates {__version__}, not by 9.9" in later.stdout) == (3, True), (
        later
    )
    report.write_text("forged", "utf-8")
    forged = gates("verify", workspace)
    assert (forged.returncode, f"{report}: SHA-256 is" in forged.stdout) == (5, True), forged
