"""Asking the judging model: every text in both orders once, each answer handed on at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from pydantic import JsonValue

from gates.errors import SeatError, UnfitSeatError
from gates.seat.answers import Answer
from gates.seat.client import SeatClient, SeatRequest
from gates.seat.credit import check_route
from gates.seat.faults import BrokenContractError, FaultError, TransientError, printable
from gates.seat.journal import Journal
from gates.seat.pace import Pace
from gates.seat.requests import judge_body, salted
from gates.spec.judging import ORDERS, Judgement, Order, question
from gates.spec.schema import Gate


@dataclass(frozen=True)
class Case:
    """One text to be judged in one order: of a generation (arm, prompt, seed), or labelled text `prompt` (arm None)."""

    arm: str | None
    prompt: int
    seed: int
    order: Order
    beat: str
    text: str

    @property
    def key(self) -> tuple[str | None, int, int, Order]:
        """As the key of the judgement."""
        return (self.arm, self.prompt, self.seed, self.order)


@dataclass(frozen=True)
class Bench:
    """What every judgement of a run shares: gate, seal, cache salt, the sealed fingerprint, and who answered before.

    `seat` names one of several seats.
    """

    gate: Gate
    seal: str
    cache_salt: str
    fingerprint: str | None = None
    targets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    seat: str | None = None


def both_orders(arm: str | None, prompt: int, seed: int, beat: str, text: str) -> list[Case]:
    """The two cases of one text."""
    return [Case(arm, prompt, seed, order, beat, text) for order in ORDERS]


def body_of(gate: Gate, case: Case) -> dict[str, JsonValue]:
    """The request of a case as it is recorded."""
    return judge_body(gate, question(case.order, case.beat, case.text))


async def ask(
    cases: Sequence[Case], client: SeatClient, write: Callable[[Sequence[Judgement]], None], bench: Bench, pace: Pace
) -> None:
    """Ask the judge of `cases` with `pace.concurrency` requests at a time; `write` is given the judgements.

    As `gates.seat.generate.generate` does: beside the loop, all that have come since it last returned.
    A case to which the seat says neither yes nor no is a judgement with `error`. Raises SeatError when going on is
    useless, or the attempts at a case are used up and nothing was said (no connection, cut off, timed out, busy), for
    the network decides no axis; UnfitSeatError when something else than what was sealed answers. What was written
    stays.
    """
    queue = iter(cases)
    slots = asyncio.Semaphore(pace.concurrency)

    async def work(journal: Journal[Judgement]) -> None:
        for case in queue:
            async with slots:
                judgement = await _settle(case, client, bench, pace)
            await journal.add(judgement)

    try:
        async with Journal(write) as journal, asyncio.TaskGroup() as group:
            for _ in range(min(2 * pace.concurrency - 1, len(cases))):
                group.create_task(work(journal))
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None


async def _settle(case: Case, client: SeatClient, bench: Bench, pace: Pace) -> Judgement:
    body = body_of(bench.gate, case)
    request = SeatRequest(bench.gate.prompts.endpoint, salted(body, bench.cache_salt))
    for attempt in count(1):
        try:
            answer = await client.complete(request)
            check_route(answer, bench.targets.get(str(body["model"])))
            _check_sealed(answer, bench, str(body["model"]))
            return _judgement(case, bench, body, answer)
        except FaultError as fault:
            if fault.retryable and attempt < pace.attempts:
                asked = fault.retry_after if isinstance(fault, TransientError) else None
                await pace.sleep(pace.wait_s(attempt, asked))
            elif fault.stops or not fault.answered:
                raise SeatError(
                    f"judging stopped at {case.arm or 'a labelled text'}, {case.prompt}: {fault.message}",
                    next_step="see that the seat is up; then run the same command again: it continues",
                ) from None
            else:
                return _recorded(case, bench, body, error=printable(fault.message))
    raise AssertionError("unreachable: the loop above only ends by return or raise")


def _check_sealed(answer: Answer, bench: Bench, model: str) -> None:
    arms = bench.gate.arms
    adapters = {arm.model for arm in arms.all().values()} - {arms.base.model}
    wrong = answer.model in adapters if model == arms.base.model else answer.model != model
    if wrong or (bench.fingerprint is not None and answer.fingerprint != bench.fingerprint):
        raise UnfitSeatError(
            f"the judge {model!r} was asked, and {answer.model!r} with fingerprint {answer.fingerprint!r} answered",
            next_step="serve what was sealed, then run the same command: it continues",
        )


def _judgement(case: Case, bench: Bench, body: dict[str, JsonValue], answer: Answer) -> Judgement:
    """The log probabilities of yes and no as first token. Raises BrokenContractError where neither is listed."""
    listed = {answer.scores[0].token: answer.scores[0].logprob, **answer.scores[0].top} if answer.scores else {}
    said = {word: [logprob for token, logprob in listed.items() if _word(token) == word] for word in ("yes", "no")}
    if not any(said.values()):
        heard = printable(", ".join(map(repr, list(listed)[:5])))
        raise BrokenContractError(f"neither yes nor no among the likeliest tokens ({heard})", retryable=False)
    least = min(listed.values())
    yes, no = (max(said[word], default=least) for word in ("yes", "no"))
    return _recorded(case, bench, body, scores=(yes, no), answer=answer)


def _word(token: str) -> str:
    return token.strip().strip(".,:;!\"'").lower()


def _recorded(
    case: Case,
    bench: Bench,
    body: dict[str, JsonValue],
    *,
    scores: tuple[float, float] | None = None,
    answer: Answer | None = None,
    error: str | None = None,
) -> Judgement:
    return Judgement(
        seal=bench.seal,
        arm=case.arm,
        prompt=case.prompt,
        seed=case.seed,
        order=case.order,
        request=body,
        yes=scores[0] if scores else None,
        no=scores[1] if scores else None,
        model=answer.model if answer else None,
        fingerprint=answer.fingerprint if answer else None,
        error=error,
        seat=bench.seat,
    )
