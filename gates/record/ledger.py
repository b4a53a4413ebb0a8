"""The ledger: the append-only, hash-chained list of every seal, run and verdict of a workspace.

One canonical JSON line a record. The hash of a record is the SHA-256 of its line as stored; `previous` names the
hashes of all records that had no successor when it was written, so that two branches can be joined without rewriting
either. A head file beside the ledger catches a cut tail. What the chain cannot catch alone: a writer who rebuilds
ledger and head together; commit both, so that others hold the head.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue

from gates.errors import RecordError, TamperedError
from gates.record.files import append_line, cut_torn_line, locked, replace, write_once
from gates.record.signing import public_key, sign, signature_path
from gates.records import Record, Sha256, canonical, sha256

Kind = Literal["seal", "run", "session", "spoiled", "verdict"]


class Entry(Record):
    """One line of the ledger: what happened, when (UTC), by whom, to which gate; `body` depends on `kind`."""

    schema_: Literal["gates.ledger/1"] = Field(default="gates.ledger/1", alias="schema")
    previous: tuple[Sha256, ...]
    kind: Kind
    at: str
    by: str
    gate: str
    body: dict[str, JsonValue]


class Head(Record):
    """Where the ledger ended when it was last written."""

    schema_: Literal["gates.ledger.head/1"] = Field(default="gates.ledger.head/1", alias="schema")
    head: tuple[Sha256, ...]
    records: int


@dataclass(frozen=True)
class Stored:
    """An entry and the hash of its line."""

    sha256: str
    entry: Entry

    @property
    def line(self) -> bytes:
        """The line as it stands in the ledger: what its hash and its signature are over."""
        return canonical(self.entry.as_json())


@dataclass(frozen=True)
class Stamp:
    """When and by whom something is written into the ledger, and the SSH key that signs it, if any does."""

    at: str
    by: str
    key: Path | None = None


class Ledger:
    """The ledger of the workspace folder `prereg`."""

    def __init__(self, prereg: Path) -> None:
        self.prereg = prereg
        self.path = prereg / "ledger.jsonl"
        self.head_path = prereg / "ledger.head"
        self._lock = prereg / ".ledger.lock"

    def entries(self) -> tuple[Stored, ...]:
        """Every record in file order, the chain checked. Raises TamperedError naming file, line and break."""
        lines = self.path.read_bytes().split(b"\n") if self.path.exists() else [b""]
        stored = tuple(self._checked(lines[:-1]))
        self._check_head(stored, torn=bool(lines[-1]))
        return stored

    def heads(self) -> tuple[Sha256, ...]:
        """Hashes of the records that no later record follows."""
        return heads(self.entries())

    def append(self, kind: Kind, gate: str, body: dict[str, JsonValue], stamp: Stamp) -> Stored:
        """Append a record after all current heads, under a lock, on the disk before returning.

        Signed when the stamp has a key. Raises UsageError when that key cannot sign.
        """
        if stamp.key is not None:
            body = {**body, "signing_key": public_key(stamp.key)}
        with locked(self._lock, wait=True, busy="the ledger is being written"):
            stored = self.entries()
            cut_torn_line(self.path)
            entry = Entry(previous=heads(stored), kind=kind, at=stamp.at, by=stamp.by, gate=gate, body=body)
            line = canonical(entry.as_json())
            new = Stored(sha256(line), entry)
            if stamp.key is not None:
                # Before the line: a record that names a key is never without its signature, whenever a writer dies.
                write_once(signature_path(self.prereg, new.sha256), sign(line, stamp.key))
            append_line(self.path, line)
            replace(
                self.head_path, canonical(Head(head=heads((*stored, new)), records=len(stored) + 1).as_json()) + b"\n"
            )
            return new

    def _checked(self, lines: list[bytes]) -> list[Stored]:
        stored: list[Stored] = []
        known: set[str] = set()
        for number, line in enumerate(lines, start=1):
            place = f"{self.path}:{number}"
            try:
                straight = canonical(json.loads(line)) == line
            except (ValueError, RecursionError):
                straight = False
            if not straight:
                raise self._broken(f"{place}: the line is not the canonical JSON it was written as")
            name = sha256(line)
            try:
                entry = Entry.parse(line, where=place)
            except RecordError:
                if not any(name.encode() in other for other in (*lines, self._head_bytes())):
                    raise self._broken(f"{place}: the record was changed: nothing else knows its hash") from None
                raise
            if name in known:
                raise self._broken(f"{place}: the record stands in the ledger twice")
            if bool(entry.previous) == (number == 1) or not known.issuperset(entry.previous):
                raise self._broken(f"{place}: it does not follow the records before it; one was removed or changed")
            known.add(name)
            stored.append(Stored(name, entry))
        return stored

    def _check_head(self, stored: tuple[Stored, ...], *, torn: bool) -> None:
        data = self._head_bytes()
        if not data:
            # A writer killed between the first line and its head leaves one record and no head.
            if len(stored) > 1:
                raise self._broken(f"{self.head_path} is missing")
            return
        head = Head.parse(data, where=str(self.head_path))
        # A writer killed after its line and before the head leaves a ledger that is ahead of its head: no break.
        if len(stored) < head.records or heads(stored[: head.records]) != head.head:
            cut = " (its last line is unfinished)" if torn else ""
            raise self._broken(
                f"{self.head_path} knows {head.records} records and another end than {self.path}, "
                f"which holds {len(stored)}{cut}"
            )

    def _head_bytes(self) -> bytes:
        return self.head_path.read_bytes() if self.head_path.exists() else b""

    @staticmethod
    def _broken(message: str) -> TamperedError:
        return TamperedError(message, next_step="compare prereg/ with the last commit and restore what was changed")


def heads(stored: tuple[Stored, ...]) -> tuple[str, ...]:
    """Hashes of the records that no later record names as previous, sorted."""
    followed = {name for record in stored for name in record.entry.previous}
    return tuple(sorted(record.sha256 for record in stored if record.sha256 not in followed))
