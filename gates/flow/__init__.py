"""The whole path in three short functions: check a gate, seal it, run it.

gate → seal → generations → measurements → verdict → report; the stages meet here and nowhere else.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue

from gates.errors import UnfitSeatError
from gates.flow.binding import bind, cards_of, context_of
from gates.flow.inputs import Findings, Inputs, examine, load_inputs, lost_letters, refuse_unpinned
from gates.flow.measuring import measure
from gates.flow.planning import operating_of, refuse_retired, seed_of
from gates.flow.seats import OpenSeat, open_seat
from gates.flow.world import World, this_world
from gates.judge.verdict import Verdict, judge
from gates.measure.figures import Measurements
from gates.record.body import said
from gates.record.ledger import Ledger, Stored
from gates.record.seal import Seal, SealOnDisk, differences, latest_seal, refuse_changes, write_seal
from gates.record.store import RunStore, Session, finished_files, gate_lock, open_run, runs
from gates.records import Record
from gates.report.markdown import markdown
from gates.seat.canary import check_adapters
from gates.seat.generate import Run, Task, generate, plan
from gates.seat.identity import SeatIdentity, probe
from gates.seat.pace import Pace
from gates.spec.load import load_gate
from gates.spec.operating import OperatingCharacteristics

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


def check(path: Path, world: World) -> Checked:
    """Validate everything about a gate that needs no seat. Raises InputError when the file itself has mistakes."""
    gate = load_gate(path)
    findings = Findings()
    inputs = examine(path, world.cache, gate, findings)
    findings.attempt(lambda: refuse_retired(gate))
    operating = None if inputs is None else operating_of(gate, len(inputs.beats))
    return Checked(
        gate=gate.name,
        sha256=gate.digest(),
        missing=tuple(findings.missing),
        warnings=(*findings.warnings, *(operating.warnings if operating else ())),
        letters_lost=lost_letters(inputs) if inputs else {},
        requests=len(inputs.shown) * len(gate.sampling.seeds) * len(gate.arms.all()) if inputs else 0,
        operating=operating,
    )


def seal(path: Path, world: World) -> SealOnDisk:
    """Pre-register a gate: probe its seat, bind everything it rests on, write the seal and its ledger record."""
    inputs = load_inputs(path, world.cache)
    refuse_unpinned(inputs)
    refuse_retired(inputs.gate)
    with open_seat(inputs, world) as seat:
        identity = asyncio.run(_identity(inputs, seat))
    stamp = world.stamp()
    return write_seal(
        inputs.prereg,
        Seal(
            gate=inputs.gate,
            # The link's own name where the gate file is a link: the workspace is the one around the link.
            gate_file=(path.parent.resolve() / path.name).relative_to(inputs.workspace).as_posix(),
            binding=bind(inputs, identity.binding.as_json(), cards_of(identity)),
            context=context_of(identity),
            order_seed=seed_of("order", inputs.gate),
            operating=operating_of(inputs.gate, len(inputs.beats)).as_json(),
            sealed_at=stamp.at,
            sealed_by=stamp.by,
            previous=Ledger(inputs.prereg).heads(),
        ),
    )


def run(path: Path, world: World, *, again: bool = False) -> Finished:
    """Run a sealed gate, continue its unfinished run, or show the finished one; `again` starts another attempt.

    Raises RefusedError without a seal or when anything binding has changed, SeatError when the seat fails.
    """
    inputs = load_inputs(path, world.cache)
    sealed = latest_seal(inputs.prereg, inputs.gate.name)
    refuse_changes(sealed, bind(inputs, sealed.seal.binding.seat, _sealed_cards(sealed)))
    # From here on the sealed gate, not the file: its keys stand in one order whatever the order in the file.
    inputs = replace(inputs, gate=sealed.seal.gate)
    ledger = Ledger(inputs.prereg)
    with gate_lock(inputs.reports, inputs.gate.name):
        before = [r for r in runs(ledger, inputs.gate.name) if said(r[0], "seal", str) == sealed.sha256]
        if before and before[-1][1] is not None and not again:
            return _finished(inputs, sealed, ledger, before[-1][1])
        store = open_run(ledger, inputs.reports, inputs.gate.name, sealed.sha256, world.stamp())
        _generate(inputs, sealed, store, world)
        measurements = measure(inputs, sealed.sha256, store.generations(sealed.sha256), store.generations_sha256())
        verdict = judge(inputs.gate, measurements)
        measurements = store.write("measurements.json", measurements)
        verdict = store.write("verdict.json", verdict)
        store.write_report(markdown(sealed, store.number, measurements, verdict))
        entry = ledger.append("verdict", inputs.gate.name, _outcome(store, verdict), world.stamp())
        return _finished(inputs, sealed, ledger, entry)


def _sealed_cards(sealed: SealOnDisk) -> dict[str, dict[str, JsonValue]]:
    arms = sealed.seal.gate.arms.all()
    return {
        arms[arm].model: identity.card
        for arm, identity in sealed.seal.binding.adapters.items()
        if identity.card is not None and arm in arms
    }


async def _identity(inputs: Inputs, seat: OpenSeat) -> SeatIdentity:
    async with seat.client() as client:
        return await probe(client, inputs.gate)


def _generate(inputs: Inputs, sealed: SealOnDisk, store: RunStore, world: World) -> None:
    """Generate what this run still lacks; nothing is asked of the seat when nothing is left."""
    done = store.resume(sealed.sha256)
    tasks = [t for t in plan(inputs.gate, len(inputs.shown), sealed.seal.order_seed) if tuple(t) not in done]
    if not tasks:
        return
    if done:
        world.say(f"continuing run {store.number:03d}: {len(done)} generations are recorded, {len(tasks)} are left")
    with open_seat(inputs, world) as seat:
        asyncio.run(_answer(inputs, sealed, store, tasks, (seat, world)))
    changed = differences(
        sealed.seal.binding.as_json(), bind(inputs, sealed.seal.binding.seat, _sealed_cards(sealed)).as_json()
    )
    if changed:
        raise UnfitSeatError(
            "\n".join(["changed while the seat was generating, so nobody knows what answered:", *changed]),
            next_step="leave adapters and texts alone during a run; seal and run again",
        )


async def _answer(
    inputs: Inputs, sealed: SealOnDisk, store: RunStore, tasks: list[Task], outside: tuple[OpenSeat, World]
) -> None:
    seat, world = outside
    async with seat.client() as client:
        identity = await probe(client, inputs.gate)
        refuse_changes(sealed, bind(inputs, identity.binding.as_json(), cards_of(identity)))
        salt = world.chance.bytes(16).hex()
        canary = await check_adapters(client, inputs.gate, inputs.beats, salt)
        stamp = world.stamp()
        store.add_session(
            Session(
                seal=sealed.sha256,
                at=stamp.at,
                by=stamp.by,
                seat=identity.as_json(),
                canary=canary.as_json(),
                cache_salt=salt,
                deviations=tuple(differences(sealed.seal.context, context_of(identity))),
            )
        )
        pace = Pace(seat.concurrency, seat.attempts, world.chance, world.now)
        shared = Run(inputs.gate, inputs.beats, sealed.sha256, seat.label, salt, inputs.probe)
        await generate(tasks, client, store.add, shared, pace, world.watch)


def _outcome(store: RunStore, verdict: Verdict) -> dict[str, JsonValue]:
    return {
        "run": store.number,
        "seal": verdict.seal,
        "generations_sha256": store.generations_sha256(),
        "measurements_sha256": verdict.measurements_sha256,
        "verdict_sha256": verdict.digest(),
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
