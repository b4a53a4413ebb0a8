"""Requests made again at the end of a run, and what their texts say of the seat."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from gates.seat.client import SeatClient
from gates.seat.generate import plan
from gates.seat.repeats import Determinism, Repeat, repeat_alone, sample_of
from tests.seat.faulty import BEATS, FaultySeat, Handler, Request, Wire, answer, status
from tests.seat.test_generate import GATE, drive


def again(seat: FaultySeat, concurrency: int = 8) -> Determinism:
    """A run on a good seat, then its sample on `seat`."""
    sample = sample_of(drive(FaultySeat(), plan(GATE, len(BEATS), 1)))

    async def main() -> Determinism:
        async with seat, SeatClient(seat.url) as client:
            return await repeat_alone(client, GATE, sample, "salt-9", concurrency)

    return asyncio.run(main())


def saying(*texts: str) -> Handler:
    turn = itertools.cycle(texts)

    async def handle(request: Request, wire: Wire) -> None:
        document = answer(request.body)
        document["choices"][0]["message"]["content"] = next(turn)
        await wire.send(document)

    return handle


def test_a_seat_that_repeats_itself() -> None:
    seat = FaultySeat()
    found = again(seat)
    assert found.word == "repeatable"
    assert found.sentence == (
        "repeatable: 3 of 3 requests made twice alone gave one text, 3 of 3 the text that the run got at concurrency "
        "8; another attempt with the same seeds gives the same texts, so it is no new evidence: seal other seeds for "
        "that"
    )
    assert len(seat.generated) == 6
    assert seat.most_active == 1
    assert {request.body["cache_salt"] for request in seat.generated} == {"salt-9"}
    assert len({repeat.arm for repeat in found.repeats}) == 3


def test_a_seat_whose_texts_hang_on_its_load() -> None:
    found = again(FaultySeat(always=saying("another text")))
    assert found.word == "repeatable alone only"
    assert "0 of 3 the text that the run got" in found.sentence
    assert "seat.concurrency: 1" in found.sentence


def test_a_seat_that_never_repeats_itself() -> None:
    found = again(FaultySeat(always=saying("one", "two")))
    assert found.word == "not repeatable"
    assert "no attempt gives these texts again" in found.sentence


def test_requests_that_fail_are_counted_and_prove_nothing() -> None:
    assert again(FaultySeat(faults=[status(500)])).sentence.startswith(
        "repeatable: 2 of 2 requests made twice alone gave one text, 2 of 2 the text that the run got at concurrency "
        "8, 1 more failed; "
    )
    assert again(FaultySeat(always=status(500))).word == "not tested"


@pytest.mark.parametrize(
    ("pairs", "word"),
    [
        ([(True, True), (True, True)], "repeatable"),
        ([(True, True), (True, False)], "repeatable alone only"),
        ([(True, False), (False, True)], "not repeatable"),
        ([], "not tested"),
    ],
)
def test_the_worst_request_decides(pairs: list[tuple[bool, bool]], word: str) -> None:
    repeats = tuple(Repeat(arm="a", prompt=0, seed=1, alone=alone, as_in_run=same) for alone, same in pairs)
    assert Determinism(concurrency=2, repeats=repeats, failed=0).word == word


def test_the_sample_covers_the_arms_and_leaves_errors_out() -> None:
    generations = drive(FaultySeat(faults=[status(400)]), plan(GATE, len(BEATS), 1))
    (lost,) = [each for each in generations if each.error]
    sample = sample_of(generations, 4)
    assert sorted(each.arm for each in sample) == sorted(GATE.arms.all())
    assert lost not in sample_of(generations, 100)
    assert len(sample_of(generations, 100)) == 23
