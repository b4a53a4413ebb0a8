"""Blocks dealt to several seats, and what becomes of a dead one's, against seats on real sockets."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.errors import SeatError, UnfitSeatError
from gates.records import Generation
from gates.seat.client import SeatClient
from gates.seat.generate import Desk, Share, Task, plan
from gates.seat.progress import Progress, Tally
from gates.seat.spread import Loss, blocks, deal, generate_spread, homes, shared
from tests.seat.faulty import FaultySeat, Handler, Request, Wire, a_gate, answer, changed, hang, status
from tests.seat.test_generate import RUN, Clock

SEATS = [{"base_url": "http://a/v1", "concurrency": 6}, {"base_url": "http://b/v1/", "concurrency": 2}]
GATE = a_gate(seat=None, seats=tuple(SEATS))


def test_blocks_are_dealt_by_weight() -> None:
    assert deal(6, [1, 1]) == [0, 1, 0, 1, 0, 1]
    # d'Hondt by hand: 1/3 < 1/1, 2/3 < 1/1, then 3/3 = 1/1 goes to the first, then 4/3 > 1/1 goes to the second
    assert deal(8, [3, 1]) == [0, 0, 0, 1, 0, 0, 0, 1]


@given(st.integers(0, 300), st.lists(st.integers(1, 1024), min_size=2, max_size=8))
@settings(max_examples=60)
def test_no_seat_has_a_block_more_than_its_share(count: int, weights: list[int]) -> None:
    given_ = Counter(deal(count, weights))
    assert given_.total() == count
    for seat, weight in enumerate(weights):
        # d'Hondt keeps lower quota: nobody gets less than the whole blocks of an exact share
        assert given_[seat] >= count * weight // sum(weights)


def test_a_home_follows_from_gate_and_order_alone() -> None:
    tasks = plan(GATE, 4, 7)
    home = homes(GATE, tasks)
    assert Counter(home.values()) == {"http://a/v1": 36, "http://b/v1": 12}
    for start in range(0, len(tasks), 4):
        assert len({home[task] for task in tasks[start : start + 4]}) == 1
    assert [len(block) for block in blocks(GATE, tasks)] == [4] * 12
    assert [len(block) for block in blocks(GATE, tasks[2:9])] == [2, 4, 1]


class QuietDesk(Desk):
    """Knows whether nothing is to be written just now."""

    quiet = False

    @asynccontextmanager
    async def still(self) -> AsyncIterator[None]:
        async with super().still():
            self.quiet = True
            yield
            self.quiet = False


class Driven:
    """Two seats that work off a plan; what was written, told of losses, and of progress."""

    def __init__(self, first: Handler | None, second: Handler | None) -> None:
        self.written: list[Generation] = []
        self.losses: list[Loss] = []
        self.watched: list[Progress] = []
        self.tasks = plan(GATE, 4, 7)
        self.seats = (FaultySeat(always=first), FaultySeat(always=second))
        asyncio.run(self._main())

    async def _main(self) -> None:
        desk = QuietDesk(self.written.extend, Tally(task.arm for task in self.tasks), self.watched.append)

        def lost(loss: Loss) -> None:
            assert desk.quiet, "what is told of a loss counts what is written"
            self.losses.append(loss)

        async with AsyncExitStack() as stack:
            going: dict[str, Share] = {}
            for seat, name in zip(self.seats, ("http://a/v1", "http://b/v1"), strict=True):
                await stack.enter_async_context(seat)
                client = await stack.enter_async_context(SeatClient(seat.url, timeout_s=0.5))
                run = replace(RUN, gate=GATE, seat=name, beats=("One.", "Two.", "Three.", "Four."))
                going[name] = Share((), client, run, Clock().pace(concurrency=3), one_of_several=True)
            await generate_spread(shared(self.tasks, homes(GATE, self.tasks), going), desk, lost)

    @property
    def seats_of(self) -> dict[Task, str]:
        return {Task(*generation.key): generation.seat for generation in self.written}


def after(count: int, then: Handler) -> Handler:
    """A handler that answers well so many times."""
    told = 0

    async def handle(request: Request, wire: Wire) -> None:
        nonlocal told
        told += 1
        await (wire.send(answer(request.body)) if told <= count else then(request, wire))

    return handle


def test_every_task_is_answered_once_at_its_home() -> None:
    driven = Driven(None, None)
    assert driven.seats_of == homes(GATE, driven.tasks)
    assert len(driven.written) == len(driven.tasks) == 48
    assert (driven.watched[-1].done, driven.watched[-1].total) == (48, 48)
    assert not driven.losses


@pytest.mark.parametrize("fault", [hang, status(503), status(401)])
def test_what_a_lost_seat_leaves_is_answered_by_the_other(fault: Handler) -> None:
    driven = Driven(None, after(5, fault))
    assert len(driven.written) == len(driven.seats_of) == 48
    assert all(generation.error is None for generation in driven.written)
    (loss,) = driven.losses
    assert (loss.seat, len(loss.left)) == ("http://b/v1", 7)
    home = homes(GATE, driven.tasks)
    assert {task for task, seat in driven.seats_of.items() if seat != home[task]} == set(loss.left)


def test_the_last_seat_that_is_lost_stops_the_run() -> None:
    with pytest.raises(SeatError, match="none of 2 seats answers any more; 10 of 48") as caught:
        Driven(after(5, status(503)), after(5, status(503)))
    assert not isinstance(caught.value, UnfitSeatError)
    assert caught.value.message.count("stopped at arm") == 2
    assert "it continues" in caught.value.next_step


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (changed(model="nobody"), "arm '.*' asked for model '.*' and 'nobody' answered"),
        (status(404, "The model `x` does not exist."), "generation stopped at arm .* the seat answered 404"),
    ],
)
def test_a_seat_that_answers_for_another_model_stops_them_all_and_is_named(fault: Handler, said: str) -> None:
    with pytest.raises(UnfitSeatError, match=f"^http://b/v1: {said}"):
        Driven(None, after(2, fault))


def test_a_request_that_brings_nothing_at_a_seat_that_lives_is_an_error() -> None:
    async def picky(request: Request, wire: Wire) -> None:
        await (hang(request, wire) if request.body["seed"] == 11 else wire.send(answer(request.body)))

    driven = Driven(picky, None)
    assert len(driven.written) == 48
    assert {generation.seed for generation in driven.written if generation.error} == {11}
    assert not driven.losses
