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
    error: SeatError


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


async def generate_spread(shares: Mapping[str, Share], desk: Desk, lost: Callable[[Loss], None]) -> None:
    """Work off the shares of all seats at once, each by its name; what a dead seat leaves goes to the others.

    Each loss is given to `lost` before anything of it is asked elsewhere. Raises SeatError when no seat is left, and as
    `generate` does when a seat answers otherwise than it should: then all of them stop.
    """
    order = {task: place for place, task in enumerate(_all_tasks(shares))}
    going = dict(shares)
    losses: list[Loss] = []
    while any(share.tasks for share in going.values()):
        left: list[Task] = []
        for loss in await _round(going, desk):
            losses.append(loss)
            del going[loss.seat]
            if not going:
                raise _none_left(losses, desk)
            lost(loss)
            left += loss.left
        going = _dealt_again(going, sorted(left, key=order.__getitem__))


async def _round(shares: Mapping[str, Share], desk: Desk) -> list[Loss]:
    """Every share worked off to its end or to its seat's; returns the losses in the order of the seats."""

    async def work(seat: str, share: Share) -> Loss | None:
        driver = Driver(share, desk)
        try:
            await driver.drive()
        except SeatError as error:
            if not is_down(error):
                raise
            return Loss(seat, driver.why, tuple(driver.left()), error)
        return None

    try:
        async with asyncio.TaskGroup() as group:
            working = [group.create_task(work(seat, share)) for seat, share in shares.items()]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [loss for task in working if (loss := task.result()) is not None]


def _all_tasks(shares: Mapping[str, Share]) -> list[Task]:
    return [task for share in shares.values() for task in share.tasks]


def _dealt_again(going: Mapping[str, Share], left: Sequence[Task]) -> dict[str, Share]:
    """What is left, in whole blocks, for those that still answer."""
    gate = next(iter(going.values())).run.gate
    parts = blocks(gate, left)
    turns = deal(len(parts), [share.pace.concurrency for share in going.values()])
    found: dict[str, Share] = {}
    for number, (seat, share) in enumerate(going.items()):
        mine = [task for turn, part in zip(turns, parts, strict=True) if turn == number for task in part]
        found[seat] = replace(share, tasks=mine)
    return found


def _none_left(losses: Sequence[Loss], desk: Desk) -> SeatError:
    told = losses if len(losses) > 1 else ()
    if not told:
        return losses[0].error
    each = "\n".join(f"  {loss.seat}: stopped {loss.why}" for loss in told)
    return SeatError(
        f"none of {len(told)} seats answers any more; {desk.tally.state}\n{each}",
        next_step="see that at least one of them is up; then run the same command again: it continues",
    )
