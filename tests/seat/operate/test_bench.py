"""What an adapter costs: the house's figures, the exact interval of a median, and the real measurement on a socket."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gates.cli.seat.bench import sentences
from gates.errors import SeatError
from gates.report.bench import bench_svg
from gates.seat.client import SeatClient
from gates.seat.operate.bench import AGAIN, BASE, Bench, Plan, Sample, difference, measure, median_interval, summarise
from gates.seat.streams import Timing, decode_of
from tests.flow.conftest import Ended, gates
from tests.flow.threaded import Seat, running
from tests.seat.faulty import FaultySeat, Request, Wire, card

PLAN = Plan("base", ("lv-x",), rounds=30, tokens=4, streams=1, warm_ups=1, prompt="Go on.")


def house(adapter: float = 108.2, again: float = 143.0) -> Bench:
    """Thirty rounds around the house's medians; the noise is what leaves a floor of a tenth of a percent."""
    noise = 1 + 0.002 * np.linspace(-1, 1, 30)
    rng = np.random.default_rng(3)
    speeds = {BASE: 143.0 * rng.permutation(noise), "lv-x": adapter * noise, AGAIN: again * rng.permutation(noise)}
    samples = tuple(
        Sample(round=turn, arm=arm, decode=float(values[turn]), first_s=0.1)
        for arm, values in speeds.items()
        for turn in range(30)
    )
    return Bench(signature=PLAN.signature, seat="s", version="v", arms=summarise(PLAN, samples), samples=samples)


def test_the_house_figures_are_told_again() -> None:
    base, adapter, again = house().arms
    assert (round(base.decode, 1), round(adapter.decode, 1)) == (143.0, 108.2)
    assert adapter.decode_change is not None
    assert again.decode_change is not None
    assert f"{adapter.decode_change.median:+.1%}" == "-24.3%"
    assert adapter.decode_change.resolves
    assert f"{adapter.decode_change.floor:.1%}" == "0.1%"
    assert sentences(house())[0] == "lv-x, decode: -24.3% against a floor of 0.1%: resolves"
    assert not again.decode_change.resolves
    assert base.decode_change is None


def test_a_difference_inside_what_the_base_shows_against_itself_does_not_resolve() -> None:
    base = np.full(30, 100.0)
    again = np.tile([97.0, 103.0], 15)
    assert not difference(np.full(30, 98.0), base, again).resolves
    assert difference(np.full(30, 96.0), base, again).resolves
    assert difference(np.full(30, 104.0), base, again).resolves


def test_the_interval_of_a_median_is_the_tabled_one() -> None:
    # Conover, table A3: for n = 30 the 95 % interval runs from the 10th to the 21st value; for n = 6 it is the range.
    assert median_interval(np.arange(1.0, 31.0)) == (10.0, 21.0)
    assert median_interval(np.arange(1.0, 7.0)) == (1.0, 6.0)


@given(st.lists(st.floats(0.1, 1e6), min_size=6, max_size=80))
def test_the_median_lies_in_its_interval(values: list[float]) -> None:
    low, high = median_interval(np.array(values))
    assert low <= np.median(values) <= high


def words(count: int, **last: Any) -> Any:
    async def stream(request: Request, wire: Wire) -> None:
        events = [{"choices": [{"text": "a "}]}] * count
        events.append({"choices": [], "usage": {"completion_tokens": count}})
        body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + last.get("end", "data: [DONE]\n\n")
        await wire.raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        await wire.raw(body.encode())
        wire.writer.close()

    return stream


def run(seat: FaultySeat, plan: Plan) -> tuple[tuple[Sample, ...], FaultySeat]:
    async def main() -> tuple[Sample, ...]:
        ticks = itertools.count(step=0.25)
        async with seat, SeatClient(seat.url, "sk-Very-Secret-77") as client:
            return await measure(client, plan, lambda: next(ticks), lambda _done: None)

    return asyncio.run(main()), seat


