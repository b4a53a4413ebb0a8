"""What an adapter costs: base, adapters and base again, interleaved request by request, each against the A-vs-A floor.

Every round asks each arm once, in an order that moves on by one arm a round, so that load and heat fall on all alike.
A difference is paired by round; its interval is the exact one of the median (order statistics, no distribution
assumed), and it resolves when the interval lies outside what the base against itself shows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from gates.errors import SeatError, UnfitSeatError, UsageError
from gates.records import Record, signature
from gates.seat.client import SeatClient, SeatRequest
from gates.seat.faults import printable
from gates.seat.streams import Timing, decode_of

AGAIN = "base again"
BASE = "base"
SCHEMA = "seat_bench@1"
FEWEST = 6
"""With fewer rounds the median has no 95 % interval."""
FASTEST = 10_000.0
"""Tokens a second of one answer above which its words were held back and came together."""


@dataclass(frozen=True)
class Plan:
    """What is measured: served names of base and adapters, rounds, tokens an answer, streams at once, warm-ups an arm.

    `prompt` is sent to the completions endpoint with a number in front, so that no round is served from a cache.
    """

    base: str
    adapters: tuple[str, ...]
    rounds: int
    tokens: int
    streams: int
    warm_ups: int
    prompt: str

    @property
    def arms(self) -> dict[str, str]:
        """Arm -> served name: the base, each adapter, the base again."""
        return {BASE: self.base, **{name: name for name in self.adapters}, AGAIN: self.base}

    @property
    def signature(self) -> str:
        """How the figures were made."""
        return signature(SCHEMA, rounds=self.rounds, tokens=self.tokens, streams=self.streams, warm_ups=self.warm_ups)


class Sample(Record):
    """One arm in one round: decode tokens/s of all its streams together, and the median of their first tokens' seconds.

    Decode counts from the first token on (`decode_of`), so that a slow first token is not taken for slow decoding.
    """

    round: int
    arm: str
    decode: float
    first_s: float


class Difference(Record):
    """An arm against the base, paired by round, as shares (-0.243 is 24.3 % slower): median, 95 % interval, floor.

    `floor` is the larger end of the interval of base again against base; `resolves` when the whole interval lies
    beyond it.
    """

    median: float
    low: float
    high: float
    floor: float
    resolves: bool


class ArmSpeed(Record):
    """One arm's medians, and its differences to the base (None for the base itself)."""

    arm: str
    model: str
    decode: float
    first_s: float
    decode_change: Difference | None
    first_change: Difference | None


class Bench(Record):
    """A finished measurement."""

    signature: str
    seat: str
    version: str | None
    arms: tuple[ArmSpeed, ...]
    samples: tuple[Sample, ...]


async def check_served(client: SeatClient, plan: Plan) -> None:
    """Raise UsageError for a name that the seat does not list, or a length over its context; nothing else is asked."""
    cards = {str(card["id"]): card for card in await client.models()}
    missing = [name for name in plan.arms.values() if name not in cards]
    if missing:
        raise UsageError(
            f"the seat does not serve {missing[0]!r}; it serves: {printable(', '.join(cards)) or 'none'}",
            next_step="`gates seat load` loads an adapter, --base NAME names the base",
        )
    context = cards[plan.base].get("max_model_len")
    if isinstance(context, int) and plan.tokens >= context:
        raise UsageError(
            f"--tokens {plan.tokens} leaves no room for a prompt: the seat's context is {context} tokens",
            next_step=f"ask for fewer than {context}",
        )


async def measure(
    client: SeatClient, plan: Plan, clock: Callable[[], float], watch: Callable[[int], None]
) -> tuple[Sample, ...]:
    """Ask every arm `rounds` times; `watch` is told each finished round, and 0 when the warm-ups are over.

    Raises SeatError at the first failure.
    """
    number = 0
    for _ in range(plan.warm_ups):
        for model in plan.arms.values():
            await _ask(client, plan, model, number := number + 1, clock)
    watch(0)
    samples: list[Sample] = []
    names = list(plan.arms)
    for turn in range(plan.rounds):
        for place in range(len(names)):
            arm = names[(turn + place) % len(names)]
            numbers = range(number + 1, number + 1 + plan.streams)
            number += plan.streams
            asked = [_ask(client, plan, plan.arms[arm], each, clock) for each in numbers]
            samples.append(_sample(turn, arm, await asyncio.gather(*asked)))
        watch(turn + 1)
    return tuple(samples)


