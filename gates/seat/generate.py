"""The driver: every (arm, prompt, seed) once, arms interleaved request by request, each answer handed on at once."""

from __future__ import annotations

import asyncio
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
from gates.seat.journal import Journal
from gates.seat.pace import Pace
from gates.seat.progress import Progress, Tally
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


@dataclass(frozen=True)
class Share:
    """What one seat is given: tasks in their order, its client, what its generations share, how hard it is pressed.

    `one_of_several`: a request that brought nothing is held until the seat has worked off its share, and is no error of
    the request's when the seat is lost meanwhile.
    """

    tasks: Sequence[Task]
    client: SeatClient
    run: Run
    pace: Pace
    one_of_several: bool = False


class Desk(Journal[Generation]):
    """Where a finished generation goes: it is recorded, then `tally` counts it and `watch` is told."""

    def __init__(
        self,
        write: Callable[[Sequence[Generation]], None],
        tally: Tally,
        watch: Callable[[Progress], None] = lambda _progress: None,
    ) -> None:
        super().__init__(write, self._count)
        self.tally, self._watch = tally, watch

    def _count(self, generation: Generation) -> None:
        self.tally.add(generation)
        self._watch(self.tally.progress())


async def generate(
    tasks: Sequence[Task],
    client: SeatClient,
    write: Callable[[Sequence[Generation]], None],
    run: Run,
    pace: Pace,
    watch: Callable[[Progress], None] = lambda _progress: None,
) -> Progress:
    """Generate `tasks` in their order with `pace.concurrency` requests at a time.

    Finished generations are given to `write`, in a thread beside the loop, all that have come since it last returned;
    then the Progress of each to `watch`, in the order the answers come. Up to `pace.concurrency` less one may wait for
    that while others are asked for: with one request at a time none does. A task whose attempts are used up while the
    seat answers, or whose request the seat refuses, is a Generation with `error`. Raises SeatError when going on is
    useless (no connection, the key refused, nothing answered any more), UnfitSeatError when the seat answers for
    another model or with another fingerprint, and what `write` raises; what was written stays, and the tasks that are
    left can be given again. Cancelling it cancels the requests in flight; what was answered before is written.
    """
    async with Desk(write, Tally(task.arm for task in tasks), watch) as desk:
        await Driver(Share(tasks, client, run, pace), desk).drive()
    return desk.tally.progress()


class Driver:
    """Works off one seat's share. Several may work at one desk."""

    def __init__(self, share: Share, desk: Desk) -> None:
        self._share, self._desk = share, desk
        self._client, self._run, self._pace = share.client, share.run, share.pace
        self._queue: Iterator[Task] = iter(share.tasks)
        self._asked: dict[Task, asyncio.Future[None] | None] = {}
        self._unheard: set[Task] = set()
        self._held: list[Generation] = []
        self._shown = all_shown(share.run.gate, share.run.beats, share.run.probe)
        arms = share.run.gate.arms
        self._models = {name: arm.model for name, arm in arms.all().items()}
        self._base = arms.base.model
        self._adapters = set(self._models.values()) - {self._base}
        self._answered = 0
        self._named = f"{share.run.seat}: " if share.one_of_several else ""
        self.why = ""

    async def drive(self) -> None:
        """Generate the whole share. Raises as `generate` does; `left` then gives what is not recorded, `why` the cause.

        Of several errors at once the gravest is raised: a seat that is unfit, or a failure of ours, before one that is
        down. Whatever is raised, nothing of this share is being written any more.
        """
        slots = asyncio.Semaphore(self._pace.concurrency)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(2 * self._pace.concurrency - 1, len(self._share.tasks))):
                    group.create_task(self._work(slots))
            await asyncio.gather(*map(self._desk.add, self._held))
        except ExceptionGroup as failures:
            await self._desk.settle()
            error = min(failures.exceptions, key=is_down)
            if isinstance(error, SeatError):
                error.message = f"{error.message}; {self._desk.tally.state}"
            raise error from None
        finally:
            await self._desk.settle()

    def left(self) -> list[Task]:
        """The tasks that are not recorded, those that were asked first; they are another's from now on."""
        return [*(task for task, told in self._asked.items() if not _is_recorded(told)), *self._queue]

    async def _work(self, slots: asyncio.Semaphore) -> None:
        for task in self._queue:
            self._asked[task] = None
            async with slots:
                generation = await self._settle(task)
            if self._share.one_of_several and task in self._unheard:
                self._held.append(generation)
                continue
            told = self._asked[task] = self._desk.put(generation)
            await asyncio.shield(told)
            del self._asked[task]

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
                    self._desk.tally.retries += 1
                    await self._pace.sleep(self._pace.wait_s(attempt, _retry_after(fault)))
                    continue
                alone = not fault.answered and self._answered == answered_before
                if fault.stops or isinstance(fault, UnreachableError) or alone:
                    raise self._stopped(task, fault, attempt) from None
                self._unheard |= set() if fault.answered else {task}
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
        asked = self._models[task.arm]
        # A base may answer under another of its served names; an adapter has but one.
        wrong = answer.model in self._adapters if asked == self._base else answer.model != asked
        if wrong:
            raise UnfitSeatError(
                f"{self._named}arm {task.arm!r} asked for model {asked!r} and {answer.model!r} answered",
                next_step=f"make the seat serve {asked!r} under this name, then run the same command: it continues",
            )

    def _check_fingerprint(self, task: Task, answer: Answer) -> None:
        sealed = self._run.fingerprint
        if sealed is not None and answer.fingerprint != sealed:
            raise UnfitSeatError(
                f"{self._named}arm {task.arm!r}: the sealed seat's fingerprint is {sealed!r} and "
                f"{answer.fingerprint!r} answered",
                next_step="serve with the sealed configuration, then run the same command: it continues",
            )

    def _stopped(self, task: Task, fault: FaultError, attempts: int) -> SeatError:
        kind = UnfitSeatError if isinstance(fault, UnfitSeatError) else SeatError
        place = f"arm {task.arm!r}, prompt {task.prompt}, seed {task.seed}"
        self.why = f"at {place} after {attempts} attempt(s): {fault.message}"
        remedy = fault.next_step or "see that the seat is up and answers within seat.timeout_s"
        return kind(
            f"{self._named}generation stopped {self.why}",
            next_step=f"{remedy}; then run the same command again: it continues",
        )


def _is_recorded(told: asyncio.Future[None] | None) -> bool:
    return told is not None and told.done() and not told.cancelled() and told.exception() is None


def is_down(error: BaseException) -> bool:
    """Whether an error says that a seat does not answer, and nothing worse: that another answers, or that we failed."""
    return isinstance(error, SeatError) and not isinstance(error, UnfitSeatError)


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