def test_arms_are_interleaved_in_moving_order_after_a_warm_up_of_each() -> None:
    plan = Plan("base", ("lv-x",), rounds=6, tokens=4, streams=1, warm_ups=1, prompt="Go on.")
    samples, seat = run(FaultySeat(routes={"/v1/completions": words(4)}), plan)
    asked = [request.body["model"] for request in seat.seen]
    assert asked[:3] == ["base", "lv-x", "base"]
    assert asked[3:12] == ["base", "lv-x", "base", "lv-x", "base", "base", "base", "base", "lv-x"]
    assert len(samples) == 18
    bodies = [request.body for request in seat.seen]
    assert all(body["ignore_eos"] and body["stream"] and body["max_tokens"] == 4 for body in bodies)
    assert len({body["prompt"] for body in bodies}) == len(bodies), "no answer may come from a cache"
    # The clock moves on by a quarter of a second a look: the first words at 0.25, three more until 1.0.
    assert {(round(sample.decode, 3), sample.first_s) for sample in samples} == {(4.0, 0.25)}


def test_streams_are_counted_together_from_the_first_token_on() -> None:
    # Two answers of five tokens: from 1.0, when the first begins to speak, to 3.0, when the second has ended.
    slow, late = Timing(1.0, 2.0, 5), Timing(1.5, 2.5, 5, begun=0.5)
    assert decode_of([slow, late]) == 8 / 2.0
    assert slow.decode == decode_of([slow]) == 4 / 1.0


def test_several_streams_are_asked_at_once() -> None:
    plan = Plan("base", (), rounds=6, tokens=4, streams=3, warm_ups=0, prompt="Go on.")
    samples, seat = run(FaultySeat(routes={"/v1/completions": words(4)}), plan)
    assert len(samples) == 12
    assert len(seat.seen) == 36
    assert seat.most_active > 1


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        (words(3), "3 tokens came, 4 were asked for"),
        (words(4, end=""), "before its last event"),
        (words(4, end='data: {"error": {"message": "boom"}}\n\n'), "boom"),
        (words(4, end="data: [1]\n\n"), "no JSON object"),
    ],
)
def test_a_stream_that_is_not_what_was_asked_ends_the_measurement(handler: Any, message: str) -> None:
    with pytest.raises(SeatError, match=message):
        run(FaultySeat(routes={"/v1/completions": handler}), PLAN)


def named(model: str, count: int = 4) -> Any:
    """A stream whose events name a model."""

    async def stream(request: Request, wire: Wire) -> None:
        events = [{"model": model, "choices": [{"text": "a "}]}] * count
        events.append({"model": model, "choices": [], "usage": {"completion_tokens": 4}})
        await wire.raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        await wire.raw("".join(f"data: {json.dumps(each)}\n\n" for each in events).encode() + b"data: [DONE]\n\n")
        wire.writer.close()

    return stream


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        (named("lv-x"), "'base' was asked and 'lv-x' answered"),
        (named("other"), "'lv-x' was asked and 'other' answered"),
        (named("base"), "'lv-x' was asked and 'base' answered"),
        (named("base", count=1), "the words came all together"),
    ],
)
def test_another_models_speed_or_a_held_back_stream_is_no_measurement(handler: Any, message: str) -> None:
    with pytest.raises(SeatError, match=message):
        run(FaultySeat(routes={"/v1/completions": handler}), PLAN)


