"""A seat on a real socket that speaks vLLM's contract, and breaks it where a test says so."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from gates.spec.schema import Gate

BASE, ONE, TWO = "base", "voice-one", "voice-two"
KEY = "sk-Very-Secret-77"


def a_gate(**changes: Any) -> Gate:
    """A gate with two candidates and a control (the base under other seeds); three seeds."""
    document: dict[str, Any] = {
        "schema": "gates/1",
        "name": "g",
        "question": "Does it?",
        "seat": {"base_url": "http://127.0.0.1:1/v1"},
        "arms": {
            "base": BASE,
            "candidates": {"one": {"model": ONE, "adapter": "a/one"}, "two": {"model": TWO, "adapter": "a/two"}},
            "controls": {"again": {"model": BASE, "seeds": (11, 12, 13)}},
        },
        "corpora": {"train": "t", "heldout": "h", "reference": ("r",)},
        "prompts": {"file": "beats.txt", "template": "Beat: {beat}"},
        "sampling": {"seeds": (1, 2, 3), "temperature": 0.9, "top_p": 0.95, "max_tokens": 40},
        "voice": {"mfw": 100, "words_per_seed": 500},
    }
    return Gate.model_validate({**document, **changes})


BEATS = ("A ship goes down.", "A letter comes late.")


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def key(self) -> tuple[str, str, int]:
        """(model, prompt, seed) of a generation request."""
        return (self.body["model"], str(self.body.get("messages", self.body.get("prompt"))), self.body["seed"])


class Wire:
    """What a handler may do to its connection."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self, status: int, length: int, **headers: str) -> None:
        named = {"Content-Type": "application/json", "Content-Length": str(length), "Connection": "close", **headers}
        lines = [f"HTTP/1.1 {status} X", *(f"{name.replace('_', '-')}: {value}" for name, value in named.items())]
        await self.raw(("\r\n".join(lines) + "\r\n\r\n").encode())

    async def send(self, document: object, status: int = 200, **headers: str) -> None:
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        await self.head(status, len(data), **headers)
        await self.raw(data)

    def reset(self) -> None:
        connection = self.writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # RST instead of FIN
        self.writer.transport.abort()


Handler = Callable[[Request, Wire], Awaitable[None]]


def error(message: str, kind: str, code: int) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def answer(body: dict[str, Any], *, weights: str | None = None, **changes: Any) -> dict[str, Any]:
    """vLLM's answer, from arithmetic instead of a model: the same model, prompt and seed give the same text.

    `weights` names whose log probabilities they are, where that is not the model asked for.
    """
    who = weights or body["model"]
    chat = "messages" in body
    prompt = body["messages"][-1]["content"] if chat else body["prompt"]
    shift = int(hashlib.sha256(who.encode()).hexdigest()[:4], 16) / 65536
    choice: dict[str, Any] = {"index": 0, "finish_reason": "stop", "stop_reason": None, "token_ids": [5, 6]}
    text = f"{who} {body.get('seed')}: {prompt}"
    scores = [{"a": -0.1 - shift, "b": -3.0 - shift}, {"c": -0.5 - shift, "d": -1.5}]
    if chat:
        choice["message"] = {"role": "assistant", "content": text, "refusal": None}
        choice["logprobs"] = {
            "content": [
                {
                    "token": next(iter(top)),
                    "logprob": next(iter(top.values())),
                    "bytes": None,
                    "top_logprobs": [{"token": token, "logprob": value} for token, value in top.items()],
                }
                for top in scores
            ]
        }
    else:
        choice["text"] = text
        choice["prompt_token_ids"] = [1, 2, 3]
        choice["logprobs"] = {
            "tokens": [next(iter(top)) for top in scores],
            "token_logprobs": [next(iter(top.values())) for top in scores],
            "top_logprobs": scores,
        }
    if not body.get("logprobs"):
        choice["logprobs"] = None
    reply = {
        "id": "x",
        "object": "chat.completion" if chat else "text_completion",
        "model": body["model"],
        "choices": [choice],
        "system_fingerprint": "vllm-0.33.0-abc",
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    }
    return {**reply, **({"prompt_token_ids": [1, 2, 3]} if chat else {}), **changes}


def card(name: str, *, parent: str | None = None, created: int = 1) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": created,
        "owned_by": "vllm",
        "root": f"/models/{name}",
        "parent": parent,
        "max_model_len": None if parent else 512,
        "permission": [{"id": f"modelperm-{created}"}],
    }


METRICS = """# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig
vllm:cache_config_info{block_size="16",enable_prefix_caching="True",note="a \\"b\\", c"} 1.0
vllm:num_preemptions_total{engine="0"} 3.0
"""


