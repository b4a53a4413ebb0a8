"""Marks and notes of the people who read a run: RUN/review.jsonl, one chained line a mark, never rewritten.

Each line names the hash of the line before it and of the reading list. A ledger record of kind `review` holds the hash
of the whole file at the end of each sitting, so that no mark can be changed or dropped unseen after it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import Field, StringConstraints

from gates.errors import RecordError, TamperedError, UsageError
from gates.record.body import said
from gates.record.files import append_line, cut_torn_line, locked
from gates.record.ledger import Ledger, Stamp, Stored
from gates.records import Record, Sha256, canonical, sha256

Label = Literal["stock-phrase", "quotation", "proper-name", "coincidence", "protectable"]
"""What a matched run of words is, in the reader's judgement."""

LABELS: tuple[Label, ...] = get_args(Label)

Line = Annotated[str, StringConstraints(max_length=2000)]


class Mark(Record):
    """One reading of one item (`gates.mark/1`): whether it is fit to ship, by whom, when. The reader's last one counts.

    `item` is the hash of the item, `list_sha256` of the reading list that holds it; `previous` of the line before.
    """

    schema_: Literal["gates.mark/1"] = Field(default="gates.mark/1", alias="schema")
    previous: Sha256 | None
    list_sha256: Sha256
    item: Sha256
    mark: Literal["ok", "bad"]
    label: Label | None = None
    note: Line = ""
    at: str
    by: str


class Said(Record):
    """What a reader says of an item."""

    mark: Literal["ok", "bad"]
    label: Label | None = None
    note: Line = ""


class State(NamedTuple):
    """How many marks, and the SHA-256 of their lines."""

    marks: int
    sha256: str


class Review:
    """The marks of the run in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "review.jsonl"
        self._lock = folder / ".review.lock"

    def marks(self, count: int | None = None) -> tuple[Mark, ...]:
        """The first `count` marks, or all; the chain checked. Raises TamperedError naming file, line and break.

        An unfinished last line, as a killed writer leaves it, is no mark.
        """
        found: list[Mark] = []
        previous: str | None = None
        for number, line in enumerate(self._lines()[:count], start=1):
            mark = _parsed(line, f"{self.path}:{number}")
            if mark.previous != previous:
                raise TamperedError(
                    f"{self.path}:{number}: it does not follow the line before it; one was removed or changed",
                    next_step="restore the file from its commit",
                )
            previous = sha256(line)
            found.append(mark)
        if count is not None and len(found) < count:
            raise TamperedError(f"{self.path}: {len(found)} marks are there, the ledger knows {count}")
        return tuple(found)

    def add(self, list_sha256: str, item: str, said: Said, stamp: Stamp) -> Mark:
        """Append a mark; it is on the disk when this returns."""
        with locked(self._lock, wait=True, busy="another process writes a mark"):
            self.marks()
            cut_torn_line(self.path)
            lines = self._lines()
            mark = Mark(
                previous=sha256(lines[-1]) if lines else None,
                list_sha256=list_sha256,
                item=item,
                mark=said.mark,
                label=said.label,
                note=said.note,
                at=stamp.at,
                by=stamp.by,
            )
            append_line(self.path, canonical(mark.as_json()))
            return mark

    def state(self, count: int | None = None) -> State:
        """How many marks there are, and the SHA-256 of their lines: of the first `count`, or of all."""
        lines = self._lines()[:count]
        return State(len(lines), sha256(b"".join(line + b"\n" for line in lines)))

    def enter(self, ledger: Ledger, gate: str, run: int, stamp: Stamp) -> None:
        """Enter the marks so far in the ledger, unless it holds them already."""
        state = self.state()
        known = [said(s, "review_sha256", str) for s in reviews(ledger.entries(), gate, run)]
        if state.marks and state.sha256 not in known:
            ledger.append("review", gate, {"run": run, "marks": state.marks, "review_sha256": state.sha256}, stamp)

    def check(self, entered: Sequence[Stored]) -> int:
        """Check the file against the ledger's records of it; returns how many marks no record holds yet.

        Raises TamperedError for marks that are not those which the ledger knows.
        """
        known = 0
        for stored in entered:
            count = said(stored, "marks", int)
            if self.state(count) != (count, said(stored, "review_sha256", str)):
                raise TamperedError(
                    f"{self.path}: its first {count} marks are not those that the ledger holds",
                    next_step="restore the file from its commit",
                )
            known = max(known, count)
        return len(self.marks()) - known

    def _lines(self) -> list[bytes]:
        return self.path.read_bytes().split(b"\n")[:-1] if self.path.exists() else []


def reviews(entries: Sequence[Stored], gate: str, run: int) -> list[Stored]:
    """The ledger's records of a run's marks."""
    mine = [s for s in entries if s.entry.kind == "review" and s.entry.gate == gate]
    return [s for s in mine if said(s, "run", int) == run]


def latest(marks: Sequence[Mark], list_sha256: str, by: str | None = None) -> dict[str, Mark]:
    """What counts: the last mark of each item of this list, by the items' hashes; of one reader, or of anybody."""
    return {m.item: m for m in marks if m.list_sha256 == list_sha256 and by in (None, m.by)}


def named(items: Mapping[str, object], name: str) -> str:
    """The hash of the one item that `name` begins. Raises UsageError when it begins none or several."""
    found = [item for item in items if name and item.startswith(name.lower())]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{name!r} begins {len(found)} items", next_step="give more of the item's name")
    raise UsageError(
        f"{name!r} is no item of this reading list", next_step="`gates review RUN` lists the items with their names"
    )


def _parsed(line: bytes, place: str) -> Mark:
    try:
        mark = Mark.parse(line, where=place)
        straight = canonical(json.loads(line)) == line
    except RecordError as error:
        raise TamperedError(error.message, next_step=error.next_step) from None
    if not straight:
        raise TamperedError(f"{place}: the line is not the canonical JSON it was written as")
    return mark
