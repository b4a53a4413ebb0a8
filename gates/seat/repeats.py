"""A few requests of a run made again, alone and twice: whether this seat gives the same text for the same request."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Literal

from pydantic import Field

from gates.records import Generation, Record
from gates.seat.client import SeatClient, SeatRequest
from gates.seat.faults import FaultError
from gates.seat.requests import salted
from gates.spec.schema import Gate

SAMPLE = 3
"""Requests that are made again; each costs two more answers."""

Repeatable = Literal["repeatable", "repeatable alone only", "not repeatable", "not tested"]

MEANING: dict[Repeatable, str] = {
    "repeatable": "another attempt with the same seeds gives the same texts, so it is no new evidence: seal other "
    "seeds for that",
    "repeatable alone only": "texts depend on what else the server computes at that moment, so another attempt gives "
    "other texts of the same distribution, and only one request at a time (seat.concurrency: 1) gives these again",
    "not repeatable": "the seed does not fix the text, so no attempt gives these texts again: compare attempts by "
    "their verdicts, and keep the recorded generations",
    "not tested": "no request could be made again",
}


class Repeat(Record):
    """One request made again: whether both answers alone are the same text, and the first that of the run, too."""

    arm: str
    prompt: int
    seed: int
    alone: bool
    as_in_run: bool


class Determinism(Record):
    """What a sample of requests showed at the end of a run that asked `concurrency` at a time; `failed` were lost."""

    concurrency: int = Field(ge=1)
    repeats: tuple[Repeat, ...]
    failed: int = Field(ge=0)

    @property
    def word(self) -> Repeatable:
        """The worst that a request of the sample showed."""
        if not self.repeats:
            return "not tested"
        if not all(repeat.alone for repeat in self.repeats):
            return "not repeatable"
        return "repeatable" if all(repeat.as_in_run for repeat in self.repeats) else "repeatable alone only"

    @property
    def sentence(self) -> str:
        """The word, the counts behind it, and what it means for running again."""
        tried, alone = len(self.repeats), sum(repeat.alone for repeat in self.repeats)
        same = sum(repeat.as_in_run for repeat in self.repeats)
        counts = (
            f"{alone} of {tried} requests made twice alone gave one text, {same} of {tried} the text that the run got "
            f"at concurrency {self.concurrency}"
        )
        lost = f", {self.failed} more failed" if self.failed else ""
        return f"{self.word}: {counts}{lost}; {MEANING[self.word]}"


def sample_of(generations: Iterable[Generation], size: int = SAMPLE) -> list[Generation]:
    """Up to `size` answered generations, of as many arms as possible, in the order in which the answers came."""
    answered = [generation for generation in generations if generation.error is None]
    turns: dict[tuple[str, int, int], int] = {}
    for _, mine in groupby(sorted(answered, key=lambda each: each.arm), key=lambda each: each.arm):
        turns |= {generation.key: turn for turn, generation in enumerate(mine)}
    return sorted(answered, key=lambda each: turns[each.key])[:size]


async def repeat_alone(
    client: SeatClient, gate: Gate, sample: Iterable[Generation], cache_salt: str, concurrency: int
) -> Determinism:
    """Make each request of the sample twice again, one at a time; nothing of it enters the run's generations."""
    repeats: list[Repeat] = []
    failed = 0
    for told in sample:
        request = SeatRequest(gate.prompts.endpoint, salted(told.request, cache_salt))
        try:
            texts = [(await client.complete(request)).text for _ in range(2)]
        except FaultError:
            failed += 1
            continue
        alone, as_in_run = texts[0] == texts[1], texts[0] == told.text
        repeats.append(Repeat(arm=told.arm, prompt=told.prompt, seed=told.seed, alone=alone, as_in_run=as_in_run))
    return Determinism(concurrency=concurrency, repeats=tuple(repeats), failed=failed)
