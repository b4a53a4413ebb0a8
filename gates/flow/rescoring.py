"""Judging a finished run again under another rule: no generation, no seat, and the old verdict stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar, cast

from pydantic import JsonValue

from gates.errors import GatesError, RecordError, UsageError
from gates.flow.finished import FinishedRun, read_run
from gates.flow.overlap import Engine, Here
from gates.flow.regauging import Gauge, floor_named, refuse_other_texts, sealed_signatures
from gates.flow.sealing import gate_file
from gates.flow.weighing import Case, Weighed, judged_again, known_of, versions
from gates.flow.world import World
from gates.judge.standing import weakest
from gates.judge.verdict import Verdict
from gates.measure.figures import Measurements
from gates.record.body import said
from gates.record.ledger import Ledger, Stored
from gates.record.rescore import (
    AxisChange,
    Rescore,
    RescoreFiles,
    folder_of,
    next_number,
    read_rescore,
    rescore_folder,
    told,
    write_rescore,
)
from gates.record.seal import Seal
from gates.record.standing import IMPORTED, History, attempts_at
from gates.record.store import gate_lock, run_place
from gates.records import Sha256, canonical
from gates.report.rescored import rescored_markdown
from gates.report.wording import in_order, why_changed
from gates.spec.fields import RETIRED, stated
from gates.spec.load import load_gate
from gates.spec.schema import Gate

T = TypeVar("T")
Seals = dict[Sha256, Seal]
"""Seals by hash, each read once however many runs are judged again."""


@dataclass(frozen=True)
class Asked:
    """What a person asks for: a floor rule by name or another gate file, and why."""

    reason: str
    rule: str | None = None
    gate: Path | None = None


@dataclass(frozen=True)
class Rescored:
    """A re-score with its new verdict, the old one, and the folder it lies in."""

    made: Rescore
    verdict: Verdict
    old: Verdict
    folder: Path


@dataclass(frozen=True)
class Wanted:
    """One run that is to be judged again, and where its texts are: all that a worker needs, which sees its folder."""

    folder: Path
    cache: Path
    asked: Asked


def rescore(folder: Path, world: World, asked: Asked) -> Rescored:
    """Judge the finished run in `folder` again, and enter the new verdict beside the old one.

    The same asked again before anything else is entered, as after an interruption, is the same re-score.
    Raises UsageError for a rule or gate that cannot judge it, RecordError where no finished run is.
    """
    (made,) = rescore_all([folder], world, asked)
    if isinstance(made, GatesError):
        raise made
    return made


def rescore_all(
    folders: Sequence[Path], world: World, asked: Asked, engine: Engine | None = None
) -> Iterator[Rescored | GatesError]:
    """Judge finished runs again, each as `rescore` does, and enter them one after another in the order given.

    What is costly runs on the engine, here or on a cluster whose workers see the workspace under the same path; records
    are written here alone, so they are the same wherever it ran. For a run that cannot be judged again its error comes
    in its place, and the others are judged all the same.
    """
    stated(asked.reason)
    wanted = [Wanted(run_place(folder), world.cache.resolve(), asked) for folder in folders]
    found = _ahead((engine or Here()).run(dict, weigh, wanted))
    seals: Seals = {}
    for one, weighed in zip(wanted, found, strict=True):
        try:
            if isinstance(weighed, GatesError):
                raise weighed
            yield _entered(one, weighed, world, seals)
        except GatesError as error:
            yield error


def _ahead(found: Iterator[T]) -> Iterator[T]:
    """The same, each made while the one before it is used: the disk that confirms a record keeps nobody waiting."""
    end = object()
    with ThreadPoolExecutor(max_workers=1) as beside:
        coming = beside.submit(next, found, end)
        while (one := coming.result()) is not end:
            coming = beside.submit(next, found, end)
            yield cast("T", one)


def weigh(seals: Seals, wanted: Wanted) -> Weighed | GatesError:
    """Judge one run again, nothing written; an error is a result like others. `seals` are those read before."""
    try:
        return judged_again(_case(wanted, seals))
    except GatesError as error:
        return error


def _case(wanted: Wanted, seals: Seals) -> Case:
    run = read_run(wanted.folder)
    gate, file = _asked_gate(run, wanted.asked)
    ledger = Ledger(run.workspace / "prereg")
    history = History(ledger.prereg, ledger.entries(), seals)
    return Case(run, gate, file, history, Gauge(run, wanted.cache, gate, run.workspace / file, texts=True))


def _entered(wanted: Wanted, weighed: Weighed, world: World, seals: Seals) -> Rescored:
    """Write a re-score and enter it in the ledger as it stands now."""
    asked, case = wanted.asked, weighed.case or _case(wanted, seals)
    run, ledger = case.run, Ledger(case.run.workspace / "prereg")
    with gate_lock(run.workspace / "reports", run.store.gate):
        case = replace(case, history=History(ledger.prereg, ledger.entries(), seals))
        stamp = world.stamp()
        case.made.update(
            {
                "asked": f"rule {asked.rule}" if asked.rule else f"gate {case.file}",
                "reason": asked.reason,
                "gate_file": case.file,
                "run": run.store.number,
                "at": stamp.at,
                "by": stamp.by,
            }
        )
        if again := _entered_last(run, case.gate, case.history, case.made):
            world.say("re-scored already, and nothing has been entered since")
            return again
        if weighed.known != known_of(case.history):  # somebody sealed or ran a gate meanwhile
            weighed = judged_again(case)
        made, verdict, measurements, report = _scored(case, weighed)
        number = next_number(ledger, run.store)
        body = write_rescore(run.store, number, made, verdict, measurements, report)
        ledger.append("rescore", run.store.gate, body, stamp)
    return Rescored(made, verdict, run.verdict, rescore_folder(run.store, number, made.digest()))


def _entered_last(run: FinishedRun, gate: Gate, history: History, about: Mapping[str, JsonValue]) -> Rescored | None:
    """This very re-score, where the ledger ends with it, or with it and others asked for in the same words."""
    for last in reversed(history.records):
        if last.entry.kind != "rescore" or last.entry.body["asked"] != about["asked"]:
            return None
        if last.entry.gate == run.store.gate and said(last, "run", int) == run.store.number:
            folder = folder_of(run.store, last)
            found = read_rescore(folder, last)
            told = found.rescore.as_json()
            same = found.rescore.gate == gate and all(told[name] == about[name] for name in about if name != "at")
            return Rescored(found.rescore, found.verdict, run.verdict, folder) if same else None
    return None


def derive_again(run: FinishedRun, cache: Path, entered: Stored) -> tuple[RescoreFiles, RescoreFiles]:
    """A recorded re-score and the same derived again, as of the ledger then.

    Raises TamperedError for a file that is not what the ledger says, RecordError where texts it needs are not here.
    """
    folder = folder_of(run.store, entered)
    stored = read_rescore(folder, entered)
    made = stored.rescore
    prereg = run.workspace / "prereg"
    history = History(prereg, Ledger(prereg).entries()).as_of(made.as_of)
    gauge = Gauge(run, cache, made.gate, run.workspace / made.gate_file, texts=made.texts != "missing")
    about = {name: made.as_json()[name] for name in ("asked", "reason", "gate_file", "run", "at", "by")}
    case = Case(run, made.gate, made.gate_file, history, gauge, about)
    if versions(case) != made.signatures:
        raise RecordError(f"{folder / 'rescore.json'}: not derived again, it was made with other versions of measures")
    again, verdict, measurements, report = _scored(case, judged_again(case))
    if made.texts == "used" and again.texts == "missing":
        raise RecordError(f"{folder / 'rescore.json'}: {gauge.why_missing}")
    if again.inputs != made.inputs:
        raise RecordError(f"{folder / 'rescore.json'}: not derived again, the texts it was measured with have changed")
    return stored, RescoreFiles(rescore=again, verdict=verdict, measurements=measurements, report=report)


def _asked_gate(run: FinishedRun, asked: Asked) -> tuple[Gate, str]:
    """The gate that is to judge, and its file."""
    if asked.rule is not None and asked.gate is None:
        return floor_named(run.seal.gate, asked.rule), run.seal.gate_file
    if asked.gate is None or asked.rule is not None:
        raise UsageError(
            "name what judges the run again: either --rule NAME@VERSION or --gate FILE", next_step="see --help"
        )
    gate = load_gate(asked.gate)
    refuse_other_texts(asked.gate, run.seal.gate, gate)
    # As it will be read back: its keys stand in one order whatever the order in the file.
    gate = Gate.parse(canonical(gate.as_json()), where=str(asked.gate))
    try:
        return gate, gate_file(asked.gate, run.workspace)
    except ValueError:
        raise UsageError(
            f"{asked.gate}: the gate file lies outside the run's workspace {run.workspace}",
            next_step="copy it into the workspace's prereg/",
        ) from None


def _scored(case: Case, weighed: Weighed) -> tuple[Rescore, Verdict, Measurements | None, str]:
    """The re-score, its verdict, its own measurements where it measured otherwise, and its report. Nothing written."""
    run, gate, judged, remeasured = case.run, case.gate, weighed.verdict, weighed.measurements is not None
    standing = weakest(weighed.axes.values())
    imported = [str(IMPORTED)] if standing.name == "imported" else []
    verdict = judged.model_copy(
        update={
            "standing": standing,
            "attempts": attempts_at(case.history, run.store.gate, run.sealed.sha256, more=1),
            "warnings": (*judged.warnings, *imported),
        }
    )
    made = Rescore.parse(
        canonical(
            {
                **case.made,
                "schema": "gates.rescore/1",
                "seal": run.sealed.sha256,
                "generations_sha256": run.measurements.generations_sha256,
                "old_verdict_sha256": run.verdict.digest(),
                "gate": gate.as_json(),
                "first": _said_first(case, remeasured=remeasured),
                "standing": standing.as_json(),
                "axes": {axis: found.as_json() for axis, found in weighed.axes.items()},
                "changes": [change.as_json() for change in _changes(run.verdict, verdict)],
                "held": [row.as_json() for row in weighed.held],
                "earlier": _earlier(case),
                "texts": weighed.texts,
                "signatures": versions(case),
                "inputs": weighed.inputs if remeasured else None,
                "as_of": list(case.history.heads),
            }
        ),
        where="rescore.json",
    )
    verdict = Verdict.parse(canonical(verdict.as_json()), where="verdict.json")
    return made, verdict, weighed.measurements, rescored_markdown(run.sealed, made, verdict)


def _said_first(case: Case, *, remeasured: bool) -> list[str]:
    """What a reader must know before any figure of this re-score."""
    run = case.run
    found = []
    for name, arm in run.measurements.arms.items():
        seen = arm.validity
        if seen.errors or seen.present != seen.expected:
            found.append(
                f"{name}: {seen.errors} of {seen.expected} texts are errors, {seen.expected - seen.present} missing"
            )
    now = sealed_signatures(run.seal.gate)
    for axis, then in run.seal.binding.signatures.items():
        if now.get(axis) != then and not axis.endswith(".floor"):
            kept = "measured again with it" if remeasured else "the figures are as they were recorded"
            found.append(f"{axis} was measured as {then}, this version of gates has {now.get(axis)}: {kept}")
    if RETIRED in {axis.floor for axis in (case.gate.voice, *case.gate.damage.named().values())}:
        found.append(f"{RETIRED} is retired: a candidate's verdict then hangs on which other arms exist")
    if remeasured:
        found.append("the gate measures otherwise: the same texts were measured again")
    return found


def _changes(old: Verdict, new: Verdict) -> list[AxisChange]:
    """Every axis of every candidate, old and new side by side."""
    changes = []
    for candidate in dict.fromkeys([*old.candidates, *new.candidates]):
        before = old.candidates[candidate].axes if candidate in old.candidates else {}
        after = new.candidates[candidate].axes if candidate in new.candidates else {}
        for axis in (found.axis for found in in_order({**before, **after})):
            one, other = before.get(axis), after.get(axis)
            changes.append(AxisChange(candidate=candidate, axis=axis, old=one, new=other, why=why_changed(one, other)))
    return changes


def _earlier(case: Case) -> list[str]:
    """The re-scores of this run that the ledger held already."""
    gate, number = case.run.store.gate, case.run.store.number
    mine = [record for record in case.history.records if record.entry.kind == "rescore" and record.entry.gate == gate]
    return [told(record) for record in mine if said(record, "run", int) == number]
