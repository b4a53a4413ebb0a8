"""Who vouches for which records: integrity without a list from outside, identity with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gates.record.ledger import Ledger, Stamp
from gates.record.signing import fingerprint, public_key, signature_path
from gates.record.vouching import Vouched, trusted_signers, vouch
from tests.record.test_signing import AT, allowed, make_key


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return make_key(tmp_path)


def book(tmp_path: Path, *keys: Path | None) -> Ledger:
    ledger = Ledger(tmp_path / "prereg")
    for number, key in enumerate(keys, start=1):
        ledger.append("run", "demo", {"run": number}, Stamp(AT, "ann", key))
    return ledger


def vouched(ledger: Ledger, allowed: Path | None = None) -> Vouched:
    return vouch(ledger.prereg, ledger.entries(), allowed)


def test_without_a_list_a_signature_is_integrity_and_names_nobody(tmp_path: Path, key: Path) -> None:
    found = vouched(book(tmp_path, key, None, key))
    print_ = fingerprint(public_key(key))
    assert found.told == [
        f"2 records are signed by a key this workspace itself lists: integrity, not identity ({print_})",
        "1 of 3 records carry no signature",
    ]
    assert (found.breaks, found.open) == ([], [])


def test_a_trusted_signature_covers_what_its_record_follows_and_no_more(tmp_path: Path, key: Path) -> None:
    ledger, listed = book(tmp_path, None, key, None), allowed(tmp_path, key)
    found = vouched(ledger, listed)
    assert (
        found.told[0] == f"1 records are signed by ann@example.org, as {listed} lists ({fingerprint(public_key(key))})"
    )
    last = ledger.entries()[-1]
    assert found.open == [
        f"1 records are covered by no signature that {listed} trusts; the first is {last.sha256} (run of demo)"
    ]
    assert found.breaks == []


def test_a_key_that_the_list_does_not_trust_is_a_break_unless_a_trusted_one_followed(tmp_path: Path, key: Path) -> None:
    other = make_key(tmp_path, "other")
    listed = allowed(tmp_path, key)
    ledger = book(tmp_path, other)
    sentence = f"1 records are signed by a key that {listed} does not trust ({fingerprint(public_key(other))})"
    assert vouched(ledger, listed).breaks == [sentence]
    ledger.append("run", "demo", {"run": 2}, Stamp(AT, "ann", key))
    found = vouched(ledger, listed)
    assert (found.breaks, found.open) == ([], [])
    assert sentence in found.told


@pytest.mark.parametrize("spoil", ["missing", "changed", "another record's"])
def test_a_signature_that_does_not_hold_is_a_break_and_its_file_is_named(tmp_path: Path, key: Path, spoil: str) -> None:
    ledger = book(tmp_path, key, key)
    one, two = (signature_path(ledger.prereg, record.sha256) for record in ledger.entries())
    if spoil == "missing":
        two.unlink()
    else:
        two.write_bytes(one.read_bytes() if spoil == "another record's" else b"\xff")
    for listed in (None, allowed(tmp_path, key)):
        (sentence,) = vouched(ledger, listed).breaks
        assert sentence.startswith(f"{two} (run of demo): ")


@pytest.mark.parametrize("named", [None, 7, "ssh-ed25519 x", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA\nx ssh-rsa AAAA"])
def test_a_record_that_names_no_key_as_its_key_is_a_break(tmp_path: Path, named: object) -> None:
    ledger = Ledger(tmp_path)
    record = ledger.append("run", "demo", {"signing_key": named}, Stamp(AT, "ann"))
    path = signature_path(ledger.prereg, record.sha256)
    path.parent.mkdir()
    path.write_bytes(b"x")
    assert len(vouched(ledger).breaks) == 1


def test_without_ssh_keygen_nothing_signed_counts_as_checked(
    tmp_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = book(tmp_path, key)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = vouched(ledger)
    assert found.breaks == []
    assert "ssh-keygen is not installed" in found.open[0]


def test_a_key_of_former_times_signs_nothing_that_follows_later_records(tmp_path: Path) -> None:
    """A thief dates a record as they like; what it follows was there before it."""
    old, new = make_key(tmp_path, "old"), make_key(tmp_path, "new")
    public = {key: key.with_suffix(".pub").read_text("utf-8") for key in (old, new)}
    listed = tmp_path / "allowed"
    listed.write_text(f'ann valid-before="20260301" {public[old]}ann valid-after="20260301" {public[new]}', "utf-8")
    ledger = Ledger(tmp_path / "prereg")
    made = [
        ledger.append("run", "demo", {"run": number}, Stamp(at, by, key)).sha256
        for number, (at, by, key) in enumerate(
            [
                ("2026-02-10T00:00:00+00:00", "ann", old),
                ("2026-09-10T00:00:00+00:00", "a stranger", None),
                ("2026-02-10T00:00:00+00:00", "ann, late", old),
                ("2026-04-10T00:00:00+00:00", "ann", new),
                ("2026-02-10T00:00:00+00:00", "thief", old),
                # The same day written otherwise, which as letters comes after April; and no time that can be told.
                ("20260210T000000+00:00", "thief", old),
                ("2026-W06-2", "thief", old),
                ("9999-12-31T23:59:59-23:59", "thief", old),
            ]
        )
    ]
    # A stranger's clock, which nobody signed, proves nothing; what a trusted key signed does.
    found = trusted_signers(ledger.prereg, ledger.entries(), listed)
    assert found == dict.fromkeys((made[0], made[2], made[3]), "ann")
    assert len(vouched(ledger, listed).breaks) == 1
