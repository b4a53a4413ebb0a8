"""Deriving a record again: ledger, seals, and every finished run from its generations to its verdict.

What does not hold is a break; what could not be derived here (a text that the cache lacks, say) is named as such and
never counted as verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from gates.errors import ExitCode, GatesError, TamperedError, UsageError
from gates.flow.blind import check_votes, tallied
from gates.flow.differing import check_same, check_told
from gates.flow.finished import read_run, sealed_inputs, sealed_with
from gates.flow.floors import rules_of
from gates.flow.generating import check_recorded
from gates.flow.importing import check_received, read_received
from gates.flow.judging import left_to_ask
from gates.flow.planning import check_planned
from gates.flow.rechecking import rederive, report_of
from gates.flow.recorded import measure_run
from gates.flow.rescoring import derive_again
from gates.flow.review import open_reading
from gates.flow.sharing import check_shared
from gates.flow.signed import check_signoffs
from gates.judge.floors import FloorRule
from gates.judge.verdict import Verdict, judge, outcomes_of
from gates.measure.figures import Measurements
from gates.record.anchor import committed_breaks
from gates.record.body import check_report, said
from gates.record.course import course_breaks
from gates.record.files import stored_bytes
from gates.record.ledger import Ledger, Stored
from gates.record.recheck import rechecks, store_of
from gates.record.rescore import check_words, folder_of, rescores
from gates.record.seal import SEALING, SealOnDisk, read_seal
from gates.record.share import MANIFEST, WITHHELD, Share, read_share
from gates.record.standing import History, in_context
from gates.record.store import RunStore, finished_files, runs
from gates.record.strays import unchecked
from gates.record.vouching import vouch
from gates.records import Record, is_canonical, sha256
from gates.report.markdown import markdown
from gates.report.seat import seat_sentences

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


@dataclass
class _Notes:
    breaks: list[str] = field(default_factory=list)
    not_derived: list[str] = field(default_factory=list)

    def guard(self, step: Callable[[], None]) -> None:
        """Run a step; a hash that does not hold is a break, anything else that stops it is not derived.

        What was read strictly and cannot be worked with (an arm that is missing, rows of two lengths) is a break,
        too: a record that stops its own verification must not pass for one that lacks a text.
        """
        try:
            step()
        except TamperedError as error:
            self.breaks.append(error.message)
        except GatesError as error:
            self.not_derived.append(error.message)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            self.breaks.append(
                f"what is recorded does not fit together ({type(error).__name__}: {error}): gates did not write it so; "
                "if nobody else did, gates is mistaken: report it"
            )


def verify(workspace: Path, cache: Path, allowed: Path | None = None) -> Verified:
    """Derive again everything the ledger of a workspace names; `allowed` is an allowed-signers file from outside it."""
    prereg, reports = workspace / "prereg", workspace / "reports"
    ledger, notes = Ledger(prereg), _Notes()
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
    finished = _runs(ledger, entries, notes)
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
        notes.guard(partial(_check_run, (workspace, cache, reports), sealed, ended, (notes, shared)))
        _check_later((ledger, cache, reports), started, notes, shared)
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


def _runs(ledger: Ledger, entries: Sequence[Stored], notes: _Notes) -> list[tuple[Stored, Stored | None]]:
    """Every run of every gate; those of a gate that has one of them twice are a break."""
    found: list[tuple[Stored, Stored | None]] = []
    for gate in dict.fromkeys(stored.entry.gate for stored in entries):
        notes.guard(partial(_extend, found, partial(runs, ledger, gate)))
    return found


def _strays(workspace: Path, entries: Sequence[Stored], notes: _Notes) -> list[str]:
    found: list[str] = []
    if entries:
        notes.guard(partial(_extend, found, partial(unchecked, workspace, entries)))
    return found


def _extend(found: list[T], more: Callable[[], Iterable[T]]) -> None:
    found.extend(more())


def _seal(prereg: Path, stored: Stored) -> SealOnDisk:
    return read_seal(prereg, said(stored, "seal", str), said(stored, "file", str))


def _check_seal(history: History, stored: Stored) -> None:
    sealed = _seal(history.prereg, stored)
    _refuse_bent(sealed.path, stored_bytes(sealed.path))
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
    sealed = _seal(prereg, stored)
    check_planned(sealed.seal, sealed.path)


def _shared(workspace: Path, known: list[tuple[str, int]], notes: _Notes) -> Share | None:
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


def _check_run(
    places: tuple[Path, Path, Path], seal: Stored, ended: Stored, found: tuple[_Notes, Share | None]
) -> None:
    """Derive one finished run again: verdict from measurements, report from both, measurements from generations."""
    (workspace, cache, reports), (notes, shared) = places, found
    sealed = _seal(workspace / "prereg", seal)
    store = RunStore(reports, ended.entry.gate, said(ended, "run", int))
    files = finished_files(store, ended, WITHHELD if shared else ())
    ledger = Ledger(workspace / "prereg")
    if shared is None:
        store.check_sessions(ledger)
        store.check_closed(imported=sealed.seal.imported is not None, several=sealed.seal.gate.seats is not None)
        if sealed.seal.imported is not None:
            read_received(store, sealed.seal.imported)
        _check_read(store.folder, cache, ledger, notes)
    measurements = Measurements.parse(files["measurements.json"], where=str(store.folder / "measurements.json"))
    verdict = Verdict.parse(files["verdict.json"], where=str(store.folder / "verdict.json"))
    _check_files(store.folder, sealed, files, (measurements, verdict), notes)
    rules = _rules(sealed)
    if isinstance(rules, str):
        notes.not_derived.append(f"{store.folder / 'verdict.json'}: {rules}")
    else:
        again = judge(sealed.seal.gate, measurements, rules)
        if verdict.standing is None:
            notes.not_derived.append(f"{store.folder / 'verdict.json'}: an earlier gates wrote it without a standing")
        else:
            history = History(workspace / "prereg", Ledger(workspace / "prereg").entries())
            again = in_context(again, history, store.gate, store.number)
        check_same(store.folder / "verdict.json", verdict.as_json(), again.as_json())
    check_told(ended, outcomes_of(verdict))
    report = store.folder / "report.md"
    # The number that the report was written with: a merge of two branches may have moved the run since.
    number = said(replace(ended, entry=ended.written), "run", int)
    seat = seat_sentences(store.sessions())
    told = markdown(sealed, number, measurements, verdict, deviations=store.deviations(), seat=seat)
    notes.guard(partial(check_report, report, told, ended, "these measurements and this verdict"))
    if shared is not None:
        notes.not_derived.append(check_shared(store, ledger, measurements, shared))
        return
    inputs = sealed_inputs(workspace, cache, sealed)
    if isinstance(inputs, str):
        notes.not_derived.append(f"{store.folder / 'measurements.json'}: {inputs}")
        return
    (check_recorded if sealed.seal.imported is None else check_received)(inputs, sealed, store)
    left_to_ask(inputs, sealed.sha256, store)
    derived = measure_run(inputs, sealed.sha256, store)
    check_same(store.folder / "measurements.json", measurements.as_json(), derived.as_json())


def _check_files(
    folder: Path,
    sealed: SealOnDisk,
    files: Mapping[str, bytes],
    read: tuple[Measurements, Verdict],
    notes: _Notes,
) -> None:
    """Check that each of a run's files means one thing, that they are of one seal, and the verdict on these figures."""
    for name, data in files.items():
        _refuse_bent(folder / name, data)
    measurements, verdict = read
    for name, record in (("measurements.json", measurements), ("verdict.json", verdict)):
        if record.as_json()["seal"] != sealed.sha256:
            raise TamperedError(f"{folder / name}: it is of another seal")
        if record.digest() != sha256(files[name]):
            notes.not_derived.append(f"{folder / name}: it leaves out what this version of gates writes there")
    if verdict.measurements_sha256 != sha256(files["measurements.json"]):
        raise TamperedError(f"{folder / 'verdict.json'}: it is a verdict on other measurements")


