"""Line files that people add to by and by: marks and votes. Append-only, each line naming the hash of the one before.

A ledger record at the end of each sitting holds the hash of the whole file, so that no line can be changed or dropped
unseen after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from pydantic import Field, JsonValue

from gates.errors import RecordError, TamperedError
from gates.record.body import said
from gates.record.files import append_line, cut_torn_line, locked, stored_bytes
from gates.record.ledger import Kind, Ledger, Stamp, Stored
from gates.records import Record, Sha256, canonical, is_canonical, sha256


class Chained(Record):
    """One line: `previous` is the hash of the line before; when and by whom it was written."""

    previous: Sha256 | None = Field(description="SHA-256 of the line before; null in the first")
    at: str
    by: str


L = TypeVar("L", bound=Chained)


class State(NamedTuple):
    """How many lines, and the SHA-256 of them."""

    lines: int
    sha256: str


def _unknown(_lines: tuple[L, ...]) -> None:
    """Every line is new."""


class Lines(Generic[L]):
    """The lines of `path`, each a record of `kind`; `entered_as` is the kind of the ledger's records of them."""

    def __init__(self, path: Path, kind: type[L], entered_as: Kind) -> None:
        self.path = path
        self._kind, self._entered_as = kind, entered_as

    def read(self, count: int | None = None) -> tuple[L, ...]:
        """The first `count` lines, or all; the chain checked. Raises TamperedError naming file, line and break.

        An unfinished last line, as a killed writer leaves it, is none.
        """
        found: list[L] = []
        previous: str | None = None
        for number, line in enumerate(self._lines()[:count], start=1):
            record = self._parsed(line, f"{self.path}:{number}")
            if record.previous != previous:
                raise TamperedError(
                    f"{self.path}:{number}: it does not follow the line before it; one was removed or changed",
                    next_step="restore the file from its commit",
                )
            previous = sha256(line)
            found.append(record)
        if count is not None and len(found) < count:
            raise TamperedError(f"{self.path}: {len(found)} lines are there, {count} were known")
        return tuple(found)

    def add(self, make: Callable[[str | None], L], known: Callable[[tuple[L, ...]], L | None] = _unknown) -> L:
        """Append what `make` gives for the hash of the line before; it is on the disk when this returns.

        Unless `known` finds it said already among the lines: then that line is given back, and none is added.
        """
        with self._writing():
            there = known(self.read())
            if there is not None:
                return there
            cut_torn_line(self.path)
            lines = self._lines()
            record = make(sha256(lines[-1]) if lines else None)
            append_line(self.path, canonical(record.as_json()))
            return record

    def _writing(self) -> AbstractContextManager[None]:
        return locked(self.path.with_name(f".{self.path.name}.lock"), wait=True, busy="another process writes to it")

    def state(self, count: int | None = None) -> State:
        """How many lines there are, and their hash: of the first `count`, or of all."""
        lines = self._lines()[:count]
        return State(len(lines), sha256(b"".join(line + b"\n" for line in lines)))

    def told(self) -> dict[str, JsonValue]:
        """What else the ledger's record says of the lines so far."""
        return {}

    def enter(self, ledger: Ledger, gate: str, run: int, stamp: Stamp) -> None:
        """Enter the lines so far in the ledger, unless it holds them already."""
        if not self.path.exists():
            return
        with self._writing():
            state = self.state()
            known = [said(s, "lines_sha256", str) for s in self.entered(ledger.entries(), gate, run)]
            if state.lines and state.sha256 not in known:
                body: dict[str, JsonValue] = {"run": run, "lines": state.lines, "lines_sha256": state.sha256}
                body |= self.told()
                ledger.append(self._entered_as, gate, body, stamp)

    def entered(self, entries: Sequence[Stored], gate: str, run: int) -> list[Stored]:
        """The ledger's records of these lines."""
        mine = [s for s in entries if s.entry.kind == self._entered_as and s.entry.gate == gate]
        return [s for s in mine if said(s, "run", int) == run]

    def check(self, entries: Sequence[Stored], gate: str, run: int) -> int:
        """Check the file against the ledger's records of it; returns how many lines no record holds yet.

        Raises TamperedError for lines that are not those which the ledger knows.
        """
        known = 0
        for stored in self.entered(entries, gate, run):
            count = said(stored, "lines", int)
            if self.state(count) != (count, said(stored, "lines_sha256", str)):
                raise TamperedError(
                    f"{self.path}: its first {count} lines are not those that the ledger holds",
                    next_step="restore the file from its commit",
                )
            known = max(known, count)
        return len(self.read()) - known

    def _lines(self) -> list[bytes]:
        return stored_bytes(self.path).split(b"\n")[:-1]

    def _parsed(self, line: bytes, place: str) -> L:
        try:
            record = self._kind.parse(line, where=place)
        except RecordError as error:
            raise TamperedError(error.message, next_step=error.next_step) from None
        if not is_canonical(line):
            raise TamperedError(f"{place}: the line is not the canonical JSON it was written as")
        return record
