"""One run's folder: sessions, generations, measurements, verdict, report; nothing is ever written twice.

reports/GATE/NUMBER/sessions.jsonl      one line each time generation started or went on: when, which seat, canary
                    generations.jsonl   one line a generation, in the order the answers came
                    judgements.jsonl    one line an answer of the judging model, where the gate names one
                    measurements.json   every figure
                    verdict.json        what the gate says
                    report.md           the same for people
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, JsonValue

from gates.errors import RecordError, TamperedError
from gates.record.body import said
from gates.record.files import (
    append_lines,
    cut_torn_line,
    held,
    locked,
    make_folder,
    read_recorded,
    stored_bytes,
    write_once,
)
from gates.record.ledger import Ledger, Stamp, Stored
from gates.records import Generation, Record, Sha256, canonical, sha256
from gates.spec.judging import Judgement

R = TypeVar("R", bound=Record)

Phase = Literal["start", "end", "lost"]
"""When the seat was looked at: before generation started or went on, or after it had ended.

`lost`: one of several seats that did not answer any more; what is told of it is its last look.
"""


class Session(Record):
    """The seat as probed and its canary, when generation started or went on, and again when it had ended.

    `generations` and `generations_sha256` are of generations.jsonl at that moment; the ledger holds the session's own
    hash, so that what was recorded before it cannot change unseen. `warnings` are of the seat as it was found;
    `determinism` says at the end what requests made again gave.
    """

    schema_: Literal["gates.session/1"] = Field(default="gates.session/1", alias="schema")
    phase: Phase
    seal: Sha256
    at: str
    by: str
    seat: dict[str, JsonValue]
    canary: dict[str, JsonValue]
    cache_salt: str
    deviations: tuple[str, ...]
    generations: int = Field(ge=0)
    generations_sha256: Sha256
    warnings: tuple[str, ...] = ()
    determinism: dict[str, JsonValue] | None = None

    @property
    def name(self) -> str:
        """The address of the seat that was looked at."""
        return str(self.seat.get("base_url"))


def is_closed(sessions: Sequence[Session], *, several: bool) -> bool:
    """Whether the last start of generation came to its end.

    Of `several` seats each must have been looked at again or be lost, one at least not lost.
    """
    if not several:
        return bool(sessions) and sessions[-1].phase == "end"
    phases = [session.phase for session in sessions]
    since = phases[len(phases) - phases[::-1].index("start") :] if "start" in phases else []
    last = {session.name: session.phase for session in sessions}
    return "end" in since and "start" not in last.values()


class RunStore:
    """Reads and writes the folder of run `number` of a gate; `mark` ends the folder's name."""

    def __init__(self, reports: Path, gate: str, number: int, mark: str = "") -> None:
        self.gate = gate
        self.number = number
        self.folder = reports / gate / f"{number:03d}{mark}"
        self.sessions_path = self.folder / "sessions.jsonl"
        self.generations_path = self.folder / "generations.jsonl"
        self.judgements_path = self.folder / "judgements.jsonl"

    def resume(self, seal: str) -> set[tuple[str, int, int]]:
        """Keys recorded so far, after cutting an unfinished last line. Raises TamperedError on a foreign line."""
        make_folder(self.folder)
        cut_torn_line(self.sessions_path)
        cut_torn_line(self.generations_path)
        cut_torn_line(self.judgements_path)
        return {generation.key for generation in self.generations(seal)}

    def sessions(self) -> list[Session]:
        """The sessions so far. Raises TamperedError for a line that is none."""
        lines = enumerate(self._session_lines(), start=1)
        return [_parsed(Session, line, f"{self.sessions_path}:{n}") for n, line in lines]

    def _session_lines(self) -> list[bytes]:
        return stored_bytes(self.sessions_path).splitlines()

    def add_session(self, session: Session, ledger: Ledger, key: Path | None = None) -> None:
        """Append a session, and its hash to the ledger, signed with `key` if there is one."""
        _append(self.sessions_path, [session])
        self._enter(session, session.digest(), ledger, key)

    def _enter(self, session: Session, name: str, ledger: Ledger, key: Path | None) -> None:
        body: dict[str, JsonValue] = {"run": self.number, "session_sha256": name, "phase": session.phase}
        ledger.append("session", self.gate, body, Stamp(session.at, session.by, key))

    def settle(self, ledger: Ledger, key: Path | None = None) -> list[Session]:
        """As `check_sessions`; a session whose ledger record a killed process never wrote is entered now."""
        found = self.check_sessions(ledger)
        entered = len(self._entered(ledger))
        for session, line in [*zip(found, self._session_lines(), strict=True)][entered:]:
            self._enter(session, sha256(line), ledger, key)
        return found

    def _entered(self, ledger: Ledger) -> list[str]:
        """The hashes of this run's sessions that the ledger holds."""
        mine = [s for s in ledger.entries() if s.entry.gate == self.gate and s.entry.kind == "session"]
        return [said(s, "session_sha256", str) for s in mine if said(s, "run", int) == self.number]

    def check_sessions(self, ledger: Ledger) -> list[Session]:
        """The sessions, each with its hash in the ledger, and the generations as the last one saw them.

        Raises TamperedError when a session is missing or changed, or when what it saw of the generations has changed.
        A session whose ledger record a killed process never wrote is dropped by nobody: it is the last one, and stays;
        `settle` enters it.
        """
        found = self.sessions()
        known = self._entered(ledger)
        here = [sha256(line) for line in self._session_lines()]
        if here[: len(known)] != known or len(here) > len(known) + 1:
            raise TamperedError(
                f"{self.sessions_path}: the ledger knows {len(known)} sessions of this run, and these are others",
                next_step="restore the run's folder, or start another attempt with --again",
            )
        lines = stored_bytes(self.generations_path).splitlines(keepends=True)
        for session in found:
            seen = lines[: session.generations]
            if len(seen) < session.generations or sha256(b"".join(seen)) != session.generations_sha256:
                raise TamperedError(
                    f"{self.generations_path}: the first {session.generations} lines are not those that were recorded",
                    next_step="restore the run's folder, or start another attempt with --again",
                )
        return found

    def check_closed(self, *, imported: bool, several: bool) -> None:
        """Raise TamperedError unless the seat was looked at when the last text had come; never for imported texts."""
        found = self.sessions()
        if imported and found:
            raise TamperedError(f"{self.sessions_path}: its texts were imported, and no seat was looked at")
        if imported:
            return
        last = found[-1].generations_sha256 if found else None
        if not is_closed(found, several=several) or last != self.generations_sha256():
            raise TamperedError(f"{self.sessions_path}: no look at the seat closes {self.generations_path.name}")

    def deviations(self) -> tuple[str, ...]:
        """What deviated from the sealed context in any session, each once."""
        return tuple(dict.fromkeys(sentence for session in self.sessions() for sentence in session.deviations))

    def add(self, generation: Generation) -> None:
        """Append a generation; it is on the disk when this returns."""
        self.add_all([generation])

    def add_all(self, generations: Iterable[Generation]) -> None:
        """Append generations; they are on the disk when this returns. When the disk refuses, none of them is there."""
        _append(self.generations_path, generations)

    def generations(self, seal: str) -> Iterator[Generation]:
        """Stream the recorded generations. Raises TamperedError for another seal's line or a key that comes twice."""
        if not self.generations_path.is_file():
            stored_bytes(self.generations_path)
            return
        seen: set[tuple[str, int, int]] = set()
        with self.generations_path.open("rb") as handle:
            for number, line in enumerate(handle, start=1):
                place = f"{self.generations_path}:{number}"
                generation = _parsed(Generation, line, place)
                if generation.seal != seal:
                    raise TamperedError(f"{place}: it belongs to seal {generation.seal}, this run to {seal}")
                if generation.key in seen:
                    raise TamperedError(f"{place}: {generation.key} is recorded twice")
                seen.add(generation.key)
                yield generation

    def add_judgements(self, judgements: Iterable[Judgement]) -> None:
        """Append judgements; they are on the disk when this returns. When the disk refuses, none of them is there."""
        _append(self.judgements_path, judgements)

    def judgements(self, seal: str) -> list[Judgement]:
        """The recorded judgements. Raises TamperedError for another seal's line or a key that comes twice."""
        found: dict[tuple[str | None, int, int, str], Judgement] = {}
        lines = stored_bytes(self.judgements_path).splitlines()
        for number, line in enumerate(lines, start=1):
            place = f"{self.judgements_path}:{number}"
            judgement = _parsed(Judgement, line, place)
            if judgement.seal != seal or judgement.key in found:
                raise TamperedError(f"{place}: another seal's, or {judgement.key} is recorded twice")
            found[judgement.key] = judgement
        return list(found.values())

    def judgements_sha256(self) -> str:
        """SHA-256 of judgements.jsonl as stored; of nothing where no judge was asked."""
        return sha256(stored_bytes(self.judgements_path))

    def generations_sha256(self) -> str:
        """SHA-256 of generations.jsonl as stored; of nothing before the first one."""
        return sha256(stored_bytes(self.generations_path))

    def sessions_sha256(self) -> str:
        """SHA-256 of sessions.jsonl as stored."""
        return sha256(stored_bytes(self.sessions_path))

    def write(self, name: Literal["measurements.json", "verdict.json"], record: R) -> R:
        """Write one of the run's results, once; returns it as it will be read back, keys in canonical order."""
        data = canonical(record.as_json())
        write_once(self.folder / name, data)
        return type(record).parse(data, where=str(self.folder / name))

    def write_report(self, text: str) -> None:
        """Write report.md, once."""
        write_once(self.folder / "report.md", text.encode())


