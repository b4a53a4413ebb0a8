"""A finished run for other tools: read back, checked against the ledger, told in their form."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from pydantic import JsonValue

from gates.errors import UsageError
from gates.flow.finished import FinishedRun, read_run
from gates.record.ledger import Ledger, Stored
from gates.record.rescore import rescores
from gates.record.store import finished_files
from gates.records import sha256
from gates.report.inspect_log import Told, eval_log, file_name
from gates.report.intoto import statement

Format = Literal["intoto", "inspect"]
FORMATS: tuple[Format, ...] = get_args(Format)

Document = tuple[str, dict[str, JsonValue]]
"""A file's name and what it holds."""


def export_run(folder: Path, form: str, arm: str | None) -> dict[str, Document]:
    """The documents of a finished run by arm: of one, or of all that the format has something to say of.

    Raises UsageError for an arm that the gate has not, TamperedError where a file is not what the ledger says.
    """
    run = read_run(folder)
    gate = run.seal.gate
    every = gate.arms.candidates if form == "intoto" else gate.arms.all()
    if arm is not None and arm not in every:
        raise UsageError(f"{arm!r}: there is no such arm to export", next_step=f"choose one of: {', '.join(every)}")
    wanted = [arm] if arm is not None else [*every]
    return {name: _statement(run, name) if form == "intoto" else _log(run, name) for name in wanted}


def _statement(run: FinishedRun, arm: str) -> Document:
    files = {name: sha256(data) for name, data in finished_files(run.store, run.ended).items()}
    name = f"{run.seal.gate.name}-{run.store.number:03d}-{arm}.intoto.json"
    return name, statement(run.sealed, arm, run.verdict, files, _rescored(run))


def _rescored(run: FinishedRun) -> list[Stored]:
    return rescores(Ledger(run.workspace / "prereg"), run.store.gate, run.store.number)


def _log(run: FinishedRun, arm: str) -> Document:
    sessions = run.store.sessions()
    # When imported texts were generated nobody recorded.
    started = sessions[0].at if sessions else run.seal.sealed_at
    told = Told(
        sealed=run.sealed,
        number=run.store.number,
        measurements=run.measurements,
        verdict=run.verdict,
        started=started,
        ended=run.ended.entry.at,
        rescored=_rescored(run),
    )
    return file_name(told, arm), eval_log(told, arm, run.store.generations(run.sealed.sha256))