def test_a_stream_that_comes_in_no_time_tells_no_speed() -> None:
    async def main() -> None:
        async with FaultySeat(routes={"/v1/completions": words(4)}) as seat, SeatClient(seat.url) as client:
            await measure(client, PLAN, lambda: 1.0, lambda _done: None)

    with pytest.raises(SeatError, match="the words came all together"):
        asyncio.run(main())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("base",), "'base' is what this table calls"),
        (("base again",), "'base again' is what"),
        (("",), "'' is what"),
        (("x", "--plot", "{home}"), "is a directory"),
        (("x", "--plot", "{home}/there.svg"), "there is something already"),
    ],
)
def test_what_would_spoil_a_measurement_is_refused_before_it(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    (tmp_path / "there.svg").write_text("mine", "utf-8")
    filled = [word.format(home=tmp_path) for word in words]
    ended = gates("seat", "bench", *filled, "--seat", "http://127.0.0.1:1/v1")
    assert ended.returncode == 2
    assert said in ended.stderr
    assert (tmp_path / "there.svg").read_text("utf-8") == "mine"


class Restarted(Seat):
    """A seat that says another version after a while."""

    def __init__(self) -> None:
        super().__init__()
        self.versions = itertools.repeat("1")
        self.faulty.routes |= {"/version": self.version, "/v1/completions": slowly}

    async def cards(self, _request: Request, wire: Wire) -> None:
        names = ("voices-base", "lv-x", "[/red]")
        await wire.send({"data": [card(name, parent=names[0] if name != names[0] else None) for name in names]})

    async def version(self, _request: Request, wire: Wire) -> None:
        await wire.send({"version": next(self.versions)})


async def slowly(request: Request, wire: Wire) -> None:
    """Eight tokens, some time apart, in the name of whoever was asked."""
    await wire.raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    for event in [{"choices": [{"text": "a"}]}] * 8 + [{"usage": {"completion_tokens": 8}}]:
        await wire.raw(f"data: {json.dumps({'model': request.body['model']} | event)}\n\n".encode())
        await asyncio.sleep(0.001)
    await wire.raw(b"data: [DONE]\n\n")
    wire.writer.close()


def test_names_are_no_mark_up_and_a_server_of_another_version_is_another() -> None:
    words = ("seat", "bench", "[/red]", "--rounds", 6, "--tokens", 8, "--warm-ups", 0, "--seat")
    with running(Restarted) as seat:
        seat.versions = iter(("1", "2"))
        ended = gates(*words, seat.faulty.url)
        assert ended.returncode == 4
        assert "the server was 1 at first and 2 at last" in ended.stderr
        seat.versions = itertools.repeat("1")
        ended = gates(*words, seat.faulty.url)
    assert ended.returncode == 0, ended
    assert "│ [/red] " in ended.stdout


def bench(*options: object) -> tuple[Ended, list[Request]]:
    """What the command says of a seat that serves voices-base and lv-x, and what it asked of it."""
    with running(Restarted) as seat:
        ended = gates(
            "seat", "bench", "--rounds", 6, "--tokens", 8, "--warm-ups", 0, *options, "--seat", seat.faulty.url
        )
        return ended, seat.faulty.seen


def test_the_command_says_each_difference_beside_its_floor(tmp_path: Path) -> None:
    ended, _ = bench("lv-x", "--plot", tmp_path / "b.svg", "--streams", 2)
    assert ended.returncode == 0, ended
    assert re.search(r"lv-x, decode: [+-][\d.]+% against a floor of [\d.]+%: (does not resolve|resolves)", ended.stdout)
    assert "lv-x, first token: " in ended.stdout
    assert "decode of all 2" in ended.stdout
    assert "base again, decode" not in ended.stdout, "the base against itself is the floor, not a finding"
    assert "round 1 of 6, about " in ended.stderr
    assert f"written: {tmp_path / 'b.svg'}" in ended.stderr
    table = [line for line in ended.stdout.splitlines() if line[:1] in "┏┃┡│├└"]
    assert max(map(len, table)) <= 80
    alone, _ = bench()
    assert re.search(r"floor: [\d.]+% of decode, [\d.]+% of the first token; a smaller cost", alone.stdout)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("nope",), "does not serve 'nope'; it serves: voices-base, lv-x"),
        (("--base", "nope"), "does not serve 'nope'"),
        (("--tokens", 512), "the seat's context is 512 tokens"),
        (("--plot", "b.png"), "--plot b.svg"),
    ],
)
def test_what_cannot_be_measured_is_said_before_anything_is(options: tuple[object, ...], message: str) -> None:
    ended, seen = bench(*options)
    assert ended.returncode == 2
    assert message in ended.stderr
    assert "next: " in ended.stderr
    assert {request.method for request in seen} <= {"GET"}


def test_a_refusal_is_told_in_the_seats_words() -> None:
    with pytest.raises(SeatError, match="404"):
        run(FaultySeat(models=("base",), routes={}), Plan("nope", (), 6, 4, 1, 1, "Go on."))


def test_the_picture_holds_every_sample_and_escapes_names() -> None:
    hostile = house().model_copy(update={"arms": tuple(
        arm.model_copy(update={"arm": "<script>$x$" if arm.arm == "x" else arm.arm}) for arm in house().arms
    )})  # fmt: skip
    svg = bench_svg(hostile)
    assert "<script" not in svg
    root = ET.fromstring(svg)
    dots = root.iter("{http://www.w3.org/2000/svg}use")
    assert sum(1 for _ in dots) >= 90
    assert svg == bench_svg(hostile)