class KeptStore(RunStore):
    """A store whose generations are read once, however often they are asked for: of a run that is verified."""

    def generations(self, seal: str) -> Iterator[Generation]:
        """As `RunStore.generations`, all of them in memory from the first time on."""
        if seal not in self._kept:
            self._kept[seal] = tuple(super().generations(seal))
        return iter(self._kept[seal])

    @cached_property
    def _kept(self) -> dict[str, tuple[Generation, ...]]:
        return {}


def run_place(folder: Path) -> Path:
    """Where a run lies, by its path as it stands: a link may not lead a run under another workspace's ledger.

    Only a path that itself lies in no workspace is followed.
    """
    here = Path(os.path.normpath(folder.absolute()))
    return here if (here.parent.parent.parent / "prereg").is_dir() else folder.resolve()


def is_running(reports: Path, gate: str) -> bool:
    """Whether a process holds the gate: one of its runs is being generated, measured or judged."""
    return held(reports / gate / ".lock")


def gate_lock(reports: Path, gate: str) -> AbstractContextManager[None]:
    """Hold a gate against a second process that would start or continue the same run."""
    return locked(reports / gate / ".lock", wait=False, busy="another process is running this gate")


def runs(entries: Sequence[Stored], gate: str) -> list[tuple[Stored, Stored | None]]:
    """Every run of the gate in the ledger's order, each with the record that ended it: verdict or spoiled."""
    mine = [stored for stored in entries if stored.entry.gate == gate]
    starts = _by_number(s for s in mine if s.entry.kind == "run")
    ends = _by_number(s for s in mine if s.entry.kind in {"verdict", "spoiled"})
    return [(started, ends.get(number)) for number, started in starts.items()]


