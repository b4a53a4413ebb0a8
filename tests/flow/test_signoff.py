"""Signing off: what refuses it, what it binds, and that nothing it rests on changes unseen."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import pytest
import yaml

from gates.errors import RefusedError, TamperedError, UsageError
from gates.flow.review import Reading
from gates.flow.signoff import Decided, Signed, sign_off
from gates.flow.verifying import verify
from gates.record.ledger import Ledger, Stamp
from gates.record.review import Said
from gates.record.signing import fingerprint, public_key
from gates.record.signoff import signoffs, write_signoff
from gates.records import canonical, sha256
from tests.finished import world_of
from tests.flow.conftest import gates, under_lock

SHIP = Decided(arm="two", decision="ship", reason="reads well")


def make_key(folder: Path, name: str = "key") -> Path:
    folder.mkdir(exist_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    return folder / name


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return make_key(tmp_path / "keys")


def read_all(reading: Reading, arm: str, by: str, mark: str = "ok") -> None:
    for name in reading.needed(arm):
        reading.mark(name, Said(mark=mark), world_of(reading.cache, by))  # type: ignore[arg-type]


def signed(reading: Reading, key: Path, by: str = "ann", decided: Decided = SHIP) -> Signed:
    return sign_off(reading, decided, world_of(reading.cache, by, key))


def test_nothing_unread_is_signed_for(reading: Reading, key: Path) -> None:
    with pytest.raises(RefusedError, match=r"ann has not read \d+ of \d+ required items"):
        signed(reading, key)
    read_all(reading, "two", "bob")
    with pytest.raises(RefusedError, match="ann has not read"):
        signed(reading, key)
    names = list(reading.needed("two"))
    for name in names[:-1]:
        reading.mark(name, Said(mark="ok"), world_of(reading.cache, "ann"))
    with pytest.raises(
        RefusedError, match=f"ann has not read 1 of {len(names)} required items, the first {names[-1][:10]}"
    ):
        signed(reading, key)
    reading.mark(names[-1], Said(mark="ok"), world_of(reading.cache, "ann"))
    made = signed(reading, key)
    assert made.release.complete
    assert signed(reading, key) == made, "given again, as after an interruption, it is the same sign-off"
    assert [s.entry.kind for s in Ledger(reading.run.workspace / "prereg").entries()].count("signoff") == 1


def test_nothing_is_entered_between_what_a_signer_knows_and_the_signature(
    reading: Reading, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_all(reading, "two", "ann")
    lock = reading.run.workspace / "prereg" / ".ledger.lock"
    seen = under_lock(monkeypatch, "gates.flow.signoff.known_then", lock)
    written = under_lock(monkeypatch, "gates.flow.signoff.write_signoff", lock)
    signed(reading, key)
    assert (seen, written) == ([False, True], [True])


def test_what_does_not_pass_ships_by_a_stated_waiver_only(reading: Reading, key: Path) -> None:
    read_all(reading, "one", "ann")
    with pytest.raises(RefusedError, match="one cannot ship as it is: the verdict is INVALID"):
        signed(reading, key, decided=Decided(arm="one", decision="ship", reason="please"))
    for reason in ("  ", "x" * 2001, "\udcff"):
        words = ("--arm", "one", "--decision", "waive", "--reason", reason, "--key", key, "--by", "ann")
        refused = gates("signoff", reading.run.store.folder, *words)
        assert refused.returncode == 2
        assert "--reason: String should have at" in refused.stderr or "unicode" in refused.stderr
    waived = signed(reading, key, decided=Decided(arm="one", decision="waive", reason="an empty text is no harm"))
    assert waived.release.complete
    assert "ships with a waiver: an empty text is no harm" in waived.readme
    assert "**! INVALID**" in waived.readme
    assert any(c.startswith("validity: INVALID: 1 of 24 generations are empty") for c in waived.signoff.caveats)
    assert not (signed(reading, key, decided=Decided(arm="one", decision="hold", reason="no"))).release.complete


def test_a_bad_mark_stands_against_shipping_and_a_waiver_of_nothing_is_none(reading: Reading, key: Path) -> None:
    read_all(reading, "two", "ann")
    with pytest.raises(UsageError, match="nothing to waive"):
        signed(reading, key, decided=Decided(arm="two", decision="waive", reason="why not"))
    name = next(iter(reading.needed("two")))
    reading.mark(name, Said(mark="bad", note="that is her sentence"), world_of(reading.cache, "ann"))
    with pytest.raises(RefusedError, match="1 items are marked bad"):
        signed(reading, key)
    made = signed(reading, key, decided=Decided(arm="two", decision="waive", reason="it is out of copyright"))
    assert [doubt.note for doubt in made.signoff.doubts] == ["that is her sentence"]
    assert "marked bad by ann: that is her sentence" in made.readme


def test_it_binds_everything_and_prints_what_goes_with_the_adapter(reading: Reading, key: Path) -> None:
    read_all(reading, "two", "ann")
    made = signed(reading, key)
    one, run = made.signoff, reading.run
    folder = run.store.folder
    assert one.seal == sha256(run.sealed.path.read_bytes())
    assert one.gate_sha256 == run.seal.gate.digest()
    assert one.generations_sha256 == sha256((folder / "generations.jsonl").read_bytes())
    assert one.measurements_sha256 == sha256((folder / "measurements.json").read_bytes())
    assert one.verdict_sha256 == sha256((folder / "verdict.json").read_bytes())
    assert one.review_sha256 == sha256((folder / "review.jsonl").read_bytes())
    assert one.list_sha256 == reading.list_sha256
    assert one.serving.adapter.files == {"one.gguf": sha256(b"adapter")}
    assert (one.serving.base["root"], one.serving.server_version) == ("org/carrier", "0.9.0")
    assert one.serving.sampling == run.seal.gate.sampling
    assert one.key == fingerprint(public_key(key))
    assert made.path.read_bytes() == canonical(one.as_json())
    assert "two memorisation" not in made.readme
    assert "1 of 24 texts (0.042) repeat 8 words in a row of the training text" in made.readme
    assert one.seal in made.readme
    assert made.compose == "--lora-modules voice-two=/adapters/one.gguf"
    assert yaml.safe_load(made.alias)[0]["litellm_params"]["model"] == "hosted_vllm/voice-two"
    found = verify(run.workspace, reading.cache)
    assert (found.breaks, found.not_derived) == ((), ())
    assert any("2 records are signed" in sentence for sentence in found.signatures)


def test_other_adapter_bytes_are_not_signed(reading: Reading, key: Path) -> None:
    read_all(reading, "two", "ann")
    (reading.run.workspace / "prereg" / "one.gguf").write_bytes(b"another")
    with pytest.raises(RefusedError, match="not the bytes that were sealed and judged as two"):
        signed(reading, key)


@pytest.mark.slow
def test_every_changed_byte_of_what_was_signed_is_found(reading: Reading, key: Path) -> None:
    """Every kind of file of a signed run; bytes sampled."""
    read_all(reading, "two", "ann")
    made = signed(reading, key)
    workspace, folder = reading.run.workspace, reading.run.store.folder
    rng = random.Random(11)
    for path in (
        *(folder / name for name in ("generations.jsonl", "measurements.json", "verdict.json", "review.jsonl")),
        made.path,
        reading.run.sealed.path,
        workspace / "prereg" / "ledger.jsonl",
        *(workspace / "prereg" / "signatures").glob("*.sig"),
    ):
        good = path.read_bytes()
        for place in rng.sample(range(len(good)), 2):
            path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
            found = verify(workspace, reading.cache)
            assert found.exit_code == 5, (path, place)
            assert any(path.name in sentence for sentence in found.breaks), (path, place, found.breaks)
        path.write_bytes(good)


def test_every_byte_of_a_sign_off_counts(reading: Reading, key: Path) -> None:
    read_all(reading, "two", "ann")
    made, workspace = signed(reading, key), reading.run.workspace
    good, ledger = made.path.read_bytes(), Ledger(workspace / "prereg").entries()
    for place in range(len(good)):
        made.path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        with pytest.raises(TamperedError, match=made.path.name):
            signoffs(reading.run.store, ledger)
    made.path.unlink()
    assert any(made.path.name in sentence for sentence in verify(workspace, reading.cache).breaks)


def test_a_sign_off_against_the_rules_is_found_however_well_it_is_signed(reading: Reading, key: Path) -> None:
    """Somebody writes a ship decision for the INVALID candidate past the command, with a good signature."""
    read_all(reading, "one", "ann")
    made = signed(reading, key, decided=Decided(arm="one", decision="waive", reason="an empty text is no harm"))
    forged = made.signoff.model_copy(update={"decision": "ship"})
    write_signoff(reading.run.store, Ledger(reading.run.workspace / "prereg"), forged, Stamp(forged.at, "ann", key))
    found = verify(reading.run.workspace, reading.cache)
    assert any("could not have been made: one cannot ship as it is: the verdict is INVALID" in b for b in found.breaks)
    unsigned = made.signoff.model_copy(update={"reason": "other"})
    write_signoff(reading.run.store, Ledger(reading.run.workspace / "prereg"), unsigned, Stamp(forged.at, "ann"))
    assert any(
        "not signed by the key that it names" in b or "could not" in b
        for b in verify(reading.run.workspace, reading.cache).breaks
    )


def test_the_command_signs_and_the_bytes_are_known(
    reading: Reading, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATES_CACHE", str(reading.cache))
    folder = reading.run.store.folder
    words = [
        "signoff",
        folder,
        "--arm",
        "two",
        "--decision",
        "ship",
        "--reason",
        "reads well",
        "--key",
        key,
        "--by",
        "ann",
    ]
    refused = gates(*words)
    assert refused.returncode == 2
    assert f"gates review {folder} --arm two --by ann" in refused.stderr
    read_all(reading, "two", "ann")
    ended = gates(*words, "--alias", "voice")
    assert ended.returncode == 0, ended.stderr
    assert "two: ship, signed by ann with SHA256:" in ended.stdout
    assert "released, 1 of 1 signatures" in ended.stdout
    assert "caveat: memorisation: 1 of 24 texts" in ended.stdout
    assert "model_name: voice" in ended.stdout
    told = json.loads(gates(*words, "--json").stdout)
    assert told["released"] is True
    assert sha256(Path(told["file"]).read_bytes()) == told["sha256"]
    known = gates("verify", reading.run.workspace, "--adapter", reading.run.workspace / "prereg" / "one.gguf")
    assert known.returncode == 0, known.stdout
    assert "signed off: released, 1 of 1 signatures" in known.stdout
    held = [word if word != "ship" else "hold" for word in words]
    assert gates(*held).returncode == 3
    after = gates("verify", reading.run.workspace, "--adapter", reading.run.workspace / "prereg" / "one.gguf")
    assert after.returncode == 1
    assert "held by ann" in after.stdout
