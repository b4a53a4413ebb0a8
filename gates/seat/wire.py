"""Asking one server again and again: connections that stay open, one request at a time on each.

A client that may ask any server spends more of the processor on choosing a connection, cookies, redirects and
authentication than on the request; at a seat that answers many at a time this is what keeps it waiting.
"""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import Mapping
from typing import NamedTuple, cast

import httptools
import httpx2

KEPT_S = 5.0
"""How long a connection that nobody uses is kept, in seconds; servers close theirs after about as long."""
LONGEST_HEAD = 100_000
"""The most bytes of status and headers that are read."""
_NEXT_ADDRESS_S = 0.25
"""When a host's next address is tried beside the one that does not answer yet (RFC 8305), in seconds."""


class Reply(NamedTuple):
    """An answer as it came: status, headers, body."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Wire:
    """Whole answers of one server, whatever their status; what can go wrong is an exception of httpx2.

    A request has no limit of time here, only connecting has (`connect_s`, in seconds).
    """

    def __init__(self, url: httpx2.URL, headers: Mapping[str, str], tls: ssl.SSLContext, connect_s: float) -> None:
        self._host, self._tls = url.host, tls if url.scheme == "https" else None
        self._port = url.port or (80 if self._tls is None else 443)
        fields = {"Host": url.netloc.decode("ascii"), **headers}
        self._head = "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode("ascii")
        self._connect_s = connect_s
        self._next_address_s = None if _is_address(url.host) else _NEXT_ADDRESS_S
        self._free: list[_Line] = []

    async def post(self, target: bytes, data: bytes, most: int) -> Reply:
        """The answer at a path of the server. Raises DecodingError for one of more than `most` bytes."""
        line = await self._line()
        try:
            reply = await line.ask(
                b"POST %b HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n%b" % (target, self._head, len(data), data), most
            )
        except BaseException:
            line.close()
            raise
        if line.is_free:
            self._free.append(line)
        return reply

    async def aclose(self) -> None:
        """Close the connections that are free; that of a request that was given up is closed already."""
        while self._free:
            self._free.pop().close()
        await asyncio.sleep(0)  # the loop closes sockets at its next turn

    async def _line(self) -> _Line:
        loop = asyncio.get_running_loop()
        while self._free:
            line = self._free.pop()
            if line.is_free and loop.time() - line.since < KEPT_S:
                return line
            line.close()
        try:
            async with asyncio.timeout(self._connect_s):
                _, line = await loop.create_connection(
                    _Line, self._host, self._port, ssl=self._tls, happy_eyeballs_delay=self._next_address_s
                )
        except TimeoutError as error:
            raise httpx2.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpx2.ConnectError(str(error)) from error
        return line


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class _Line(asyncio.Protocol):
    """One connection; the parser calls the methods named `on_...`."""

    def __init__(self) -> None:
        self.is_free = False
        self.since = 0.0
        self._reply: asyncio.Future[Reply] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    async def ask(self, request: bytes, most: int) -> Reply:
        """Send a request, and its answer."""
        self.is_free, self._most = False, most
        self._reply = asyncio.get_running_loop().create_future()
        self._parser = httptools.HttpResponseParser(self)
        self.on_message_begin()
        self._transport.write(request)
        return await self._reply

    def close(self) -> None:
        """Close at once."""
        self.is_free = False
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._reply is None or self._reply.done():
            self.close()  # nobody asked
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(httpx2.RemoteProtocolError(f"no answer of HTTP/1.1: {type(error).__name__} {error}"))
        if not self._whole_head:
            self._head_size += len(data)
        if self._head_size > LONGEST_HEAD:
            self._fail(httpx2.RemoteProtocolError(f"status and headers of more than {LONGEST_HEAD} bytes"))

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_free = False
        if exc is not None:
            self._fail(httpx2.ReadError(str(exc)))
        elif self._reply is None or self._reply.done():
            return
        elif self._whole_head and not self._has_length:
            self._reply.set_result(self._said())
        else:
            self._fail(httpx2.RemoteProtocolError("the server closed the connection before its answer had ended"))

    def on_message_begin(self) -> None:
        self.is_free = False
        self._headers: list[tuple[bytes, bytes]] = []
        self._body = bytearray()
        self._head_size = 0
        self._whole_head = self._has_length = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))
        self._has_length |= name.lower() in {b"content-length", b"transfer-encoding"}

    def on_headers_complete(self) -> None:
        self._whole_head = True

    def on_body(self, body: bytes) -> None:
        self._body += body
        if len(self._body) > self._most:
            self._fail(httpx2.DecodingError(f"the answer is larger than {self._most} bytes"))

    def on_message_complete(self) -> None:
        if self._reply is None or self._reply.done() or self._parser.get_status_code() < 200:
            return  # an answer to nothing; or one that only says that another will come
        self._reply.set_result(self._said())
        self.is_free, self.since = self._parser.should_keep_alive(), asyncio.get_running_loop().time()

    def _said(self) -> Reply:
        return Reply(self._parser.get_status_code(), self._headers, bytes(self._body))

    def _fail(self, error: Exception) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(error)
        self.close()
