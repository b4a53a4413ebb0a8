"""One llama.cpp server: one slot, one thread, in this process, spoken to over loopback.

One slot, because what shares a batch with a request changes its numbers; one thread each, because as many such servers
as there are cores are also faster than one server with as many slots. Flash attention with a float16 cache was the
fastest of the settings measured (112.8 tokens/s on two cores, against 108.4 without and 109.6 with an 8-bit cache).
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import h11
import xllamacpp

from gates.errors import SeatError

SETTINGS = {"flash_attention": True, "cache": "f16", "slots": 1, "threads": 1, "batch": 512}
"""What decides the numbers besides model and adapters; part of the seat's fingerprint."""


class UpstreamError(SeatError):
    """llama.cpp refused a request or broke off; `status` is its HTTP status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Inner:
    """A running server. Raises SeatError when llama.cpp does not take the model or an adapter.

    `adapters` are GGUF files in the order of their ids; none is applied unless a request names its scale.
    """

    def __init__(self, model: Path, adapters: Sequence[Path], context: int) -> None:
        self._key = secrets.token_urlsafe(24)
        try:
            self._server: Any = xllamacpp.Server(_parameters(model, adapters, context, self._key))
        except RuntimeError as error:
            names = ", ".join(str(path) for path in (model, *adapters))
            raise SeatError(
                f"llama.cpp did not start with {names}: {error}",
                next_step="check that each adapter was made for this model, and that memory is left",
            ) from None
        address = urlsplit(self._server.listening_address)
        self._host, self._port = str(address.hostname), int(address.port or 0)

    def close(self) -> None:
        """Stop the server; requests in it break off."""
        self._server = None

    async def call(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """One JSON answer: POST with a body, else GET. Raises UpstreamError."""
        async with self._exchange(path, body) as chunks:
            return json.loads(b"".join([chunk async for chunk in chunks]))

    async def stream(self, path: str, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        """The events of a streamed answer. Leaving early breaks the request off. Raises UpstreamError."""
        async with self._exchange(path, {**body, "stream": True}) as chunks:
            rest = b""
            async for chunk in chunks:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line.startswith(b"error:"):
                        raise UpstreamError(_reason(line.removeprefix(b"error:")), 500)
                    if line.startswith(b"data: {"):
                        yield _event(line)

    @asynccontextmanager
    async def _exchange(self, path: str, body: dict[str, Any] | None) -> AsyncIterator[AsyncIterator[bytes]]:
        try:
            reader, writer = await asyncio.open_connection(self._host, self._port)
        except OSError as error:
            raise UpstreamError(f"llama.cpp does not answer: {error}", 503) from None
        try:
            data = b"" if body is None else json.dumps(body).encode()
            connection = h11.Connection(h11.CLIENT)
            headers = [
                ("Host", self._host),
                ("Authorization", f"Bearer {self._key}"),
                ("Content-Type", "application/json"),
                ("Content-Length", str(len(data))),
                ("Connection", "close"),
            ]
            request = h11.Request(method="GET" if body is None else "POST", target=path, headers=headers)
            for event in (request, h11.Data(data=data), h11.EndOfMessage()):
                writer.write(connection.send(event) or b"")
            await writer.drain()
            head = await _next(connection, reader)
            if not isinstance(head, h11.Response):
                raise UpstreamError("llama.cpp closed the connection", 500)
            chunks = _body(connection, reader)
            if head.status_code != 200:
                raise UpstreamError(_reason(b"".join([chunk async for chunk in chunks])), head.status_code)
            yield chunks
        except (OSError, h11.RemoteProtocolError) as error:
            raise UpstreamError(f"llama.cpp broke off: {error}", 500) from None
        finally:
            writer.close()


async def _next(connection: h11.Connection, reader: asyncio.StreamReader) -> Any:
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(await reader.read(65536))
    return event


async def _body(connection: h11.Connection, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while isinstance(event := await _next(connection, reader), h11.Data):
        yield bytes(event.data)
    if not isinstance(event, h11.EndOfMessage):
        raise UpstreamError("llama.cpp closed the connection", 500)


def _event(line: bytes) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
    if "error" in event:
        raise UpstreamError(str(event["error"].get("message", event["error"])), 500)
    return event


def _reason(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")[:300] or "llama.cpp refused the request"


def _parameters(model: Path, adapters: Sequence[Path], context: int, key: str) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.verbosity = -1  # nothing on stdout or stderr: those belong to the command
    parameters.model.path = str(model)
    parameters.offline, parameters.fit_params, parameters.warmup = True, False, False
    parameters.api_keys, parameters.ui, parameters.endpoint_slots = [key], False, False
    parameters.n_ctx, parameters.n_parallel, parameters.n_ubatch = context, SETTINGS["slots"], SETTINGS["batch"]
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = SETTINGS["threads"]
    parameters.n_threads_http = 4
    parameters.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
    parameters.cache_type_k = parameters.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F16
    # No memory of earlier requests: it is what lets one adapter's cache answer for another's.
    parameters.cache_ram_mib, parameters.cache_idle_slots, parameters.n_ctx_checkpoints = 0, False, 0
    parameters.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(str(path), 1.0) for path in adapters]
    parameters.lora_init_without_apply = True
    return parameters
