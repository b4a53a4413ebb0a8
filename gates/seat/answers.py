"""From the bytes of an answer to an Answer, strictly: whatever breaks the contract of the endpoint is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gates.records import Usage, sha256
from gates.seat.faults import BrokenContractError, printable
from gates.spec.source import without_keys

Endpoint = Literal["chat", "completions"]

_Count = Annotated[int, Field(ge=0, le=2**53 - 1)]
_Logprob = Annotated[float, Field(ge=-1e4, le=1e-3)]  # vLLM writes -9999 for minus infinity; 0 may be rounded up
_FINISHED = ("stop", "length")
_SURROGATE = r"\\u[dD]{}[0-9a-fA-F]{{2}}"
_ESCAPE = re.compile(
    rf"{_SURROGATE.format('[89abAB]')}{_SURROGATE.format('[c-fC-F]')}|({_SURROGATE.format('[89a-fA-F]')})|\\.".encode(),
    re.DOTALL,
)
_KEPT_HEADERS = frozenset({"age", "cache-status", "cf-cache-status", "via", "x-cache"}) | {
    f"x-litellm-{name}"
    for name in ("attempted-fallbacks", "attempted-retries", "cache-key", "model-api-base", "model-id", "version")
}


@dataclass(frozen=True)
class TokenScore:
    """One generated token: its log probability, and those of the likeliest tokens in its place (natural logarithm)."""

    token: str
    logprob: float
    top: Mapping[str, float]


@dataclass(frozen=True)
class Answer:
    """One answer of the seat.

    `usage`, `model`, `fingerprint` and `prompt_sha256` are None where the seat does not tell them; `scores` is empty
    unless log probabilities were asked for; `headers` are those that tell of a proxy, a cache or a fallback.
    """

    text: str
    finish_reason: str | None
    usage: Usage | None = None
    model: str | None = None
    fingerprint: str | None = None
    prompt_sha256: str | None = None
    scores: tuple[TokenScore, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False)


class _Candidate(_Part):
    token: str
    logprob: _Logprob


class _Token(_Candidate):
    top_logprobs: list[_Candidate] = []


class _Logprobs(_Part):
    content: list[_Token] | None = None
    tokens: list[str] | None = None
    token_logprobs: list[_Logprob | None] | None = None
    top_logprobs: list[dict[str, _Logprob] | None] | None = None


class _Message(_Part):
    content: str | None = None


class _Choice(_Part):
    message: _Message | None = None
    text: str | None = None
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None
    prompt_token_ids: list[_Count] | None = None


class _Usage(_Part):
    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None


class _Reply(_Part):
    error: Any = None
    choices: list[_Choice] | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    usage: _Usage | None = None
    prompt_token_ids: list[_Count] | None = None


def read_answer(endpoint: Endpoint, data: bytes, headers: Mapping[str, str]) -> Answer:
    """Read the body of a 200; half a surrogate pair in it, which no text can hold, becomes U+FFFD.

    Raises BrokenContractError when it is no answer of this endpoint, or one that the server broke off.
    """
    reply = _reply(data)
    if reply.error is not None:
        raise BrokenContractError(f"the seat answered 200 with an error: {printable(without_keys(str(reply.error)))}")
    if reply.choices is None or len(reply.choices) != 1:
        found = "no choices" if not reply.choices else f"{len(reply.choices)} choices"
        raise BrokenContractError(f"the answer has {found} where one was asked for")
    choice = reply.choices[0]
    text = _text(endpoint, choice)
    if choice.finish_reason not in _FINISHED:
        raise BrokenContractError(
            f"the answer was broken off: finish_reason is {printable(repr(choice.finish_reason), limit=60)}, "
            "a whole answer's is 'stop' or 'length'"
        )
    ids = reply.prompt_token_ids if reply.prompt_token_ids is not None else choice.prompt_token_ids
    return Answer(
        text=text,
        finish_reason=choice.finish_reason,
        usage=_usage(reply.usage),
        model=reply.model,
        fingerprint=reply.system_fingerprint,
        prompt_sha256=None if ids is None else sha256(",".join(map(str, ids)).encode()),
        scores=_scores(choice.logprobs),
        headers={name.lower(): printable(value) for name, value in headers.items() if name.lower() in _KEPT_HEADERS},
    )


def _reply(data: bytes) -> _Reply:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise BrokenContractError(
            f"the answer breaks the contract: body: not UTF-8 at byte {error.start} of {len(data)}", retryable=False
        ) from None
    try:
        return _Reply.model_validate_json(_whole(data))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "body"
        raise BrokenContractError(
            f"the answer breaks the contract: {place}: {printable(first['msg'])} ({len(data)} bytes)",
            retryable=first["type"] == "json_invalid",  # cut JSON may come whole; a wrong value comes again
        ) from None


def _whole(data: bytes) -> bytes:
    """The data with every escaped half of a surrogate pair replaced."""
    if rb"\ud" not in data and rb"\uD" not in data:
        return data
    return _ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], data)


def _text(endpoint: Endpoint, choice: _Choice) -> str:
    if endpoint == "chat":
        if choice.message is None:
            raise BrokenContractError("the answer breaks the contract: choices.0.message is missing")
        return choice.message.content or ""  # the contract allows null for an empty message
    if choice.text is None:
        raise BrokenContractError("the answer breaks the contract: choices.0.text is missing")
    return choice.text


def _usage(usage: _Usage | None) -> Usage | None:
    if usage is None or usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    return Usage(prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens)


def _scores(logprobs: _Logprobs | None) -> tuple[TokenScore, ...]:
    if logprobs is None:
        return ()
    if logprobs.content is not None:
        return tuple(
            TokenScore(token.token, token.logprob, {top.token: top.logprob for top in token.top_logprobs})
            for token in logprobs.content
        )
    columns = (logprobs.tokens or [], logprobs.token_logprobs or [], logprobs.top_logprobs or [])
    if len({len(column) for column in columns}) != 1:
        raise BrokenContractError("the answer breaks the contract: choices.0.logprobs has columns of unequal length")
    return tuple(
        TokenScore(token, logprob, top or {})
        for token, logprob, top in zip(*columns, strict=True)
        if logprob is not None
    )
