"""From a checked request to a job for the pool, and from the pool's pieces to an answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

from gates.seat.embedded.engine import End, Job, Piece, UnknownAdapterError
from gates.seat.embedded.inner import UpstreamError
from gates.seat.embedded.protocol import (
    ApiError,
    ChatRequest,
    CompletionRequest,
    Conversation,
    Generate,
    check_sampling,
)
from gates.seat.embedded.replies import Reply
from gates.seat.embedded.sampling import fields
from gates.seat.embedded.state import State

_LONGEST_TOKEN = 128
"""Characters of the carrier's longest token, rounded up: a text longer than this times the context cannot fit."""


async def chat_prompt(state: State, request: Conversation) -> str:
    """The prompt text of a conversation by the carrier's chat template."""
    if not request.messages:
        raise ApiError(400, "Cannot apply chat template to an empty conversation.")
    return await state.engine.render(
        [message.plain() for message in request.messages],
        add_generation_prompt=request.add_generation_prompt,
        chat_template_kwargs=request.chat_template_kwargs or {},
    )


async def chat_job(state: State, request: ChatRequest) -> tuple[Job, Reply]:
    """Check a chat request and make its job and the frame of its reply. Raises ApiError."""
    adapter = state.resolve(request.model)
    check_sampling(request)
    if request.top_logprobs is not None and not request.logprobs:
        raise ApiError(400, "when using `top_logprobs`, `logprobs` must be set to true.", param="top_logprobs")
    candidates = (request.top_logprobs or 0) if request.logprobs else None
    prompt = await _tokens(state, await chat_prompt(state, request), add_special=False)
    wanted = request.max_tokens if request.max_completion_tokens is None else request.max_completion_tokens
    job = _job(state, request, (prompt, adapter), candidates, wanted)
    return job, _reply(state, request, job, candidates, echo="")


async def completion_job(state: State, request: CompletionRequest) -> tuple[Job, Reply]:
    """Check a completion request and make its job and the frame of its reply. Raises ApiError."""
    adapter = state.resolve(request.model)
    check_sampling(request)
    source = _single(request.prompt)
    if isinstance(source, str):
        prompt = await _tokens(state, source, add_special=request.add_special_tokens)
    else:
        prompt = tuple(source)
    if request.echo and request.logprobs is not None:
        raise ApiError(400, "`echo` with `logprobs` is not supported by the embedded seat.", param="echo")
    if not prompt:
        raise ApiError(400, "You must specify a prompt that is not empty.", param="prompt")
    wanted = 16 if request.max_tokens is None else request.max_tokens
    job = _job(state, request, (prompt, adapter), request.logprobs, wanted)
    echo = ""
    if request.echo:
        echo = source if isinstance(source, str) else await state.engine.detokenize(prompt)
    return job, _reply(state, request, job, request.logprobs, echo=echo)


async def answer(state: State, job: Job, reply: Reply) -> dict[str, Any]:
    """The whole answer as one document. Raises ApiError."""
    pieces: list[Piece] = []
    try:
        async with aclosing(state.engine.generate(job)) as parts:
            async for part in parts:
                if isinstance(part, End):
                    _count(state, job, part)
                    return reply.whole(pieces, part)
                pieces.append(part)
    except (UpstreamError, UnknownAdapterError) as error:
        raise translated(state, error) from None
    raise ApiError(500, "llama.cpp ended without an answer", kind="InternalServerError")


async def stream(state: State, job: Job, reply: Reply, *, usage: bool) -> AsyncIterator[str]:
    """The answer as server-sent events. An error after the start is an event, as in vLLM."""
    sent = len(reply.echo)
    if reply.chat or reply.echo:
        yield _event(reply.chunk([], None, offset=0, first=True))
    first = not (reply.chat or reply.echo)
    try:
        async with aclosing(state.engine.generate(job)) as parts:
            async for part in parts:
                if isinstance(part, Piece):
                    yield _event(reply.chunk([part], None, offset=sent, first=first))
                    sent, first = sent + len(part.text), False
                    continue
                _count(state, job, part)
                yield _event(reply.chunk([], part, offset=sent, first=first))
                if usage:
                    yield _event(reply.usage_chunk(part))
    except (UpstreamError, UnknownAdapterError) as error:
        yield _event(translated(state, error).body)
    yield "data: [DONE]\n\n"


