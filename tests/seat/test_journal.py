"""Group commit: what is written together, in which order, and what those who wait are told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from gates.seat.journal import Journal


class Disk:
    """Keeps what it is given; refuses from the batch `full` on; waits at each batch until it is told to go on."""

    def __init__(self, full: int | None = None) -> None:
        self.batches: list[list[int]] = []
        self.full = full
        self.go = threading.Event()

    def write(self, records: Sequence[int]) -> None:
        assert threading.current_thread() is not threading.main_thread()
        assert self.go.wait(20)
        if self.full is not None and len(self.batches) >= self.full:
            raise OSError(28, "No space left on device")
        self.batches.append(list(records))


def test_what_comes_while_the_disk_is_busy_is_written_together_in_its_order() -> None:
    disk, counted = Disk(), []

    async def main() -> None:
        async with Journal(disk.write, counted.append) as journal:
            told = [journal.put(0)]
            await asyncio.sleep(0)  # the first is with the disk
            told += [journal.put(number) for number in (1, 2, 3)]
            await asyncio.sleep(0)
            assert not any(future.done() for future in told)
            assert counted == []
            disk.go.set()
            await journal.settle()
            assert all(future.done() for future in told)

    asyncio.run(main())
    assert disk.batches == [[0], [1, 2, 3]]
    assert counted == [0, 1, 2, 3]


def test_after_a_refusal_nothing_more_is_written_and_everybody_is_told() -> None:
    disk, counted = Disk(full=1), []

    async def main() -> list[BaseException | None]:
        async with Journal(disk.write, counted.append) as journal:
            disk.go.set()
            await journal.add(0)
            first = journal.put(1)
            await asyncio.sleep(0)
            told = await asyncio.gather(first, journal.add(2), journal.add(3), return_exceptions=True)
            disk.full = None
            with pytest.raises(OSError, match="No space left"):
                await journal.add(4)
            return told

    told = asyncio.run(main())
    assert all(isinstance(each, OSError) for each in told)
    assert disk.batches == [[0]]
    assert counted == [0]


def test_what_was_handed_in_is_written_though_who_waits_is_cancelled() -> None:
    disk = Disk()

    async def main() -> None:
        async with Journal(disk.write) as journal:
            waiting = [asyncio.create_task(journal.add(number)) for number in range(3)]
            await asyncio.sleep(0)
            for task in waiting:
                task.cancel()
            disk.go.set()

    asyncio.run(main())
    assert [record for batch in disk.batches for record in batch] == [0, 1, 2]


def test_a_run_that_is_ended_waits_for_the_disk() -> None:
    disk = Disk()

    async def main() -> None:
        async with Journal(disk.write) as journal:
            asyncio.get_running_loop().call_later(0.01, disk.go.set)
            await journal.add(0)
            journal.put(1)
            raise KeyError("ended")

    with pytest.raises(KeyError):
        asyncio.run(main())
    assert disk.batches == [[0], [1]]


def test_while_it_is_still_nothing_is_written() -> None:
    disk = Disk()

    async def main() -> None:
        disk.go.set()
        async with Journal(disk.write) as journal:
            await journal.add(0)
            async with journal.still():
                told = journal.put(1)
                await asyncio.sleep(0.01)
                assert disk.batches == [[0]]
                assert not told.done()

    asyncio.run(main())
    assert disk.batches == [[0], [1]]


def test_whatever_is_raised_by_what_is_told_of_a_record_is_raised_where_somebody_waits() -> None:
    class GoneError(BaseException):
        pass

    def gone(record: int) -> None:
        if record == 1:
            raise GoneError

    disk = Disk()
    disk.go.set()

    async def main() -> None:
        async with Journal(disk.write, gone) as journal:
            for record in range(5):
                await journal.add(record)

    with pytest.raises(GoneError):
        asyncio.run(main())
    assert disk.batches == [[0], [1]]
