"""The only way to a seat: the OpenAI SDK's async client, with every foreign exception translated here.

Nothing of the environment reaches the seat (no proxy to loopback, no organisation, no extra headers), redirects are
not followed, answers are bounded in size and time, and the API key appears in no error, log, repr or record: an answer
that repeats it is read without it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

import httpx2
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from gates.deferred import Deferred
from gates.errors import UsageError
from gates.seat.address import host_of
from gates.seat.answers import Answer, Endpoint, read_answer
from gates.seat.faults import (
    BrokenContractError,
    UnreachableError,
    fault_of,
    fault_of_status,
    foreign,
)
from gates.seat.streams import Timing, read_stream
from gates.spec.source import REDACTED

if TYPE_CHECKING:
    import openai
else:
    openai = Deferred("openai")

MAX_BYTES = 64 * 2**20
"""The largest answer that is read, in bytes."""

SHORTEST_KEY = 8
"""The shortest API key, in characters: taking out a shorter one would take words out of the texts."""

_PATHS: dict[Endpoint, str] = {"chat": "/chat/completions", "completions": "/completions"}
_OURS = frozenset({"accept", "connection", "content-length", "content-type", "host", "transfer-encoding", "user-agent"})
_CONNECT_S = 10.0

_T = TypeVar("_T")


@dataclass(frozen=True)
class SeatRequest:
    """One request: which endpoint, and the JSON body exactly as it is sent."""

    endpoint: Endpoint
    body: dict[str, JsonValue]


class _Card(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")
    id: str


class _Cards(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")
    data: list[_Card]


class _Version(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")
    version: str


class SeatClient:
    """Requests to one seat; every failure is a FaultError. An async context manager; nothing is retried here."""

    def __init__(self, base_url: str, api_key: str | None = None, *, timeout_s: float = 300.0) -> None:
        """`base_url` is the API's (it usually ends in /v1); `timeout_s` bounds a whole request, in seconds.

        Raises UsageError for an address that is none or a key that cannot be sent in a header.
        """
        if api_key is not None and not (api_key and api_key.isascii() and api_key.isprintable() and " " not in api_key):
            raise UsageError(
                "the API key is empty, or holds a space, a line break or a character outside ASCII",
                next_step="set the variable that holds it (a gate's seat.api_key_env names it) to the key alone",
            )
        if api_key is not None and len(api_key) < SHORTEST_KEY:
            raise UsageError(
                f"the API key has fewer than {SHORTEST_KEY} characters: it could not be told from words and kept out "
                "of the records",
                next_step="give the server a longer key, or name no variable (seat.api_key_env) where it asks for none",
            )
        self.base_url = base_url.rstrip("/")
        self.root_url = self.base_url.removesuffix("/v1")
        self._key = api_key
        self._spellings = None if api_key is None else _spellings(api_key)
        self._timeout_s = timeout_s
        local = _is_loopback(host_of(self.base_url))
        self._http = httpx2.AsyncClient(
            follow_redirects=False,
            trust_env=not local,
            timeout=httpx2.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s)),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=64),
            event_hooks={"request": [self._prepare], "response": [self._sift]},
        )
        self._sdk = openai.AsyncOpenAI(
            api_key="-", base_url=self.base_url, max_retries=0, timeout=timeout_s, http_client=self._http
        )

    def __repr__(self) -> str:
        return f"SeatClient({self.base_url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def complete(self, request: SeatRequest) -> Answer:
        """Send one request once and read its answer. Raises FaultError."""
        sending = self._sdk.post(_PATHS[request.endpoint], body=request.body, cast_to=httpx2.Response)
        response = await self._translated(sending)
        return read_answer(request.endpoint, response.content, response.headers)

    async def models(self) -> tuple[dict[str, JsonValue], ...]:
        """The model cards as the seat lists them, in its order. Raises FaultError."""
        response = await self._translated(self._sdk.get("/models", cast_to=httpx2.Response))
        try:
            cards = _Cards.model_validate_json(response.content).data
        except ValidationError:
            raise BrokenContractError("the list of models is no list of model cards") from None
        return tuple(card.model_dump(mode="json") for card in cards)

    async def timed(self, request: SeatRequest, clock: Callable[[], float]) -> Timing:
        """Send one request as a stream and read only its clock and its count of tokens; `clock` tells seconds.

        Raises FaultError, also for a stream that ends without a usage or without a single token.
        """
        body = {**request.body, "stream": True, "stream_options": {"include_usage": True}}
        sending = self._http.stream(
            "POST", f"{self.base_url}{_PATHS[request.endpoint]}", json=body, extensions={"gates.timed": True}
        )
        return await self._translated(self._read_timed(sending, clock))

    async def _read_timed(
        self, sending: AbstractAsyncContextManager[httpx2.Response], clock: Callable[[], float]
    ) -> Timing:
        begun = clock()
        async with sending as response:
            if response.status_code != httpx2.codes.OK:
                await response.aread()
                raise fault_of_status(response, secret=self._key)
            return await read_stream(response.aiter_lines(), begun, clock)

    async def document(self, path: str, *, gone: bool = False) -> JsonValue:
        """The JSON document at `path` under the root, by GET; with `gone`, None for a 404. Raises FaultError."""
        response = await self._root(path)
        if gone and response.status_code == httpx2.codes.NOT_FOUND:
            return None
        if response.status_code != httpx2.codes.OK:
            raise fault_of_status(response, secret=self._key)
        try:
            document: JsonValue = json.loads(response.content)
        except (ValueError, RecursionError):
            raise BrokenContractError(f"{path.partition('?')[0]} is not JSON") from None
        return document

    async def manage(self, path: str, body: dict[str, JsonValue]) -> str:
        """Ask the seat to change what it serves, by POST to `path` under the API's address. Raises FaultError."""
        response = await self._translated(self._sdk.post(path, body=body, cast_to=httpx2.Response))
        return response.content.decode(errors="replace")

    async def version(self) -> str | None:
        """The server's version, or None for a server that does not tell one. Raises FaultError."""
        response = await self._root("/version")
        if response.status_code != httpx2.codes.OK:
            return None
        try:
            return _Version.model_validate_json(response.content).version
        except ValidationError:
            raise BrokenContractError("/version is not an object with a version") from None

    async def metrics(self) -> str | None:
        """The server's metrics in Prometheus' text form, or None for a server without. Raises FaultError."""
        response = await self._root("/metrics")
        return response.content.decode(errors="replace") if response.status_code == httpx2.codes.OK else None

    async def has_route(self, path: str) -> bool | None:
        """Whether the server has a route for POST at `path`; asked with a GET, which changes nothing (405 or 404)."""
        status = (await self._root(path)).status_code
        return status == httpx2.codes.METHOD_NOT_ALLOWED if status in {404, 405} else None

    async def is_open(self, path: str) -> bool:
        """Whether the server has a route at `path` and answers there without the API key; asked with a GET."""
        return (await self._root(path, keyless=True)).status_code in {200, 405}

    async def _root(self, path: str, *, keyless: bool = False) -> httpx2.Response:
        extensions = {"gates.keyless": True} if keyless else {}
        response = await self._translated(self._http.get(f"{self.root_url}{path}", extensions=extensions))
        if response.status_code >= httpx2.codes.INTERNAL_SERVER_ERROR:
            raise fault_of_status(response, secret=self._key)
        return response

    async def _translated(self, sending: Awaitable[_T]) -> _T:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await sending
        except UnicodeEncodeError:
            raise UsageError(
                "the request holds something that is no text", next_step="write names and prompts in UTF-8"
            ) from None
        except foreign() as error:
            if type(error) is TimeoutError:
                error = TimeoutError(f"no complete answer within {self._timeout_s:g} s")
            fault = fault_of(error, secret=self._key)
            if isinstance(fault, UnreachableError):
                fault.message = f"{self.base_url}: {fault.message}"
                fault.next_step = "see that the seat is up at this address"
            raise fault from None

    async def _prepare(self, request: httpx2.Request) -> None:
        for name in [name for name in request.headers if name.lower() not in _OURS]:
            del request.headers[name]
        request.headers["Accept-Encoding"] = "identity"
        if self._key is not None and not request.extensions.get("gates.keyless"):
            request.headers["Authorization"] = f"Bearer {self._key}"

    async def _sift(self, response: httpx2.Response) -> None:
        encoding = response.headers.get("content-encoding", "identity")
        if encoding != "identity":  # asked for plainly: the bound and the key are looked for in the bytes themselves
            raise httpx2.DecodingError(f"the answer is encoded as {encoding}")
        if response.request.extensions.get("gates.timed"):
            # Read as it comes, for its clock alone: nothing of its text is kept.
            if isinstance(response.stream, httpx2.AsyncByteStream):
                response.stream = _Bounded(response.stream)
            return
        if self._key is not None:
            for name, value in response.headers.items():
                response.headers[name] = value.replace(self._key, REDACTED)
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Sifted(response.stream, self._spellings)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _spellings(key: str) -> re.Pattern[bytes]:
    r"""The key as it may stand in a body: plain, or with any of its characters escaped for JSON, once or twice over."""
    return re.compile("".join(map(_spelling, key)).encode())


def _spelling(char: str) -> str:
    plain = rf"\\{{0,4}}{re.escape(char)}" if char in '"/\\' else re.escape(char)
    return rf"(?:\\{{1,4}}u(?i:{ord(char):04x})|{plain})"


class _Bounded(httpx2.AsyncByteStream):
    """A body as it comes, which fails once it has brought more than MAX_BYTES."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._inner:
            size += len(part)
            if size > MAX_BYTES:
                raise httpx2.DecodingError(f"the answer is larger than {MAX_BYTES} bytes")
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Sifted(_Bounded):
    """A whole body with the API key taken out."""

    def __init__(self, inner: httpx2.AsyncByteStream, key: re.Pattern[bytes] | None) -> None:
        super().__init__(inner)
        self._key = key

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = b"".join([part async for part in super().__aiter__()])
        yield self._key.sub(REDACTED.encode(), body) if self._key else body
