"""The ledger: the append-only, hash-chained list of every seal, run and verdict of a workspace.

One canonical JSON line a record, written under a lock and on the disk before anybody relies on it; `gates.record.chain`
says what holds the lines together. A head file beside the ledger catches a cut tail. What the chain cannot catch
alone: a writer who rebuilds ledger and head together; commit both, so that others hold the head.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from gates.record.chain import Entry, Head, Kind, Source, Stored, head_bytes, heads, read, stored
from gates.record.files import append_line, cut_torn_line, locked, replace, stored_bytes, write_once
from gates.record.signing import public_key, sign, signature_path
from gates.records import Sha256

__all__ = ["Entry", "Kind", "Ledger", "Stamp", "Stored", "heads"]


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

    def source(self) -> Source:
        """The bytes of ledger and head as they lie on the disk, also while another process writes there."""
        # The head first: a record that is added in between leaves a ledger ahead of its head, which is no break.
        head = stored_bytes(self.head_path)
        return Source(stored_bytes(self.path), head, str(self.path), str(self.head_path))

    def entries(self) -> tuple[Stored, ...]:
        """Every record in file order, the chain checked. Raises TamperedError naming file, line and break."""
        return read(self.source())

    def heads(self) -> tuple[Sha256, ...]:
        """Hashes of the records that no later record follows: one, or none in an empty ledger."""
        return heads(self.entries())

    def append(self, kind: Kind, gate: str, body: dict[str, JsonValue], stamp: Stamp) -> Stored:
        """Append a record after the ledger's end, under a lock, on the disk before returning.

        Signed when the stamp has a key. Raises UsageError when that key cannot sign.
        """
        with self.writing():
            return self.append_held(kind, gate, body, stamp)

    def append_held(self, kind: Kind, gate: str, body: dict[str, JsonValue], stamp: Stamp) -> Stored:
        """As `append`, where what is said rests on the ledger as it stands: the caller is `writing` and has read it."""
        known = self.entries()
        cut_torn_line(self.path)
        entry = Entry(previous=heads(known), kind=kind, at=stamp.at, by=stamp.by, gate=gate, body=body)
        new = self.signed(entry, stamp)
        append_line(self.path, new.line)
        self._point((*known, new))
        return new

    def writing(self) -> AbstractContextManager[None]:
        """Hold the ledger against other writers."""
        return locked(self._lock, wait=True, busy="the ledger is being written")

    def signed(self, entry: Entry, stamp: Stamp) -> Stored:
        """An entry as it is to be stored, and its signature on the disk when the stamp has a key."""
        if stamp.key is None:
            return stored(entry)
        new = stored(entry.model_copy(update={"body": {**entry.body, "signing_key": public_key(stamp.key)}}))
        # Before the line: a record that names a key is never without its signature, whenever a writer dies.
        write_once(signature_path(self.prereg, new.sha256), sign(new.line, stamp.key))
        return new

    def rewrite(self, known: Sequence[Stored], records: Sequence[Stored]) -> None:
        """Put joined lines in place of those of one branch, in one step. The caller is `writing`.

        First the head is pointed at that branch, for git may have mixed it with another.
        """
        self._point(known)
        replace(self.path, b"".join(record.line + b"\n" for record in records))
        self._point(records)

    def _point(self, records: Sequence[Stored]) -> None:
        replace(self.head_path, head_bytes(Head(head=heads(records), records=len(records))))
