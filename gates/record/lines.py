"""Line files that people add to by and by: marks and votes. Append-only, each line naming the hash of the one before.

A ledger record at the end of each sitting holds the hash of the whole file, so that no line can be changed or dropped
unseen after it. Two git branches that both added lines are joined as ledgers are: by one line that follows both ends,
and no line of either changed; the lines then stand in the one order of a chain, the older of two branches' first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, NamedTuple, TypeVar

from pydantic import Field, JsonValue

from gates.errors import RecordError, TamperedError
from gates.record.body import said
from gates.record.chain import heads, ordered
from gates.record.files import append_line, cut_torn_line, locked, replace, stored_bytes
from gates.record.ledger import Kind, Ledger, Stamp, Stored
from gates.records import Record, Sha256, canonical, is_canonical, sha256

_MENDED = "restore the file from its commit"


class Chained(Record):
    """One line: `previous` is the hash of the line before; when and by whom it was written."""

    previous: Sha256 | None = Field(description="SHA-256 of the line before; null in the first")
    at: str
    by: str


class Join(Record):
    """A line that joins what two git branches had added (`gates.join/1`): it follows the ends of both."""

    schema_: Literal["gates.join/1"] = Field(default="gates.join/1", alias="schema")
    previous: tuple[Sha256, Sha256]
    at: str
    by: str


L = TypeVar("L", bound=Chained)


class State(NamedTuple):
    """How many lines, and the SHA-256 of them."""

    lines: int
    sha256: str


@dataclass(frozen=True)
class Line(Generic[L]):
    """A line as stored: its hash, its bytes, and what it says."""

    sha256: str
    line: bytes
    record: L | Join

    @property
    def previous(self) -> tuple[str, ...]:
        """The hashes of the lines that it follows."""
        before = self.record.previous
        return before if isinstance(before, tuple) else () if before is None else (before,)

    @property
    def at(self) -> str:
        """When it was written."""
        return self.record.at


def _unknown(_lines: tuple[L, ...]) -> None:
    """Every line is new."""


class Lines(Generic[L]):
    """The lines of `path`, each a record of `kind`; `entered_as` is the kind of the ledger's records of them."""

    def __init__(self, path: Path, kind: type[L], entered_as: Kind) -> None:
        self.path = path
        self._kind, self._entered_as = kind, entered_as

    def read(self, state: State | None = None) -> tuple[L, ...]:
        """What the lines say, of the file or of an earlier `state` of it; the chain checked.

        Raises TamperedError naming file, line and break, and where the file never was in that state. An unfinished last
        line, as a killed writer leaves it, is none.
        """
        lines = self._lines()
        lines = lines if state is None else self._as_of(lines, state)
        return tuple(line.record for line in lines if not isinstance(line.record, Join))

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
            record = make(lines[-1].sha256 if lines else None)
            append_line(self.path, canonical(record.as_json()))
            return record

    def _writing(self) -> AbstractContextManager[None]:
        return locked(self.path.with_name(f".{self.path.name}.lock"), wait=True, busy="another process writes to it")

    def state(self) -> State:
        """How many lines there are, and their hash."""
        return _state(self._lines())

    def told(self) -> dict[str, JsonValue]:
        """What else the ledger's record says of the lines so far."""
        return {}

    def enter(self, ledger: Ledger, gate: str, run: int, stamp: Stamp) -> None:
        """Enter the lines so far in the ledger, unless it holds them already."""
        if not self.path.exists():
            return
        with self._writing():
            state = self.state()
            known = map(state_in, self.entered(ledger.entries(), gate, run))
            if state.lines and state not in known:
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
        lines = self._lines()
        states = map(state_in, self.entered(entries, gate, run))
        known = {line.sha256 for state in states for line in self._as_of(lines, state)}
        return len(lines) - len(known)

    def join(self, ours: Callable[[], bytes], theirs: bytes, stamp: Stamp) -> bool:
        """Write what two git branches have made of the file; returns whether both had added to it.

        `ours` is asked while nobody else can add a line. Raises TamperedError where a branch's lines do not hold.
        """
        with self._writing():
            mine, others = self._parsed(ours()), self._parsed(theirs)
            by_name = {line.sha256: line for line in (*mine, *others)}
            both = len(mine) < len(by_name) > len(others)
            if both:
                first, second = sorted((mine[-1].sha256, others[-1].sha256))
                record = Join(previous=(first, second), at=stamp.at, by=stamp.by)
                line = canonical(record.as_json())
                by_name[sha256(line)] = Line(sha256(line), line, record)
            replace(self.path, b"".join(line.line + b"\n" for line in ordered([*by_name.values()])))
        return both

    def _lines(self) -> list[Line[L]]:
        return self._parsed(stored_bytes(self.path))

    def _parsed(self, data: bytes) -> list[Line[L]]:
        """Every finished line, the chain checked."""
        found: list[Line[L]] = []
        known: set[str] = set()
        for number, line in enumerate(data.split(b"\n")[:-1], start=1):
            parsed = self._line(line, f"{self.path}:{number}")
            if not known.issuperset(parsed.previous) or parsed.sha256 in known:
                raise TamperedError(
                    f"{self.path}:{number}: it does not follow the line before it; one was removed or changed",
                    next_step=_MENDED,
                )
            known.add(parsed.sha256)
            found.append(parsed)
        if len(heads(found)) > 1:
            raise TamperedError(
                f"{self.path}: it has several ends: a line does not follow the line before it, and none joins them",
                next_step="after a git merge: `gates ledger merge`; else restore the file from its commit",
            )
        if [line.sha256 for line in found] != [line.sha256 for line in ordered(found)]:
            raise TamperedError(f"{self.path}: its lines do not stand in their order", next_step=_MENDED)
        return found

    def _as_of(self, lines: Sequence[Line[L]], state: State) -> list[Line[L]]:
        """The lines as they were in an earlier state: one of them, and all that it follows."""
        reached: dict[str, int] = {}
        for place, line in enumerate(lines):
            reached[line.sha256] = 1 << place
            for before in line.previous:
                reached[line.sha256] |= reached[before]
            if reached[line.sha256].bit_count() == state.lines:
                found = [one for at, one in enumerate(lines[: place + 1]) if reached[line.sha256] >> at & 1]
                if _state(found) == state:
                    return found
        raise TamperedError(
            f"{self.path}: the ledger holds {state.lines} lines of it, and they are not those", next_step=_MENDED
        )

    def _line(self, line: bytes, place: str) -> Line[L]:
        try:
            # No text in a line can write this: within one, a quotation mark is escaped.
            joins = b'"schema":"gates.join/1"' in line
            record = (Join if joins else self._kind).parse(line, where=place)
        except RecordError as error:
            raise TamperedError(error.message, next_step=error.next_step) from None
        if not is_canonical(line):
            raise TamperedError(f"{place}: the line is not the canonical JSON it was written as")
        return Line(sha256(line), line, record)


def state_in(entered: Stored) -> State:
    """The state of the lines that a ledger record of them holds."""
    return State(said(entered, "lines", int), said(entered, "lines_sha256", str))


def _state(lines: Iterable[Line[L]]) -> State:
    data = [line.line + b"\n" for line in lines]
    return State(len(data), sha256(b"".join(data)))
