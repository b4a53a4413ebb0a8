"""Texts that are older than this record become a run: hashed as received, judged, and never equal to a sealed one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gates.errors import TamperedError, UsageError
from gates.flow.binding import bind
from gates.flow.concluding import conclude
from gates.flow.finished import FinishedRun, read_run
from gates.flow.inputs import Findings, Inputs, examine, refuse_unpinned
from gates.flow.planning import operating_of, seed_of
from gates.flow.received import FIELDS, Reader
from gates.flow.sealing import asked_of, gate_file
from gates.flow.world import World
from gates.record.body import said
from gates.record.files import write_once
from gates.record.ledger import Ledger
from gates.record.seal import AdapterIdentity, Imported, Seal, SealOnDisk, read_seal, write_seal_held
from gates.record.store import RunStore, gate_lock, open_run, runs
from gates.records import canonical, sha256
from gates.seat.identity import adapter_files
from gates.spec.asking import Base
from gates.spec.load import load_gate
from gates.spec.schema import Gate
from gates.spec.workspace import adapter_path

RECEIVED = "received.jsonl"
"""The file as it came, byte for byte, in the run's folder."""


@dataclass(frozen=True)
class _Received:
    data: bytes
    path: Path
    names: Mapping[str, str]


def import_texts(received: Path, gate: Path, names: Mapping[str, str], world: World) -> FinishedRun:
    """Make a file of texts a run of the gate, and judge it. The same file under the same gate is imported once.

    `names`: where a field of `FIELDS` has another name in the file. Raises InputError for a file with mistakes,
    UsageError for a gate that cannot be used.
    """
    unknown = [name for name in names if name not in FIELDS]
    if unknown:
        raise UsageError(f"--map {unknown[0]}: there is no such field", next_step=f"map one of: {', '.join(FIELDS)}")
    inputs = _inputs(gate, world.cache)
    file = _Received(_bytes(received), received, dict(sorted(names.items())))
    # Before anything is written: a file with mistakes leaves no trace.
    Reader(inputs, "0" * 64, file.names, received).generations(file.data)
    with gate_lock(inputs.reports, inputs.gate.name):
        ledger = Ledger(inputs.prereg)
        sealed = _known(inputs, ledger, file) or _entered(inputs, ledger, file, world)
        done = [r for r in runs(ledger.entries(), inputs.gate.name) if said(r[0], "seal", str) == sealed.sha256]
        if done and done[-1][1] is not None:
            world.say("imported already: this is what was said of it")
            return read_run(RunStore(inputs.reports, inputs.gate.name, said(done[-1][0], "run", int)).folder)
        store = open_run(ledger, inputs.reports, inputs.gate.name, sealed.sha256, world.stamp())
        recorded = store.resume(sealed.sha256)
        write_once(store.folder / RECEIVED, file.data)
        write_once(store.sessions_path, b"")
        for generation in Reader(inputs, sealed.sha256, file.names, received).generations(file.data):
            if generation.key not in recorded:
                store.add(generation)
        conclude(inputs, sealed, store, world)
    return read_run(store.folder)


def read_received(store: RunStore, made: Imported) -> bytes:
    """The file that a run was made of, as received. Raises TamperedError where it is another one."""
    path = store.folder / RECEIVED
    if not path.is_file() or sha256(path.read_bytes()) != made.sha256:
        raise TamperedError(f"{path}: not the file that was received", next_step="restore it from its commit")
    return path.read_bytes()


def check_received(inputs: Inputs, sealed: SealOnDisk, store: RunStore) -> None:
    """Raise TamperedError unless the run's generations are those of the file that was received."""
    made = sealed.seal.imported
    if made is None:
        raise TamperedError(f"{store.folder}: its seal was made for no imported texts")
    data = read_received(store, made)
    read = Reader(inputs, sealed.sha256, made.names, store.folder / RECEIVED).generations(data)
    if read != list(store.generations(sealed.sha256)):
        raise TamperedError(f"{store.generations_path}: not the texts of {RECEIVED}")


def _inputs(path: Path, cache: Path) -> Inputs:
    """As `load_inputs`, but no adapter has to be here any more. The gate's keys stand in the order of a record."""
    gate = load_gate(path)
    gate = Gate.parse(canonical(gate.as_json()), where=str(path))
    findings = Findings()
    inputs = examine(path, cache, gate, findings, adapters=False)
    if inputs is None or findings.missing:
        raise UsageError(
            "\n".join([f"{path}: the gate cannot be used yet:", *findings.missing]), next_step=f"gates check {path}"
        )
    refuse_unpinned(inputs)
    if gate.judge is not None:
        raise UsageError(
            f"{path}: judge: an import asks no seat, so `judged_on_beat` would never be measured",
            next_step="import under a gate without `judge` and `damage.judged_on_beat`",
        )
    return inputs


def _bytes(path: Path) -> bytes:
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file", next_step="name a file of one JSON object a line")
    return path.read_bytes()


def _known(inputs: Inputs, ledger: Ledger, file: _Received) -> SealOnDisk | None:
    """The seal of an earlier import of the same file under the same gate, if there is one."""
    for record in ledger.entries():
        if record.entry.kind == "import" and record.entry.gate == inputs.gate.name:
            sealed = read_seal(inputs.prereg, said(record, "seal", str), said(record, "file", str))
            made = sealed.seal.imported
            same = made is not None and (made.sha256, made.names) == (sha256(file.data), file.names)
            if same and sealed.seal.gate == inputs.gate:
                return sealed
    return None


def _entered(inputs: Inputs, ledger: Ledger, file: _Received, world: World) -> SealOnDisk:
    """The seal of an import, entered: what the texts are judged by, and that nothing was fixed before them."""
    binding = bind(inputs, {}, {}).model_copy(update={"adapters": _declared(inputs)})
    operating = operating_of(asked_of(inputs))
    with ledger.writing():
        stamp = world.stamp()
        seal = Seal(
            gate=inputs.gate,
            gate_file=gate_file(inputs.path, inputs.workspace),
            binding=binding,
            context={},
            order_seed=seed_of("order", inputs.gate),
            operating=operating.as_json(),
            sealed_at=stamp.at,
            sealed_by=stamp.by,
            previous=ledger.heads(),
            amends=None,
            runs_before=len(runs(ledger.entries(), inputs.gate.name)),
            imported=Imported(
                file=file.path.name, sha256=sha256(file.data), bytes=len(file.data), names=dict(file.names)
            ),
        )
        return write_seal_held(ledger, seal, world.key)


def _declared(inputs: Inputs) -> dict[str, AdapterIdentity]:
    """The adapters that the gate names, by the files that lie there now: declared, nothing shows that they wrote."""
    found = {}
    for name, arm in inputs.gate.arms.all().items():
        if not isinstance(arm, Base) and arm.adapter is not None:
            place = adapter_path(inputs.workspace, inputs.path, arm.adapter, field=f"adapter of {name}")
            found[name] = AdapterIdentity(files=adapter_files(place), card=None)
    return found