async def _ask(client: SeatClient, plan: Plan, model: str, number: int, clock: Callable[[], float]) -> Timing:
    timing = await client.timed(
        SeatRequest(
            "completions",
            {
                "model": model,
                "prompt": f"{number}. {plan.prompt}",
                "max_tokens": plan.tokens,
                "ignore_eos": True,
                "temperature": 0.0,
                "top_p": 1.0,
                "seed": 1,
            },
        ),
        clock,
    )
    if timing.model is not None and (timing.model in plan.adapters or model != plan.base) and timing.model != model:
        raise UnfitSeatError(
            f"{model!r} was asked and {printable(timing.model)!r} answered: its speed is not that of {model!r}",
            next_step="see with `gates seat status` that it is served under this name",
        )
    if timing.pieces < min(2, plan.tokens) or timing.decode > FASTEST:
        raise SeatError(
            f"{model}: the words came all together: something holds the stream back, so that it tells no decode speed",
            next_step="name the server's own address, without a proxy that buffers",
        )
    if timing.tokens != plan.tokens:
        raise SeatError(
            f"{model}: {timing.tokens} tokens came, {plan.tokens} were asked for: unequal lengths do not compare",
            next_step="use a server that knows ignore_eos, and a length within its context",
        )
    return timing


def _sample(turn: int, arm: str, timings: Sequence[Timing]) -> Sample:
    first = float(np.median([timing.first_s for timing in timings]))
    return Sample(round=turn, arm=arm, decode=decode_of(timings), first_s=first)


def summarise(plan: Plan, samples: Sequence[Sample]) -> tuple[ArmSpeed, ...]:
    """Medians, differences and whether they resolve, from samples of every arm in every round."""
    speed = {arm: _column(samples, arm, "decode") for arm in plan.arms}
    first = {arm: _column(samples, arm, "first_s") for arm in plan.arms}
    return tuple(
        ArmSpeed(
            arm=arm,
            model=model,
            decode=float(np.median(speed[arm])),
            first_s=float(np.median(first[arm])),
            decode_change=None if arm == BASE else difference(speed[arm], speed[BASE], speed[AGAIN]),
            first_change=None if arm == BASE else difference(first[arm], first[BASE], first[AGAIN]),
        )
        for arm, model in plan.arms.items()
    )


def _column(samples: Sequence[Sample], arm: str, figure: str) -> NDArray[np.float64]:
    mine = sorted((sample for sample in samples if sample.arm == arm), key=lambda sample: sample.round)
    return np.array([getattr(sample, figure) for sample in mine])


def difference(arm: NDArray[np.float64], base: NDArray[np.float64], again: NDArray[np.float64]) -> Difference:
    """`arm` against `base`, shape (rounds,) each, with the floor of `again` against `base`."""
    low, high = median_interval(arm / base - 1)
    floor = max(map(abs, median_interval(again / base - 1)))
    return Difference(
        median=float(np.median(arm / base - 1)), low=low, high=high, floor=floor, resolves=low > floor or high < -floor
    )


def median_interval(values: NDArray[np.float64], level: float = 0.95) -> tuple[float, float]:
    """The exact two-sided interval of the median by order statistics; of the range with too few values for the level.

    Source: Conover 1999, Practical Nonparametric Statistics, 3.2.
    """
    ranked = np.sort(values)
    cut = max(0, int(binom.ppf((1 - level) / 2, len(ranked), 0.5)) - 1)
    return float(ranked[cut]), float(ranked[len(ranked) - 1 - cut])
