"""The seats of a run as they are manned: each looked at, given its share, and looked at again; any may be lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from gates.errors import GatesError, RefusedError, SeatError, UnfitSeatError
from gates.flow.alike import Heard, refuse_unlike
from gates.flow.binding import sealed_seat
from gates.flow.judging import left_to_ask
from gates.flow.looks import Found, OtherWeightsError, Seen, Work, look, record, record_loss
from gates.flow.seats import OpenSeat
from gates.record.store import Session
from gates.records import Generation
from gates.seat.client import SeatClient
from gates.seat.generate import Desk, Run, Share, Task, generate, is_down, plan
from gates.seat.judge import Bench, ask
from gates.seat.pace import Pace, clock_warnings
from gates.seat.progress import Tally
from gates.seat.repeats import Determinism, repeat_alone, sample_of
from gates.seat.spread import Loss, generate_spread, homes, shared


@dataclass
class _Post:
    """One seat: its client, this run's looks at it, and since the last start its salt and what was seen."""

    seat: OpenSeat
    client: SeatClient
    looks: list[Session]
    salt: str = ""
    seen: Seen | None = None
    lost: bool = False

    @property
    def name(self) -> str:
        return self.client.base_url

    @property
    def first(self) -> Session | None:
        return self.looks[0] if self.looks else None


