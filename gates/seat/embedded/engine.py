"""The pool: one-slot llama.cpp servers fed from one queue, with the list of adapters that all of them hold."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gates.errors import SeatError, UsageError
from gates.seat.embedded.inner import Inner


class UnknownAdapterError(SeatError):
    """The adapter was unloaded before the request's turn came."""


@dataclass(frozen=True)
class Job:
    """One generation: the prompt's token ids, the adapter's name (None for the base), llama.cpp's sampling fields."""

    prompt: tuple[int, ...]
    adapter: str | None
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Piece:
    """A stretch of an answer: text, token ids, and llama.cpp's candidates for each of them where asked for."""

    text: str
    tokens: tuple[int, ...]
    candidates: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class End:
    """How an answer ended: `reason` is eos, word or limit; `word` the stop string; tokens as llama.cpp counted them."""

    reason: str
    word: str | None
    completion_tokens: int


class Engine:
    """A pool of `servers` inner servers (as many as cores unless told) that hold `adapters`: name to GGUF file.

    Every request names the scale of every adapter and forbids cache reuse, and a server answers one request at a time,
    so an answer depends on nothing but its own request. All methods but `start` and `close` belong to one event loop.
    """

    def __init__(self, model: Path, adapters: Mapping[str, Path], *, servers: int | None, context: int) -> None:
        if servers is not None and servers < 1:
            raise UsageError(f"servers = {servers}: at least one is needed")
        if not 64 <= context <= 8192:
            raise UsageError(f"max_model_len = {context}: must lie in [64, 8192], the carrier's own limit")
        self.model, self.context = model, context
        self.adapters = dict(adapters)
        self.count = servers or os.cpu_count() or 1
        self.running = self.waiting = 0
        self._inner: list[Inner] = []
        self._free: asyncio.Queue[Inner] = asyncio.Queue()
        self._lists = asyncio.Lock()

    def start(self) -> None:
        """Start the servers. Raises SeatError when one does not start; none is then left running."""
        self._install(self._started(self.adapters))

    def close(self) -> None:
        """Stop the servers; requests in them break off."""
        for inner in self._inner:
            inner.close()
        self._inner = []

    async def replace(self, adapters: Mapping[str, Path]) -> None:
        """Let running requests end, then go on with another list of adapters; queued requests wait.

        Raises SeatError when llama.cpp does not take the new list; the old one is then in force again.
        """
        async with self._lists:
            held = [await self._free.get() for _ in range(self.count)]
            for inner in held:
                inner.close()
            try:
                started = await asyncio.to_thread(self._started, adapters)
            except SeatError:
                self._install(await asyncio.to_thread(self._started, self.adapters))
                raise
            self.adapters = dict(adapters)
            self._install(started)

    async def generate(self, job: Job) -> AsyncGenerator[Piece | End]:
        """An answer piece by piece, the `End` last. Leaving early frees the server."""
        async with self._turn() as inner:
            if job.adapter is not None and job.adapter not in self.adapters:
                raise UnknownAdapterError(job.adapter)
            scales = [{"id": i, "scale": float(name == job.adapter)} for i, name in enumerate(self.adapters)]
            body = {
                **job.fields,
                "prompt": list(job.prompt),
                "lora": scales,
                "cache_prompt": False,
                "return_tokens": True,
            }
            async with aclosing(inner.stream("/completion", body)) as events:
                async for event in events:
                    candidates = tuple(event.get("completion_probabilities", ()))
                    if event["content"] or event["tokens"] or candidates:
                        yield Piece(event["content"], tuple(event["tokens"]), candidates)
                    if event["stop"]:
                        yield End(event["stop_type"], event["stopping_word"] or None, event["tokens_predicted"])

    async def render(self, messages: Sequence[Mapping[str, str]], **options: Any) -> str:
        """The prompt text that the carrier's own chat template makes of `messages`."""
        answer = await self._ask("/apply-template", {"messages": list(messages), **options})
        return str(answer["prompt"])

    async def tokenize(self, text: str, *, add_special: bool) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Token ids of a text and each token's own text; chat markers in it become their tokens, as in vLLM."""
        fields = {"content": text, "add_special": add_special, "parse_special": True, "with_pieces": True}
        tokens = (await self._ask("/tokenize", fields))["tokens"]
        return tuple(token["id"] for token in tokens), tuple(_piece(token["piece"]) for token in tokens)

    async def detokenize(self, tokens: Sequence[int]) -> str:
        """The text of token ids."""
        return str((await self._ask("/detokenize", {"tokens": list(tokens)}))["content"])

    async def _ask(self, path: str, body: dict[str, Any]) -> Any:
        async with self._lists:
            return await self._inner[0].call(path, body)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[Inner]:
        self.waiting += 1
        try:
            inner = await self._free.get()
        finally:
            self.waiting -= 1
        self.running += 1
        try:
            yield inner
        finally:
            self.running -= 1
            self._free.put_nowait(inner)

    def _started(self, adapters: Mapping[str, Path]) -> list[Inner]:
        started: list[Inner] = []
        try:
            for _ in range(self.count):
                started.append(Inner(self.model, list(adapters.values()), self.context))  # noqa: PERF401 - closed on error
        except SeatError:
            for inner in started:
                inner.close()
            raise
        return started

    def _install(self, started: list[Inner]) -> None:
        self._inner = started
        for inner in started:
            self._free.put_nowait(inner)


def _piece(piece: str | list[int]) -> str:
    """llama.cpp gives the bytes of a token that is no whole character."""
    return piece if isinstance(piece, str) else bytes(piece).decode("utf-8", errors="replace")
