"""Reading a finished run back from its folder, every file checked against the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gates.errors import RecordError
from gates.flow.binding import bind
from gates.flow.inputs import Findings, Inputs, examine
from gates.flow.plugins import plug_ins
from gates.judge.verdict import Verdict
from gates.measure.figures import Measurements
from gates.record.body import said
from gates.record.ledger import Ledger, Stored
from gates.record.seal import Seal, SealOnDisk, differences, entered_seal
from gates.record.store import RunStore, finished_files, run_place, runs


@dataclass(frozen=True)
class FinishedRun:
    """A finished run: its workspace, seal, folder, measurements, first verdict, and the ledger record of that.

    `attempts` counts the runs that this gate has had.
    """

    workspace: Path
    sealed: SealOnDisk
    store: RunStore
    measurements: Measurements
    verdict: Verdict
    ended: Stored
    attempts: int

    @property
    def seal(self) -> Seal:
        """The seal's record."""
        return self.sealed.seal


def read_run(folder: Path, store: RunStore | None = None) -> FinishedRun:
    """The finished run in a folder such as reports/demo/001, under the workspace's ledger; `store` is its own, if open.

    Raises RecordError where no finished run is, TamperedError where a file is not what the ledger says.
    """
    home = run_place(folder)
    reports, workspace = home.parent.parent, home.parent.parent.parent
    prereg, gate, number = workspace / "prereg", home.parent.name, home.name
    ledger = Ledger(prereg)
    entries = ledger.entries()
    known = {f"{said(started, 'run', int):03d}": (started, ended) for started, ended in runs(entries, gate)}
    started, ended = known.get(number, (None, None))
    if started is None or ended is None or ended.entry.kind != "verdict":
        state = f"is no run that {ledger.path} knows" if started is None else "is not finished"
        raise RecordError(
            f"{folder}: this {'is spoiled: it can never be judged' if ended else state}",
            next_step="name the folder of a finished run, such as reports/GATE/001",
        )
    store = store or RunStore(reports, gate, int(number))
    files = finished_files(store, ended)
    return FinishedRun(
        workspace=workspace,
        sealed=entered_seal(prereg, entries, said(started, "seal", str)),
        store=store,
        measurements=Measurements.parse(files["measurements.json"], where=str(home / "measurements.json")),
        verdict=Verdict.parse(files["verdict.json"], where=str(home / "verdict.json")),
        ended=ended,
        attempts=len(known),
    )


def sealed_inputs(workspace: Path, cache: Path, sealed: SealOnDisk) -> Inputs | str:
    """The sealed gate's inputs as they are now, adapters left out, or the reason why they are not the sealed ones."""
    findings = Findings()
    gate = sealed.seal.gate
    inputs = examine(workspace / sealed.seal.gate_file, cache, gate, findings, adapters=False)
    if inputs is None:
        missing = "; ".join(sentence.replace("\n", " ") for sentence in findings.missing)
        return f"not derived again: {missing}{sealed_with(sealed)}"
    then, now = sealed.seal.binding.as_json(), bind(inputs, sealed.seal.binding.seat, {}).as_json()
    parts = ("texts", "prompts", "frame", "signatures")
    changed = differences({part: then[part] for part in parts}, {part: now[part] for part in parts})
    return f"not derived again, its inputs have changed: {'; '.join(changed)}" if changed else inputs


def sealed_with(sealed: SealOnDisk) -> str:
    """Which plug-ins the seal was made with and what stands in their place here, where that is something else."""
    then, now = sealed.seal.context.get("plug_ins"), plug_ins(sealed.seal.gate)
    if not isinstance(then, dict):
        return ""
    other = [
        f"{name} was sealed with {was}, here is {now.get(name)}" for name, was in then.items() if now.get(name) != was
    ]
    return "".join(f"; {sentence}" for sentence in other)
