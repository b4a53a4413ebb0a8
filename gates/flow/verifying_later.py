"""Deriving again what came after a run: its re-scores and rechecks."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from gates.errors import TamperedError
from gates.flow.differing import check_same, check_told
from gates.flow.finished import read_run
from gates.flow.notes import Notes, refuse_bent
from gates.flow.rechecking import rederive, report_of
from gates.flow.rescoring import derive_again
from gates.record.body import check_report, said
from gates.record.files import stored_bytes
from gates.record.ledger import Ledger, Stored
from gates.record.recheck import read_plan, rechecks, store_of
from gates.record.rescore import check_words, folder_of, rescores
from gates.record.share import Share
from gates.record.store import RunStore


def check_later(places: tuple[Ledger, Path, Path], started: Stored, notes: Notes, shared: Share | None) -> None:
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
        refuse_bent(folder / f"{name}.json", stored_bytes(folder / f"{name}.json"))
    judged_on = said(entered if recorded.measurements else run.ended, "measurements_sha256", str)
    if recorded.verdict.measurements_sha256 != judged_on:
        raise TamperedError(f"{folder / 'verdict.json'}: it is a verdict on other measurements")
    if recorded.rescore == derived.rescore:
        check_words(folder, recorded, entered)
        check_report(folder / "report.md", derived.report, entered, "this re-score")


def _check_recheck(places: tuple[Path, Path], begun: Stored, done: Stored | None, notes: Notes) -> None:
    """Derive one recheck again: measurements from both sets of generations, outcome, report."""
    cache, reports = places
    store = RunStore(reports, begun.entry.gate, said(begun, "run", int))
    run, where = store.folder, store_of(store, begun).folder
    if done is None:
        read_plan(store_of(store, begun), begun)
        notes.not_derived.append(f"{where} is not finished")
        return
    finished = read_run(run)
    recorded, derived = rederive(finished, cache, begun, done)
    for name in ("plan.json", "recheck.json", "generations.jsonl", "judgements.jsonl"):
        refuse_bent(where / name, stored_bytes(where / name))
    check_told(done, {"recheck": said(begun, "recheck", int), "outcome": recorded.outcome.value})
    notes.guard(partial(check_report, where / "report.md", report_of(finished, begun, recorded), done, "this recheck"))
    if isinstance(derived, str):
        notes.not_derived.append(f"{where}: {derived}")
    else:
        check_same(where / "recheck.json", recorded.as_json(), derived.as_json())
