"""Rechecking a voice that was judged: after a new server, model or serving form, does it still answer alike?

A small sample of the run is generated again, its seeds drawn from the seal's hash, and held against the same texts of
the run under the run's own floor and limits. What was signed is one serving form; whatever differs is named.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

from gates.errors import TamperedError, UnfitSeatError, UsageError
from gates.flow.finished import FinishedRun, read_run, sealed_inputs
from gates.flow.forms import Form, form_changes, heard_otherwise
from gates.flow.inputs import Inputs
from gates.flow.judging import left_to_ask
from gates.flow.sample import SEEDS, Sampled, alarm_rng, asked_gate, derive, floors_of, sample_seeds, tasks_of
from gates.flow.seats import OpenSeat, open_seats
from gates.flow.world import World
from gates.judge.recheck import alarm
from gates.record.ledger import Ledger, Stored
from gates.record.recheck import (
    Recheck,
    RecheckPlan,
    enter_plan,
    finish,
    read_plan,
    read_recheck,
    rechecks,
    store_of,
)
from gates.record.signoff import signoffs
from gates.record.store import RunStore, gate_lock
from gates.records import Generation, canonical
from gates.report.recheck import recheck_markdown
from gates.seat.canary import CanaryReport, check_adapters, same_voices
from gates.seat.client import SeatClient
from gates.seat.generate import Run, generate
from gates.seat.identity import SeatIdentity, probe
from gates.seat.judge import Bench, ask
from gates.seat.pace import Pace
from gates.seat.requests import request_body
from gates.spec.asking import Seat
from gates.spec.schema import Gate
from gates.spec.workspace import adapter_path

_RESTORE = "restore the recheck's folder from its commit, then verify again"


@dataclass(frozen=True)
class Asked:
    """What is rechecked and where: the arm, the name it is served under now, the seat (None: the gate's own, or its
    first).
    """

    arm: str
    model: str | None = None
    seat: Seat | None = None
    alone: bool = False
    seeds: int = SEEDS


@dataclass(frozen=True)
class Rechecked:
    """A finished recheck with its plan and its report's path."""

    plan: RecheckPlan
    recheck: Recheck
    report: Path


@dataclass(frozen=True)
class _Work:
    run: FinishedRun
    inputs: Inputs
    gate: Gate
    arm: str
    seeds: tuple[int, ...]
    alone: bool
    world: World
    seat: OpenSeat

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.run.workspace / "prereg")

    @property
    def model(self) -> str:
        return self.gate.arms.candidates[self.arm].model


def recheck(folder: Path, asked: Asked, world: World) -> Rechecked:
    """Generate the sample of a finished run again, judge it, and record it; an interrupted recheck continues.

    Raises UsageError for an arm that is no candidate of it, SeatError when the seat fails.
    """
    run = read_run(folder)
    gate = run.seal.gate
    if asked.arm not in gate.arms.candidates:
        raise UsageError(
            f"--arm {asked.arm!r}: the run has no such candidate",
            next_step=f"choose one of: {', '.join(gate.arms.candidates)}",
        )
    floors_of(run, asked.arm)
    inputs = sealed_inputs(run.workspace, world.cache, run.sealed)
    if isinstance(inputs, str):
        raise UsageError(f"{folder}: {inputs}", next_step="fetch its texts: `gates corpora fetch`")
    model = gate.arms.candidates[asked.arm].model if asked.model is None else asked.model
    if not model or (model == gate.arms.base.model and not asked.alone):
        raise UsageError(
            f"--model {model!r}: that is {'the base' if model else 'no name'}, and the voice is to be rechecked",
            next_step="name what the voice is served under; with --alone where the seat serves it without the base",
        )
    seeds = sample_seeds(run.sealed.sha256, gate.sampling.seeds, asked.seeds)
    now = asked_gate(gate, asked.arm, model, alone=asked.alone, seeds=seeds)
    now = now.model_copy(update={"seat": asked.seat or gate.seat or gate.servers[0], "seats": None})
    if asked.alone and now.embedded:
        raise UsageError(
            "--alone: the embedded seat always serves base and adapter", next_step="name a seat with --seat"
        )
    place = adapter_path(run.workspace, inputs.path, gate.arms.candidates[asked.arm].adapter)
    inputs = replace(inputs, gate=now, adapters={asked.arm: place})
    with gate_lock(inputs.reports, gate.name), open_seats(inputs, world) as (seat,):
        return asyncio.run(_recheck(_Work(run, inputs, now, asked.arm, seeds, asked.alone, world, seat)))


