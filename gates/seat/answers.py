"""From the bytes of an answer to an Answer, strictly: whatever breaks the contract of the endpoint is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gates.records import Usage, sha256
from gates.seat.faults import BrokenContractError, printable

Endpoint = Literal["chat", "completions"]

_Count = Annotated[int, Field(ge=0, le=2**53 - 1)]
_KEPT_HEADERS = ("x-litellm-", "via", "x-cache", "retry-after")


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
    logprob: float


class _Token(_Candidate):
    top_logprobs: list[_Candidate] = []


class _Logprobs(_Part):
    content: list[_Token] | None = None
    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None
    top_logprobs: list[dict[str, float] | None] | None = None


class _Message(_Part):
    content: str | None = None


class _Choice(_Part):
    message: _Message | None = None
    text: str | None = None
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None
    prompt_token_ids: list[int] | None = None


class _Usage(_Part):
    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None


class _Reply(_Part):
    error: Any = None
    choices: list[_Choice] | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    usage: _Usage | None = None
    prompt_token_ids: list[int] | None = None


def read_answer(endpoint: Endpoint, data: bytes, headers: Mapping[str, str]) -> Answer:
    """Read the body of a 200. Raises BrokenContractError when it is no answer of this endpoint."""
    try:
        reply = _Reply.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "body"
        raise BrokenContractError(
            f"the answer breaks the contract: {place}: {printable(first['msg'])} ({len(data)} bytes)"
        ) from None
    if reply.error is not None:
        raise BrokenContractError(f"the seat answered 200 with an error: {printable(str(reply.error))}")
    if reply.choices is None or len(reply.choices) != 1:
        found = "no choices" if not reply.choices else f"{len(reply.choices)} choices"
        raise BrokenContractError(f"the answer has {found} where one was asked for")
    choice = reply.choices[0]
    ids = reply.prompt_token_ids if reply.prompt_token_ids is not None else choice.prompt_token_ids
    return Answer(
        text=_text(endpoint, choice),
        finish_reason=choice.finish_reason,
        usage=_usage(reply.usage),
        model=reply.model,
        fingerprint=reply.system_fingerprint,
        prompt_sha256=None if ids is None else sha256(",".join(map(str, ids)).encode()),
        scores=_scores(choice.logprobs),
        headers={
            name.lower(): printable(value) for name, value in headers.items() if name.lower().startswith(_KEPT_HEADERS)
        },
    )


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
