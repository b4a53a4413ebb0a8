"""Generating what a run still lacks, between two looks at each seat: what was sealed must answer, to the end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

from gates.errors import TamperedError
from gates.flow.inputs import Inputs
from gates.flow.looks import Work
from gates.flow.posts import Posts
from gates.flow.seats import OpenSeat, open_seats
from gates.flow.world import World
from gates.record.ledger import Ledger
from gates.record.seal import SealOnDisk
from gates.record.store import RunStore, Session, is_closed
from gates.records import Generation
from gates.seat.generate import Task, plan
from gates.seat.requests import request_body
from gates.seat.spread import homes


def generate_run(inputs: Inputs, sealed: SealOnDisk, store: RunStore, world: World) -> None:
    """Generate what the run lacks; nothing is asked of the seat when the run was generated and closed before.

    Raises TamperedError when recorded generations or sessions are not what was written, UnfitSeatError when something
    else than what was sealed answered: a run whose generations that may concern is spoiled for good.
    """
    store.resume(sealed.sha256)
    sessions = store.settle(Ledger(inputs.prereg), world.key)
    done = check_recorded(inputs, sealed, store)
    tasks = [t for t in plan(inputs.gate, len(inputs.shown), sealed.seal.order_seed) if tuple(t) not in done]
    if not tasks and is_closed(sessions, several=inputs.gate.seats is not None):
        return
    if done:
        world.say(f"continuing run {store.number:03d}: {len(done)} generations are recorded, {len(tasks)} are left")
    with open_seats(inputs, world) as seats:
        asyncio.run(_between_two_looks(Work(inputs, sealed, store, world), seats, tasks, sessions))


def check_recorded(inputs: Inputs, sealed: SealOnDisk, store: RunStore) -> set[tuple[str, int, int]]:
    """Keys of the recorded generations. Raises TamperedError for one that this gate would never have asked for."""
    arms = inputs.gate.arms.all()
    done: set[tuple[str, int, int]] = set()
    places = _Places(inputs, sealed, store)
    for generation in store.generations(sealed.sha256):
        _check_asked(inputs, generation, arms)
        _check_answered(inputs, sealed, generation)
        places.check(generation)
        done.add(generation.key)
    return done


def _check_asked(inputs: Inputs, generation: Generation, arms: Mapping[str, object]) -> None:
    known = generation.arm in arms and generation.prompt < len(inputs.shown)
    if not known or generation.seed not in inputs.gate.seeds(generation.arm):
        raise TamperedError(f"generation {generation.key}: the sealed gate has no such arm, prompt or seed")
    beat, prompts = inputs.shown[generation.prompt]
    if generation.request != request_body(inputs.gate, generation.arm, beat, generation.seed, prompts):
        raise TamperedError(f"generation {generation.key}: its request is not the one that the sealed gate makes")


def _check_answered(inputs: Inputs, sealed: SealOnDisk, generation: Generation) -> None:
    """Raise TamperedError for an answer that would have stopped the run: another model's, or another fingerprint's."""
    if generation.error is not None:
        return
    arms, model = inputs.gate.arms, generation.model
    asked = arms.all()[generation.arm].model
    # As when it was asked: a base may answer under another of its served names, an adapter has but one.
    adapters = {arm.model for arm in arms.all().values()} - {arms.base.model}
    if model in adapters if asked == arms.base.model else model != asked:
        raise TamperedError(f"generation {generation.key}: it asked for model {asked!r} and {model!r} answered")
    fingerprint = sealed.seal.seat_at(generation.seat).get("fingerprint")
    if fingerprint is not None and generation.fingerprint != fingerprint:
        raise TamperedError(
            f"generation {generation.key}: the sealed seat's fingerprint is {fingerprint!r} and "
            f"{generation.fingerprint!r} answered"
        )


class _Places:
    """Which of several seats may have answered what: the one that the sealed order names, or another after its loss."""

    def __init__(self, inputs: Inputs, sealed: SealOnDisk, store: RunStore) -> None:
        gate = inputs.gate
        self._several = gate.seats is not None
        tasks = plan(gate, len(inputs.shown), sealed.seal.order_seed) if self._several else []
        self._homes = homes(gate, tasks) if self._several else {}
        self._known = {seat.name for seat in gate.servers}
        self._lost = {each.name for each in store.sessions() if each.phase == "lost"} if self._several else set()

    def check(self, generation: Generation) -> None:
        """Raise TamperedError for a generation at a seat that was not to answer it."""
        if not self._several:
            return
        home, seat = self._homes[Task(*generation.key)], generation.seat
        if seat not in self._known or (seat != home and home not in self._lost):
            raise TamperedError(
                f"generation {generation.key}: recorded as answered by {seat}; the sealed order gives it to {home}, "
                "and no session says that this seat was lost"
            )


async def _between_two_looks(
    work: Work, seats: Sequence[OpenSeat], tasks: Sequence[Task], sessions: Sequence[Session]
) -> None:
    """Look at the seats, generate, ask a few requests again, look again; the second look makes it all count."""
    async with AsyncExitStack() as stack:
        clients = [(seat, await stack.enter_async_context(seat.client())) for seat in seats]
        posts = Posts(work, clients, sessions)
        await posts.begin()
        await posts.generate(tasks)
        await posts.judge()
        await posts.end()
