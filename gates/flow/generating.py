"""Generating what a run still lacks, between two looks at the seat: what was sealed must answer, to the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from pydantic import JsonValue

from gates.errors import RefusedError, TamperedError, UnfitSeatError
from gates.flow.binding import bind, cards_of, context_of
from gates.flow.inputs import Inputs
from gates.flow.judging import left_to_ask
from gates.flow.reloads import reloaded
from gates.flow.seats import OpenSeat, open_seat
from gates.flow.world import World
from gates.record.ledger import Ledger
from gates.record.seal import SealOnDisk, differences, refuse_changes
from gates.record.store import Phase, RunStore, Session
from gates.records import Generation, canonical
from gates.seat.canary import CanaryReport, check_adapters, same_voices
from gates.seat.client import SeatClient
from gates.seat.generate import Run, Task, generate, plan
from gates.seat.identity import SeatBinding, SeatIdentity, probe
from gates.seat.judge import Bench, ask
from gates.seat.pace import Pace, clock_warnings
from gates.seat.posture import lora_slots, warnings_about
from gates.seat.repeats import Determinism, repeat_alone, sample_of
from gates.seat.requests import request_body


@dataclass(frozen=True)
class _Work:
    """What one start of generation needs: the run's parts, and the seat that answers."""

    inputs: Inputs
    sealed: SealOnDisk
    store: RunStore
    world: World
    seat: OpenSeat

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.inputs.prereg)


class _Seen(NamedTuple):
    """What one look at the seat found."""

    identity: SeatIdentity
    canary: CanaryReport
    warnings: tuple[str, ...]


def generate_run(inputs: Inputs, sealed: SealOnDisk, store: RunStore, world: World) -> None:
    """Generate what the run lacks; nothing is asked of the seat when the run was generated and closed before.

    Raises TamperedError when recorded generations or sessions are not what was written, UnfitSeatError when something
    else than what was sealed answered: a run whose generations that may concern is spoiled for good.
    """
    store.resume(sealed.sha256)
    sessions = store.settle(Ledger(inputs.prereg), world.key)
    done = check_recorded(inputs, sealed, store)
    tasks = [t for t in plan(inputs.gate, len(inputs.shown), sealed.seal.order_seed) if tuple(t) not in done]
    if not tasks and sessions and sessions[-1].phase == "end":
        return
    if done:
        world.say(f"continuing run {store.number:03d}: {len(done)} generations are recorded, {len(tasks)} are left")
    with open_seat(inputs, world) as seat:
        asyncio.run(_between_two_looks(_Work(inputs, sealed, store, world, seat), tasks, sessions))


def check_recorded(inputs: Inputs, sealed: SealOnDisk, store: RunStore) -> set[tuple[str, int, int]]:
    """Keys of the recorded generations. Raises TamperedError for one that this gate would never have asked for."""
    arms = inputs.gate.arms.all()
    done: set[tuple[str, int, int]] = set()
    for generation in store.generations(sealed.sha256):
        _check_asked(inputs, generation, arms)
        done.add(generation.key)
    return done


def _check_asked(inputs: Inputs, generation: Generation, arms: Mapping[str, object]) -> None:
    known = generation.arm in arms and generation.prompt < len(inputs.shown)
    if not known or generation.seed not in inputs.gate.seeds(generation.arm):
        raise TamperedError(f"generation {generation.key}: the sealed gate has no such arm, prompt or seed")
    beat, prompts = inputs.shown[generation.prompt]
    if generation.request != request_body(inputs.gate, generation.arm, beat, generation.seed, prompts):
        raise TamperedError(f"generation {generation.key}: its request is not the one that the sealed gate makes")


async def _between_two_looks(work: _Work, tasks: Sequence[Task], sessions: Sequence[Session]) -> None:
    """Look at the seat, generate, ask a few requests again, look again; the second look makes it all count."""
    async with work.seat.client() as client:
        salt = _new_salt(work)
        first, seen = await _look(work, client, "start", salt, sessions)
        pace = Pace(work.seat.concurrency, work.seat.attempts, work.world.chance, work.world.now)
        begun = pace.instant()
        await generate(tasks, client, work.store.add, _run_of(work, salt, seen), pace, work.world.watch)
        await _judge(work, client, salt, seen, pace)
        found = [*clock_warnings(begun, pace.instant()), *_lost(work)]
        sample = sample_of(work.store.generations(work.sealed.sha256))
        again = await repeat_alone(client, work.inputs.gate, sample, salt, work.seat.concurrency)
        work.world.say(f"the seat is {again.sentence}")
        # Under a salt of its own, so that the weights that are loaded now answer, and not a prefix cached before.
        ended = partial(_record, work, "end", found=found, determinism=again)
        await _look(work, client, "end", _new_salt(work), [*sessions, first], ended)


