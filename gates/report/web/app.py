"""The page as an ASGI application: static files, and three calls to a desk that answers in JSON.

Everything is refused without the session's cookie, which the one-time token of the printed address buys; every answer
carries a policy under which only scripts and styles of this very address run, and nothing is ever sent elsewhere.
"""

from __future__ import annotations

import json
import secrets
from importlib.resources import files
from typing import Protocol

from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gates.errors import GatesError

MOST_BYTES = 16_384
"""The longest body that a page may send."""

POLICY = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}

_FILES = {
    "page.css": "text/css; charset=utf-8",
    "common.js": "text/javascript; charset=utf-8",
    "review.js": "text/javascript; charset=utf-8",
    "blind.js": "text/javascript; charset=utf-8",
}


class Desk(Protocol):
    """What a page asks: one list of things to read, each by its name, and what the reader says of one.

    Raises GatesError for a name or an answer that cannot be.
    """

    @property
    def page(self) -> str:
        """The name of the HTML file."""

    def overview(self) -> JsonValue:
        """Everything there is to read, and how far the reader is."""

    def item(self, name: str) -> JsonValue:
        """One thing to read."""

    def say(self, name: str, said: JsonValue) -> JsonValue:
        """Keep what the reader says of it; kept when this returns."""


def application(desk: Desk, token: str, port: int) -> Starlette:
    """The application for one reader, who comes with `token` to 127.0.0.1:`port`."""

    def page(_request: Request) -> Response:
        return _file(desk.page, "text/html; charset=utf-8")

    def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _FILES:
            raise HTTPException(404)
        return _file(name, _FILES[name])

    def overview(_request: Request) -> Response:
        return JSONResponse(desk.overview())

    def item(request: Request) -> Response:
        return JSONResponse(desk.item(request.path_params["name"]))

    async def say(request: Request) -> Response:
        return JSONResponse(desk.say(request.path_params["name"], await _body(request)))

    return Starlette(
        routes=[
            Route("/", page),
            Route("/api/list", overview),
            Route("/api/item/{name}", item),
            Route("/api/item/{name}", say, methods=["POST"]),
            Route("/{name}", static),
        ],
        middleware=[Middleware(_Door, token=token, port=port)],
        exception_handlers={GatesError: _refused},
    )


class _Door:
    """Lets the one reader in: right host, then the token once, then the cookie; writes only from the page itself."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token: str | None = token
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._cookie, self._session = f"gates-{port}", secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.encode(), value.encode()) for name, value in POLICY.items()]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        answer = self._answer(Request(scope)) or self._app
        await answer(scope, receive, with_policy)

    def _answer(self, request: Request) -> Response | None:
        """What is said at the door; None lets the request in."""
        host = request.headers.get("host", "")
        if host not in self._hosts:
            return _no(421, "this page is served on loopback only")
        given = request.query_params.get("token")
        if given is not None and request.url.path == "/":
            if self._token is None or not secrets.compare_digest(given.encode(), self._token.encode()):
                return _no(403, "this address has been used; start `gates` again for a new one")
            self._token = None
            entered = RedirectResponse("/", 303)
            entered.set_cookie(self._cookie, self._session, httponly=True, samesite="strict", path="/")
            return entered
        held = request.cookies.get(self._cookie, "")
        if not secrets.compare_digest(held.encode(), self._session.encode()):
            return _no(403, "open the address that `gates` has printed")
        if request.method == "POST" and (
            request.headers.get("origin") != f"http://{host}"
            or request.headers.get("content-type", "").partition(";")[0] != "application/json"
        ):
            return _no(403, "only the page itself may write")
        return None


def _no(status: int, sentence: str) -> Response:
    return JSONResponse({"error": sentence}, status)


def _file(name: str, media_type: str) -> Response:
    return Response((files("gates.report.web") / name).read_bytes(), media_type=media_type)


async def _body(request: Request) -> JsonValue:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MOST_BYTES:
            raise HTTPException(413)
    try:
        found: JsonValue = json.loads(data)
    except (ValueError, RecursionError):
        raise HTTPException(400) from None
    return found


async def _refused(_request: Request, error: Exception) -> Response:
    return _no(422, error.message if isinstance(error, GatesError) else "refused")
