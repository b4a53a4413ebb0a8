"""The only way to a seat: OpenAI's protocol over HTTP, with every foreign exception translated here.

Nothing of the environment reaches the seat (no proxy to loopback, no organisation, no extra headers), redirects are
not followed, answers are bounded in size and time, and the API key appears in no error, log, repr or record: an answer
that repeats it is read without it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar
from urllib.request import getproxies

import httpx2
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from gates.errors import UsageError
from gates.seat.address import host_of
from gates.seat.answers import Answer, Endpoint, read_answer
from gates.seat.faults import (
    FOREIGN,
    BrokenContractError,
    UnreachableError,
    fault_of,
    fault_of_status,
)
from gates.seat.streams import Timing, read_stream
from gates.seat.wire import Wire
from gates.spec.source import REDACTED

MAX_BYTES = 64 * 2**20
"""The largest answer that is read, in bytes."""

SHORTEST_KEY = 8
"""The shortest API key, in characters: taking out a shorter one would take words out of the texts."""

_PATHS: dict[Endpoint, str] = {"chat": "/chat/completions", "completions": "/completions"}
_OURS = frozenset({"accept", "connection", "content-length", "content-type", "host", "transfer-encoding", "user-agent"})
_CONNECT_S = 10.0

_T = TypeVar("_T")
_Said = tuple[bytes, Mapping[str, str]]


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


def check_key(key: str, variable: str = "") -> None:
    """Raise UsageError for a key that cannot be sent in a header or kept out of records; it is not repeated.

    `variable` names the one that holds it.
    """
    named = f"the API key in {variable}" if variable else "the API key"
    if not (key and key.isascii() and key.isprintable() and " " not in key):
        raise UsageError(
            f"{named} is empty, or holds a space, a line break or a character outside ASCII",
            next_step="set the variable that holds it (a gate's seat.api_key_env names it) to the key alone",
        )
    if len(key) < SHORTEST_KEY:
        raise UsageError(
            f"{named} has fewer than {SHORTEST_KEY} characters: it could not be told from words and kept out of the "
            "records",
            next_step="give the server a longer key, or name no variable (seat.api_key_env) where it asks for none",
        )


class SeatClient:
    """Requests to one seat; every failure is a FaultError. An async context manager; nothing is retried here."""

    def __init__(self, base_url: str, api_key: str | None = None, *, timeout_s: float = 300.0) -> None:
        """`base_url` is the API's (it usually ends in /v1); `timeout_s` bounds a whole request, in seconds.

        Raises UsageError for an address that is none or a key that cannot be sent in a header.
        """
        if api_key is not None:
            check_key(api_key)
        self.base_url = base_url.rstrip("/")
        self.root_url = self.base_url.removesuffix("/v1")
        self._key = api_key
        self._spellings = None if api_key is None else _spellings(api_key)
        self._timeout_s = timeout_s
        local = _is_loopback(host_of(self.base_url))
        tls = httpx2.create_ssl_context(trust_env=not local)
        connect_s = min(_CONNECT_S, timeout_s)
        self._http = httpx2.AsyncClient(
            follow_redirects=False,
            trust_env=not local,
            verify=tls,
            timeout=httpx2.Timeout(timeout_s, connect=connect_s),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=64),
            event_hooks={"request": [self._prepare], "response": [self._sift]},
        )
        proxied = not local and bool(getproxies().keys() - {"no"})
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": self._http.headers["User-Agent"],
            **({} if api_key is None else {"Authorization": f"Bearer {api_key}"}),
        }
        self._wire = None if proxied else Wire(httpx2.URL(self.base_url), headers, tls, connect_s)
        self._targets = {path: httpx2.URL(f"{self.base_url}{path}").raw_path for path in _PATHS.values()}

    def __repr__(self) -> str:
        return f"SeatClient({self.base_url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()
        if self._wire is not None:
            await self._wire.aclose()

    async def complete(self, request: SeatRequest) -> Answer:
        """Send one request once and read its answer. Raises FaultError."""
        path, body = _PATHS[request.endpoint], request.body
        asked = self._asked("POST", path, body) if self._wire is None else self._asked_straight(self._wire, path, body)
        content, headers = await self._translated(asked)
        return read_answer(request.endpoint, content, headers)

    async def models(self) -> tuple[dict[str, JsonValue], ...]:
        """The model cards as the seat lists them, in its order. Raises FaultError."""
        content, _ = await self._translated(self._asked("GET", "/models"))
        try:
            cards = _Cards.model_validate_json(content).data
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
        content, _ = await self._translated(self._asked("POST", path, body))
        return content.decode(errors="replace")

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

    async def _asked(self, method: str, path: str, body: dict[str, JsonValue] | None = None) -> _Said:
        """Body and headers of the answer at a path of the API. Raises FaultError for a status that is no success."""
        response = await self._http.request(method, f"{self.base_url}{path}", json=body)
        if not response.is_success:
            raise fault_of_status(response, secret=self._key)
        return response.content, response.headers

    async def _asked_straight(self, wire: Wire, path: str, body: dict[str, JsonValue]) -> _Said:
        """As `_asked`, past the HTTP client, which spends more on a request than all the rest together."""
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        status, raw, said = await wire.post(self._targets[path], data, MAX_BYTES)
        content, headers = _without(self._spellings, said), httpx2.Headers(raw)
        self._sift_headers(headers)
        if not httpx2.codes.is_success(status):
            raise fault_of_status(httpx2.Response(status, headers=headers, content=content), secret=self._key)
        return content, headers

    async def _translated(self, sending: Awaitable[_T]) -> _T:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await sending
        except UnicodeEncodeError:
            raise UsageError(
                "the request holds something that is no text", next_step="write names and prompts in UTF-8"
            ) from None
        except FOREIGN as error:
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
        self._sift_headers(response.headers)
        if not isinstance(response.stream, httpx2.AsyncByteStream):
            return
        if response.request.extensions.get("gates.timed"):
            response.stream = _Bounded(response.stream)  # read as it comes, for its clock alone: no text of it is kept
        else:
            response.stream = _Sifted(response.stream, self._spellings)

    def _sift_headers(self, headers: httpx2.Headers) -> None:
        encoding = headers.get("content-encoding", "identity")
        if encoding != "identity":  # asked for plainly: the bound and the key are looked for in the bytes themselves
            raise httpx2.DecodingError(f"the answer is encoded as {encoding}")
        if "content-type" in headers:  # the protocol is UTF-8; a named character set could be any of Python's codecs
            headers["content-type"] = headers["content-type"].partition(";")[0]
        if self._key is not None:
            for name, value in headers.items():
                headers[name] = value.replace(self._key, REDACTED)


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


def _without(key: re.Pattern[bytes] | None, body: bytes) -> bytes:
    return body if key is None else key.sub(REDACTED.encode(), body)


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
        yield _without(self._key, body)