def _rules(sealed: SealOnDisk) -> Mapping[str, FloorRule] | str:
    """The sealed gate's floor rules, or why they are not to be had here."""
    try:
        return rules_of(sealed.seal.gate)
    except UsageError as error:
        return f"not derived again: {error.message.replace(chr(10), ' ')}{sealed_with(sealed)}"


def _refuse_bent(path: Path, data: bytes) -> None:
    """Raise TamperedError for a record whose bytes another reader may read otherwise than this program does."""
    lines = data.splitlines() if path.suffix == ".jsonl" else [data] if path.suffix == ".json" and data else []
    for number, line in enumerate(lines, start=1):
        if not is_canonical(line):
            raise TamperedError(f"{path}:{number}: it is not the canonical JSON it was written as")


def _check_later(places: tuple[Ledger, Path, Path], started: Stored, notes: _Notes, shared: Share | None) -> None:
    """Derive again what came after a run: its re-scores and rechecks, which a share leaves out."""
    ledger, cache, reports = places
    gate, number = started.entry.gate, said(started, "run", int)
    scored, checked = rescores(ledger, gate, number), rechecks(ledger, gate, number)
    if shared is not None:
        if scored or checked:
            notes.not_derived.append(f"{len(scored)} re-scores and {len(checked)} rechecks are no part of this share")
        return
    for entered in scored:
        notes.guard(partial(_check_rescore, (cache, reports), entered))
    for begun, done in checked:
        notes.guard(partial(_check_recheck, (cache, reports), begun, done, notes))


