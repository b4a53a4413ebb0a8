"""Rechecks of a signed run: what will be asked, fixed before a text is generated, and what came of it.

reports/GATE/NUMBER/rechecks/NUMBER-HASH/plan.json      arm, seeds, the seat as it is now, what has changed since
                                    generations.jsonl   as in a run
                                    judgements.jsonl    as in a run, where the gate names a judge
                                    recheck.json        measurements and outcome
                                    report.md           the same for people
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue

from gates import __version__
from gates.errors import TamperedError
from gates.judge.verdict import CandidateVerdict
from gates.measure.figures import Measurements
from gates.record.body import said
from gates.record.files import make_folder, read_recorded, refuse_link, replace, write_once
from gates.record.ledger import Ledger, Stamp, Stored
from gates.record.store import RunStore
from gates.records import Outcome, Record, Sha256, canonical, sha256


class RecheckPlan(Record):
    """What a recheck asks of which seat (`gates.recheck.plan/1`), written before its first generation.

    `seeds` are drawn from the seal's hash, so that nobody chooses them. `changed` says how this serving form (adapter
    bytes, base, server, sampling) differs from the one that was judged. `alone`: the seat serves the voice without the
    base, as a merged or quantised model.
    """

    schema_: Literal["gates.recheck.plan/1"] = Field(default="gates.recheck.plan/1", alias="schema")
    run: int
    seal: Sha256
    verdict_sha256: Sha256
    arm: str
    model: str
    alone: bool
    seeds: tuple[int, ...] = Field(min_length=2)
    seat_label: str
    seat: dict[str, JsonValue]
    canary: dict[str, JsonValue]
    cache_salt: str
    changed: tuple[str, ...]
    signoffs: tuple[Sha256, ...] = Field(description="the sign-offs of this arm, which cover the form that was judged")
    false_alarm: float
    shift_80: float
    at: str
    by: str

    @property
    def otherwise(self) -> str:
        """What a serving form that differs is called: signatures cover one form alone; empty where none differs."""
        return f"not what was {'signed' if self.signoffs else 'judged'}" if self.changed else ""


class Recheck(Record):
    """What a recheck found (`gates.recheck/1`): the voice now against the same voice when it was judged.

    In `measurements` the arm `base` is the voice as it was then. `same_texts` of `texts` are the same to the letter.
    `troubles` are of the seat and make it INVALID.
    """

    schema_: Literal["gates.recheck/1"] = Field(default="gates.recheck/1", alias="schema")
    plan_sha256: Sha256
    generations_sha256: Sha256
    outcome: Outcome
    candidates: dict[str, CandidateVerdict]
    measurements: Measurements
    same_texts: int
    texts: int
    troubles: tuple[str, ...]
    warnings: tuple[str, ...]


def sample_store(run: RunStore, number: int, plan_sha256: str) -> RunStore:
    """The folder of a recheck; its generations are kept as a run's are, under the plan's hash as their seal.

    The hash stands in its name, too, for two git branches may each have begun one under the same number. Raises
    TamperedError where a link stands in the place of it or of the folder around it.
    """
    refuse_link(run.folder / "rechecks")
    refuse_link(run.folder / "rechecks" / f"{number:03d}-{plan_sha256[:12]}")
    return RunStore(run.folder, "rechecks", number, f"-{plan_sha256[:12]}")


def store_of(run: RunStore, started: Stored) -> RunStore:
    """The folder of the recheck that the ledger has entered."""
    return sample_store(run, said(started, "recheck", int), said(started, "plan_sha256", str))


def rechecks(ledger: Ledger, gate: str, run: int) -> list[tuple[Stored, Stored | None]]:
    """Every recheck of a run in the ledger's order, each with the record that ended it."""
    mine = [s for s in ledger.entries() if s.entry.gate == gate and s.entry.kind in ("recheck", "rechecked")]
    mine = [s for s in mine if said(s, "run", int) == run]
    ends = {said(s, "plan_sha256", str): s for s in mine if s.entry.kind == "rechecked"}
    return [(s, ends.get(said(s, "plan_sha256", str))) for s in mine if s.entry.kind == "recheck"]


def enter_plan(ledger: Ledger, run: RunStore, plan: RecheckPlan, key: Path | None = None) -> RunStore:
    """Write the plan of a new recheck and enter it in the ledger; returns its folder."""
    number = len(rechecks(ledger, run.gate, run.number)) + 1
    store = sample_store(run, number, plan.digest())
    body: dict[str, JsonValue] = {"run": run.number, "recheck": number, "plan_sha256": plan.digest(), "arm": plan.arm}
    # Before the ledger's record, so that it always has its plan; one that no record holds a killed process has left.
    make_folder(store.folder)
    replace(store.folder / "plan.json", canonical(plan.as_json()))
    ledger.append("recheck", run.gate, body, Stamp(plan.at, plan.by, key))
    return store


def read_plan(store: RunStore, started: Stored) -> RecheckPlan | None:
    """The plan that the ledger knows; None where a killed process never wrote it. Raises TamperedError."""
    path = store.folder / "plan.json"
    if not path.is_file():
        return None
    plan = RecheckPlan.parse(read_recorded(path, said(started, "plan_sha256", str)), where=str(path))
    if plan.arm != said(started, "arm", str):
        raise TamperedError(f"{path}: it is not of the arm that the ledger names")
    return plan


def read_recheck(store: RunStore, ended: Stored) -> Recheck:
    """A finished recheck, each of its files checked against the ledger. Raises TamperedError."""
    read_recorded(store.generations_path, said(ended, "generations_sha256", str))
    if "judgements_sha256" in ended.entry.body:
        read_recorded(store.judgements_path, said(ended, "judgements_sha256", str))
    elif store.judgements_path.exists():
        raise TamperedError(f"{store.judgements_path}: the ledger knows of no judgements", next_step="remove it")
    read_recorded(store.folder / "report.md", said(ended, "report_sha256", str))
    path = store.folder / "recheck.json"
    return Recheck.parse(read_recorded(path, said(ended, "recheck_sha256", str)), where=str(path))


def finish(ledger: Ledger, run: RunStore, store: RunStore, found: Recheck, report: str, stamp: Stamp) -> Path:
    """Write what a recheck found and enter it in the ledger; returns the report's path."""
    data, path = canonical(found.as_json()), store.folder / "report.md"
    write_once(store.folder / "recheck.json", data)
    write_once(path, report.encode())
    body: dict[str, JsonValue] = {
        "run": run.number,
        "recheck": store.number,
        "plan_sha256": found.plan_sha256,
        "generations_sha256": store.generations_sha256(),
        "recheck_sha256": sha256(data),
        "report_sha256": sha256(report.encode()),
        "gates": __version__,
        "outcome": found.outcome.value,
    }
    if store.judgements_path.exists():
        body["judgements_sha256"] = store.judgements_sha256()
    ledger.append("rechecked", run.gate, body, stamp)
    return path
