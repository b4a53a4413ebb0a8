"""Asking one server again and again over connections that stay open, by aiohttp.

It spends a third of the processor on a request that httpx2 does: at a seat that answers many at a time this is what
keeps it waiting. What can go wrong is told in the exceptions of httpx2, which ask for everything else.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import httpx2

from gates.deferred import Deferred

if TYPE_CHECKING:
    import aiohttp
    import yarl
else:
    aiohttp, yarl = Deferred("aiohttp"), Deferred("yarl")

KEPT_S = 5.0
"""How long a connection that nobody uses is kept, in seconds; servers close theirs after about as long."""
LONGEST_HEADER = 100_000
"""The most bytes of one header that are read."""


class Reply(NamedTuple):
    """An answer as it came: status, headers, body."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Wire:
    """Whole answers of one server, whatever their status.

    A request has no limit of time here, only connecting has (`connect_s`, in seconds).
    """

    def __init__(self, url: httpx2.URL, headers: Mapping[str, str], tls: ssl.SSLContext, connect_s: float) -> None:
        self._origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
        self._headers, self._tls, self._connect_s = dict(headers), tls, connect_s
        self._urls: dict[bytes, yarl.URL] = {}
        self._session: aiohttp.ClientSession | None = None

    async def post(self, target: bytes, data: bytes, most: int) -> Reply:
        """The answer at a path of the server. Raises DecodingError for one of more than `most` bytes."""
        try:
            return await self._post(self._url(target), data, most)
        except aiohttp.ConnectionTimeoutError as error:
            raise httpx2.ConnectTimeout(str(error)) from error
        except aiohttp.ClientConnectorError as error:
            raise httpx2.ConnectError(str(error)) from error
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError) as error:
            said = f"the server closed the connection before its answer had ended: {type(error).__name__}"
            raise httpx2.RemoteProtocolError(said) from error
        except aiohttp.ClientResponseError as error:
            raise httpx2.RemoteProtocolError(f"no answer of HTTP/1.1: {error.message}") from error
        except aiohttp.ClientError as error:
            raise httpx2.ReadError(f"{type(error).__name__} {error}") from error

    async def _post(self, url: yarl.URL, data: bytes, most: int) -> Reply:
        body = bytearray()
        async with self._opened().post(url, data=data, allow_redirects=False) as response:
            async for part in response.content.iter_any():
                body += part
                if len(body) > most:
                    raise httpx2.DecodingError(f"the answer is larger than {most} bytes")
            return Reply(response.status, list(response.raw_headers), bytes(body))

    def _url(self, target: bytes) -> yarl.URL:
        if target not in self._urls:
            self._urls[target] = yarl.URL(self._origin + target.decode("ascii"), encoded=True)
        return self._urls[target]

    def _opened(self) -> aiohttp.ClientSession:
        """The session, which belongs to the loop that first asks for it."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._tls, limit=0, keepalive_timeout=KEPT_S),
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_s),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                max_line_size=LONGEST_HEADER,
                max_field_size=LONGEST_HEADER,
            )
        return self._session

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            await asyncio.sleep(0)  # the loop closes sockets at its next turn
