"""A seat in a thread of its own, so that whole commands can run against it, and what a test changes of it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from gates.records import sha256
from tests.seat.faulty import FaultySeat, Handler, Request, Wire, answer, card, error

LETTERS = str.maketrans("0123456789", "ghijklmnop")


class Seat:
    """A seat in a thread of its own, whose weights, adapter root and fingerprint a test changes as it runs."""

    def __init__(self) -> None:
        self.weights, self.root, self.fingerprint = "voice-one", "/models/voice-one", "f-1"
        self.told = 0
        self.fault: Handler | None = None
        self.knows_all = self.caches = False
        self.cache: dict[str, str | None] = {}
        self.at: dict[int, Callable[[], None]] = {}
        self.faulty = FaultySeat(always=self.tell, routes={"/v1/models": self.cards})
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)

    async def tell(self, request: Request, wire: Wire) -> None:
        model = request.body["model"]
        if model not in {"base", "voice-one"} and not self.knows_all:
            await wire.send(error("The model does not exist.", "NotFoundError", 404), 404)
            return
        if request.body.get("cache_salt") and not request.body.get("logprobs"):
            self.told += 1
            self.at.pop(self.told, lambda: None)()
            if self.fault is not None:
                await self.fault(request, wire)
                return
        weights = self.weights if model == "voice-one" else None
        if self.caches:  # a prefix of this name, salt and prompt keeps the weights that first read it
            weights = self.cache.setdefault(str([model, request.body.get("cache_salt")]), weights)
        document = answer(request.body, weights=weights, system_fingerprint=self.fingerprint)
        asked = json.dumps([request.body.get(name) for name in ("model", "messages", "seed")], sort_keys=True)
        words = [sha256(f"{asked}{place}".encode())[:2].translate(LETTERS) for place in range(40)]
        document["choices"][0]["message"]["content"] = " ".join(words)
        await wire.send(document)

    async def cards(self, request: Request, wire: Wire) -> None:
        adapter = card("voice-one", parent="base") | {"root": self.root}
        await wire.send({"object": "list", "data": [card("base"), adapter]})

    def die(self) -> None:
        """Answer nobody any more, as a killed process."""
        asyncio.run_coroutine_threadsafe(self._die(), self.loop).result(10)

    async def _die(self) -> None:
        self.faulty.die()

    def revive(self) -> None:
        """Answer again, at the same address."""
        asyncio.run_coroutine_threadsafe(self.faulty.listen(self.faulty.port), self.loop).result(10)

    def mend(self) -> None:
        """Behave well again."""
        self.weights, self.root, self.fingerprint = "voice-one", "/models/voice-one", "f-1"
        self.fault, self.knows_all, self.caches, self.told = None, False, False, 0
        self.at.clear()
        self.cache.clear()


@contextmanager
def listening(*seats: FaultySeat) -> Iterator[None]:
    """Seats that answer in a thread of their own for as long as the context lasts."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        for seat in seats:
            asyncio.run_coroutine_threadsafe(seat.__aenter__(), loop).result(10)
        yield
    finally:
        for seat in seats:
            asyncio.run_coroutine_threadsafe(seat.__aexit__(None, None, None), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


AnySeat = TypeVar("AnySeat", bound=Seat)


@contextmanager
def running(kind: type[AnySeat]) -> Iterator[AnySeat]:
    """A seat of that kind that answers for as long as the context lasts."""
    made = kind()
    made.thread.start()
    try:
        asyncio.run_coroutine_threadsafe(made.faulty.__aenter__(), made.loop).result(10)
        yield made
    finally:  # after a failed test too, or the process would wait for the thread for ever
        asyncio.run_coroutine_threadsafe(made.faulty.__aexit__(None, None, None), made.loop).result(10)
        made.loop.call_soon_threadsafe(made.loop.stop)
        made.thread.join(10)
        made.loop.close()
