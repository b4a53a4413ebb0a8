"""What a hostile server may say, byte by byte on a real socket, and what the client may make of it."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from gates.errors import GatesError
from gates.seat.client import SeatClient, SeatRequest

KEY = "sk-Very-Secret-77"
MIB = 2**20
BOMB = b"x" * (20 * MIB)
TEXT = json.dumps(
    {"choices": [{"message": {"content": "words"}, "finish_reason": "stop"}], "model": "m", "data": [], "version": "1"}
).encode()
EVENTS = b"".join(
    b"data: " + json.dumps(event).encode() + b"\n\n"
    for event in (
        {"choices": [{"delta": {"content": "a"}}]},
        {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}},
    )
)

Says = Callable[[str], Iterator[bytes]]
"""What a server says, given the address of another server, to which nothing may go; it ends, or it does not."""


def head(*headers: bytes, status: bytes = b"200 OK") -> bytes:
    return b"\r\n".join([b"HTTP/1.1 " + status, *headers, b"", b""])


def whole(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    return head(*headers, b"Content-Length: %d" % len(body), status=status) + body


def chunked(*chunks: bytes) -> bytes:
    return head(b"Transfer-Encoding: chunked") + b"".join(chunks)


def once(data: bytes) -> Says:
    return lambda _: iter((data,))


def endless(begin: bytes, piece: bytes, most: int | None = None) -> Says:
    """The beginning, then the piece again and again, in blocks of about 64 KiB."""

    def says(_: str) -> Iterator[bytes]:
        yield begin
        block = piece * max(1, 2**16 // len(piece))
        sent = 0
        while most is None or sent < most:
            yield block
            sent += len(block)

    return says


def dripped(data: bytes, pause: float) -> Says:
    """One byte at a time; an empty piece is a pause of 20 ms."""

    def says(_: str) -> Iterator[bytes]:
        for byte in data:
            yield bytes([byte])
            yield from [b""] * round(pause / 0.02)

    return says


def elsewhere(status: bytes) -> Says:
    return lambda url: iter((whole(b"", b"Location: " + url.encode(), status=status),))


def value(text: bytes) -> bytes:
    """An answer with a JSON value where the words belong."""
    return whole(TEXT.replace(b'"words"', text), b"Content-Type: application/json")


CHARSETS = ("hex", "bz2", "zlib", "rot13", "idna", "punycode", "undefined", "utf-16", "utf-7", "raw_unicode_escape")
SHORT: dict[str, Says] = {
    "nothing": once(b""),
    "a line break": once(b"\r\n"),
    "NUL": once(b"\0" * 1000),
    "another protocol": once(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "TLS": once(b"\x15\x03\x01\x00\x02\x02\x28"),
    "HTTP/2": once(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + bytes(18)),
    "HTTP/0.9": once(TEXT),
    "status 0": once(whole(TEXT, status=b"000 Nothing")),
    "status 99": once(whole(TEXT, status=b"99 Low")),
    "status 999": once(whole(TEXT, status=b"999 High")),
    "status without end": once(b"HTTP/1.1 " + b"2" * 5000 + b" OK\r\n\r\n"),
    "switched": once(head(b"Upgrade: x", b"Connection: upgrade", status=b"101 Switching Protocols") + TEXT),
    "early hints": once(head(status=b"103 Early Hints") * 50 + whole(TEXT)),
    "204 with a body": once(whole(TEXT, status=b"204 No Content")),
    "206": once(whole(TEXT, b"Content-Range: bytes 0-1/9", status=b"206 Partial Content")),
    "304": once(head(status=b"304 Not Modified")),
    "reason that is no text": once(whole(TEXT, status=b"200 \xff\xfe\x1b[31m")),
    "header that is no text": once(whole(TEXT, b"Via: \xff\xfe\x1b[31m")),
    "header without a name": once(whole(TEXT, b": x")),
    "header without a colon": once(whole(TEXT, b"nothing")),
    "folded header": once(whole(TEXT, b"X: a\r\n b")),
    "header split": once(whole(TEXT, b"X: a\rHost: b")),
    "two lengths": once(head(b"Content-Length: 3", b"Content-Length: 5") + TEXT),
    "length below zero": once(head(b"Content-Length: -5") + TEXT),
    "length with a plus": once(head(b"Content-Length: +5") + TEXT),
    "length without end": once(head(b"Content-Length: " + b"9" * 6000) + TEXT),
    "length of 2^64": once(head(b"Content-Length: 18446744073709551616") + TEXT),
    "length too long": once(head(b"Content-Length: 100000") + TEXT),
    "length too short": once(head(b"Content-Length: 20") + TEXT),
    "length and chunks": once(head(b"Content-Length: 5", b"Transfer-Encoding: chunked") + b"5\r\nabcde\r\n0\r\n\r\n"),
    "unknown transfer": once(head(b"Transfer-Encoding: gzip, identity") + TEXT),
    "chunk of no number": once(chunked(b"xyz\r\nabc\r\n")),
    "chunk below zero": once(chunked(b"-5\r\nabc\r\n")),
    "chunk of 2^64": once(chunked(b"FFFFFFFFFFFFFFFFF\r\nabc")),
    "chunk too short": once(chunked(b"2\r\nabcdef\r\n0\r\n\r\n")),
    "chunks without an end": once(chunked(b"5\r\nabcde\r\n")),
    "long chunk extension": once(chunked(b"5;" + b"x" * 200_000 + b"\r\nabcde\r\n0\r\n\r\n")),
    "trailers": once(chunked(b"2\r\n{}\r\n0\r\n", b"X: y\r\n" * 5000, b"\r\n")),
    "gzip bomb": once(whole(gzip.compress(BOMB), b"Content-Encoding: gzip")),
    "gzip twice": once(whole(gzip.compress(gzip.compress(BOMB)), b"Content-Encoding: gzip, gzip")),
    "deflate that is none": once(whole(TEXT, b"Content-Encoding: deflate")),
    "brotli that is none": once(whole(TEXT, b"Content-Encoding: br")),
    "gzip unsaid": once(whole(gzip.compress(TEXT), b"Content-Type: application/json")),
    **{f"charset {name}": once(whole(TEXT, b"Content-Type: x/y; charset=" + name.encode())) for name in CHARSETS},
    **{
        f"error in charset {name}": once(
            whole(b"68656c6c6f", b"Content-Type: x/y; charset=" + name.encode(), status=b"500 Oh")
        )
        for name in CHARSETS
    },
    "empty body": once(whole(b"")),
    "invalid UTF-8": once(value(b'"\xff\xfe"')),
    "surrogate": once(value(b'"\xed\xa0\x80"')),
    "half a pair": once(value(b'"\\ud800"')),
    "huge integer": once(value(b"9" * 100_000)),
    "huge exponent": once(value(b"1e999999999")),
    "NaN": once(value(b"NaN")),
    "deep": once(value(b"[" * 500_000)),
    "deep and whole": once(value(b"[" * 50_000 + b"]" * 50_000)),
    "doubled keys": once(value(b'"words","content":"other"')),
    "BOM": once(whole(b"\xef\xbb\xbf" + TEXT)),
    "two documents": once(whole(TEXT + TEXT)),
    "the key": once(whole(TEXT.replace(b"words", KEY.encode()), b"Via: " + KEY.encode())),
    "the key in an error": once(whole(KEY.encode(), b"Retry-After: " + KEY.encode(), status=b"429 " + KEY.encode())),
    "retry never": once(whole(b"", b"Retry-After: " + b"9" * 5000, status=b"429 Busy")),
    "retry at no time": once(whole(b"", b"Retry-After: Mon, 99 Zzz 99999 99:99:99 GMT", status=b"503 Busy")),
    "cookie": once(whole(TEXT, b"Set-Cookie: a=b; Domain=.example.org; Path=/")),
    "link elsewhere": lambda url: iter(
        (whole(TEXT, f"Link: <{url}>; rel=preload".encode(), b"Refresh: 0; " + url.encode()),)
    ),
    **{f"redirect {code.decode()}": elsewhere(code + b" There") for code in (b"301", b"302", b"303", b"307", b"308")},
    "another way": lambda url: iter((whole(TEXT, b"Alt-Svc: " + url.encode(), b"Location: " + url.encode()),)),
    "refused elsewhere": lambda url: iter(
        (whole(b"", b"WWW-Authenticate: Basic realm=" + url.encode(), b"Location: " + url.encode(), status=b"401 No"),)
    ),
    "proxy asks": once(whole(b"", b"Proxy-Authenticate: Basic", status=b"407 Who")),
    "stream": once(whole(EVENTS + b"data: [DONE]\n\n", b"Content-Type: text/event-stream")),
    "stream cut": once(head(b"Content-Type: text/event-stream") + EVENTS),
    "stream of no events": once(head(b"Content-Type: text/event-stream") + b"event: x\nid: \0\nretry: 99999999999\n\n"),
    "stream that counts no tokens": once(whole(EVENTS.replace(b": 2}", b": -2e999}") + b"data: [DONE]\n\n")),
    "stream of huge numbers": once(whole(EVENTS.replace(b": 2}", b": " + b"9" * 5000 + b"}") + b"data: [DONE]\n\n")),
}
"""Those that come to an end at once."""

LONG: dict[str, Says] = {
    "a head of one line without end": endless(b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "a head of lines without end": endless(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
    "a head of long lines without end": endless(b"HTTP/1.1 200 OK\r\n", b"X-%s: y\r\n" % (b"z" * 60_000)),
    "hints without end": endless(b"", head(status=b"103 Early Hints")),
    "continue without end": endless(b"", head(b"X: " + b"x" * 50_000, status=b"100 Continue")),
    "line breaks without end": endless(b"", b"\r\n"),
    "status line without end": endless(b"HTTP/1.1 200 ", b"x"),
    "body without end": endless(head(), b"x"),
    "error without end": endless(head(status=b"500 Oh"), b"x"),
    "chunks of one byte without end": endless(chunked(), b"1\r\nx\r\n"),
    "chunk extension without end": endless(chunked(b"1;"), b"x"),
    "chunk length of zeros without end": endless(chunked(), b"0"),
    "trailers without end": endless(chunked(b"0\r\n"), b"X: y\r\n"),
    "answers without end": endless(whole(TEXT), whole(TEXT)),
    "events without end": endless(head(), EVENTS),
    "comments without end": endless(head(), b": still here\n\n"),
    "empty lines without end": endless(head(), b"\n"),
    "an event without end": endless(head() + b"data: ", b"x"),
    "a line of 100 MB": endless(head(b"Content-Length: 104857600"), b"x", 100 * MIB),
    "an error in bz2": endless(head(b"Content-Type: x/y; charset=bz2", status=b"500 Oh"), b"BZh9"),
    "a drip": dripped(whole(TEXT), 0.2),
    "a drip of a head": dripped(whole(TEXT, b"X: " + b"x" * 500), 0.02),
    "silence after the head": lambda _: iter((head(b"Content-Length: 100"), *[b""] * 500)),
    "silence": lambda _: iter([b""] * 500),
}
"""Those that go on until the client ends them."""


@dataclass
class Elsewhere:
    """Another server, to which nothing may go, and who talks to the first one still."""

    url: str
    reached: int = 0
    talking: set[asyncio.Task[None] | None] = field(default_factory=set)

    async def still(self) -> None:
        """Wait until the first server has hung up everywhere, and the client can know it."""
        while self.talking:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.001)


@asynccontextmanager
async def serving(says: Callable[[], Says]) -> AsyncIterator[tuple[str, Elsewhere]]:
    """A server that answers every request with what is to be said, and one beside it that only counts."""
    other = Elsewhere("")

    async def counted(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        other.reached += 1
        writer.close()

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        other.talking.add(task)
        try:
            asked = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", asked)
            await reader.readexactly(int(length[1]) if length else 0)
            for piece in says()(other.url):
                if writer.transport.is_closing():
                    break
                if piece:
                    writer.write(piece)
                    await writer.drain()
                else:
                    await asyncio.sleep(0.02)
        except (asyncio.IncompleteReadError, OSError):
            pass  # the client has had enough
        finally:
            writer.close()
            other.talking.discard(task)

    async with (
        await asyncio.start_server(counted, "127.0.0.1", 0) as second,
        await asyncio.start_server(answered, "127.0.0.1", 0) as first,
    ):
        other.url = f"http://127.0.0.1:{second.sockets[0].getsockname()[1]}/"
        yield f"http://127.0.0.1:{first.sockets[0].getsockname()[1]}/v1", other
        await other.still()


_CHAT = SeatRequest("chat", {"model": "m"})
CALLS: dict[str, Callable[[SeatClient], Awaitable[object]]] = {
    "complete": lambda client: client.complete(_CHAT),
    "timed": lambda client: client.timed(_CHAT, time.monotonic),
    "models": lambda client: client.models(),
    "version": lambda client: client.version(),
    "metrics": lambda client: client.metrics(),
    "document": lambda client: client.document("/x", gone=True),
    "manage": lambda client: client.manage("/load_lora_adapter", {"lora_name": "x"}),
    "has_route": lambda client: client.has_route("/x"),
    "is_open": lambda client: client.is_open("/x"),
}


async def ask(client: SeatClient, call: str) -> str:
    """How one call to a server ends, which may be an error of ours and nothing else; in words, without the key."""
    try:
        said = f"read {await CALLS[call](client)!r}"
    except GatesError as error:
        said = f"{type(error).__name__}: {error}"
    if KEY in said:
        raise AssertionError(f"the key in {said[:200]}")
    return said