async def _judge(work: _Work, client: SeatClient, salt: str, seen: _Seen, pace: Pace) -> None:
    """Ask the gate's judge what it has not been asked yet."""
    cases = left_to_ask(work.inputs, work.sealed.sha256, work.store)
    if not cases:
        return
    work.world.say(f"asking the judge: {len(cases)} questions")
    run = _run_of(work, salt, seen)
    bench = Bench(run.gate, run.seal, salt, run.fingerprint, run.targets)
    await ask(cases, client, work.store.add_judgement, bench, pace)


def _lost(work: _Work) -> list[str]:
    """How many requests brought no answer that counts, and why the first of each arm did not."""
    lost: dict[str, list[Generation]] = {}
    for generation in work.store.generations(work.sealed.sha256):
        if generation.error is not None:
            lost.setdefault(generation.arm, []).append(generation)
    return [
        f"{arm}: {len(errors)} request(s) brought no answer that counts, the first (prompt {errors[0].prompt}, seed "
        f"{errors[0].seed}): {errors[0].error}"
        for arm, errors in lost.items()
    ]


def _new_salt(work: _Work) -> str:
    return work.world.chance.bytes(16).hex()


def _run_of(work: _Work, salt: str, seen: _Seen) -> Run:
    about, sealed = work.inputs, work.sealed
    return Run(
        gate=about.gate,
        beats=about.beats,
        seal=sealed.sha256,
        seat=work.seat.label,
        cache_salt=salt,
        probe=about.probe,
        fingerprint=SeatBinding.parse(canonical(sealed.seal.binding.seat), where=str(sealed.path)).fingerprint,
        targets=seen.canary.targets,
        context=seen.identity.context.max_model_len,
    )


async def _look(
    work: _Work,
    client: SeatClient,
    phase: Phase,
    salt: str,
    sessions: Sequence[Session],
    record: Callable[[str, _Seen], Session] | None = None,
) -> tuple[Session, _Seen]:
    """Probe the seat, compare with the seal and the run's first session, and record what was seen."""
    try:
        seen = await _see(work, client, salt, sessions)
    except (RefusedError, UnfitSeatError) as error:
        # Before generation the seat can be put right; after it, nobody knows from when on something else answered.
        if phase == "start":
            raise
        raise _spoiled(work, error.message) from None
    return (record or partial(_record, work, phase))(salt, seen), seen


async def _see(work: _Work, client: SeatClient, salt: str, sessions: Sequence[Session]) -> _Seen:
    """The seat as it is. Raises RefusedError or UnfitSeatError when it is not the sealed one, or not the one before."""
    inputs, sealed = work.inputs, work.sealed
    identity = await probe(client, inputs.gate)
    binding = bind(inputs, identity.binding.as_json(), cards_of(inputs, identity))
    refuse_changes(sealed, binding, inputs.gate)
    context = identity.context
    canary = await check_adapters(client, inputs.gate, inputs.beats, salt, context=context.max_model_len)
    if sessions:
        heard = CanaryReport.parse(canonical(sessions[0].canary), where=str(work.store.sessions_path))
        other = same_voices(heard, canary)
        if other:
            raise UnfitSeatError(
                "other weights answer than when this run began: " + "; ".join(other),
                next_step="serve the adapters that were sealed; the same command then continues",
            )
    warnings = warnings_about(
        inputs.gate,
        open_to_all=context.open_routes,
        slots=lora_slots(await client.metrics()),
        defaults=context.defaults,
        proxied=any(canary.targets.values()),
    )
    again = [] if inputs.gate.seat == "embedded" else reloaded(work.ledger, inputs.gate, binding)
    return _Seen(identity, canary, (*warnings, *again))


def _record(
    work: _Work,
    phase: Phase,
    salt: str,
    seen: _Seen,
    *,
    found: Sequence[str] = (),
    determinism: Determinism | None = None,
) -> Session:
    stamp = work.world.stamp()
    deviations = tuple(differences(work.sealed.seal.context, context_of(seen.identity, work.sealed.seal.gate)))
    for deviation in deviations if phase == "start" else ():
        work.world.say(f"deviates from the seal: {deviation}")
    for warning in seen.warnings if phase == "start" else found:
        work.world.say(f"note: {warning}")
    session = Session(
        phase=phase,
        seal=work.sealed.sha256,
        at=stamp.at,
        by=stamp.by,
        seat=seen.identity.as_json(),
        canary=seen.canary.as_json(),
        cache_salt=salt,
        deviations=deviations,
        generations=sum(1 for _ in work.store.generations(work.sealed.sha256)),
        generations_sha256=work.store.generations_sha256(),
        warnings=(*seen.warnings, *found),
        determinism=None if determinism is None else determinism.as_json(),
    )
    work.store.add_session(session, work.ledger, work.world.key)
    return session


def _spoiled(work: _Work, why: str) -> UnfitSeatError:
    """Enter in the ledger that this run can never be judged, and the error that says so."""
    body: dict[str, JsonValue] = {"run": work.store.number, "why": why}
    work.ledger.append("spoiled", work.inputs.gate.name, body, work.world.stamp())
    return UnfitSeatError(
        f"run {work.store.number:03d} is INVALID for good: {why}",
        next_step="see that the sealed bytes answer; the same command then starts another attempt, which counts",
    )
