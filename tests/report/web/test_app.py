"""Who is let in to a page, and under which policy: the real server, asked by hand."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest
import uvicorn
from pydantic import JsonValue

from gates.errors import UsageError
from gates.report.web.app import MOST_BYTES, application

TOKEN = "t" * 43


class Desk:
    """A desk that keeps what is said."""

    page = "review.html"

    def __init__(self) -> None:
        self.said: list[tuple[str, JsonValue]] = []

    def overview(self) -> JsonValue:
        return {"items": []}

    def item(self, name: str) -> JsonValue:
        if name != "known":
            raise UsageError(f"{name!r} is no item")
        return {"name": name}

    def say(self, name: str, said: JsonValue) -> JsonValue:
        self.item(name)
        self.said.append((name, said))
        return {"kept": True}


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Page(NamedTuple):
    desk: Desk
    port: int

    def ask(self, path: str, body: bytes | None = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        named = {"Host": f"127.0.0.1:{self.port}"} | {k.replace("_", "-"): v for k, v in headers.items()}
        connection.request("GET" if body is None else "POST", path, body, named)
        answer = connection.getresponse()
        found = Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        connection.close()
        return found

    def enter(self) -> str:
        return self.ask(f"/?token={TOKEN}").headers["set-cookie"].partition(";")[0]

    def write(self, path: str, body: bytes, **headers: str) -> Answer:
        ours = {"Origin": f"http://127.0.0.1:{self.port}", "Content_Type": "application/json"}
        return self.ask(path, body, **(ours | headers))


@pytest.fixture
def page() -> Iterator[Page]:
    desk = Desk()
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(application(desk, TOKEN, port), log_level="critical", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield Page(desk, port)
        server.should_exit = True
        thread.join(30)


def test_nothing_is_shown_without_the_token_and_it_is_good_once(page: Page) -> None:
    for path in ("/", "/api/list", "/api/item/known", "/review.js", "/page.css", "/?token=wrong", "/?token="):
        assert page.ask(path).status == 403, path
    entered = page.ask(f"/?token={TOKEN}")
    assert (entered.status, entered.headers["location"]) == (303, "/")
    assert "httponly" in entered.headers["set-cookie"].lower()
    assert "samesite=strict" in entered.headers["set-cookie"].lower()
    assert TOKEN not in entered.headers["set-cookie"]
    cookie = entered.headers["set-cookie"].partition(";")[0]
    assert page.ask(f"/?token={TOKEN}").status == 403
    assert page.ask("/", Cookie=f"{cookie}x").status == 403
    shown = page.ask("/", Cookie=cookie)
    assert shown.status == 200
    assert b'<script type="module" src="/review.js">' in shown.body


def test_every_answer_carries_the_policy(page: Page) -> None:
    cookie = page.enter()
    for path, status in (("/", 200), ("/review.js", 200), ("/api/list", 200), ("/nothing", 404), ("/api/item/x", 422)):
        answer = page.ask(path, Cookie=cookie)
        assert answer.status == status
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
    assert page.ask("/").headers["content-security-policy"]


def test_another_name_for_this_machine_is_refused(page: Page) -> None:
    """A foreign page whose name was made to point here (DNS rebinding)."""
    cookie = page.enter()
    assert page.ask("/api/list", Cookie=cookie, Host=f"evil.example:{page.port}").status == 421
    assert page.ask("/api/list", Cookie=cookie, Host=f"localhost:{page.port}").status == 200


def test_only_the_page_itself_writes(page: Page) -> None:
    cookie, said = page.enter(), json.dumps({"mark": "ok"}).encode()
    assert page.write("/api/item/known", said).status == 403
    assert page.write("/api/item/known", said, Cookie=cookie, Origin="http://evil.example").status == 403
    assert page.write("/api/item/known", said, Cookie=cookie, Content_Type="text/plain").status == 403
    assert page.ask("/api/item/known", said, Cookie=cookie).status == 403
    assert page.desk.said == []
    assert page.write("/api/item/known", said, Cookie=cookie).status == 200
    assert page.desk.said == [("known", {"mark": "ok"})]


def test_nonsense_is_refused_in_words(page: Page) -> None:
    cookie = page.enter()
    unknown = page.write("/api/item/strange", b"{}", Cookie=cookie)
    assert (unknown.status, json.loads(unknown.body)) == (422, {"error": "'strange' is no item"})
    assert page.write("/api/item/known", b"{", Cookie=cookie).status == 400
    assert page.write("/api/item/known", b"[" * 9000, Cookie=cookie).status == 400
    assert page.write("/api/item/known", b" " * (MOST_BYTES + 1), Cookie=cookie).status == 413
    assert page.ask("/../app.py", Cookie=cookie).status == 404
    assert page.ask("/app.py", Cookie=cookie).status == 404
    assert page.desk.said == []