@dataclass
class FaultySeat:
    """A server on 127.0.0.1, in the loop of the test.

    `faults` are used up, one a generation request, before the seat answers well; `always` replaces every answer.
    """

    faults: list[Handler] = field(default_factory=list)
    always: Handler | None = None
    models: tuple[str, ...] = (BASE, ONE, TWO)
    key: str | None = None
    routes: dict[str, Handler] = field(default_factory=dict)
    seen: list[Request] = field(default_factory=list)
    active: int = 0
    most_active: int = 0

    async def __aenter__(self) -> Self:
        self._tasks: set[asyncio.Task[None]] = set()
        self._wires: set[Wire] = set()
        await self.listen(0)
        return self

    async def listen(self, port: int) -> None:
        """Answer at a port; 0: at any that is free."""
        await _let_in()  # whoever died here has closed the port by then
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def die(self) -> None:
        """Answer nobody any more, those that are being answered included, as a killed process; `listen` ends it.

        To be called in the seat's own loop.
        """
        loop = asyncio.get_running_loop()
        self._stop_listening(loop)
        loop.call_soon(self._server.close)
        for wire in list(self._wires):
            wire.reset()

    def _stop_listening(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let nobody in any more. Closing the server at once would leave a socket just accepted unclosed."""
        for listening in self._server.sockets:
            loop.remove_reader(listening.fileno())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_listening(asyncio.get_running_loop())
        await _let_in()
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def generated(self) -> list[Request]:
        """The generation requests so far."""
        return [request for request in self.seen if request.path.endswith("completions")]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        wire = Wire(writer)
        self._tasks.add(task)
        self._wires.add(wire)
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        try:
            await self._serve(await _read(reader), wire)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client hung up, or the test is over
        finally:
            self.active -= 1
            self._tasks.discard(task)
            self._wires.discard(wire)
            writer.close()

    async def _serve(self, request: Request, wire: Wire) -> None:
        self.seen.append(request)
        if request.path in self.routes:
            await self.routes[request.path](request, wire)
        elif (
            self.key and request.path.startswith("/v1") and request.headers.get("authorization") != f"Bearer {self.key}"
        ):
            await wire.send({"error": "Unauthorized"}, 401)
        elif request.path == "/version":
            await wire.send({"version": "0.33.0"})
        elif request.path == "/metrics":
            await wire.send(METRICS.encode())
        elif request.path == "/v1/models":
            cards = [card(name, parent=None if name == BASE else BASE, created=len(self.seen)) for name in self.models]
            await wire.send({"object": "list", "data": cards})
        elif request.path in {"/v1/chat/completions", "/v1/completions"}:
            await self._generate(request, wire)
        else:
            await wire.send({"detail": "Not Found"}, 404)

    async def _generate(self, request: Request, wire: Wire) -> None:
        if self.faults:
            await self.faults.pop(0)(request, wire)
        elif self.always:
            await self.always(request, wire)
        elif request.body["model"] not in self.models:
            name = request.body["model"]
            await wire.send(
                error(f"The model `{name}` does not exist. Valid aliases: base.", "NotFoundError", 404), 404
            )
        else:
            await wire.send(answer(request.body))


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:] if line)}
    data = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, json.loads(data) if data else {})


def status(code: int, message: str = "no", **headers: str) -> Handler:
    """A handler that answers with a vLLM error."""

    async def handle(request: Request, wire: Wire) -> None:
        await wire.send(error(message, "X", code), code, **headers)

    return handle


def reply(document: object) -> Handler:
    """A handler that answers 200 with a document."""

    async def handle(request: Request, wire: Wire) -> None:
        await wire.send(document)

    return handle


def changed(**changes: Any) -> Handler:
    """A handler that answers well but for some fields."""

    async def handle(request: Request, wire: Wire) -> None:
        await wire.send(answer(request.body, **changes))

    return handle


async def _let_in() -> None:
    """Wait until whoever was let in just now has come to `_connected`, and whoever was sent away is gone."""
    for _ in range(6):
        await asyncio.sleep(0)


async def truncated(request: Request, wire: Wire) -> None:
    """JSON that ends in the middle, though the length says that this is all."""
    await wire.send(json.dumps(answer(request.body)).encode()[:-40])


async def reset_mid_body(request: Request, wire: Wire) -> None:
    data = json.dumps(answer(request.body)).encode()
    await wire.head(200, len(data))
    await wire.raw(data[:20])
    wire.reset()


async def hang(request: Request, wire: Wire) -> None:
    await asyncio.sleep(3600)


async def drip(request: Request, wire: Wire) -> None:
    """A byte now and then: never idle long enough for a read time-out, never done."""
    await wire.head(200, 10_000)
    while True:
        await wire.raw(b" ")
        await asyncio.sleep(0.02)