def _by_number(records: Iterable[Stored]) -> dict[int, Stored]:
    """The records by their run's number. Raises TamperedError where one run has two: gates enters no second one."""
    found: dict[int, Stored] = {}
    for record in records:
        number, entry = said(record, "run", int), record.entry
        if found.setdefault(number, record) is not record:
            raise TamperedError(
                f"ledger record {record.sha256} ({entry.kind} of {entry.gate!r}): run {number:03d} has one before it, "
                f"{found[number].sha256}, which counts for good",
                next_step="see who entered it; restore prereg/ from the commit before",
            )
    return found


def open_run(ledger: Ledger, reports: Path, gate: str, seal: str, stamp: Stamp) -> RunStore:
    """The unfinished run under this seal, or a new one entered in the ledger first, so that every attempt counts."""
    # Nobody may enter a run of the same number meanwhile, as a merge does that moves one of the other branch.
    with ledger.writing():
        known = runs(ledger.entries(), gate)
        for started, verdict in known:
            if verdict is None and said(started, "seal", str) == seal:
                return RunStore(reports, gate, said(started, "run", int))
        number = max((said(started, "run", int) for started, _ in known), default=0) + 1
        ledger.append_held("run", gate, {"run": number, "seal": seal}, stamp)
    return RunStore(reports, gate, number)


def finished_files(store: RunStore, verdict: Stored, withheld: Collection[str] = ()) -> dict[str, bytes]:
    """The finished run's files but for those `withheld`, each checked against the hash that the ledger holds.

    Raises TamperedError.
    """
    files: dict[str, bytes] = {}
    judged = [("judgements.jsonl", "judgements_sha256")] if "judgements_sha256" in verdict.entry.body else []
    for name, key in (
        *judged,
        ("generations.jsonl", "generations_sha256"),
        ("measurements.json", "measurements_sha256"),
        ("verdict.json", "verdict_sha256"),
        ("sessions.jsonl", "sessions_sha256"),
        ("report.md", "report_sha256"),
    ):
        if name not in withheld:
            files[name] = read_recorded(store.folder / name, said(verdict, key, str))
    return files


def _parsed(kind: type[R], line: bytes, place: str) -> R:
    try:
        return kind.parse(line, where=place)
    except RecordError as error:
        raise TamperedError(error.message, next_step=error.next_step) from None


def _append(path: Path, records: Iterable[Record]) -> None:
    """Append a line for each record, after cutting what an append that failed (a full disk) has left of its own."""
    cut_torn_line(path)
    append_lines(path, [canonical(record.as_json()) for record in records])