def translated(state: State, error: UpstreamError | UnknownAdapterError) -> ApiError:
    """An error of the pool as an answer in vLLM's shape."""
    if isinstance(error, UnknownAdapterError):
        message = f"The model `{error.message}` does not exist. Valid aliases: {state.base_name}."
        return ApiError(404, message, kind="NotFoundError", param="model")
    if 400 <= error.status < 500:
        return ApiError(400, error.message)
    kind = "ServiceUnavailableError" if error.status == 503 else "InternalServerError"
    return ApiError(503 if error.status == 503 else 500, error.message, kind=kind)


def _reply(state: State, request: Generate, job: Job, candidates: int | None, *, echo: str) -> Reply:
    return Reply(
        chat=isinstance(request, ChatRequest),
        model=job.adapter or state.base_name,
        fingerprint=state.fingerprint(),
        prompt=job.prompt,
        echo=echo,
        candidates=candidates,
        with_ids=bool(request.return_token_ids),
    )


def _job(
    state: State,
    request: Generate,
    source: tuple[tuple[int, ...], str | None],
    candidates: int | None,
    wanted: int | None,
) -> Job:
    prompt, adapter = source
    context = state.context
    if candidates is not None and not 0 <= candidates <= 20:
        rule = f"Requested sample logprobs of {candidates}, which is greater than max allowed: 20"
        raise ApiError(400, rule if candidates > 20 else "`logprobs` must be a non-negative value.", param="logprobs")
    if wanted is not None and wanted > context:
        raise ApiError(
            400,
            f"max_tokens={wanted} cannot be greater than max_model_len={context}. Please request fewer output tokens."
            f" (parameter=max_tokens, value={wanted})",
            param="max_tokens",
        )
    if len(prompt) >= context:
        raise ApiError(
            400,
            f"This model's maximum context length is {context} tokens. However, your prompt contains at least"
            f" {len(prompt)} input tokens. Please reduce the length of the input prompt."
            f" (parameter=input_tokens, value={len(prompt)})",
            param="input_tokens",
        )
    left = context - len(prompt)
    number = 0 if candidates is None else max(candidates, 1)
    limit = left if wanted is None else min(wanted, left)
    return Job(prompt, adapter, fields(request, prompt, max_tokens=limit, context=context, candidates=number))


def _single(prompt: str | Sequence[int] | Sequence[str] | Sequence[Sequence[int]]) -> str | Sequence[int]:
    if isinstance(prompt, str):
        return prompt
    numbers = [item for item in prompt if isinstance(item, int)]
    if len(numbers) == len(prompt):
        return numbers
    if len(prompt) != 1 or isinstance(prompt[0], int):
        raise ApiError(400, "the embedded seat serves one prompt a request.", param="prompt")
    return prompt[0]


async def _tokens(state: State, text: str, *, add_special: bool) -> tuple[int, ...]:
    limit = state.context * _LONGEST_TOKEN
    if len(text) > limit:
        raise ApiError(
            400,
            f"This model's maximum context length is {state.context} tokens. However, your prompt contains {len(text)}"
            f" characters (more than {limit} characters, which is the upper bound for {state.context} input tokens)."
            f" Please reduce the length of the input prompt. (parameter=input_text, value={len(text)})",
            param="input_text",
        )
    ids, _ = await state.engine.tokenize(text, add_special=add_special)
    return ids


def _count(state: State, job: Job, end: End) -> None:
    state.counters["prompt"] += len(job.prompt)
    state.counters["generation"] += end.completion_tokens
    state.finished["length" if end.reason == "limit" else "stop"] += 1


def _event(document: dict[str, Any]) -> str:
    return f"data: {json.dumps(document, ensure_ascii=False, separators=(',', ':'))}\n\n"