async def _recheck(work: _Work) -> Rechecked:
    async with work.seat.client() as client:
        plan, store = await _plan(work, client)
        done = {generation.key for generation in store.generations(plan.digest())}
        tasks = [task for task in tasks_of(plan, len(work.inputs.shown)) if tuple(task) not in done]
        identity = SeatIdentity.parse(canonical(plan.seat), where=str(store.folder))
        about = work.inputs
        shared = Run(
            work.gate,
            about.beats,
            plan.digest(),
            plan.seat_label,
            plan.cache_salt,
            about.probe,
            identity.binding.fingerprint,
            CanaryReport.parse(canonical(plan.canary), where=str(store.folder)).targets,
            identity.context.max_model_len,
        )
        pace = Pace(work.seat.concurrency, work.seat.attempts, work.world.chance, work.world.now)
        bench = Bench(work.gate, shared.seal, shared.cache_salt, shared.fingerprint, shared.targets)
        await generate(tasks, client, store.add_all, shared, pace, work.world.watch)
        await ask(left_to_ask(about, plan.digest(), store), client, store.add_judgements, bench, pace)
        troubles = await _changed_since(work, client, plan)
    check_asked(work.gate, work.inputs, plan, store)
    generations = tuple(store.generations(plan.digest()))
    judgements = store.judgements(plan.digest())
    found = derive(Sampled(work.run, about, plan, generations, store.generations_sha256(), troubles, judgements))
    # As it will be read back, keys in canonical order: the report is derived again from the stored bytes.
    found = Recheck.parse(canonical(found.as_json()), where=str(store.folder / "recheck.json"))
    report = recheck_markdown(work.run.sealed, work.run.store.number, plan, found)
    path = finish(work.ledger, work.run.store, store, found, report, work.world.stamp())
    return Rechecked(plan, found, path)


async def _plan(work: _Work, client: SeatClient) -> tuple[RecheckPlan, RunStore]:
    """The plan of the unfinished recheck that asks the same, or a new one, in the ledger before any text."""
    salt = work.world.chance.bytes(16).hex()
    identity = await probe(client, work.gate)
    length = identity.context.max_model_len
    canary = await check_adapters(client, work.gate, work.inputs.beats, salt, context=length)
    for started, ended in rechecks(work.ledger, work.run.store.gate, work.run.store.number):
        store = store_of(work.run.store, started)
        known = None if ended else read_plan(store, started)
        if known is not None and _asks_the_same(work, known, identity, canary):
            store.resume(known.digest())
            return known, store
    stamp = work.world.stamp()
    worth = alarm(len(work.run.seal.gate.sampling.seeds), len(work.seeds), alarm_rng(work.run.seal.gate))
    plan = RecheckPlan(
        run=work.run.store.number,
        seal=work.run.sealed.sha256,
        verdict_sha256=work.run.verdict.digest(),
        arm=work.arm,
        model=work.model,
        alone=work.alone,
        seeds=work.seeds,
        seat_label=work.seat.label,
        seat=identity.as_json(),
        canary=canary.as_json(),
        cache_salt=salt,
        changed=(*form_changes(_form(work, identity)), *heard_otherwise(work.run, canary, _names(work))),
        signoffs=tuple(
            entered.stored.sha256
            for entered in signoffs(work.run.store, work.ledger.entries())
            if entered.signoff.arm == work.arm
        ),
        false_alarm=worth.false_alarm,
        shift_80=worth.shift_80,
        at=stamp.at,
        by=stamp.by,
    )
    return plan, enter_plan(work.ledger, work.run.store, plan, stamp.key)


