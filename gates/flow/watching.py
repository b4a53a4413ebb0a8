"""How far a run is, read from its folder while another process writes there; or how it ended."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import Field

from gates.errors import GatesError, RecordError
from gates.record.body import said
from gates.record.files import stored_bytes
from gates.record.ledger import Ledger, Stored
from gates.record.seal import Seal, entered_seal
from gates.record.store import RunStore, is_running, run_place, runs
from gates.records import Generation, Record
from gates.spec.prompts import read_beats
from gates.spec.workspace import resolve_inside

State = Literal["running", "stopped", "finished", "spoiled"]


class ArmStatus(Record):
    """Texts of one arm: recorded, expected (None where the beats cannot be read), and without an answer."""

    done: int
    total: int | None
    errors: int


class RunStatus(Record):
    """How far a run is. Times in seconds; `left_s` is an estimate at the pace so far, None where there is none.

    `running`: a process holds the gate; `stopped`: none does, and `gates run` would continue. `outcome` is the
    verdict's, `candidates` the outcome of each; both empty before there is one.
    """

    gate: str
    run: int
    folder: str
    state: State
    arms: dict[str, ArmStatus]
    completion_tokens: int
    tokens_per_s: float | None
    retries: int
    elapsed_s: float
    left_s: float | None
    attempts: int
    outcome: str = ""
    candidates: dict[str, str] = Field(default_factory=dict)
    why: str = ""

    @property
    def done(self) -> int:
        """Texts recorded, of all arms."""
        return sum(arm.done for arm in self.arms.values())

    @property
    def total(self) -> int | None:
        """Texts expected, of all arms."""
        totals = [arm.total for arm in self.arms.values()]
        return None if None in totals else sum(total or 0 for total in totals)


def latest_run(workspace: Path) -> Path:
    """The folder of the run that the ledger entered last. Raises RecordError where there is none."""
    started = [stored for stored in Ledger(workspace / "prereg").entries() if stored.entry.kind == "run"]
    if not started:
        raise RecordError(f"{workspace}: no run has begun here", next_step="gates run GATE")
    return workspace / "reports" / started[-1].entry.gate / f"{said(started[-1], 'run', int):03d}"


def status_of(folder: Path) -> RunStatus:
    """How far the run in a folder such as reports/demo/001 is. Nothing is locked and nothing written.

    Raises RecordError for a folder that is no run of the ledger.
    """
    home = run_place(folder)
    workspace = home.parent.parent.parent
    ledger = Ledger(workspace / "prereg")
    entries = ledger.entries()
    known = {f"{said(started, 'run', int):03d}": (started, ended) for started, ended in runs(entries, home.parent.name)}
    if home.name not in known:
        raise RecordError(
            f"{folder}: this is no run that {ledger.path} knows", next_step="name a folder such as reports/GATE/001"
        )
    started, ended = known[home.name]
    store = RunStore(workspace / "reports", home.parent.name, int(home.name))
    seal = entered_seal(ledger.prereg, entries, said(started, "seal", str)).seal
    found = _recorded(store)
    arms = _arms(seal, found, _prompts(workspace, seal))
    elapsed = _elapsed(found)
    tokens = sum(one.usage.completion_tokens for one in found if one.usage)
    left = sum((arm.total or 0) - arm.done for arm in arms.values()) if ended is None else 0
    return RunStatus(
        gate=home.parent.name,
        run=int(home.name),
        folder=str(folder),
        state=_state(ended, is_running(workspace / "reports", store.gate)),
        arms=arms,
        completion_tokens=tokens,
        tokens_per_s=tokens / elapsed if elapsed else None,
        retries=sum(one.attempts - 1 for one in found),
        elapsed_s=elapsed,
        left_s=left * elapsed / len(found) if found and None not in {arm.total for arm in arms.values()} else None,
        attempts=len(known),
        outcome=str(ended.entry.body.get("outcome", "")) if ended else "",
        candidates=_outcomes(ended),
        why=str(ended.entry.body.get("why", "")) if ended else "",
    )


def _state(ended: Stored | None, held: bool) -> State:
    if ended is None:
        return "running" if held else "stopped"
    return "spoiled" if ended.entry.kind == "spoiled" else "finished"


def _outcomes(ended: Stored | None) -> dict[str, str]:
    told = ended.entry.body.get("candidates") if ended else None
    return {name: str(outcome) for name, outcome in told.items()} if isinstance(told, dict) else {}


def _recorded(store: RunStore) -> list[Generation]:
    """The whole lines of generations.jsonl: the last one may be half written at this moment."""
    if not store.generations_path.exists():
        return []
    lines = stored_bytes(store.generations_path).split(b"\n")[:-1]
    return [Generation.parse(line, where=str(store.generations_path)) for line in lines]


def _prompts(workspace: Path, seal: Seal) -> int | None:
    """How many prompts each arm is asked; None where the beats cannot be read now."""
    gate, path = seal.gate, workspace / seal.gate_file
    files = [("prompts.file", gate.prompts.file), *([("probe.file", gate.probe.file)] if gate.probe else [])]
    try:
        return sum(len(read_beats(resolve_inside(workspace, path, file, field=field))) for field, file in files)
    except GatesError:
        return None


def _arms(seal: Seal, found: list[Generation], prompts: int | None) -> dict[str, ArmStatus]:
    done, errors = Counter(one.arm for one in found), Counter(one.arm for one in found if one.error is not None)
    return {
        arm: ArmStatus(
            done=done[arm],
            total=None if prompts is None else prompts * len(seal.gate.seeds(arm)),
            errors=errors[arm],
        )
        for arm in seal.gate.arms.all()
    }


def _elapsed(found: list[Generation]) -> float:
    """From the first request to the last answer, pauses of more than ten minutes between answers left out."""
    spans = sorted((begun := datetime.fromisoformat(one.started).timestamp(), begun + one.latency_s) for one in found)
    total, last = 0.0, None
    for begun, ended in spans:
        if last is None or begun - last > 600:
            total, last = total + ended - begun, ended
        elif ended > last:
            total, last = total + ended - last, ended
    return total
