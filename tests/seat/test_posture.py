"""What a seat does where a request says nothing, what it lets anybody do, and what is said of it."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from gates.seat.client import SeatClient
from gates.seat.identity import SeatIdentity, probe
from gates.seat.posture import lora_slots, warnings_about
from tests.seat.faulty import KEY, FaultySeat, Request, Wire, a_gate, answer

GATE = a_gate()


def identify(seat: FaultySeat, key: str | None = None) -> SeatIdentity:
    async def main() -> SeatIdentity:
        async with seat, SeatClient(seat.url, key) as client:
            return await probe(client, GATE)

    return asyncio.run(main())


async def own_temperature(request: Request, wire: Wire) -> None:
    """A server whose generation_config.json cools what a request leaves open."""
    document = answer(request.body)
    document["choices"][0]["message"]["content"] = f"at {request.body.get('temperature', 0.6)}"
    await wire.send(document)


def test_defaults_of_the_server_show_in_a_request_that_leaves_them_open() -> None:
    seat = FaultySeat(always=own_temperature)
    assert identify(seat).context.defaults == "own"
    *_, first, again, silent = seat.generated
    assert first.body == again.body
    fields = {"temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty"}
    assert first.body.keys() - silent.body.keys() == fields
    assert identify(FaultySeat()).context.defaults == "neutral"


def test_a_seat_that_does_not_repeat_itself_tells_nothing_of_its_defaults() -> None:
    turn = itertools.count()

    async def restless(request: Request, wire: Wire) -> None:
        document = answer(request.body)
        document["choices"][0]["message"]["content"] = str(next(turn))
        await wire.send(document)

    assert identify(FaultySeat(always=restless)).context.defaults == "unclear"


async def wrong_method(request: Request, wire: Wire) -> None:
    await wire.send({"detail": "Method Not Allowed"}, 405)


def test_routes_that_answer_without_the_key_are_named() -> None:
    guarded = FaultySeat(key=KEY, routes={"/adapters": wrong_method})
    assert identify(guarded, KEY).context.open_routes == ("/adapters", "/metrics")
    keyless = [request for request in guarded.seen if "authorization" not in request.headers]
    assert {request.path for request in keyless} == {"/v1/models", "/v1/load_lora_adapter", "/adapters", "/metrics"}
    assert {request.method for request in keyless} == {"GET"}
    assert identify(FaultySeat()).context.open_routes == ("/v1/models", "/metrics")


@pytest.mark.parametrize(
    ("metrics", "slots"),
    [
        (None, None),
        ("# TYPE vllm:lora_requests_info gauge\n", None),
        ('vllm:lora_requests_info{max_lora="4",running_lora_adapters="a",waiting_lora_adapters=""} 1.7e9\n', 4),
        ('vllm:lora_requests_info{running_lora_adapters="",max_lora="1"} 1\n', 1),
    ],
)
def test_slots_for_adapters_are_read_from_the_metrics(metrics: str | None, slots: int | None) -> None:
    assert lora_slots(metrics) == slots


def test_every_warning_names_its_remedy() -> None:
    quiet = warnings_about(GATE, open_to_all=("/v1/models", "/metrics"), slots=2, defaults="neutral", proxied=False)
    assert quiet == []
    doors, slots, own, proxy = warnings_about(
        GATE, open_to_all=("/v1/load_lora_adapter", "/adapters"), slots=1, defaults="own", proxied=True
    )
    assert doors.startswith("anybody who reaches the seat's port can load and remove adapters: /v1/load_lora_adapter")
    assert "and /adapters answer without a key" in doors
    assert "the seat holds 1 adapter(s) ready at once and the gate asks for 2" in slots
    assert slots.endswith("start the server with --max-cpu-loras 2")
    assert "generation_config.json" in own
    assert "name the seat's own address as seat.base_url" in proxy
