"""The driver: every (arm, prompt, seed) once, arms interleaved request by request, each answer handed on at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

import numpy as np
from pydantic import JsonValue

from gates.errors import SeatError, UnfitSeatError
from gates.records import Generation
from gates.seat.answers import Answer
from gates.seat.client import SeatClient, SeatRequest
from gates.seat.credit import check_length, check_route
from gates.seat.faults import FaultError, NotCreditedError, TransientError, UnreachableError, printable
from gates.seat.pace import Pace
from gates.seat.requests import request_body, salted
from gates.spec.prompts import all_shown
from gates.spec.schema import Gate


class Task(NamedTuple):
    """One text to generate: the arm, the prompt's number from 0, the seed. It is also the key of the generation."""

    arm: str
    prompt: int
    seed: int


@dataclass(frozen=True)
class Run:
    """What every generation of a run shares: gate, beats, hashes of seal and seat, cache salt, the probe's beats.

    The probe's prompts are numbered after the open ones. `fingerprint` is the sealed seat's; None: not compared.
    `targets` name by model what stood behind a proxy when the canary asked; `context` is the seat's length in tokens.
    """

    gate: Gate
    beats: Sequence[str]
    seal: str
    seat: str
    cache_salt: str
    probe: Sequence[str] = ()
    fingerprint: str | None = None
    targets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    context: int | None = None


@dataclass(frozen=True)
class Progress:
    """How far generation is: counts since this start.

    `errors` counts generations without an answer, by arm; `arms` holds (done, total) of each arm.
    """

    done: int
    total: int
    completion_tokens: int
    retries: int
    errors: Mapping[str, int]
    arms: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def plan(gate: Gate, prompts_count: int, order_seed: int) -> list[Task]:
    """Every task in the order of the requests, drawn from `order_seed` alone.

    Block-randomised, so that arms stay balanced through time: each (prompt, seed's position) is a block of one task an
    arm; the blocks are in random order, and so are the arms in each. Drawn from the raw 64-bit output of PCG64, which
    numpy keeps stable over its versions (NEP 19), not from a distribution, which it does not.
    """
    arms = tuple(gate.arms.all())
    seeds = {arm: gate.seeds(arm) for arm in arms}
    positions = len(gate.sampling.seeds)
    blocks = prompts_count * positions
    source = np.random.PCG64(order_seed)
    block_order = np.argsort(source.random_raw(blocks), kind="stable")
    arm_orders = np.argsort(source.random_raw(blocks * len(arms)).reshape(blocks, len(arms)), axis=1, kind="stable")
    return [
        Task(arms[arm], int(block) // positions, seeds[arms[arm]][int(block) % positions])
        for block, order in zip(block_order, arm_orders, strict=True)
        for arm in order
    ]


async def generate(
    tasks: Sequence[Task],
    client: SeatClient,
    write: Callable[[Generation], None],
    run: Run,
    pace: Pace,
    watch: Callable[[Progress], None] = lambda _progress: None,
) -> Progress:
    """Generate `tasks` in their order with `pace.concurrency` requests at a time.

    Each finished generation is given to `write`, then its Progress to `watch`, in the order the answers come. A task
    whose attempts are used up while the seat answers, or whose request the seat refuses, is a Generation with
    `error`. Raises SeatError when going on is useless (no connection, the key refused, nothing answered any more) and
    UnfitSeatError when the seat answers for another model or with another fingerprint; what was written stays, and the
    tasks that are left can be given again. Cancelling it cancels the requests in flight; nothing is half written.
    """
    driver = _Driver(tasks, client, write, run, pace, watch)
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(pace.concurrency, len(tasks))):
                group.create_task(driver.work())
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return driver.progress()


