"""SSH signatures of ledger records, made and checked by `ssh-keygen -Y` in a namespace of their own.

A signature is over a record's canonical bytes, its ledger line, and lies in prereg/signatures/RECORD.sig. The record
names its public key (`signing_key` in its body), so that a signature cannot be taken away unseen. Whose key that is,
the workspace cannot say: anybody can make a key. Trust comes from outside, as an allowed-signers file (ssh-keygen(1)).
To sign: give the key to the `Stamp` with which a record is appended.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import hashlib
import re
import subprocess
import tempfile
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from gates.errors import RecordError, TamperedError, UsageError

NAMESPACE = "voice-gates-ledger"
"""What the signatures are for: one made for git or for mail never counts here, nor ours there."""

_PUBLIC = re.compile(r"([a-z0-9@.-]{1,64}) ([A-Za-z0-9+/]{16,16384}={0,2})")
_LARGEST = 65_536


def signature_path(prereg: Path, record: str) -> Path:
    """Where the signature of the record of this hash lies."""
    return prereg / "signatures" / f"{record}.sig"


def public_key(key: Path) -> str:
    """The public key (`ssh-ed25519 AAAA...`, without its comment) of a key file, private or public.

    Raises UsageError when there is none.
    """
    public = key if key.suffix == ".pub" else key.with_name(f"{key.name}.pub")
    if public.is_file():
        text = public.read_text("utf-8", "replace")
    else:
        text = _keygen(["-y", "-f", str(key)], b"", key).decode("utf-8", "replace")
    found = _PUBLIC.match(text)
    if found is None:
        raise UsageError(f"{public}: this is no SSH public key", next_step="make a key: `ssh-keygen -t ed25519`")
    return found[0]


def fingerprint(public: str) -> str:
    """How SSH names a public key: `SHA256:...`. Raises TamperedError for what is no public key."""
    found = _PUBLIC.fullmatch(public)
    try:
        blob = base64.b64decode(found[2] if found else "", validate=True)
    except binascii.Error:
        blob = b""
    if not blob:
        raise TamperedError(f"{public[:80]!r} is no SSH public key, and a record names it as one")
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def sign(line: bytes, key: Path) -> bytes:
    """The armoured signature of a ledger line by a private key, or by an agent that holds a public key's other half.

    Raises UsageError when it cannot be made.
    """
    return _keygen(["-Y", "sign", "-f", str(key), "-n", NAMESPACE], line, key)


# A ledger is verified again and again, and its records never change: each signature is worth one process.
@lru_cache(maxsize=1 << 12)
def holds(line: bytes, armoured: bytes, public: str) -> bool:
    """Whether a signature of `line` was made by the holder of `public`; who that is stays open.

    Its armour must be the very bytes that ssh-keygen writes. Raises TamperedError for what is no public key.
    """
    fingerprint(public)
    if not _as_written(armoured):
        return False
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "listed"
        listed.write_text(f"signer {public}\n", "utf-8")
        return _verified(line, armoured, listed, "signer", None)


def trusted(line: bytes, armoured: bytes, allowed: Path, at: str) -> str | None:
    """The principal of an allowed-signers file whose key made a signature of `line`; None where it lists none.

    Limits of time and namespace count, line by line: a key may stand in one line for git and in another for us. `at` is
    when the signature is taken to have been made; a key that has leaked is to be taken off the list.
    """
    try:
        when = datetime.fromisoformat(at).astimezone().strftime("%Y%m%d%H%M%S")
    except (ValueError, OverflowError):
        return None
    with tempfile.TemporaryDirectory() as folder:
        stored, one = _stored(Path(folder), armoured), Path(folder) / "listed"
        for listed in allowed.read_bytes().removeprefix(codecs.BOM_UTF8).splitlines():
            if not listed.strip() or listed.lstrip().startswith(b"#") or not _may_list(listed, armoured):
                continue
            one.write_bytes(listed + b"\n")
            found = _run(["-Y", "find-principals", "-s", str(stored), "-f", str(one), f"-Overify-time={when}"], b"")
            names = found.stdout.decode("utf-8", "replace").splitlines() if found.returncode == 0 else []
            for name in filter(None, names):
                if _verified(line, armoured, one, name, when):
                    return name
    return None


def _may_list(listed: bytes, armoured: bytes) -> bool:
    """Whether a line of an allowed-signers file holds a signature's key, or an authority that may have certified it.

    A signature begins with 10 bytes that say what it is, then the key, after its length in 4 bytes (PROTOCOL.sshsig).
    """
    try:
        blob = base64.b64decode(b"".join(armoured.split(b"\n")[1:-2]), validate=True)
    except binascii.Error:
        return False
    key = blob[14 : 14 + int.from_bytes(blob[10:14], "big")]
    return base64.b64encode(key) in listed.split() or b"cert-authority" in listed


def _as_written(armoured: bytes) -> bool:
    """Whether the armour is as ssh-keygen writes it, which reads more than that: a changed byte is to be found."""
    begin, *middle, end, rest = armoured.split(b"\n") if armoured.count(b"\n") > 1 else [b""] * 3
    try:
        blob = base64.b64encode(base64.b64decode(b"".join(middle), validate=True))
    except binascii.Error:
        return False
    wrapped = [blob[start : start + 70] for start in range(0, len(blob), 70)]
    return (begin, middle, end, rest) == (
        b"-----BEGIN SSH SIGNATURE-----",
        wrapped,
        b"-----END SSH SIGNATURE-----",
        b"",
    )


def _verified(line: bytes, armoured: bytes, allowed: Path, who: str, when: str | None) -> bool:
    at = [] if when is None else [f"-Overify-time={when}"]
    with tempfile.TemporaryDirectory() as folder:
        stored = _stored(Path(folder), armoured)
        asked = ["-Y", "verify", "-f", str(allowed), "-I", who, "-n", NAMESPACE, "-s", str(stored), *at]
        return _run(asked, line).returncode == 0


def _stored(folder: Path, armoured: bytes) -> Path:
    path = folder / "record.sig"
    path.write_bytes(armoured[:_LARGEST])
    return path


def _keygen(words: list[str], data: bytes, key: Path) -> bytes:
    if not key.is_file():
        raise UsageError(f"{key}: there is no such key file", next_step="name an SSH key, such as ~/.ssh/id_ed25519")
    ended = _run(words, data)
    if ended.returncode != 0:
        why = " ".join(ended.stderr.decode("utf-8", "replace").split())
        raise UsageError(
            f"{key}: ssh-keygen cannot use this key: {why}",
            next_step="name a private key, or a public one whose other half your SSH agent holds",
        )
    return ended.stdout


def _run(words: list[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(  # noqa: S603 - fixed words and paths, no shell
            ["ssh-keygen", *words],  # noqa: S607 - the user's own OpenSSH
            input=data,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise RecordError(
            "ssh-keygen is not installed, and it makes and checks signatures", next_step="install OpenSSH 8.7 or later"
        ) from None
