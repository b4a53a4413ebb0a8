"""Reading a finished run back from its folder, every file checked against the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gates.errors import RecordError
from gates.judge.verdict import Verdict
from gates.measure.figures import Measurements
from gates.record.body import said
from gates.record.ledger import Ledger
from gates.record.seal import Seal, read_seal
from gates.record.store import RunStore, finished_files, runs


@dataclass(frozen=True)
class FinishedRun:
    """A finished run: its seal, its measurements and its first verdict."""

    seal: Seal
    measurements: Measurements
    verdict: Verdict


def read_run(folder: Path) -> FinishedRun:
    """The finished run in a folder such as reports/demo/001, under the workspace's ledger.

    Raises RecordError where no finished run is, TamperedError where a file is not what the ledger says.
    """
    home = folder.resolve()
    reports, prereg = home.parent.parent, home.parent.parent.parent / "prereg"
    gate, number = home.parent.name, home.name
    ledger = Ledger(prereg)
    known = {f"{said(started, 'run', int):03d}": (started, verdict) for started, verdict in runs(ledger, gate)}
    started, verdict = known.get(number, (None, None))
    if started is None or verdict is None:
        state = "is not finished" if started else f"is no run that {ledger.path} knows"
        raise RecordError(
            f"{folder}: this {state}", next_step="name the folder of a finished run, such as reports/GATE/001"
        )
    files = finished_files(RunStore(reports, gate, int(number)), verdict)
    seal = said(started, "seal", str)
    file = next(
        said(s, "file", str) for s in ledger.entries() if s.entry.kind == "seal" and said(s, "seal", str) == seal
    )
    return FinishedRun(
        seal=read_seal(prereg, seal, file).seal,
        measurements=Measurements.parse(files["measurements.json"], where=str(home / "measurements.json")),
        verdict=Verdict.parse(files["verdict.json"], where=str(home / "verdict.json")),
    )
