"""Group commit: what many requests bring is written beside the loop, all that has come meanwhile at once.

A disk takes milliseconds to promise that a line will stay; a seat is not kept waiting for that, and one promise holds
for all lines that came before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Generic, Self, TypeVar

T = TypeVar("T")


class Journal(Generic[T]):
    """Records in the order they come, by `write`, which returns when all that it was given are on the disk.

    `recorded` is then told of each, in the loop. An async context manager: when it ends, whatever happened, nothing is
    being written any more, and what was put in is on the disk unless the disk refused. After a refusal nothing more is
    written. Memory is bounded by those who put in and then wait.
    """

    def __init__(
        self, write: Callable[[Sequence[T]], None], recorded: Callable[[T], None] = lambda _record: None
    ) -> None:
        self._write, self._recorded = write, recorded
        self._waiting: list[tuple[T, asyncio.Future[None]]] = []
        self._last: asyncio.Future[None] | None = None
        self._writing: asyncio.Task[None] | None = None
        self._refused: BaseException | None = None
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "journal")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.settle()
        finally:
            self._thread.shutdown()

    def put(self, record: T) -> asyncio.Future[None]:
        """Hand a record in. The future is done when it is on the disk, and raises what the disk said if it refused.

        Who waits for it shields it: the record stays handed in, whoever is cancelled.
        """
        told = self._last = asyncio.get_running_loop().create_future()
        self._waiting.append((record, told))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())
        return told

    async def add(self, record: T) -> None:
        """Hand a record in, and wait until it is on the disk. Raises what the disk said if it refused."""
        await asyncio.shield(self.put(record))

    async def settle(self) -> None:
        """Wait until all that was put in before is on the disk or refused; only `put` and `add` tell which."""
        if self._last is not None:
            await asyncio.wait([self._last])

    @asynccontextmanager
    async def still(self) -> AsyncIterator[None]:
        """Nothing is written while this lasts."""
        async with self._turn:
            yield

    async def _write_all(self) -> None:
        batch: list[tuple[T, asyncio.Future[None]]] = []
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                async with self._turn:
                    batch, self._waiting = self._waiting, []
                    if self._refused is None:
                        await loop.run_in_executor(self._thread, self._write, [record for record, _ in batch])
                        for record, _ in batch:
                            self._recorded(record)
                    self._tell(batch)
        except asyncio.CancelledError:
            self._refuse(RuntimeError("writing was cancelled"), batch)
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is raised where somebody waits
            self._refuse(error, batch)
        finally:
            self._writing = None

    def _refuse(self, error: BaseException, batch: list[tuple[T, asyncio.Future[None]]]) -> None:
        self._refused = error
        batch, self._waiting = batch + self._waiting, []
        self._tell(batch)

    def _tell(self, batch: Sequence[tuple[T, asyncio.Future[None]]]) -> None:
        for told in [told for _, told in batch if not told.done()]:
            if self._refused is None:
                told.set_result(None)
            else:
                told.set_exception(self._refused)
                told.exception()  # heard, also where nobody waits any more