class _Driver:
    def __init__(
        self,
        tasks: Sequence[Task],
        client: SeatClient,
        write: Callable[[Generation], None],
        run: Run,
        pace: Pace,
        watch: Callable[[Progress], None],
    ) -> None:
        self._queue: Iterator[Task] = iter(tasks)
        self._total = len(tasks)
        self._client, self._write, self._run, self._pace, self._watch = client, write, run, pace, watch
        self._shown = all_shown(run.gate, run.beats, run.probe)
        arms = run.gate.arms
        self._base = arms.base.model
        self._adapters = {arm.model for arm in arms.all().values()} - {self._base}
        self._answered = 0
        self._done = self._tokens = self._retries = 0
        self._errors: Counter[str] = Counter()
        self._by_arm: Counter[str] = Counter()
        self._totals = Counter(task.arm for task in tasks)

    def progress(self) -> Progress:
        arms = {arm: (self._by_arm[arm], total) for arm, total in self._totals.items()}
        return Progress(self._done, self._total, self._tokens, self._retries, dict(self._errors), arms)

    async def work(self) -> None:
        for task in self._queue:
            generation = await self._settle(task)
            self._write(generation)
            self._done += 1
            self._by_arm[task.arm] += 1
            self._tokens += generation.usage.completion_tokens if generation.usage else 0
            self._errors.update([task.arm] if generation.error else [])
            self._watch(self.progress())

    async def _settle(self, task: Task) -> Generation:
        shown = self._shown[task.prompt]
        body = request_body(self._run.gate, task.arm, shown.beat, task.seed, shown.prompts)
        request = SeatRequest(self._run.gate.prompts.endpoint, salted(body, self._run.cache_salt))
        answered_before = self._answered
        for attempt in count(1):
            record = _Attempt(task, body, attempt, self._pace.now().isoformat(), self._pace.monotonic())
            try:
                answer = await self._client.complete(request)
                check_route(answer, self._run.targets.get(str(body["model"])))
                check_length(answer, self._run.gate.sampling.max_tokens, self._run.context)
            except FaultError as fault:
                self._answered += fault.answered
                if fault.retryable and attempt < self._pace.attempts:
                    self._retries += 1
                    await self._pace.sleep(self._pace.wait_s(attempt, _retry_after(fault)))
                    continue
                alone = not fault.answered and self._answered == answered_before
                if fault.stops or isinstance(fault, UnreachableError) or alone:
                    raise self._stopped(task, fault, attempt) from None
                told = fault.headers if isinstance(fault, NotCreditedError) else {}
                return self._record(record, Answer("", None, headers=told), error=printable(fault.message))
            self._answered += 1
            self._check_model(task, answer)
            self._check_fingerprint(task, answer)
            return self._record(record, answer, error=None)
        raise AssertionError("unreachable: the loop above only ends by return or raise")

    def _record(self, attempt: _Attempt, answer: Answer, *, error: str | None) -> Generation:
        return Generation(
            seal=self._run.seal,
            arm=attempt.task.arm,
            prompt=attempt.task.prompt,
            seed=attempt.task.seed,
            seat=self._run.seat,
            request=attempt.body,
            text=answer.text,
            finish_reason=answer.finish_reason,
            usage=answer.usage,
            model=answer.model,
            fingerprint=answer.fingerprint,
            prompt_sha256=answer.prompt_sha256,
            started=attempt.started,
            latency_s=max(0.0, self._pace.monotonic() - attempt.begun),
            attempts=attempt.number,
            error=error,
            headers=dict(answer.headers),
        )

    def _check_model(self, task: Task, answer: Answer) -> None:
        asked = self._run.gate.arms.all()[task.arm].model
        # A base may answer under another of its served names; an adapter has but one.
        wrong = answer.model in self._adapters if asked == self._base else answer.model != asked
        if wrong:
            raise UnfitSeatError(
                f"arm {task.arm!r} asked for model {asked!r} and {answer.model!r} answered; {self._state()}",
                next_step=f"make the seat serve {asked!r} under this name, then run the same command: it continues",
            )

    def _check_fingerprint(self, task: Task, answer: Answer) -> None:
        sealed = self._run.fingerprint
        if sealed is not None and answer.fingerprint != sealed:
            raise UnfitSeatError(
                f"arm {task.arm!r}: the sealed seat's fingerprint is {sealed!r} and {answer.fingerprint!r} answered; "
                f"{self._state()}",
                next_step="serve with the sealed configuration, then run the same command: it continues",
            )

    def _stopped(self, task: Task, fault: FaultError, attempts: int) -> SeatError:
        kind = UnfitSeatError if isinstance(fault, UnfitSeatError) else SeatError
        place = f"arm {task.arm!r}, prompt {task.prompt}, seed {task.seed}"
        remedy = fault.next_step or "see that the seat is up and answers within seat.timeout_s"
        return kind(
            f"generation stopped at {place} after {attempts} attempt(s): {fault.message}; {self._state()}",
            next_step=f"{remedy}; then run the same command again: it continues",
        )

    def _state(self) -> str:
        return f"{self._done} of {self._total} generations of this start are recorded"


@dataclass(frozen=True)
class _Attempt:
    """The try that a record speaks of: `started` is its UTC time, `begun` its start on the monotonic clock."""

    task: Task
    body: dict[str, JsonValue]
    number: int
    started: str
    begun: float


def _retry_after(fault: FaultError) -> str | None:
    return fault.retry_after if isinstance(fault, TransientError) else None
