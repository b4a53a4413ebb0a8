"""The whole path in three short functions: check a gate, seal it, run it.

gate → seal → generations → measurements → verdict → report; the stages meet here and nowhere else.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue

from gates.flow.binding import bind, cards_of, context_of, sealed_cards
from gates.flow.earlier import Asked
from gates.flow.floors import rules_of
from gates.flow.generating import generate_run
from gates.flow.inputs import Findings, Inputs, examine, load_inputs, lost_letters, refuse_unpinned
from gates.flow.measuring import measure
from gates.flow.planning import operating_of, refuse_retired, seed_of
from gates.flow.reloads import reloaded
from gates.flow.seats import OpenSeat, open_seat
from gates.flow.world import World, this_world
from gates.judge.verdict import Verdict, judge
from gates.measure.figures import Measurements
from gates.record.body import said
from gates.record.ledger import Ledger, Stored
from gates.record.seal import Binding, Seal, SealOnDisk, latest_seal, refuse_changes, seal_in_force, write_seal
from gates.record.store import RunStore, finished_files, gate_lock, open_run, runs
from gates.records import Record, sha256
from gates.report.markdown import markdown
from gates.report.seat import seat_sentences
from gates.seat.identity import SeatIdentity, probe
from gates.spec.load import load_gate
from gates.spec.operating import OperatingCharacteristics
from gates.spec.schema import Gate
from gates.spec.workspace import find_workspace

__all__ = ["Checked", "Finished", "World", "check", "run", "seal", "this_world"]


class Checked(Record):
    """What a check found. A gate with anything in `missing` cannot be sealed."""

    gate: str
    sha256: str
    missing: tuple[str, ...]
    warnings: tuple[str, ...]
    letters_lost: dict[str, dict[str, float]]
    requests: int
    operating: OperatingCharacteristics | None


@dataclass(frozen=True)
class Finished:
    """A finished run: its seal, folder, measurements, verdict, and how many attempts this gate has had."""

    sealed: SealOnDisk
    folder: Path
    measurements: Measurements
    verdict: Verdict
    attempts: int


def check(path: Path, world: World, earlier: Path | None = None) -> Checked:
    """Validate everything about a gate that needs no seat; `earlier`: the run whose base seeds are split.

    Raises InputError when the file itself has mistakes, UsageError when the earlier run will not do.
    """
    gate = load_gate(path)
    findings = Findings()
    inputs = examine(path, world.cache, gate, findings)
    findings.attempt(lambda: refuse_retired(gate))
    rules = findings.attempt(lambda: rules_of(gate))
    known = findings.beats and rules is not None
    operating = operating_of(_asked(gate, path, findings, inputs), earlier) if known else None
    return Checked(
        gate=gate.name,
        sha256=gate.digest(),
        missing=tuple(findings.missing),
        warnings=(*findings.warnings, *(operating.warnings if operating else ())),
        letters_lost=lost_letters(inputs) if inputs else {},
        requests=(len(inputs.shown) if inputs else len(findings.beats))
        * len(gate.sampling.seeds)
        * len(gate.arms.all()),
        operating=operating,
    )


def seal(path: Path, world: World, earlier: Path | None = None) -> SealOnDisk:
    """Pre-register a gate: probe its seat, bind everything it rests on, write the seal and its ledger record.

    The seal names the run whose base seeds were split, `earlier` or the newest that will do.

    A gate whose seal in force binds all of this already keeps that seal. A seal made after a run of the gate has begun
    says so for ever.
    """
    inputs = load_inputs(path, world.cache)
    refuse_unpinned(inputs)
    refuse_retired(inputs.gate)
    with open_seat(inputs, world) as seat:
        identity = asyncio.run(_identity(inputs, seat))
    binding = bind(inputs, identity.binding.as_json(), cards_of(inputs, identity))
    before = latest_seal(inputs.prereg, inputs.gate.name)
    if before is not None and before.seal.binding == binding:
        world.say(f"sealed already, on {before.seal.sealed_at}, and nothing has changed")
        return before
    ledger, stamp = Ledger(inputs.prereg), world.stamp()
    for warning in [] if inputs.gate.seat == "embedded" else reloaded(ledger, inputs.gate, binding):
        world.say(f"note: {warning}")
    return write_seal(
        inputs.prereg,
        Seal(
            gate=inputs.gate,
            # The link's own name where the gate file is a link: the workspace is the one around the link.
            gate_file=(path.parent.resolve() / path.name).relative_to(inputs.workspace).as_posix(),
            binding=binding,
            context=context_of(identity, inputs.gate),
            order_seed=seed_of("order", inputs.gate),
            operating=operating_of(_asked_of(inputs, binding), earlier).as_json(),
            sealed_at=stamp.at,
            sealed_by=stamp.by,
            previous=ledger.heads(),
            amends=None if before is None else before.sha256,
            runs_before=len(runs(ledger, inputs.gate.name)),
        ),
        world.key,
    )


def run(path: Path, world: World, *, again: bool = False) -> Finished:
    """Run a sealed gate, continue its unfinished run, or show the finished one; `again` starts another attempt.

    Raises RefusedError without a seal or when anything binding has changed, SeatError when the seat fails.
    """
    inputs = load_inputs(path, world.cache)
    sealed = seal_in_force(inputs.prereg, inputs.gate.name, path)
    refuse_changes(sealed, bind(inputs, sealed.seal.binding.seat, sealed_cards(sealed)), inputs.gate)
    # From here on the sealed gate, not the file: its keys stand in one order whatever the order in the file.
    inputs = replace(inputs, gate=sealed.seal.gate)
    ledger = Ledger(inputs.prereg)
    with gate_lock(inputs.reports, inputs.gate.name):
        before = [r for r in runs(ledger, inputs.gate.name) if said(r[0], "seal", str) == sealed.sha256]
        ended = before[-1][1] if before else None
        if ended is not None and ended.entry.kind == "verdict" and not again:
            return _finished(inputs, sealed, ledger, ended)
        store = open_run(ledger, inputs.reports, inputs.gate.name, sealed.sha256, world.stamp())
        generate_run(inputs, sealed, store, world)
        measurements = measure(inputs, sealed.sha256, store.generations(sealed.sha256), store.generations_sha256())
        verdict = judge(inputs.gate, measurements, inputs.rules)
        measurements = store.write("measurements.json", measurements)
        verdict = store.write("verdict.json", verdict)
        seat = seat_sentences(store.sessions())
        report = markdown(sealed, store.number, measurements, verdict, deviations=store.deviations(), seat=seat)
        store.write_report(report)
        entry = ledger.append("verdict", inputs.gate.name, _outcome(store, verdict, report), world.stamp())
        return _finished(inputs, sealed, ledger, entry)


def _asked(gate: Gate, path: Path, findings: Findings, inputs: Inputs | None) -> Asked:
    """The gate with as much of what it rests on as there is."""
    return _asked_of(inputs) if inputs else Asked(gate, findings.beats, find_workspace(path))


def _asked_of(inputs: Inputs, binding: Binding | None = None) -> Asked:
    heldout = tuple(document.text for document in inputs.heldout)
    return Asked(inputs.gate, inputs.beats, inputs.workspace, inputs.probe, heldout, binding)


async def _identity(inputs: Inputs, seat: OpenSeat) -> SeatIdentity:
    async with seat.client() as client:
        return await probe(client, inputs.gate)


def _outcome(store: RunStore, verdict: Verdict, report: str) -> dict[str, JsonValue]:
    return {
        "run": store.number,
        "seal": verdict.seal,
        "generations_sha256": store.generations_sha256(),
        "measurements_sha256": verdict.measurements_sha256,
        "verdict_sha256": verdict.digest(),
        "sessions_sha256": store.sessions_sha256(),
        "report_sha256": sha256(report.encode()),
        "outcome": verdict.outcome.value,
        "candidates": {name: candidate.outcome.value for name, candidate in verdict.candidates.items()},
    }


def _finished(inputs: Inputs, sealed: SealOnDisk, ledger: Ledger, entry: Stored) -> Finished:
    """Read a finished run back, each file checked against the ledger."""
    store = RunStore(inputs.reports, inputs.gate.name, said(entry, "run", int))
    files = finished_files(store, entry)
    return Finished(
        sealed=sealed,
        folder=store.folder,
        measurements=Measurements.parse(files["measurements.json"], where=str(store.folder / "measurements.json")),
        verdict=Verdict.parse(files["verdict.json"], where=str(store.folder / "verdict.json")),
        attempts=len(runs(ledger, inputs.gate.name)),
    )