class Posts:
    """All the seats of a run, from the first look of a start to the last; one or several."""

    def __init__(self, work: Work, clients: Sequence[tuple[OpenSeat, SeatClient]], sessions: Sequence[Session]) -> None:
        self._work = work
        self._several = work.inputs.gate.seats is not None
        self._posts = [_Post(seat, client, self._of(client, sessions)) for seat, client in clients]
        self._pace = self._paced(self._posts[0])
        self._begun = self._pace.instant()

    def _of(self, client: SeatClient, sessions: Sequence[Session]) -> list[Session]:
        """The looks at one seat; the embedded seat has another address at each start."""
        return [session for session in sessions if not self._several or session.name == client.base_url]

    async def begin(self) -> None:
        """Look at every seat and record it. Raises SeatError where one does not answer that this run has never seen."""
        seen: list[tuple[_Post, str, Seen]] = []
        down: list[tuple[_Post, SeatError]] = []
        for post in self._posts:
            salt = self._work.salt()
            try:
                seen.append((post, salt, await look(self._work, post.client, salt, post.first)))
            except SeatError as error:
                if not (self._several and post.looks and is_down(error)):
                    raise
                down.append((post, error))
        if not seen:
            raise down[0][1]
        heard = [Heard(found.identity, found.canary) for _, _, found in seen]
        unlike = refuse_unlike(self._work.inputs.gate, heard)
        for post, why in down:
            self._lose(post, f"it did not answer when the run went on: {why.message}")
        for post, salt, found in seen:
            about = Found(unlike=unlike.get(post.name, ()))
            post.looks.append(record(self._work, "start", salt, found, about))
            post.salt, post.seen = salt, found
        self._begun = self._pace.instant()

    def _paced(self, post: _Post) -> Pace:
        return Pace(post.seat.concurrency, post.seat.attempts, self._work.world.chance, self._work.world.now)

    def _lose(self, post: _Post, why: str) -> None:
        post.lost = True
        post.looks.append(record_loss(self._work, post.looks[-1], why))

    async def generate(self, tasks: Sequence[Task]) -> None:
        """Generate the tasks, each at the seat that the sealed order gives it to, or at another when that is lost."""
        work, gate = self._work, self._work.inputs.gate
        if not self._several:
            (post,) = self._posts
            await generate(tasks, post.client, work.store.add_all, self._run(post), self._paced(post), work.world.watch)
            return
        order = plan(gate, len(work.inputs.shown), work.sealed.seal.order_seed)
        going = {
            post.name: Share((), post.client, self._run(post), self._paced(post), one_of_several=True)
            for post in self._posts
            if post.seen
        }
        desk = Desk(work.store.add_all, Tally(task.arm for task in tasks), work.world.watch)
        await generate_spread(shared(tasks, homes(gate, order), going), desk, self._lost)

    def _lost(self, loss: Loss) -> None:
        post = next(post for post in self._posts if post.name == loss.seat)
        self._lose(post, f"{loss.why}; {len(loss.left)} of its requests go to the other seats")

    def _run(self, post: _Post) -> Run:
        if post.seen is None:
            raise RefusedError(f"{post.name} was not looked at")
        about, sealed = self._work.inputs, self._work.sealed
        return Run(
            gate=about.gate,
            beats=about.beats,
            seal=sealed.sha256,
            seat=post.seat.label,
            cache_salt=post.salt,
            probe=about.probe,
            fingerprint=sealed_seat(sealed, post.name).fingerprint,
            targets=post.seen.canary.targets,
            context=post.seen.identity.context.max_model_len,
        )

    async def judge(self) -> None:
        """Ask the gate's judge what it has not been asked yet: at the first seat that answers, to keep to one."""
        work = self._work
        while cases := left_to_ask(work.inputs, work.sealed.sha256, work.store):
            post = next(post for post in self._posts if post.seen and not post.lost)
            work.world.say(f"asking the judge: {len(cases)} questions")
            run = self._run(post)
            seat = post.name if self._several else None
            bench = Bench(run.gate, run.seal, run.cache_salt, run.fingerprint, run.targets, seat)
            try:
                await ask(cases, post.client, work.store.add_judgements, bench, self._paced(post))
            except SeatError as error:
                others = [each for each in self._posts if each is not post and each.seen and not each.lost]
                if not (others and is_down(error)):
                    raise
                self._lose(post, f"as the judge: {error.message}")

    async def end(self) -> None:
        """Ask each seat a few requests again and look at it again; one that is lost is looked at, too."""
        work = self._work
        clock = clock_warnings(self._begun, self._pace.instant())
        about = [*clock, *_unanswered(work.store.generations(work.sealed.sha256))]
        seen: list[tuple[_Post, str, Seen, Determinism | None]] = []
        down: list[tuple[_Post, GatesError]] = []
        for post in self._posts:
            again = await self._again(post)
            # Under a salt of its own, so that the weights that are loaded now answer, and not a prefix cached before.
            salt = work.salt()
            try:
                seen.append((post, salt, await look(work, post.client, salt, post.first), again))
            except (RefusedError, SeatError) as error:
                # Before generation a seat can be put right; after it, nobody knows since when something else answered.
                # One that was lost may have come back bare: what it serves now says nothing of before, unless it is
                # the same voices with other weights.
                if not (is_down(error) or (post.lost and not isinstance(error, OtherWeightsError))):
                    raise self._spoiled(error.message) from None
                down.append((post, error))
        if not seen:
            raise down[0][1]
        for post, why in down:
            if not post.lost or not is_down(why):
                self._lose(post, f"it could not be looked at again at the end: {why.message}")
        for number, (post, salt, found, again) in enumerate(seen):
            told = Found(warnings=about if number == 0 else (), determinism=again)
            post.looks.append(record(work, "end", salt, found, told))

    async def _again(self, post: _Post) -> Determinism | None:
        """What a few of the seat's own requests gave when they were made again."""
        if post.seen is None or post.lost:
            return None
        work, label = self._work, post.seat.label
        mine = (g for g in work.store.generations(work.sealed.sha256) if not self._several or g.seat == label)
        again = await repeat_alone(post.client, work.inputs.gate, sample_of(mine), post.salt, post.seat.concurrency)
        work.world.say(f"the seat is {again.sentence}" if not self._several else f"{post.name} is {again.sentence}")
        return again

    def _spoiled(self, why: str) -> UnfitSeatError:
        """Enter in the ledger that this run can never be judged, and the error that says so."""
        work = self._work
        body: dict[str, JsonValue] = {"run": work.store.number, "why": why}
        work.ledger.append("spoiled", work.inputs.gate.name, body, work.world.stamp())
        return UnfitSeatError(
            f"run {work.store.number:03d} is INVALID for good: {why}",
            next_step="see that the sealed bytes answer; the same command then starts another attempt, which counts",
        )


def _unanswered(generations: Iterable[Generation]) -> list[str]:
    """How many requests brought no answer that counts, and why the first of each arm did not."""
    lost: dict[str, list[Generation]] = {}
    for generation in generations:
        if generation.error is not None:
            lost.setdefault(generation.arm, []).append(generation)
    return [
        f"{arm}: {len(errors)} request(s) brought no answer that counts, the first (prompt {errors[0].prompt}, seed "
        f"{errors[0].seed}): {errors[0].error}"
        for arm, errors in lost.items()
    ]
