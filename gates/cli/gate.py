"""`gates check`, `run`, `schema`: the life of one gate; its seals are in `gates.cli.sealed`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from gates import flow
from gates.cli.output import print_json, say, tell
from gates.cli.show import as_json, console, earlier_run, gate_file, head_at_the_end, progress, signing_key
from gates.corpora.manifest import Manifest
from gates.errors import ExitCode, UsageError
from gates.judge.verdict import Verdict
from gates.measure.figures import Measurements
from gates.record.ledger import Entry
from gates.record.lines import Join
from gates.record.recheck import Recheck, RecheckPlan
from gates.record.rescore import Rescore
from gates.record.review import Mark
from gates.record.seal import Seal
from gates.record.signoff import SignOff
from gates.record.votes import Vote
from gates.records import Generation
from gates.report.operating import operating_sentences
from gates.report.terminal import verdict_table
from gates.seat.operate.compose import SeatFile
from gates.spec.judging import Judgement
from gates.spec.load import json_schema, load_gate


@click.command()
@gate_file
@earlier_run
@as_json
def check(gate: Path, earlier: Path | None, json_wanted: bool) -> int:
    """Say everything about GATE before generation: mistakes, missing files, what its size can prove."""
    found = flow.check(gate, flow.this_world(say), earlier)
    if json_wanted:
        print_json(found.as_json())
    else:
        print_check(found)
    return ExitCode.USAGE if found.missing else ExitCode.PASS


@click.command()
@gate_file
@click.option("--again", is_flag=True, help="Start another attempt of a finished gate; the ledger counts it.")
@click.option("--arm", "candidate", help="End with this candidate's exit code instead of the worst one's.")
@click.option("--by", help="Who runs it; your user name by default.")
@signing_key
@as_json
def run(gate: Path, again: bool, candidate: str | None, by: str | None, key: Path | None, json_wanted: bool) -> int:
    """Run the sealed GATE and print its verdict; an interrupted run continues, a finished one is shown."""
    # Before generation, not after it: a mistyped name must not cost a run.
    known = load_gate(gate).arms.candidates
    if candidate is not None and candidate not in known:
        raise UsageError(
            f"--arm {candidate!r}: the gate has no such candidate", next_step=f"choose one of: {', '.join(known)}"
        )
    head_at_the_end(gate)
    with progress() as watch:
        finished = flow.run(gate, flow.this_world(say, watch, by, key), again=again)
    verdict = finished.verdict
    if json_wanted:
        print_json({**verdict.as_json(), "run": str(finished.folder), "attempts": finished.attempts})
    else:
        print_finished(finished)
    return int((verdict.candidates[candidate] if candidate else verdict).outcome.exit_code)


SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "gate": json_schema,
    "manifest": Manifest.model_json_schema,
    "seat": SeatFile.model_json_schema,
    "seal": Seal.model_json_schema,
    "ledger": Entry.model_json_schema,
    "generation": Generation.model_json_schema,
    "judgement": Judgement.model_json_schema,
    "measurements": Measurements.model_json_schema,
    "verdict": Verdict.model_json_schema,
    "rescore": Rescore.model_json_schema,
    "recheck-plan": RecheckPlan.model_json_schema,
    "recheck": Recheck.model_json_schema,
    "mark": Mark.model_json_schema,
    "join": Join.model_json_schema,
    "signoff": SignOff.model_json_schema,
    "vote": Vote.model_json_schema,
}


@click.command()
@click.argument("document", type=click.Choice(list(SCHEMAS)), default="gate")
@as_json
def schema(document: str, json_wanted: bool) -> int:  # noqa: ARG001 - a schema is JSON with the flag and without
    """Print the JSON schema of DOCUMENT: of gate files, for an editor, or of a record, for a program that reads it."""
    print_json(SCHEMAS[document]())
    return ExitCode.PASS


def print_finished(finished: flow.Finished) -> None:
    """The verdict's table, where the record lies, and how many attempts there were."""
    console().print(verdict_table(finished.sealed.seal.gate.question, finished.verdict))
    for sentence in finished.rescores:
        tell(sentence)
    tell(f"attempts of this gate: {finished.attempts}; record: {finished.folder}/report.md")


def print_check(found: flow.Checked) -> None:
    """What a check found, for people."""
    for sentence in found.missing:
        tell(f"missing: {sentence}")
    for sentence in found.warnings:
        tell(f"note: {sentence}")
    for role, lost in found.letters_lost.items():
        tell(f"{role}: {len(lost)} texts, the tokeniser loses at most {max(lost.values(), default=0):.2%} of letters")
    if found.operating is not None:
        for sentence in operating_sentences(found.operating):
            tell(sentence)
    state = f"{len(found.missing)} missing" if found.missing else f"complete, {found.requests} generations"
    tell(f"gate {found.gate} ({found.sha256[:12]}): {state}; the seat was not contacted")
