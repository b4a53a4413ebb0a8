"""The driver against a seat on a real socket: order, retries, what is recorded, what stops a run, going on."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.errors import SeatError, UnfitSeatError
from gates.records import Generation, canonical
from gates.seat.client import SeatClient
from gates.seat.generate import Desk, Driver, Run, Share, Task, generate, plan
from gates.seat.pace import Pace
from gates.seat.progress import Progress, Tally
from tests.seat.faulty import (
    BASE,
    BEATS,
    KEY,
    ONE,
    TWO,
    FaultySeat,
    Handler,
    Request,
    Wire,
    a_gate,
    answer,
    changed,
    hang,
    reply,
    reset_mid_body,
    status,
    truncated,
)

GATE = a_gate()
RUN = Run(gate=GATE, beats=BEATS, seal="0" * 64, seat="seat-1", cache_salt="salt-1")
ONE_TASK = [Task("one", 0, 1)]
FULL = {"prompt_tokens": 3, "completion_tokens": 40}


class Clock:
    """Time that passes a second a look, and sleeps that take none; the waits are kept."""

    def __init__(self) -> None:
        self.ticks = count()
        self.slept: list[float] = []

    def pace(self, concurrency: int = 1, attempts: int = 3) -> Pace:
        start = datetime(2026, 1, 1, tzinfo=UTC)
        return Pace(
            concurrency=concurrency,
            attempts=attempts,
            jitter=np.random.default_rng(1),
            now=lambda: start + timedelta(seconds=next(self.ticks)),
            monotonic=lambda: float(next(self.ticks)),
            sleep=self.sleep,
        )

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def drive(
    seat: FaultySeat,
    tasks: Sequence[Task] = ONE_TASK,
    *,
    pace: Pace | None = None,
    written: list[Generation] | None = None,
    key: str | None = None,
    timeout_s: float = 30.0,
    watched: list[Progress] | None = None,
    run: Run = RUN,
) -> list[Generation]:
    store: list[Generation] = [] if written is None else written
    seen: list[Progress] = [] if watched is None else watched

    async def main() -> None:
        async with seat, SeatClient(seat.url, key, timeout_s=timeout_s) as client:
            await generate(tasks, client, store.extend, run, pace or Clock().pace(), seen.append)

    asyncio.run(main())
    return store


# order


def test_a_plan_holds_every_key_once_in_balanced_blocks() -> None:
    tasks = plan(GATE, 4, 7)
    expected = {(arm, p, s) for arm in ("base", "one", "two") for p in range(4) for s in (1, 2, 3)}
    assert Counter(tasks) == Counter(expected | {("again", p, s) for p in range(4) for s in (11, 12, 13)})
    own = {11: 1, 12: 2, 13: 3}
    for start in range(0, len(tasks), 4):
        block = tasks[start : start + 4]
        assert {task.arm for task in block} == {"base", "one", "two", "again"}
        assert len({(task.prompt, own.get(task.seed, task.seed)) for task in block}) == 1


def test_a_control_that_repeats_a_seed_would_repeat_a_key() -> None:
    arms = {
        "base": BASE,
        "candidates": {"one": {"model": ONE, "adapter": "a"}},
        "controls": {"again": {"model": BASE, "seeds": (1, 1, 2)}},
    }
    with pytest.raises(ValueError, match=r"arms\.controls\.again\.seeds must be as many .*, all different"):
        a_gate(arms=arms)


def test_a_plan_is_the_order_of_pcg64s_raw_numbers() -> None:
    # the same draw written with sorted() alone: 6 blocks of (prompt, seed's position), 4 arms in each
    raw = [int(value) for value in np.random.PCG64(3).random_raw(6 + 24)]
    arms, seeds = ("base", "one", "two", "again"), {"again": (11, 12, 13)}
    expected = [
        Task(arms[arm], block // 3, seeds.get(arms[arm], (1, 2, 3))[block % 3])
        for place, block in enumerate(sorted(range(6), key=raw.__getitem__))
        for arm in sorted(range(4), key=raw[6 + 4 * place : 10 + 4 * place].__getitem__)
    ]
    assert plan(GATE, 2, 3) == expected


def test_a_plan_never_changes() -> None:
    # pinned, because a sealed order must be the same in every later version
    assert [(task.arm, task.prompt, task.seed) for task in plan(GATE, 2, 2026)[:8]] == [
        ("one", 0, 1),
        ("again", 0, 11),
        ("two", 0, 1),
        ("base", 0, 1),
        ("two", 1, 2),
        ("again", 1, 12),
        ("one", 1, 2),
        ("base", 1, 2),
    ]


@given(st.integers(0, 2**64), st.integers(1, 6))
@settings(max_examples=30)
def test_plans_differ_by_seed_alone(seed: int, prompts: int) -> None:
    assert plan(GATE, prompts, seed) == plan(GATE, prompts, seed)
    assert sorted(plan(GATE, prompts, seed)) == sorted(plan(GATE, prompts, seed + 1))


# what is recorded


def test_a_generation_is_recorded_in_full() -> None:
    seat = FaultySeat()
    (generation,) = drive(seat)
    assert generation.key == ("one", 0, 1)
    assert (generation.seal, generation.seat, generation.attempts) == ("0" * 64, "seat-1", 1)
    assert generation.text == "voice-one 1: Beat: A ship goes down."
    assert (generation.model, generation.finish_reason, generation.fingerprint) == (ONE, "stop", "vllm-0.33.0-abc")
    assert generation.usage is not None
    assert generation.usage.completion_tokens == 2
    # printf '1,2,3' | sha256sum
    assert generation.prompt_sha256 == "8a6ae15122001229edb8866f56e342af12ae8187203c3e3b33931743e7c0c48d"
    assert generation.started == "2026-01-01T00:00:00+00:00"
    assert generation.latency_s == 1.0  # the clock ticks once between the two looks
    assert generation.error is None
    sent = seat.generated[0].body
    assert sent == {**generation.request, "cache_salt": "salt-1"}


def test_requests_go_out_in_the_order_of_the_plan() -> None:
    seat = FaultySeat()
    tasks = plan(GATE, 2, 5)
    generations = drive(seat, tasks)
    assert [generation.key for generation in generations] == [tuple(task) for task in tasks]
    models = {"base": BASE, "one": ONE, "two": TWO, "again": BASE}
    assert [(r.body["model"], r.body["seed"]) for r in seat.generated] == [(models[t.arm], t.seed) for t in tasks]


def test_concurrency_is_bounded_and_used() -> None:
    async def slowly(request: Request, wire: Wire) -> None:
        await asyncio.sleep(0.02)
        await wire.send(answer(request.body))

    seat = FaultySeat(always=slowly)
    tasks = plan(GATE, 2, 5)
    generations = drive(seat, tasks, pace=Clock().pace(concurrency=4))
    assert seat.most_active == 4
    assert {generation.key for generation in generations} == {tuple(task) for task in tasks}


def test_progress_counts() -> None:
    watched: list[Progress] = []
    seat = FaultySeat(faults=[status(500), status(400, "too long")])
    drive(seat, plan(GATE, 1, 5)[:3], watched=watched)
    assert [(p.done, p.total, p.retries) for p in watched] == [(1, 3, 1), (2, 3, 1), (3, 3, 1)]
    assert watched[-1].completion_tokens == 4
    assert sum(watched[-1].errors.values()) == 1


@pytest.mark.parametrize(
    ("handler", "text", "finish"),
    [
        (changed(choices=[{"message": {"content": ""}, "finish_reason": "stop"}]), "", "stop"),
        (changed(choices=[{"message": {"content": "cut"}, "finish_reason": "length"}], usage=FULL), "cut", "length"),
    ],
)
def test_empty_and_cut_off_answers_are_recorded_as_they_are(handler: Handler, text: str, finish: str | None) -> None:
    seat = FaultySeat(faults=[handler])
    (generation,) = drive(seat)
    assert (generation.text, generation.finish_reason, generation.error) == (text, finish, None)
    assert len(seat.generated) == 1


def test_missing_usage_is_recorded_as_missing() -> None:
    (generation,) = drive(FaultySeat(faults=[changed(usage=None)]))
    assert generation.usage is None
    assert generation.error is None


# retries


@pytest.mark.parametrize("fault", [status(500), status(503), truncated, reset_mid_body, reply({"error": "x"})])
def test_what_may_pass_is_tried_again(fault: Handler) -> None:
    clock = Clock()
    seat = FaultySeat(faults=[fault])
    (generation,) = drive(seat, pace=clock.pace())
    assert (generation.attempts, generation.error) == (2, None)
    assert len(clock.slept) == 1
    assert seat.generated[0].body == seat.generated[1].body


@pytest.mark.parametrize(("header", "wait"), [("17", 17.0), ("Thu, 01 Jan 2026 00:01:00 GMT", 58.0), ("99999", 300.0)])
def test_retry_after_is_honoured(header: str, wait: float) -> None:
    clock = Clock()
    (generation,) = drive(FaultySeat(faults=[status(429, "slow down", Retry_After=header)]), pace=clock.pace())
    assert clock.slept == [wait]  # the clock has ticked twice when the date is read
    assert generation.attempts == 2


def test_a_seat_that_fails_and_answers_is_recorded_as_an_error() -> None:
    seat = FaultySeat(always=status(500, "CUDA error\nat line 3"))
    clock = Clock()
    (generation,) = drive(seat, pace=clock.pace(attempts=4))
    assert generation.attempts == len(seat.generated) == 4
    assert generation.error is not None
    assert generation.error.startswith("the seat answered 500:")
    assert "CUDA error" in generation.error
    assert "\n" not in generation.error
    assert (generation.text, generation.model, generation.usage) == ("", None, None)
    assert clock.slept == sorted(clock.slept)


@pytest.mark.parametrize("reason", ["abort", None])
def test_an_answer_that_is_broken_off_is_tried_again_and_then_an_error(reason: str | None) -> None:
    broken_off = changed(choices=[{"message": {"content": "half a"}, "finish_reason": reason}])
    (generation,) = drive(FaultySeat(faults=[broken_off]))
    assert (generation.attempts, generation.error, generation.finish_reason) == (2, None, "stop")
    (generation,) = drive(FaultySeat(always=broken_off))
    assert (generation.attempts, generation.text) == (3, "")
    assert generation.error is not None
    assert f"finish_reason is {reason!r}" in generation.error


def test_half_a_surrogate_pair_is_recorded_at_once() -> None:
    cut = changed(choices=[{"message": {"content": "a \ud83d"}, "finish_reason": "length"}], usage=FULL)
    (generation,) = drive(FaultySeat(faults=[cut]))
    assert (generation.text, generation.attempts, generation.error) == ("a \ufffd", 1, None)
    assert canonical(generation.as_json())


@pytest.mark.parametrize("handler", [reply(b'"\xff"'), changed(usage={"prompt_tokens": 2**60})])
def test_an_answer_that_would_come_again_is_not_asked_for_again(handler: Handler) -> None:
    seat = FaultySeat(faults=[handler])
    (generation,) = drive(seat)
    assert generation.attempts == len(seat.generated) == 1
    assert generation.error is not None
    assert "breaks the contract" in generation.error


def test_an_echoed_key_is_not_recorded() -> None:
    async def parrot(request: Request, wire: Wire) -> None:
        await wire.send({"error": {"message": f"bad {request.headers['authorization']}"}})

    (generation,) = drive(FaultySeat(always=parrot), key=KEY)
    assert generation.error is not None
    assert "Bearer [api key]" in generation.error
    assert KEY not in str(generation.as_json())


def test_broken_json_for_ever_is_recorded_as_an_error() -> None:
    (generation,) = drive(FaultySeat(always=truncated))
    assert generation.error is not None
    assert "breaks the contract" in generation.error


@pytest.mark.parametrize("code", [400, 413, 422])
def test_a_refused_request_is_never_sent_again(code: int) -> None:
    seat = FaultySeat(always=status(code, "too long"))
    (generation,) = drive(seat)
    assert len(seat.generated) == generation.attempts == 1
    assert generation.error is not None
    assert f"answered {code}" in generation.error


def test_one_request_that_hangs_among_answered_ones_is_an_error_of_its_own() -> None:
    async def picky(request: Request, wire: Wire) -> None:
        await (hang(request, wire) if request.body["seed"] == 1 else wire.send(answer(request.body)))

    tasks = [Task("one", 0, 1), Task("one", 0, 2), Task("one", 0, 3)]
    generations = drive(FaultySeat(always=picky), tasks, pace=Clock().pace(concurrency=2), timeout_s=0.3)
    errors = {generation.seed: generation.error for generation in generations}
    assert errors[2] is errors[3] is None
    assert errors[1] is not None
    assert "no complete answer" in errors[1]


# what stops a run


def stop(seat: FaultySeat, kind: type[SeatError], match: str, **options: float) -> SeatError:
    with pytest.raises(kind, match=match) as caught:
        drive(seat, plan(GATE, 2, 5), pace=Clock().pace(concurrency=3), **options)  # type: ignore[arg-type]
    assert type(caught.value) is kind
    assert "it continues" in caught.value.next_step
    return caught.value


def test_a_seat_that_is_down_stops_the_run() -> None:
    clock = Clock()

    async def main() -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            async with SeatClient(f"http://127.0.0.1:{unused.getsockname()[1]}/v1") as client:
                await generate(ONE_TASK, client, [].extend, RUN, clock.pace())

    with pytest.raises(
        SeatError,
        match=r"stopped at arm 'one', prompt 0, seed 1 after 3 attempt\(s\): http://127.0.0.1:\d+/v1: no connection",
    ):
        asyncio.run(main())
    assert len(clock.slept) == 2


@pytest.mark.parametrize("handler", [hang, reset_mid_body, status(503), status(429)])
def test_a_seat_that_answers_nothing_stops_the_run(handler: Handler) -> None:
    error = stop(FaultySeat(always=handler), SeatError, "generation stopped at arm", timeout_s=0.3)
    assert "0 of 24 generations of this start are recorded" in error.message


def test_a_refused_key_stops_the_run_unseen() -> None:
    with pytest.raises(SeatError, match="the seat answered 401") as caught:
        drive(FaultySeat(key="another"), key=KEY)
    assert KEY not in str(caught.value)
    assert "seat.api_key_env" in caught.value.next_step


def test_a_model_that_is_not_served_stops_the_run() -> None:
    written: list[Generation] = []
    with pytest.raises(UnfitSeatError, match="`voice-two` does not exist") as caught:
        drive(FaultySeat(models=(BASE, ONE)), [*ONE_TASK, Task("two", 0, 1), Task("one", 1, 1)], written=written)
    assert [generation.arm for generation in written] == ["one"]
    assert "1 of 3 generations of this start are recorded" in caught.value.message
    assert "it continues" in caught.value.next_step


def test_a_wrong_address_stops_the_run() -> None:
    stop(FaultySeat(always=reply_not_found), SeatError, "the seat answered 404")


async def reply_not_found(request: Request, wire: Wire) -> None:
    await wire.send({"detail": "Not Found"}, 404)


@pytest.mark.parametrize("model", [BASE, TWO, None])
def test_an_adapters_text_from_another_model_is_refused(model: str | None) -> None:
    written: list[Generation] = []
    with pytest.raises(UnfitSeatError, match=f"asked for model 'voice-one' and {model!r} answered"):
        drive(FaultySeat(faults=[changed(model=model)]), written=written)
    assert written == []


def test_a_base_may_answer_under_an_alias_but_not_as_an_adapter() -> None:
    base = [Task("base", 0, 1)]
    (generation,) = drive(FaultySeat(faults=[changed(model="base-first-name")]), base)
    assert generation.model == "base-first-name"
    with pytest.raises(UnfitSeatError, match="asked for model 'base' and 'voice-two' answered"):
        drive(FaultySeat(faults=[changed(model=TWO)]), base)


@pytest.mark.parametrize("fingerprint", ["vllm-0.34.0-abc", None])
def test_a_seat_of_another_fingerprint_than_the_sealed_stops_the_run(fingerprint: str | None) -> None:
    sealed = replace(RUN, fingerprint="vllm-0.33.0-abc")
    written: list[Generation] = []
    good = changed()
    with pytest.raises(
        UnfitSeatError, match=f"sealed seat's fingerprint is 'vllm-0.33.0-abc' and {fingerprint!r} answered; 1 of 2"
    ) as caught:
        drive(
            FaultySeat(faults=[good, changed(system_fingerprint=fingerprint)]),
            [*ONE_TASK, Task("one", 1, 1)],
            written=written,
            run=sealed,
        )
    assert len(written) == 1
    assert "it continues" in caught.value.next_step


def test_a_store_that_fails_stops_the_run() -> None:
    def full(generations: Sequence[Generation]) -> None:
        raise OSError(28, "No space left on device")

    async def main() -> None:
        async with FaultySeat() as seat, SeatClient(seat.url) as client:
            await generate(plan(GATE, 1, 5), client, full, RUN, Clock().pace(concurrency=3))

    with pytest.raises(OSError, match="No space left"):
        asyncio.run(main())


def test_what_the_disk_has_refused_is_left_for_another_seat() -> None:
    tasks = plan(GATE, 1, 5)[:3]

    async def main() -> list[Task]:
        async with Desk(list, Tally(())) as desk, SeatClient("http://127.0.0.1:9/v1") as client:
            driver = Driver(Share(tasks, client, RUN, Clock().pace(concurrency=1)), desk)
            recorded, refused, waiting = (asyncio.get_running_loop().create_future() for _ in tasks)
            recorded.set_result(None)
            refused.set_exception(OSError(28, "No space left on device"))
            refused.exception()
            driver._asked = dict(zip(driver._queue, (recorded, refused, waiting), strict=True))
            return driver.left()

    assert asyncio.run(main()) == tasks[1:]


# interruption


@pytest.mark.parametrize("after", [0, 1, 7, 23])
def test_an_interrupted_run_goes_on_and_gives_every_key_once(after: int) -> None:
    tasks = plan(GATE, 2, 5)
    written: list[Generation] = []

    async def interrupted() -> None:
        async with FaultySeat() as seat, SeatClient(seat.url) as client:
            started = asyncio.current_task()
            assert started is not None

            loop = asyncio.get_running_loop()

            def write(generations: Sequence[Generation]) -> None:
                written.extend(generations)
                if len(written) > after:
                    loop.call_soon_threadsafe(started.cancel)

            await generate(tasks, client, write, RUN, Clock().pace(concurrency=4))

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    assert after < len(written) < len(tasks) + 1
    done = {generation.key for generation in written}
    drive(FaultySeat(), [task for task in tasks if task not in done], pace=Clock().pace(4), written=written)
    assert Counter(generation.key for generation in written) == Counter(tuple(task) for task in tasks)
    alone = drive(FaultySeat(), tasks)
    assert {g.key: g.text for g in written} == {g.key: g.text for g in alone}


def test_a_finished_run_asks_nothing() -> None:
    seat = FaultySeat()
    assert drive(seat, []) == []
    assert seat.seen == []
