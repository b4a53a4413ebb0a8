"""Answers that are not the asked model's own are not credited to it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gates.errors import UnfitSeatError
from gates.records import Generation, Usage, canonical
from gates.seat.answers import Answer
from gates.seat.canary import check_adapters
from gates.seat.client import SeatClient
from gates.seat.credit import check_length, check_route, target_of
from gates.seat.faults import NotCreditedError
from gates.seat.generate import plan
from tests.seat.faulty import BEATS, ONE, FaultySeat, Handler, Request, Wire, a_gate, answer
from tests.seat.test_generate import GATE, drive

DEPLOYMENT = {"x-litellm-model-id": "d-1", "x-litellm-model-api-base": "http://10.0.0.1:8000/v1"}


def with_headers(**headers: str) -> Handler:
    async def handle(request: Request, wire: Wire) -> None:
        await wire.send(answer(request.body), **headers)

    return handle


@pytest.mark.parametrize(
    ("headers", "message", "retryable"),
    [
        ({"x-litellm-cache-key": "abc"}, "answered from a proxy's cache (x-litellm-cache-key: abc)", False),
        ({"x-cache": "HIT from edge"}, "answered from a proxy's cache (x-cache: HIT from edge)", False),
        ({"x-cache": "TCP_HIT"}, "from a proxy's cache", False),
        ({"cf-cache-status": "HIT"}, "from a proxy's cache", False),
        ({"cache-status": "ExampleCache; hit; ttl=30"}, "from a proxy's cache", False),
        ({"age": "12"}, "answered from a proxy's cache (age: 12)", False),
        ({**DEPLOYMENT, "x-litellm-attempted-fallbacks": "1"}, "answered after a proxy's fallback", True),
        ({**DEPLOYMENT, "x-litellm-model-id": "d-2"}, "answered by another target (x-litellm-model-id: d-2", True),
        ({}, "answered by another target (which names none) than the canary (x-litellm-model-id: d-1", True),
    ],
)
def test_what_a_proxy_tells_decides(headers: dict[str, str], message: str, retryable: bool) -> None:
    with pytest.raises(NotCreditedError) as caught:
        check_route(Answer("x", "stop", headers=headers), DEPLOYMENT)
    assert message in caught.value.message
    assert caught.value.retryable is retryable
    assert caught.value.headers == headers


@pytest.mark.parametrize(
    "headers",
    [
        DEPLOYMENT,
        {**DEPLOYMENT, "x-litellm-attempted-fallbacks": "0", "x-cache": "MISS", "via": "1.1 proxy", "age": "0"},
        {**DEPLOYMENT, "cf-cache-status": "DYNAMIC", "cache-status": "ExampleCache; fwd=miss"},
    ],
)
def test_a_proxy_that_passes_on_is_credited(headers: dict[str, str]) -> None:
    assert check_route(Answer("x", "stop", headers=headers), DEPLOYMENT) is None
    assert target_of(headers) == DEPLOYMENT


@pytest.mark.parametrize(
    ("used", "finish", "context", "cut"),
    [
        ((30, 40), "length", 512, False),
        ((30, 12), "stop", 512, False),
        ((30, 12), "length", 512, True),
        ((30, 12), "length", None, True),
        ((500, 12), "stop", 512, True),
        ((500, 12), "stop", None, False),
    ],
)
def test_an_answer_cut_to_fit_the_context_is_known_by_its_tokens(
    used: tuple[int, int], finish: str, context: int | None, cut: bool
) -> None:
    said = Answer("x", finish, usage=Usage(prompt_tokens=used[0], completion_tokens=used[1]))
    if not cut:
        assert check_length(said, 40, context) is None
        return
    with pytest.raises(NotCreditedError, match="the seat ended the answer at 12 tokens, 40 are sealed"):
        check_length(said, 40, context)


def test_tokens_that_are_not_told_prove_nothing() -> None:
    assert check_length(Answer("x", "length"), 40, 512) is None


def test_a_generation_out_of_a_cache_is_recorded_and_not_credited() -> None:
    seat = FaultySeat(faults=[with_headers(x_litellm_cache_key="k-1", x_litellm_version="1.110.2")])
    generations = drive(seat, plan(GATE, len(BEATS), 1))
    assert len(generations) == 24
    (lost,) = [generation for generation in generations if generation.error]
    assert lost.error is not None
    assert "from a proxy's cache" in lost.error
    assert (lost.text, lost.attempts) == ("", 1)
    assert lost.headers == {"x-litellm-cache-key": "k-1", "x-litellm-version": "1.110.2"}


def test_a_fallback_is_asked_again_and_recorded_when_it_stays() -> None:
    fallback = with_headers(x_litellm_attempted_fallbacks="1")
    (credited,) = drive(FaultySeat(faults=[fallback]))
    assert (credited.error, credited.attempts) == (None, 2)
    (lost,) = drive(FaultySeat(always=fallback))
    assert str(lost.error).startswith("answered after a proxy's fallback (x-litellm-attempted-fallbacks: 1)")
    assert lost.attempts == 3


def _canary(always: Handler, **changes: Any) -> object:
    async def ask() -> object:
        async with FaultySeat(always=always) as seat, SeatClient(seat.url) as client:
            return await check_adapters(client, a_gate(**changes), BEATS, "salt", context=512)

    return asyncio.run(ask())


def test_the_canary_hears_a_proxy() -> None:
    count = 0

    async def balance(request: Request, wire: Wire) -> None:
        nonlocal count
        count += 1
        target = "d-2" if request.body["model"] == ONE and count % 2 else "d-1"
        await wire.send(answer(request.body), x_litellm_model_id=target)

    with pytest.raises(UnfitSeatError, match="'voice-one' was answered by another target") as caught:
        _canary(balance)
    assert "give it one, or name the seat's own address" in caught.value.message

    async def cache(request: Request, wire: Wire) -> None:
        await wire.send(answer(request.body), x_litellm_cache_key="k")

    with pytest.raises(UnfitSeatError, match="'base' was answered from a proxy's cache"):
        _canary(cache)


def test_a_gate_that_does_not_fit_the_context_is_refused_before_generation() -> None:
    sampling = {"seeds": (1, 2, 3), "temperature": 0.9, "top_p": 0.95, "max_tokens": 510}

    async def plain(request: Request, wire: Wire) -> None:
        await wire.send(answer(request.body))

    with pytest.raises(UnfitSeatError, match=r"\(3 tokens\) and max_tokens 510 do not fit the seat's context of 512"):
        _canary(plain, sampling=sampling)


def test_a_generation_recorded_without_headers_is_read() -> None:
    (generation,) = drive(FaultySeat())
    document = generation.as_json()
    del document["headers"]
    assert Generation.parse(canonical(document), where="here") == generation
