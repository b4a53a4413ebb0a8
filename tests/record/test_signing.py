"""Signatures of ledger records: by ssh-keygen, over the line, in a namespace of their own, trusted from outside."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gates.errors import TamperedError, UsageError
from gates.record.ledger import Ledger, Stamp
from gates.record.signing import NAMESPACE, fingerprint, holds, public_key, sign, signature_path, trusted

AT = "2026-01-01T00:00:00+00:00"


def make_key(folder: Path, name: str = "key") -> Path:
    path = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "a@b", "-f", path], check=True)
    return path


def allowed(folder: Path, key: Path, who: str = "ann@example.org", options: str = "") -> Path:
    path = folder / "allowed"
    path.write_text(f"# who may sign\n{who} {options} {key.with_suffix('.pub').read_text()}", "utf-8")
    return path


def test_a_record_is_signed_over_its_line_as_ssh_keygen_itself_checks(tmp_path: Path) -> None:
    key, ledger = make_key(tmp_path), Ledger(tmp_path / "prereg")
    stored = ledger.append("seal", "demo", {"seal": "x"}, Stamp(AT, "ann", key))
    assert stored.entry.body["signing_key"] == public_key(key)
    assert "a@b" not in ledger.path.read_text("utf-8")
    line = ledger.path.read_bytes().splitlines()[0]
    assert stored.line == line
    path = signature_path(ledger.prereg, stored.sha256)
    words = ["-Y", "verify", "-f", allowed(tmp_path, key), "-I", "ann@example.org", "-n", NAMESPACE, "-s", path]
    told = subprocess.run(["ssh-keygen", *words], input=line, capture_output=True, check=True)
    assert fingerprint(public_key(key)).encode() in told.stdout


def test_only_these_bytes_this_key_and_this_namespace_hold(tmp_path: Path) -> None:
    key, other = make_key(tmp_path), make_key(tmp_path, "other")
    armoured = sign(b"line", key)
    assert holds(b"line", armoured, public_key(key))
    assert not holds(b"lime", armoured, public_key(key))
    assert not holds(b"line", armoured, public_key(other))
    assert not holds(b"line", b"", public_key(key))
    git = subprocess.run(
        ["ssh-keygen", "-Y", "sign", "-f", key, "-n", "git"], input=b"line", capture_output=True, check=True
    )
    assert not holds(b"line", git.stdout, public_key(key))


def test_trust_is_what_the_list_from_outside_says(tmp_path: Path) -> None:
    key, other = make_key(tmp_path), make_key(tmp_path, "other")
    armoured = sign(b"line", key)
    assert trusted(b"line", armoured, allowed(tmp_path, key), AT) == "ann@example.org"
    assert trusted(b"lime", armoured, allowed(tmp_path, key), AT) is None
    assert trusted(b"line", armoured, allowed(tmp_path, other), AT) is None
    assert trusted(b"line", armoured, allowed(tmp_path, key, options='namespaces="git"'), AT) is None
    assert trusted(b"line", armoured, allowed(tmp_path, key, options='valid-before="20251231"'), AT) is None
    assert (
        trusted(b"line", armoured, allowed(tmp_path, key, options='valid-before="20270101"'), AT) == "ann@example.org"
    )
    for never in ("yesterday", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"):
        assert trusted(b"line", armoured, allowed(tmp_path, key), never) is None
    # One key in a line for git and in one for this: each line stands for itself.
    listed = allowed(tmp_path, key, options='namespaces="git"')
    listed.write_text(listed.read_text("utf-8") + f"ann@here {key.with_suffix('.pub').read_text('utf-8')}", "utf-8")
    assert trusted(b"line", armoured, listed, AT) == "ann@here"


def test_a_public_key_file_needs_its_other_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    key = make_key(tmp_path)
    assert public_key(key.with_suffix(".pub")) == public_key(key)
    key.unlink()
    with pytest.raises(UsageError, match=r"key\.pub: ssh-keygen cannot use this key"):
        sign(b"line", key.with_suffix(".pub"))


def test_the_public_half_is_found_without_its_file(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    there = public_key(key)
    key.with_suffix(".pub").unlink()
    assert public_key(key) == there


def test_another_keys_public_half_is_found_out_before_anything_is_written(tmp_path: Path) -> None:
    key, other = make_key(tmp_path), make_key(tmp_path, "other")
    key.with_suffix(".pub").write_bytes(other.with_suffix(".pub").read_bytes())
    ledger = Ledger(tmp_path / "prereg")
    with pytest.raises(UsageError, match="doesn't match private"):
        ledger.append("seal", "demo", {}, Stamp(AT, "ann", key))
    assert ledger.entries() == ()


def test_every_flipped_byte_of_a_signature_is_caught(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    public, armoured = public_key(key), sign(b"line", key)
    # ssh-keygen itself overlooks some of these: it reads any white space, say, as a line's end.
    for place in range(len(armoured)):
        assert not holds(b"line", armoured[:place] + bytes([armoured[place] ^ 1]) + armoured[place + 1 :], public), (
            place
        )
    assert not holds(b"line", armoured + b"\n", public)


@pytest.mark.parametrize("text", ["", "no key at all", "ssh-ed25519 short"])
def test_what_is_no_key_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.pub"
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError, match=r"x\.pub: this is no SSH public key"):
        public_key(path)
    with pytest.raises(UsageError, match="no such key file"):
        sign(b"line", tmp_path / "nowhere")


@pytest.mark.parametrize(
    "public", ["", "signer ssh-ed25519 AAAA", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5\nmallory ssh-rsa AAAA"]
)
def test_a_public_key_of_a_hostile_record_smuggles_no_line_into_a_list(public: str) -> None:
    with pytest.raises(TamperedError, match="is no SSH public key"):
        holds(b"line", b"", public)
