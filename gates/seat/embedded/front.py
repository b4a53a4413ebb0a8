"""The HTTP front: vLLM's routes, shapes and errors as a client sees them, over the pool of llama.cpp servers."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from gates import __version__
from gates.seat.embedded import adapters, generation
from gates.seat.embedded.engine import Job
from gates.seat.embedded.inner import UpstreamError
from gates.seat.embedded.protocol import (
    ApiError,
    ChatRequest,
    CompletionRequest,
    DetokenizeRequest,
    Generate,
    LoadRequest,
    Model,
    TokenizeChat,
    TokenizeText,
    UnloadRequest,
    read,
)
from gates.seat.embedded.replies import Reply
from gates.seat.embedded.state import State

MAX_BODY = 2 * 2**20
_PLAIN = {"content-type": "text/plain; charset=utf-8"}
_GUARDED = ("/v1", "/v2")
_Result = TypeVar("_Result")


def application(state: State, *, api_key: str | None = None) -> Starlette:
    """The ASGI application of one seat. With a key, paths under /v1 want it as a bearer token, as in vLLM."""
    front = _Front(state)
    routes = [
        Route("/health", front.health),
        Route("/ping", front.health, methods=["GET", "POST"]),
        Route("/version", front.version),
        Route("/metrics", front.metrics),
        Route("/v1/models", front.models),
        Route("/v1/chat/completions", front.chat, methods=["POST"]),
        Route("/v1/completions", front.completions, methods=["POST"]),
        Route("/tokenize", front.tokenize, methods=["POST"]),
        Route("/detokenize", front.detokenize, methods=["POST"]),
    ]
    if state.runtime_lora:
        routes.append(Route("/v1/load_lora_adapter", front.load, methods=["POST"]))
        routes.append(Route("/v1/unload_lora_adapter", front.unload, methods=["POST"]))
    handlers: dict[Any, Callable[[Request, Any], Awaitable[Response]]] = {
        ApiError: _api_error,
        HTTPException: _router_error,
        ClientDisconnect: _gone,
        UpstreamError: front.upstream_error,
    }
    guard = [Middleware(_Guard, api_key=api_key)] if api_key else []
    return Starlette(routes=routes, middleware=guard, exception_handlers=handlers)


class _Front:
    """The routes' handlers."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def health(self, _request: Request) -> Response:
        return Response(status_code=200)

    async def version(self, _request: Request) -> Response:
        return JSONResponse({"version": f"gates-embedded-{__version__}"})

    async def metrics(self, _request: Request) -> Response:
        return Response(self._state.metrics(), headers=_PLAIN)

    async def models(self, _request: Request) -> Response:
        return JSONResponse({"object": "list", "data": self._state.cards()})

    async def chat(self, request: Request) -> Response:
        body = await _read(request, ChatRequest)
        return await self._generate(request, body, generation.chat_job(self._state, body))

    async def completions(self, request: Request) -> Response:
        body = await _read(request, CompletionRequest)
        return await self._generate(request, body, generation.completion_job(self._state, body))

    async def _generate(self, request: Request, body: Generate, prepared: Awaitable[tuple[Job, Reply]]) -> Response:
        job, reply = await prepared
        if body.stream:
            usage = bool(body.stream_options and body.stream_options.include_usage)
            events = generation.stream(self._state, job, reply, usage=usage)
            return StreamingResponse(events, media_type="text/event-stream")
        return JSONResponse(await _unless_gone(request, generation.answer(self._state, job, reply)))

    async def tokenize(self, request: Request) -> Response:
        raw, kind = await _body(request)
        body: TokenizeText | TokenizeChat
        body = read(TokenizeChat, raw, kind) if b'"messages"' in raw else read(TokenizeText, raw, kind)
        self._state.resolve(body.model)
        text = body.prompt if isinstance(body, TokenizeText) else await generation.chat_prompt(self._state, body)
        ids, pieces = await self._state.engine.tokenize(text, add_special=body.add_special_tokens)
        strings = list(pieces) if body.return_token_strs else None
        length = self._state.context
        return JSONResponse({"count": len(ids), "max_model_len": length, "tokens": list(ids), "token_strs": strings})

    async def detokenize(self, request: Request) -> Response:
        body = await _read(request, DetokenizeRequest)
        self._state.resolve(body.model)
        return JSONResponse({"prompt": await self._state.engine.detokenize(body.tokens)})

    async def load(self, request: Request) -> Response:
        return Response(await adapters.load(self._state, await _read(request, LoadRequest)))

    async def unload(self, request: Request) -> Response:
        return Response(await adapters.unload(self._state, await _read(request, UnloadRequest)))

    async def upstream_error(self, _request: Request, error: UpstreamError) -> Response:
        translated = generation.translated(self._state, error)
        return JSONResponse(translated.body, translated.status)


class _Guard:
    """vLLM's key check: only paths under /v1 (and /v2) are guarded; OPTIONS is exempt."""

    def __init__(self, app: ASGIApp, api_key: str) -> None:
        self._app, self._key = app, api_key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        guarded = scope["type"] == "http" and scope["method"] != "OPTIONS" and scope["path"].startswith(_GUARDED)
        if guarded and not self._knows(dict(scope["headers"]).get(b"authorization", b"")):
            await JSONResponse({"error": "Unauthorized"}, 401)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _knows(self, header: bytes) -> bool:
        scheme, _, key = header.partition(b" ")
        return scheme.lower() == b"bearer" and secrets.compare_digest(key, self._key)


async def _read(request: Request, kind: type[Model]) -> Model:
    return read(kind, *await _body(request))


async def _body(request: Request) -> tuple[bytes, str]:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_BODY:
            raise ApiError(413, f"the request's body exceeds {MAX_BODY} bytes", kind="Request Entity Too Large")
    return bytes(data), request.headers.get("content-type", "")


async def _unless_gone(request: Request, work: Coroutine[Any, Any, _Result]) -> _Result:
    """The result of `work`, which is given up as soon as the client hangs up, so that its server is free again."""
    task = asyncio.ensure_future(work)
    watch = asyncio.ensure_future(_hang_up(request))
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        for future in (task, watch):
            future.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)


async def _hang_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _api_error(_request: Request, error: ApiError) -> Response:
    return JSONResponse(error.body, error.status)


async def _gone(_request: Request, _error: ClientDisconnect) -> Response:
    return Response(status_code=499)


async def _router_error(_request: Request, error: HTTPException) -> Response:
    return JSONResponse({"detail": error.detail}, error.status_code)
