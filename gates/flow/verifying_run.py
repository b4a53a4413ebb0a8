"""Deriving one finished run again: from its generations to its verdict, its readers' marks and its sign-offs."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from gates.errors import TamperedError, UsageError
from gates.flow.blind import check_votes, tallied
from gates.flow.differing import check_same, check_told
from gates.flow.finished import sealed_inputs, sealed_with
from gates.flow.floors import rules_of
from gates.flow.generating import check_recorded
from gates.flow.importing import check_received, read_received
from gates.flow.judging import left_to_ask
from gates.flow.notes import Notes, refuse_bent, seal_of
from gates.flow.recorded import measure_run
from gates.flow.review import open_reading
from gates.flow.sharing import check_shared
from gates.flow.signed import check_signoffs
from gates.judge.verdict import Verdict, judge, outcomes_of
from gates.measure.figures import Measurements
from gates.record.body import check_report, said
from gates.record.ledger import Ledger, Stored
from gates.record.seal import SealOnDisk
from gates.record.share import WITHHELD, Share
from gates.record.standing import History, in_context
from gates.record.store import KeptStore, RunStore, finished_files
from gates.records import sha256
from gates.report.markdown import markdown
from gates.report.seat import seat_sentences


def check_run(places: tuple[Path, Path, Path], seal: Stored, ended: Stored, found: tuple[Notes, Share | None]) -> None:
    """Derive one finished run again: verdict from measurements, report from both, measurements from generations.

    What judging draws goes on beside the checks; what fails is told in one order all the same.
    """
    with ThreadPoolExecutor(max_workers=1) as beside:
        _check_run(places, (seal, ended), found, beside)


def _check_run(
    places: tuple[Path, Path, Path], records: tuple[Stored, Stored], found: tuple[Notes, Share | None], beside: Executor
) -> None:
    (workspace, cache, reports), (seal, ended), (notes, shared) = places, records, found
    sealed = seal_of(workspace / "prereg", seal)
    store = KeptStore(reports, ended.entry.gate, said(ended, "run", int))
    files = finished_files(store, ended, WITHHELD if shared else ())
    ledger = Ledger(workspace / "prereg")
    judging = beside.submit(_judged, sealed, files["measurements.json"])
    if shared is None:
        store.check_sessions(ledger)
        store.check_closed(imported=sealed.seal.imported is not None, several=sealed.seal.gate.seats is not None)
        if sealed.seal.imported is not None:
            read_received(store, sealed.seal.imported)
        _check_read(store, cache, ledger, notes)
    measurements = Measurements.parse(files["measurements.json"], where=str(store.folder / "measurements.json"))
    verdict = Verdict.parse(files["verdict.json"], where=str(store.folder / "verdict.json"))
    _check_files(store.folder, sealed, files, (measurements, verdict), notes)
    again = judging.result()
    if isinstance(again, str):
        notes.not_derived.append(f"{store.folder / 'verdict.json'}: {again}")
    else:
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
    notes: Notes,
) -> None:
    """Check that each of a run's files means one thing, that they are of one seal, and the verdict on these figures."""
    for name, data in files.items():
        refuse_bent(folder / name, data)
    measurements, verdict = read
    for name, record in (("measurements.json", measurements), ("verdict.json", verdict)):
        if record.as_json()["seal"] != sealed.sha256:
            raise TamperedError(f"{folder / name}: it is of another seal")
        if record.digest() != sha256(files[name]):
            notes.not_derived.append(f"{folder / name}: it leaves out what this version of gates writes there")
    if verdict.measurements_sha256 != sha256(files["measurements.json"]):
        raise TamperedError(f"{folder / 'verdict.json'}: it is a verdict on other measurements")


def _judged(sealed: SealOnDisk, measurements: bytes) -> Verdict | str:
    """The verdict on measurements, or why the sealed gate's floor rules are not to be had here."""
    try:
        rules = rules_of(sealed.seal.gate)
    except UsageError as error:
        return f"not derived again: {error.message.replace(chr(10), ' ')}{sealed_with(sealed)}"
    return judge(sealed.seal.gate, Measurements.parse(measurements, where="measurements.json"), rules)


def _check_read(store: RunStore, cache: Path, ledger: Ledger, notes: Notes) -> None:
    """Check the marks of a run's readers, and derive its sign-offs again."""
    reading, entries = open_reading(store.folder, cache, store), ledger.entries()
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
        notes.not_derived.append(f"{store.folder / 'votes.jsonl'}: no ledger record holds its last {loose} votes yet")
