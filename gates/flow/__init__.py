"""The whole path in three short functions: check a gate, seal it (`gates.flow.sealing`), run it.

gate → seal → generations → measurements → verdict → report; the last three in `gates.flow.concluding`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from gates.errors import RecordError
from gates.flow.binding import bind, sealed_cards
from gates.flow.concluding import conclude
from gates.flow.earlier import Asked
from gates.flow.floors import rules_of
from gates.flow.generating import generate_run
from gates.flow.inputs import Findings, Inputs, examine, load_inputs, lost_letters
from gates.flow.planning import operating_of, refuse_retired
from gates.flow.sealing import asked_of, seal
from gates.flow.world import World, this_world
from gates.judge.verdict import Verdict
from gates.measure.figures import Measurements
from gates.record.body import said
from gates.record.ledger import Ledger, Stored
from gates.record.rescore import rescores, told
from gates.record.seal import SealOnDisk, refuse_changes, seal_in_force
from gates.record.store import RunStore, finished_files, gate_lock, open_run, runs
from gates.records import Record
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
    """A finished run: seal, folder, measurements, verdict, how many attempts this gate has had, its re-scores."""

    sealed: SealOnDisk
    folder: Path
    measurements: Measurements
    verdict: Verdict
    attempts: int
    rescores: tuple[str, ...]


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
        if seal_in_force(inputs.prereg, inputs.gate.name, path) != sealed:
            raise RecordError(f"{path}: another process has sealed this gate meanwhile", next_step="look, and repeat")
        before = [r for r in runs(ledger.entries(), inputs.gate.name) if said(r[0], "seal", str) == sealed.sha256]
        ended = before[-1][1] if before else None
        if ended is not None and ended.entry.kind == "verdict" and not again:
            return _finished(inputs, sealed, ledger, ended)
        store = open_run(ledger, inputs.reports, inputs.gate.name, sealed.sha256, world.stamp())
        generate_run(inputs, sealed, store, world)
        entry = conclude(inputs, sealed, store, world)
        return _finished(inputs, sealed, ledger, entry)


def _asked(gate: Gate, path: Path, findings: Findings, inputs: Inputs | None) -> Asked:
    """The gate with as much of what it rests on as there is."""
    return asked_of(inputs) if inputs else Asked(gate, findings.beats, find_workspace(path))


def _finished(inputs: Inputs, sealed: SealOnDisk, ledger: Ledger, entry: Stored) -> Finished:
    """Read a finished run back, each file checked against the ledger."""
    store = RunStore(inputs.reports, inputs.gate.name, said(entry, "run", int))
    files = finished_files(store, entry)
    return Finished(
        sealed=sealed,
        folder=store.folder,
        measurements=Measurements.parse(files["measurements.json"], where=str(store.folder / "measurements.json")),
        verdict=Verdict.parse(files["verdict.json"], where=str(store.folder / "verdict.json")),
        attempts=len(runs(ledger.entries(), inputs.gate.name)),
        rescores=tuple(map(told, rescores(ledger, inputs.gate.name, store.number))),
    )