def _asks_the_same(work: _Work, plan: RecheckPlan, identity: SeatIdentity, canary: CanaryReport) -> bool:
    heard = CanaryReport.parse(canonical(plan.canary), where="plan.json")
    asks = (plan.arm, plan.model, plan.alone, plan.seeds, plan.seat_label, plan.seal)
    mine = (work.arm, work.model, work.alone, work.seeds, work.seat.label, work.run.sealed.sha256)
    known = SeatIdentity.parse(canonical(plan.seat), where="plan.json")
    return asks == mine and known.binding == identity.binding and not same_voices(heard, canary)


async def _changed_since(work: _Work, client: SeatClient, plan: RecheckPlan) -> tuple[str, ...]:
    """What answers otherwise than when the recheck began; such a recheck is INVALID."""
    heard = CanaryReport.parse(canonical(plan.canary), where="plan.json")
    try:
        now = await check_adapters(client, work.gate, work.inputs.beats, plan.cache_salt)
    except UnfitSeatError as error:
        return (" ".join(error.message.split()),)
    return tuple(f"the seat changed during the recheck: {sentence}" for sentence in same_voices(heard, now))


def _form(work: _Work, identity: SeatIdentity) -> Form:
    return Form(work.run.seal, work.arm, work.model, work.inputs.adapters[work.arm], identity)


def _names(work: _Work) -> dict[str, str]:
    """What voice and base were called in the run, and are called now; the voice alone where it is served so."""
    arms = work.run.seal.gate.arms
    base = {} if work.alone else {arms.base.model: work.gate.arms.base.model}
    return {**base, arms.candidates[work.arm].model: work.model}


def check_asked(gate: Gate, inputs: Inputs, plan: RecheckPlan, store: RunStore) -> None:
    """Raise TamperedError for a recorded generation that this plan would never have asked for."""
    for generation in store.generations(plan.digest()):
        _check_one(gate, inputs, plan, generation)


def _check_one(gate: Gate, inputs: Inputs, plan: RecheckPlan, generation: Generation) -> None:
    known = generation.arm == plan.arm and generation.seed in plan.seeds and generation.prompt < len(inputs.shown)
    if known:
        beat, prompts = inputs.shown[generation.prompt]
        known = generation.request == request_body(gate, generation.arm, beat, generation.seed, prompts)
    if not known:
        raise TamperedError(
            f"generation {generation.key}: the recheck's plan asks for no such text", next_step=_RESTORE
        )


def rederive(run: FinishedRun, cache: Path, started: Stored, ended: Stored) -> tuple[Recheck, Recheck | str]:
    """A finished recheck as recorded and as derived again, or the reason why it cannot be.

    Raises TamperedError for files that are not what the ledger says.
    """
    store = store_of(run.store, started)
    plan, recorded = read_plan(store, started), read_recheck(store, ended)
    if plan is None or recorded.plan_sha256 != plan.digest() or plan.seal != run.sealed.sha256:
        said = f"{store.folder}: its plan is not the one that the ledger and recheck.json know"
        raise TamperedError(said, next_step=_RESTORE)
    inputs = sealed_inputs(run.workspace, cache, run.sealed)
    if isinstance(inputs, str):
        return recorded, inputs
    gate = asked_gate(run.seal.gate, plan.arm, plan.model, alone=plan.alone, seeds=plan.seeds)
    check_asked(gate, inputs, plan, store)
    generations = tuple(store.generations(plan.digest()))
    left_to_ask(replace(inputs, gate=gate), plan.digest(), store)
    judgements = store.judgements(plan.digest())
    sampled = Sampled(run, inputs, plan, generations, store.generations_sha256(), recorded.troubles, judgements)
    return recorded, derive(sampled)


def report_of(run: FinishedRun, started: Stored, recorded: Recheck) -> str:
    """The report of a finished recheck as this version of gates words it."""
    plan = read_plan(store_of(run.store, started), started)
    if plan is None:
        raise TamperedError(f"{run.store.folder}: the plan of a finished recheck is missing", next_step=_RESTORE)
    return recheck_markdown(run.sealed, run.store.number, plan, recorded)
