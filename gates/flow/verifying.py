"""Deriving a record again: ledger, seals, and every finished run from its generations to its verdict.

What does not hold is a break; what could not be derived here (a text that the cache lacks, say) is named as such and
never counted as verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from gates.errors import ExitCode, GatesError, TamperedError
from gates.flow.notes import Notes, refuse_bent, seal_of
from gates.flow.planning import check_planned
from gates.flow.verifying_later import check_later
from gates.flow.verifying_run import check_run
from gates.record.anchor import committed_breaks
from gates.record.body import said
from gates.record.course import course_breaks
from gates.record.files import stored_bytes
from gates.record.ledger import Ledger, Stored
from gates.record.seal import SEALING
from gates.record.share import MANIFEST, WITHHELD, Share, read_share
from gates.record.standing import History
from gates.record.store import runs
from gates.record.strays import unchecked
from gates.record.vouching import vouch
from gates.records import Record

T = TypeVar("T")


class Verified(Record):
    """What a verification found: `breaks` do not hold, `not_derived` could not be checked, `anchor` says what was used
    against a cut tail and what that cannot catch. `signatures` says who signed, `not_checked` what was hashed only.
    """

    records: int
    seals: int
    runs: int
    breaks: tuple[str, ...]
    not_derived: tuple[str, ...]
    anchor: str
    signatures: tuple[str, ...]
    not_checked: tuple[str, ...]

    @property
    def exit_code(self) -> ExitCode:
        """TAMPERED with a break, INCONCLUSIVE when something was not derived again, else PASS."""
        if self.breaks:
            return ExitCode.TAMPERED
        return ExitCode.INCONCLUSIVE if self.not_derived else ExitCode.PASS


def verify(workspace: Path, cache: Path, allowed: Path | None = None) -> Verified:
    """Derive again everything the ledger of a workspace names; `allowed` is an allowed-signers file from outside it."""
    prereg, reports = workspace / "prereg", workspace / "reports"
    ledger, notes = Ledger(prereg), Notes()
    entries: tuple[Stored, ...] = ()
    try:
        entries = ledger.entries()
    except GatesError as error:
        notes.breaks.append(error.message)
    notes.breaks += course_breaks(entries)
    seals = [stored for stored in entries if stored.entry.kind in SEALING]
    for stored in seals:
        notes.guard(partial(_check_seal, History(prereg, entries), stored))
        notes.guard(partial(_check_planned, prereg, stored))
    finished = _runs(entries, notes)
    shared = _shared(workspace, [(s.entry.gate, said(s, "run", int)) for s, _ in finished], notes)
    for started, ended in finished:
        if ended is not None and ended.entry.kind == "spoiled":
            continue
        if ended is None:
            notes.not_derived.append(f"run {said(started, 'run', int)} of {started.entry.gate} is not finished")
            continue
        sealed = next((s for s in seals if s.entry.body.get("seal") == started.entry.body.get("seal")), None)
        if sealed is None:
            notes.breaks.append(f"run {said(started, 'run', int)} of {started.entry.gate} names no seal of this ledger")
            continue
        if shared is not None and f"{ended.entry.gate}/{said(ended, 'run', int):03d}" != shared.run:
            notes.not_derived.append(f"run {said(ended, 'run', int)} of {ended.entry.gate} is no part of this share")
            continue
        notes.guard(partial(check_run, (workspace, cache, reports), sealed, ended, (notes, shared)))
        check_later((ledger, cache, reports), started, notes, shared)
    if not entries and not notes.breaks:
        notes.not_derived.append(f"{ledger.path}: nothing is recorded here, so nothing was derived")
    strays = _strays(workspace, entries, notes)
    vouched = vouch(prereg, entries, allowed)
    anchor, cut = committed_breaks(workspace, ledger.path, [stored.sha256 for stored in entries])
    return Verified(
        records=len(entries),
        seals=len(seals),
        runs=len(finished),
        breaks=(*notes.breaks, *vouched.breaks, *cut),
        not_derived=(*notes.not_derived, *vouched.open),
        anchor=anchor,
        signatures=tuple(vouched.told),
        not_checked=tuple(strays),
    )


def _runs(entries: Sequence[Stored], notes: Notes) -> list[tuple[Stored, Stored | None]]:
    """Every run of every gate; those of a gate that has one of them twice are a break."""
    found: list[tuple[Stored, Stored | None]] = []
    for gate in dict.fromkeys(stored.entry.gate for stored in entries):
        notes.guard(partial(_extend, found, partial(runs, entries, gate)))
    return found


def _strays(workspace: Path, entries: Sequence[Stored], notes: Notes) -> list[str]:
    found: list[str] = []
    if entries:
        notes.guard(partial(_extend, found, partial(unchecked, workspace, entries)))
    return found


def _extend(found: list[T], more: Callable[[], Iterable[T]]) -> None:
    found.extend(more())


def _check_seal(history: History, stored: Stored) -> None:
    sealed = seal_of(history.prereg, stored)
    refuse_bent(sealed.path, stored_bytes(sealed.path))
    gate = sealed.seal.gate
    if not gate.digest() == sealed.seal.binding.gate == said(stored, "gate_sha256", str):
        raise TamperedError(f"{sealed.path}: the gate in it is not the gate that it and the ledger name by hash")
    if gate.name != stored.entry.gate:
        raise TamperedError(f"{sealed.path}: it seals {gate.name}, the ledger says {stored.entry.gate}")
    known = history.as_of(stored.entry.previous)
    before = [said(s, "seal", str) for s in known.records if s.entry.kind == "seal" and s.entry.gate == gate.name]
    if (sealed.seal.sealed_at, sealed.seal.sealed_by) != (stored.entry.at, stored.entry.by):
        raise TamperedError(f"{sealed.path}: it is not of the time or person that the ledger names")
    if unknown := set(sealed.seal.previous) - {record.sha256 for record in known.records}:
        raise TamperedError(f"{sealed.path}: it names records before it that were not: {', '.join(sorted(unknown))}")
    if (stored.entry.kind == "import") != (sealed.seal.imported is not None):
        raise TamperedError(
            f"{sealed.path}: a seal for imported texts, or the ledger's word for it, is not what it was"
        )
    before = [] if stored.entry.kind == "import" else before
    told, found = (sealed.seal.amends, sealed.seal.runs_before), (([None, *before])[-1], len(known.runs(gate.name)))
    if told != found:
        raise TamperedError(
            f"{sealed.path}: it amends {told[0]} after {told[1]} runs; by the ledger {found[0]} after {found[1]}"
        )


def _check_planned(prereg: Path, stored: Stored) -> None:
    sealed = seal_of(prereg, stored)
    check_planned(sealed.seal, sealed.path)


def _shared(workspace: Path, known: list[tuple[str, int]], notes: Notes) -> Share | None:
    """What the folder shares, when it is no whole workspace."""
    try:
        shared = read_share(workspace)
    except GatesError as error:
        notes.breaks.append(error.message)
        return None
    whole = [] if shared is None else [workspace / "reports" / shared.run / name for name in WITHHELD]
    if here := [path for path in whole if path.exists()]:
        notes.breaks.append(f"{workspace / MANIFEST}: a share withholds {here[0].name}, and {here[0]} is here")
    if shared is not None and shared.run not in {f"{gate}/{number:03d}" for gate, number in known}:
        notes.breaks.append(f"{workspace / MANIFEST}: it shares {shared.run}, and the ledger knows no such run")
    return shared
