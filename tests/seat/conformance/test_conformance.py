"""One contract, two servers: `pytest -m seat` asks the embedded seat, `pytest -m seat --seat-url URL` any other.

A server under test lists at least two adapters, loads adapters while it runs, and reads the test's temporary folder.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import numpy as np
import pytest

from gates.errors import UnfitSeatError
from gates.records import Generation
from gates.seat.canary import check_adapters, same_voices
from gates.seat.client import SeatClient, SeatRequest
from gates.seat.faults import RefusedRequestError, UnauthorisedError, UnknownModelError
from gates.seat.generate import Run, generate, plan
from gates.seat.identity import probe
from gates.seat.pace import Pace
from gates.seat.repeats import repeat_alone, sample_of
from gates.spec.schema import Gate
from tests.conftest import ROOT
from tests.seat.conformance.facts import FACTS, WRONG, Seat, wrong_adapter
from tests.seat.faulty import a_gate

pytestmark = [pytest.mark.seat, pytest.mark.xdist_group("seat")]

BEATS = ("A letter comes late.", "The dog will not come in.")
T = TypeVar("T")


def gate_for(seat: Seat, **changes: Any) -> Gate:
    one, two = list(seat.adapters)[:2]
    arms = {
        "base": seat.base,
        "candidates": {"one": {"model": one, "adapter": "a/one"}, "two": {"model": two, "adapter": "a/two"}},
    }
    sampling = {"seeds": (1, 2), "temperature": 0.9, "top_p": 0.95, "max_tokens": 8}
    return a_gate(**{"arms": arms, "sampling": sampling, **changes})


def with_client(seat: Seat, work: Callable[[SeatClient], Awaitable[T]]) -> T:
    async def main() -> T:
        async with SeatClient(f"{seat.root}/v1", seat.key, timeout_s=120) as client:
            return await work(client)

    return asyncio.run(main())


@pytest.mark.parametrize("name", FACTS)
def test_the_client_copes_with(name: str, contract: Seat) -> None:
    contract.seen[name] = said = FACTS[name].ask(contract)
    assert FACTS[name].holds(said), said


@pytest.mark.slow
@pytest.mark.parametrize("endpoint", ["chat", "completions"])
def test_a_seat_tells_who_it_is(contract: Seat, endpoint: str) -> None:
    gate = gate_for(contract, prompts={"file": "b", "template": "{beat}", "endpoint": endpoint})

    async def twice(client: SeatClient) -> list[Any]:
        return [await probe(client, gate) for _ in range(2)]

    first, again = with_client(contract, twice)
    assert first.binding == again.binding
    assert first.binding.version
    assert first.binding.fingerprint
    assert set(contract.adapters) <= {lora.name for lora in first.context.loras}
    assert first.context.cache
    assert first.context.max_model_len > 0
    assert first.context.defaults == again.context.defaults == "neutral"
    assert first.context.runtime_lora is True
    assert "/metrics" in first.context.open_routes
    contract.seen["probe: defaults, open routes"] = f"{first.context.defaults}, {', '.join(first.context.open_routes)}"


@pytest.mark.slow
@pytest.mark.parametrize("endpoint", ["chat", "completions"])
def test_the_canary_hears_two_adapters_and_hears_them_again(contract: Seat, endpoint: str) -> None:
    gate = gate_for(contract, prompts={"file": "b", "template": "{beat}", "endpoint": endpoint})

    async def listen(client: SeatClient) -> list[Any]:
        return [await check_adapters(client, gate, BEATS, salt, context=256) for salt in ("salt-1", "salt-2")]

    first, again = with_client(contract, listen)
    assert [pair.apart for pair in first.pairs] == [True] * 3
    assert "does not exist" in first.refusal
    assert same_voices(first, again) == []
    noise = max(model.noise for model in first.models)
    contract.seen[f"canary, {endpoint}: model against itself"] = "0 nats" if noise == 0 else "above 0, below 0.5 nats"


@pytest.mark.slow
def test_an_adapter_with_wrong_keys_never_passes_the_canary(contract: Seat) -> None:
    loaded = contract.manage("load", lora_name=WRONG, lora_path=str(wrong_adapter(contract)))
    arms = {"base": contract.base, "candidates": {"wrong": {"model": WRONG, "adapter": "a/wrong"}}}
    gate = gate_for(contract, arms=arms)
    cause = "answers as the base does" if loaded.status_code == 200 else "the seat does not serve"
    try:
        with pytest.raises(UnfitSeatError, match=f"{cause}.*"):
            with_client(contract, lambda client: check_adapters(client, gate, BEATS, "salt"))
    finally:
        contract.manage("unload", lora_name=WRONG)


@pytest.mark.slow
def test_a_small_run_comes_whole_and_is_made_again(contract: Seat, embedded: bool) -> None:
    gate = gate_for(contract)
    generations: list[Generation] = []

    async def run(client: SeatClient) -> Any:
        fingerprint = (await probe(client, gate)).binding.fingerprint
        shared = Run(gate, BEATS, "0" * 64, "seat", "salt-3", fingerprint=fingerprint, context=256)
        pace = Pace(4, 2, np.random.default_rng(1), now=lambda: datetime.now(UTC))
        await generate(plan(gate, len(BEATS), 1), client, generations.extend, shared, pace)
        return await repeat_alone(client, gate, sample_of(generations), "salt-3", 4)

    again = with_client(contract, run)
    assert len({generation.key for generation in generations}) == len(generations) == 12
    assert [generation.error for generation in generations] == [None] * 12
    assert all(generation.usage and generation.usage.completion_tokens <= 8 for generation in generations)
    assert all(generation.prompt_sha256 for generation in generations)
    prompts = {generation.prompt: generation.prompt_sha256 for generation in generations}
    assert all(generation.prompt_sha256 == prompts[generation.prompt] for generation in generations)
    assert again.word in ({"repeatable"} if embedded else {"repeatable", "repeatable alone only"})
    assert (len(again.repeats), again.failed) == (3, 0)


def test_refusals_are_told_apart(contract: Seat) -> None:
    def asks(**changes: Any) -> Callable[[SeatClient], Awaitable[Any]]:
        return lambda client: client.complete(SeatRequest("chat", contract.body(**changes)))

    with pytest.raises(UnknownModelError):
        with_client(contract, asks(model="zzz"))
    with pytest.raises(RefusedRequestError) as caught:
        with_client(contract, asks(temperature=-1))
    assert not isinstance(caught.value, UnauthorisedError)


def test_a_stream_is_timed_to_its_end(contract: Seat) -> None:
    body = {"model": contract.base, "prompt": "The moor was", "max_tokens": 6, "ignore_eos": True, "seed": 1}
    timing = with_client(contract, lambda client: client.timed(SeatRequest("completions", body), time.monotonic))
    assert timing.tokens == 6
    assert 0 <= timing.first_s <= timing.last_s


def test_the_page_says_what_the_embedded_seat_answers(contract: Seat, embedded: bool) -> None:
    page = (ROOT / "docs" / "seat.md").read_text("utf-8")
    both = {name: (own, other) for name, own, other in _rows(page, "What both answer")}
    assert set(FACTS) <= set(both)
    assert {n: said for n, said in contract.seen.items() if embedded and both[n][0] != said} == {}
    named = {row[0] for row in _rows(page, "Where they differ, and how the client copes")}
    assert {name for name, (own, other) in both.items() if own != other} <= named


def _rows(page: str, title: str) -> list[list[str]]:
    """The cells of the table under a heading."""
    part = page.split(f"## {title}\n")[1].split("\n## ", maxsplit=1)[0]
    lines = [line.split("|")[1:-1] for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in cells] for cells in lines[2:]]
