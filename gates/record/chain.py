"""The chain: which lines make a ledger, in which order they stand, and what its head may say. Bytes in, records out.

The hash of a record is the SHA-256 of its line as stored; `previous` names the hashes of the records it follows. So a
ledger is a directed acyclic graph: a line of records, except where a `merge` record joins two branches. Its lines
stand in one order, that of `ordered`, so that a line that was moved is found as well as one that was changed.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, Protocol, TypeVar

from pydantic import Field, JsonValue

from gates.errors import RecordError, TamperedError
from gates.records import Record, Sha256, canonical, is_canonical, sha256
from gates.spec.fields import Name

Kind = Literal[
    "seal",
    "run",
    "session",
    "spoiled",
    "verdict",
    "merge",
    "recheck",
    "rechecked",
    "review",
    "signoff",
    "votes",
    "rescore",
    "import",
]


class Entry(Record):
    """One line of the ledger: what happened, when (UTC), by whom, to which gate; `body` depends on `kind`."""

    schema_: Literal["gates.ledger/1"] = Field(default="gates.ledger/1", alias="schema")
    previous: tuple[Sha256, ...]
    kind: Kind
    at: str
    by: str
    gate: Name | Literal[""]
    body: dict[str, JsonValue]


class Head(Record):
    """Where the ledger ended when it was last written."""

    schema_: Literal["gates.ledger.head/1"] = Field(default="gates.ledger.head/1", alias="schema")
    head: tuple[Sha256, ...]
    records: int


class Moved(Record):
    """A run whose number the other branch of a merge had given too: `record`, run `run` of `gate`, is now run `to`."""

    gate: Name
    run: int = Field(ge=1)
    to: int = Field(ge=1)
    record: Sha256


class Linked(Protocol):
    """A line of a chain: its hash, the hashes of the lines that it follows, and when it was written."""

    @property
    def sha256(self) -> str: ...  # noqa: D102 - an interface

    @property
    def previous(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def at(self) -> str: ...  # noqa: D102


K = TypeVar("K", bound=Linked)


@dataclass(frozen=True)
class Stored:
    """A ledger line, its hash, and its entry as it is to be read: a run that a merge has moved has its new number."""

    sha256: str
    entry: Entry
    line: bytes

    @property
    def previous(self) -> tuple[str, ...]:
        """The hashes of the records that it follows."""
        return self.entry.previous

    @property
    def at(self) -> str:
        """When it was written."""
        return self.entry.at

    @property
    def written(self) -> Entry:
        """The entry as it was written."""
        return Entry.parse(self.line, where=f"ledger record {self.sha256}")


def stored(entry: Entry) -> Stored:
    """An entry as it is stored."""
    line = canonical(entry.as_json())
    return Stored(sha256(line), entry, line)


@dataclass(frozen=True)
class Source:
    """The bytes of a ledger and its head, and the names to say where they lie."""

    lines: bytes
    head: bytes
    path: str
    head_path: str


@lru_cache(maxsize=4)
def read(source: Source) -> tuple[Stored, ...]:
    """Every record in file order, the chain checked. Raises TamperedError naming file, line and break."""
    *lines, rest = source.lines.split(b"\n")
    found = _checked(lines, source)
    _check_head(found, source, torn=bool(rest))
    if [record.sha256 for record in found] != [record.sha256 for record in ordered(found)]:
        raise broken(f"{source.path}: its lines do not stand in the order they were written in")
    if len(ends := heads(found)) > 1:
        raise TamperedError(
            f"{source.path}: it has {len(ends)} ends: two branches stand in it and no record joins them",
            next_step="join them: `gates ledger merge`",
        )
    return view(found)


def heads(records: Iterable[Linked]) -> tuple[str, ...]:
    """Hashes of the records that no other record names as previous, sorted."""
    known = tuple(records)
    followed = {name for record in known for name in record.previous}
    return tuple(sorted(record.sha256 for record in known if record.sha256 not in followed))


def ordered(records: Sequence[K]) -> list[K]:
    """The one order of a chain: each record after all that it follows, and of those that may be next the oldest.

    Of records of the same time the one with the smaller hash is next. A record that follows an unknown one is left out.
    """
    by_name = {record.sha256: record for record in records}
    followers: dict[str, list[str]] = defaultdict(list)
    waits = {name: len(set(record.previous)) for name, record in by_name.items()}
    for name, record in by_name.items():
        for before in set(record.previous):
            followers[before].append(name)
    ready = [(by_name[name].at, name) for name, count in waits.items() if count == 0]
    heapq.heapify(ready)
    found: list[K] = []
    while ready:
        _, name = heapq.heappop(ready)
        found.append(by_name[name])
        for follower in followers[name]:
            waits[follower] -= 1
            if waits[follower] == 0:
                heapq.heappush(ready, (by_name[follower].at, follower))
    return found


def broken(message: str) -> TamperedError:
    """The error for a chain that does not hold."""
    return TamperedError(message, next_step="compare prereg/ with the last commit and restore what was changed")


def _checked(lines: list[bytes], source: Source) -> list[Stored]:
    found: list[Stored] = []
    known: set[str] = set()
    for number, line in enumerate(lines, start=1):
        place, name = f"{source.path}:{number}", sha256(line)
        entry = _entry(line, place, (*lines, source.head))
        if name in known:
            raise broken(f"{place}: the record stands in the ledger twice")
        if not known.issuperset(entry.previous):
            raise broken(f"{place}: it does not follow the records before it; one was removed or changed")
        if (len(entry.previous) > 1) != (entry.kind == "merge"):
            raise broken(f"{place}: a merge, and nothing else, follows more than one record")
        known.add(name)
        found.append(Stored(name, entry, line))
    return found


def _entry(line: bytes, place: str, others: Iterable[bytes]) -> Entry:
    if not _straight(line):
        raise broken(f"{place}: the line is not the canonical JSON it was written as")
    try:
        return _parsed(line)
    except RecordError:
        # What nothing else knows by its hash was changed; what is known was written by another version of gates.
        if not any(sha256(line).encode() in other for other in others):
            raise broken(f"{place}: the record was changed: nothing else knows its hash") from None
        return Entry.parse(line, where=place)


# A ledger is read before and after each record that is added: the same bytes are the same record, parsed once.
_straight = lru_cache(maxsize=1 << 14)(is_canonical)


@lru_cache(maxsize=1 << 14)
def _parsed(line: bytes) -> Entry:
    return Entry.parse(line, where="a ledger record")


def _check_head(found: list[Stored], source: Source, *, torn: bool) -> None:
    if not source.head:
        # A writer killed between the first line and its head leaves one record and no head.
        if len(found) > 1:
            raise broken(f"{source.head_path} is missing")
        return
    head = Head.parse(source.head, where=source.head_path)
    if source.head != head_bytes(head):
        raise broken(f"{source.head_path}: it is not the canonical JSON it was written as")
    # A writer killed after its line and before the head leaves a ledger that is ahead of its head: no break.
    reached = with_ancestors(found, set(head.head))
    if not head.head or not reached.issuperset(head.head) or len(reached) != head.records:
        cut = " (its last line is unfinished)" if torn else ""
        raise broken(
            f"{source.head_path} knows {head.records} records and another end than {source.path}, "
            f"which holds {len(found)}{cut}"
        )


def head_bytes(head: Head) -> bytes:
    """The head file."""
    return canonical(head.as_json()) + b"\n"


def with_ancestors(found: Sequence[Stored], names: set[str]) -> set[str]:
    """Those of the named records that are there, and all that they follow."""
    reached: set[str] = set()
    wanted = set(names)
    for record in reversed(found):
        if record.sha256 in wanted:
            reached.add(record.sha256)
            wanted.update(record.entry.previous)
    return reached


def _with_descendants(found: Sequence[Stored], name: str) -> set[str]:
    reached = {name}
    for record in found:
        if not reached.isdisjoint(record.entry.previous):
            reached.add(record.sha256)
    return reached


def view(found: Sequence[Stored]) -> tuple[Stored, ...]:
    """The records as they are to be read: what was written of a moved run without knowing of it has the new number."""
    read_as = {record.sha256: record for record in found}
    for merge in found:
        for moved in moves(merge):
            _check_moved(moved, merge, read_as)
            for name in _with_descendants(found, moved.record) - _with_descendants(found, merge.sha256):
                now = read_as[name]
                if now.entry.gate == moved.gate and now.entry.body.get("run") == moved.run:
                    body = {**now.entry.body, "run": moved.to}
                    read_as[name] = replace(now, entry=now.entry.model_copy(update={"body": body}))
    return tuple(read_as.values())


def _check_moved(moved: Moved, merge: Stored, known: Mapping[str, Stored]) -> None:
    """Raise TamperedError unless what a merge moves is a run: a verdict alone may not become another run's."""
    record = known.get(moved.record)
    if record is None or (record.entry.kind, record.entry.gate) != ("run", moved.gate):
        raise broken(
            f"ledger record {merge.sha256} (merge): {moved.record} is no run of {moved.gate}, and it moves one"
        )


def moves(record: Stored) -> tuple[Moved, ...]:
    """The runs that a merge has moved; none for any other record. Raises TamperedError when it does not say."""
    if record.entry.kind != "merge":
        return ()
    listed = record.entry.body.get("moved")
    if not isinstance(listed, list):
        raise broken(f"ledger record {record.sha256} (merge): moved is {listed!r}, which is no list")
    return tuple(Moved.parse(canonical(one), where=f"ledger record {record.sha256} (merge)") for one in listed)
