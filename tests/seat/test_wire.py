"""The wire on real sockets: what ends an answer, what breaks it, and which connections are used again."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from pathlib import Path

import httpx2
import pytest

from gates.seat import wire as wire_module
from gates.seat.client import SeatClient, SeatRequest
from gates.seat.wire import Reply, Wire
from tests.seat.faulty import FaultySeat, Request, answer
from tests.seat.faulty import Wire as Way

PEM = Path(__file__).with_name("tls.pem")
"""A key, and a certificate that it signed for localhost; of no use anywhere else."""
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-A: 1\r\n\r\nabc"


class Server:
    """Answers each request with the next of some bytes; `None` hangs up. Counts its connections."""

    def __init__(self, says: Sequence[bytes | None], tls: ssl.SSLContext | None = None) -> None:
        self.says, self.tls, self.connections = list(says), tls, 0
        self.asked: list[bytes] = []

    async def talk(self, times: int) -> list[Reply]:
        """What a wire gets of so many requests, one after the other."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self.tls)
        port = server.sockets[0].getsockname()[1]
        url = httpx2.URL(f"http{'s' if self.tls else ''}://localhost:{port}/v1")
        trusted = ssl.create_default_context(cafile=PEM)
        wire = Wire(url, {"X-Ours": "1"}, trusted, 5.0)
        self.over = asyncio.Event()
        async with server, asyncio.timeout(20):
            try:
                return [await wire.post(b"/v1/x", b"{}", 1000) for _ in range(times)]
            finally:
                await wire.aclose()
                await self.over.wait()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self.says:
                self.asked.append(await reader.readuntil(b"\r\n\r\n{}"))
                said = self.says.pop(0)
                writer.write(said or b"")
                if said is None or (b"Content-Length" not in said and b"chunked" not in said):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the wire hung up
        finally:
            writer.close()
            self.over.set()


def talk(*says: bytes | None, times: int = 1) -> tuple[list[Reply], Server]:
    server = Server(says)
    return asyncio.run(server.talk(times)), server


def test_one_connection_serves_one_request_after_the_other() -> None:
    replies, server = talk(WHOLE, CHUNKED, WHOLE, times=3)
    assert [reply.body for reply in replies] == [b"abc"] * 3
    assert replies[0] == (200, [(b"Content-Length", b"3"), (b"X-A", b"1")], b"abc")
    assert server.connections == 1
    lines = server.asked[0].split(b"\r\n")
    assert lines[0] == b"POST /v1/x HTTP/1.1"
    assert {b"X-Ours: 1", b"Content-Length: 2"} < set(lines)
    assert lines[1].startswith(b"Host: localhost:")


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\n\r\nabc",  # it ends where the connection does
        b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc",
        WHOLE.replace(b"X-A: 1", b"Connection: close"),
        WHOLE + b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nunasked",
    ],
)
def test_a_connection_that_may_not_be_used_again_is_not(said: bytes) -> None:
    replies, server = talk(said, WHOLE, times=2)
    assert [reply.body for reply in replies] == [b"abc"] * 2
    assert server.connections == 2


def test_what_only_says_that_an_answer_will_come_is_none() -> None:
    replies, _ = talk(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + WHOLE)
    assert replies[0].headers == [(b"Content-Length", b"3"), (b"X-A", b"1")]


@pytest.mark.parametrize(
    ("said", "kind", "message"),
    [
        (None, httpx2.RemoteProtocolError, "closed the connection before"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", httpx2.RemoteProtocolError, "closed the connection before"),
        (WHOLE + b"\0", httpx2.RemoteProtocolError, "no answer of HTTP/1.1"),
        (b"SSH-2.0-x\r\n", httpx2.RemoteProtocolError, "no answer of HTTP/1.1"),
        (WHOLE.replace(b": 3", b": 3\r\nContent-Length: 4"), httpx2.RemoteProtocolError, "no answer of HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 400_000, httpx2.RemoteProtocolError, "more than 100000 bytes"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1001, httpx2.DecodingError, "larger than 1000 bytes"),
    ],
)
def test_an_answer_that_is_none_is_named(said: bytes | None, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        talk(said)


def test_a_connection_that_was_kept_too_long_is_opened_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_module, "KEPT_S", 0.0)
    replies, server = talk(WHOLE, WHOLE, times=2)
    assert len(replies) == server.connections == 2


def test_tls_is_spoken_and_checked() -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(PEM)
    server = Server([WHOLE, WHOLE], tls)
    assert [reply.body for reply in asyncio.run(server.talk(2))] == [b"abc"] * 2
    assert server.connections == 1

    async def distrusted() -> None:
        listening = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, ssl=tls)
        url = httpx2.URL(f"https://localhost:{listening.sockets[0].getsockname()[1]}/v1")
        wire = Wire(url, {}, ssl.create_default_context(), 5.0)
        async with listening:
            try:
                await wire.post(b"/", b"", 1000)
            finally:
                await wire.aclose()

    with pytest.raises(httpx2.ConnectError, match="certificate verify failed"):
        asyncio.run(distrusted())


def test_behind_a_proxy_of_the_environment_the_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> str:
        async def relay(request: Request, way: Way) -> None:
            await way.send(answer(request.body))

        async with FaultySeat(routes={"http://seat.example/v1/chat/completions": relay}) as proxy:
            monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
            async with SeatClient("http://seat.example/v1") as client:
                body = {"model": "base", "messages": [{"role": "user", "content": "Hi"}], "seed": 1}
                return (await client.complete(SeatRequest("chat", body))).text

    assert asyncio.run(main()) == "base 1: Hi"
