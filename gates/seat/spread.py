"""Several seats behind one gate: which of them each request belongs to, and what becomes of a dead one's.

The sealed order is cut into its blocks of one task an arm, and whole blocks are dealt to the seats. So all arms of one
prompt and seed are answered by one process, each arm has as many texts from each seat as every other, and a seat that
differs in secret shifts all arms alike. Nothing is decided by who happens to be free.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from gates.errors import SeatError
from gates.seat.generate import Desk, Driver, Share, Task, is_down
from gates.spec.schema import Gate


@dataclass(frozen=True)
class Loss:
    """A seat that answered no more, why, and the tasks that it left, in their order."""

    seat: str
    why: str
    left: tuple[Task, ...]


def deal(count: int, weights: Sequence[int]) -> list[int]:
    """For each of `count` blocks in their order the number of the seat that it belongs to.

    Each block goes to the seat that has the fewest for its weight, counting this one; of several, to the first
    (d'Hondt's method): after any number of blocks the shares are as near to the weights as whole blocks can be.
    """
    given = [0] * len(weights)
    turns: list[int] = []
    for _ in range(count):
        seat = min(range(len(weights)), key=lambda each: (given[each] + 1) / weights[each])
        given[seat] += 1
        turns.append(seat)
    return turns


def homes(gate: Gate, tasks: Sequence[Task]) -> dict[Task, str]:
    """The name of the seat that each task of a whole plan belongs to, by gate and sealed order alone.

    Seats are weighted by the requests that they take at a time.
    """
    width = len(gate.arms.all())
    turns = deal(len(tasks) // width, [seat.concurrency for seat in gate.servers])
    return {task: gate.servers[turns[place // width]].name for place, task in enumerate(tasks)}


def blocks(gate: Gate, tasks: Sequence[Task]) -> list[list[Task]]:
    """Tasks in the order of a plan, cut where another block begins; blocks of which some are missing stay together."""
    places = {arm: {seed: place for place, seed in enumerate(gate.seeds(arm))} for arm in gate.arms.all()}

    def block(task: Task) -> tuple[int, int]:
        return task.prompt, places[task.arm][task.seed]

    return [list(group) for _, group in groupby(tasks, key=block)]


def shared(tasks: Sequence[Task], home: Mapping[Task, str], going: Mapping[str, Share]) -> dict[str, Share]:
    """The tasks, in the order of a plan, given each to its home, those of seats that do not answer to the others."""
    strays = _dealt([task for task in tasks if home[task] not in going], going)
    return {
        seat: replace(share, tasks=[task for task in tasks if home[task] == seat or task in strays[seat]])
        for seat, share in going.items()
    }


async def generate_spread(shares: Mapping[str, Share], desk: Desk, lost: Callable[[Loss], None]) -> None:
    """Work off the shares of all seats at once, each by its name; what a dead seat leaves goes to the others.

    Each loss is given to `lost` at once, before anything of it is asked elsewhere and while nothing is written. Raises
    SeatError when no seat is left, and as `generate` does when a seat answers otherwise than it should: then all of
    them stop.
    """
    async with desk:
        await _work_off(shares, desk, lost)


async def _work_off(shares: Mapping[str, Share], desk: Desk, lost: Callable[[Loss], None]) -> None:
    order = {task: place for place, task in enumerate(task for share in shares.values() for task in share.tasks)}
    going = dict(shares)
    losses: list[Loss] = []
    while any(share.tasks for share in going.values()):
        left: list[Task] = []
        for loss in await _round(going, desk, lost):
            losses.append(loss)
            del going[loss.seat]
            left += loss.left
        if not going:
            raise _none_left(losses, desk)
        dealt = _dealt(sorted(left, key=order.__getitem__), going)
        going = {seat: replace(share, tasks=list(dealt[seat])) for seat, share in going.items()}


async def _round(shares: Mapping[str, Share], desk: Desk, lost: Callable[[Loss], None]) -> list[Loss]:
    """Every share worked off to its end or to its seat's; returns the losses in the order of the seats."""

    async def work(seat: str, share: Share) -> Loss | None:
        driver = Driver(share, desk)
        try:
            await driver.drive()
        except SeatError as error:
            if not is_down(error):
                raise
            loss = Loss(seat, driver.why, tuple(driver.left()))
            async with desk.still():
                lost(loss)
            return loss
        return None

    try:
        async with asyncio.TaskGroup() as group:
            working = [group.create_task(work(seat, share)) for seat, share in shares.items()]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [loss for task in working if (loss := task.result()) is not None]


def _dealt(left: Sequence[Task], going: Mapping[str, Share]) -> dict[str, dict[Task, None]]:
    """What is left, in whole blocks, for those that still answer; in the order of `left`."""
    gate = next(iter(going.values())).run.gate
    parts = blocks(gate, left)
    turns = deal(len(parts), [share.pace.concurrency for share in going.values()])
    found: dict[str, dict[Task, None]] = {seat: {} for seat in going}
    names = list(going)
    for turn, part in zip(turns, parts, strict=True):
        found[names[turn]] |= dict.fromkeys(part)
    return found


def _none_left(losses: Sequence[Loss], desk: Desk) -> SeatError:
    each = "\n".join(f"  {loss.seat}: stopped {loss.why}" for loss in losses)
    return SeatError(
        f"none of {len(losses)} seats answers any more; {desk.tally.state}\n{each}",
        next_step="see that at least one of them is up; then run the same command again: it continues",
    )
