"""A server on loopback that speaks as much of HTTP with ranges, of S3 and of Google's storage as reading asks for."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "books"


class Store:
    """Objects by key, and every request for one: method, key, the range that was asked for, bytes sent."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects = objects
        self.asked: list[tuple[str, str, str, int]] = []
        self.refuse = ""
        """The methods that are answered with an error."""
        self.lost = 0
        """How many bytes of an answer never come."""
        self.misstated = 0
        """By how much an object's head overstates its size."""
        self.ranges = True
        """Whether the plain server sends ranges."""
        self.port = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def listed(self, prefix: str, delimiter: str) -> tuple[list[str], list[str]]:
        """Keys under a prefix, and the folders in their place where a delimiter cuts them."""
        found = sorted(key for key in self.objects if key.startswith(prefix))
        if not delimiter:
            return found, []
        cut = {key: key[len(prefix) :].partition(delimiter) for key in found}
        folders = dict.fromkeys(prefix + first + delimiter for first, mark, _ in cut.values() if mark)
        return [key for key in found if not cut[key][1]], list(folders)


@contextmanager
def serving(objects: dict[str, bytes]) -> Iterator[Store]:
    """The store for as long as the context lasts."""
    store = Store(objects)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"store": store}))
    store.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield store
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: Store

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        split = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(split.query).items()}
        path = unquote(split.path)
        if path.startswith("/moved/"):  # as stores do that lead to a signed address
            self._send(302, b"", {"Location": f"/plain/{path.removeprefix('/moved/')}?signature=hunter2"})
        elif self.command in self.store.refuse.split():
            self._send(503, b"<Error><Code>SlowDown</Code></Error>")
        elif path.startswith("/plain/"):
            self._plain(path.removeprefix("/plain/"))
        elif path.startswith(("/storage/v1/", "/download/storage/v1/")):
            self._google(path.partition("/v1/")[2].removeprefix(f"b/{BUCKET}").removeprefix("/o"), query)
        elif path.rstrip("/") == f"/{BUCKET}":
            self._s3_list(query)
        else:
            self._object(
                path.removeprefix(f"/{BUCKET}/"), {"ETag": '"e"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
            )

    def _plain(self, key: str) -> None:
        if not self.store.ranges:
            del self.headers["Range"]
        tag = zlib.crc32(self.store.objects.get(key, b""))
        self._object(key, {"Accept-Ranges": "bytes" if self.store.ranges else "none", "ETag": f'"{tag}"'})

    def _google(self, path: str, query: dict[str, str]) -> None:
        key = path.removeprefix("/")
        if query.get("alt") == "media":
            self._object(key, {})
        elif key in self.store.objects:
            self._json(self._card(key))
        elif key:
            self._json({"error": {"code": 404, "message": "no such object"}}, 404)
        else:
            keys, folders = self.store.listed(query.get("prefix", ""), query.get("delimiter", ""))
            self._json({"kind": "storage#objects", "items": [self._card(one) for one in keys], "prefixes": folders})

    def _card(self, key: str) -> dict[str, object]:
        media = f"{self.store.address}/download/storage/v1/b/{BUCKET}/o/{key}?alt=media"
        time = "2026-01-01T00:00:00.000Z"
        size = str(len(self.store.objects[key]))
        return {"name": key, "bucket": BUCKET, "size": size, "mediaLink": media, "updated": time, "timeCreated": time}

    def _s3_list(self, query: dict[str, str]) -> None:
        keys, folders = self.store.listed(query.get("prefix", ""), query.get("delimiter", ""))
        found = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self.store.objects[key])}</Size>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>e</ETag></Contents>"
            for key in keys
        ) + "".join(f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in folders)
        count = len(keys) + len(folders)
        body = f"<ListBucketResult><Name>{BUCKET}</Name><KeyCount>{count}</KeyCount>{found}</ListBucketResult>"
        self._send(200, body.encode(), {"Content-Type": "application/xml"})

    def _object(self, key: str, headers: dict[str, str]) -> None:
        data = self.store.objects.get(key)
        wanted = self.headers.get("Range", "")
        if data is None:
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        part = data[int(first) : int(last) + 1 if last else None] if wanted else data
        sent = 0 if self.command == "HEAD" else len(part)
        self.store.asked.append((self.command, key, wanted, sent))
        if wanted:
            headers = headers | {"Content-Range": f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}"}
        self._send(206 if wanted else 200, part, headers)

    def _json(self, document: object, status: int = 200) -> None:
        self._send(status, json.dumps(document).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        misstated = self.store.misstated if self.command == "HEAD" else 0
        self.send_header("Content-Length", str(len(body) + misstated))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) - self.store.lost])
            self.close_connection = bool(self.store.lost)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