def _check_rescore(places: tuple[Path, Path], entered: Stored) -> None:
    """Derive one re-score again, as of the ledger then: standing, rules held, measurements, verdict, report."""
    cache, reports = places
    run = read_run(RunStore(reports, entered.entry.gate, said(entered, "run", int)).folder)
    recorded, derived = derive_again(run, cache, entered)
    folder = folder_of(run.store, entered)
    for name in ("measurements", "rescore", "verdict"):
        stored, again = recorded.as_json()[name], derived.as_json()[name]
        check_same(folder / f"{name}.json", stored, again)
    for name in ("rescore", "verdict", *(["measurements"] if recorded.measurements else [])):
        _refuse_bent(folder / f"{name}.json", stored_bytes(folder / f"{name}.json"))
    judged_on = said(entered if recorded.measurements else run.ended, "measurements_sha256", str)
    if recorded.verdict.measurements_sha256 != judged_on:
        raise TamperedError(f"{folder / 'verdict.json'}: it is a verdict on other measurements")
    if recorded.rescore == derived.rescore:
        check_words(folder, recorded, entered)
        check_report(folder / "report.md", derived.report, entered, "this re-score")


def _check_recheck(places: tuple[Path, Path], begun: Stored, done: Stored | None, notes: _Notes) -> None:
    """Derive one recheck again: measurements from both sets of generations, outcome, report."""
    cache, reports = places
    store = RunStore(reports, begun.entry.gate, said(begun, "run", int))
    run, where = store.folder, store_of(store, begun).folder
    if done is None:
        notes.not_derived.append(f"{where} is not finished")
        return
    finished = read_run(run)
    recorded, derived = rederive(finished, cache, begun, done)
    for name in ("plan.json", "recheck.json", "generations.jsonl", "judgements.jsonl"):
        _refuse_bent(where / name, stored_bytes(where / name))
    check_told(done, {"outcome": recorded.outcome.value})
    notes.guard(partial(check_report, where / "report.md", report_of(finished, begun, recorded), done, "this recheck"))
    if isinstance(derived, str):
        notes.not_derived.append(f"{where}: {derived}")
    else:
        check_same(where / "recheck.json", recorded.as_json(), derived.as_json())


def _check_read(folder: Path, cache: Path, ledger: Ledger, notes: _Notes) -> None:
    """Check the marks of a run's readers, and derive its sign-offs again."""
    reading, entries = open_reading(folder, cache), ledger.entries()
    loose = reading.review.check(entries, reading.run.store.gate, reading.run.store.number)
    if loose:
        notes.not_derived.append(
            f"{reading.review.path}: no ledger record holds its last {loose} marks yet: `gates review` enters them"
        )
    strange = [
        mark.item
        for mark in reading.review.read()
        if mark.list_sha256 != reading.list_sha256 or mark.item not in reading.items
    ]
    if strange:
        raise TamperedError(f"{reading.review.path}: {len(strange)} marks are of no item of this run's reading list")
    notes.not_derived.extend(check_signoffs(reading, entries))
    for entered, readers in tallied(reading, entries):
        check_told(entered, {"readers": readers})
    if loose := check_votes(reading, entries):
        notes.not_derived.append(f"{folder / 'votes.jsonl'}: no ledger record holds its last {loose} votes yet")
