"""What a client may ask, checked as vLLM checks it: the same ranges, the same words, the same shape of error."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Model = TypeVar("Model", bound=BaseModel)


class ApiError(Exception):
    """An error answer in vLLM's shape."""

    def __init__(self, status: int, message: str, *, kind: str = "BadRequestError", param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": status}}


class _Body(BaseModel):
    """Unknown fields are ignored, as vLLM ignores them."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class StreamOptions(_Body):
    """What a stream carries besides text."""

    include_usage: bool | None = False


Int64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
Token = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Generate(_Body):
    """The fields that both generating endpoints share; None stands for the default."""

    model: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: Int64 | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    seed: Int64 | None = None
    stop: str | Annotated[list[str], Field(max_length=4)] | None = None
    max_tokens: Int64 | None = None
    n: Int64 | None = 1
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    ignore_eos: bool = False
    return_token_ids: bool | None = None
    cache_salt: Annotated[str, Field(min_length=1, max_length=128)] | None = None

    @property
    def stops(self) -> list[str]:
        """The stop strings."""
        return [self.stop] if isinstance(self.stop, str) else self.stop or []


class ContentPart(_Body):
    """A part of a message's content; only text is understood."""

    type: str
    text: str | None = None


class ChatMessage(_Body):
    """One message of a conversation."""

    role: str
    content: str | list[ContentPart] | None = None

    def plain(self) -> dict[str, str]:
        """Role and text. Raises ApiError for anything but text."""
        if not isinstance(self.content, list):
            return {"role": self.role, "content": self.content or ""}
        if any(part.type != "text" or part.text is None for part in self.content):
            raise ApiError(400, "only text content is supported by this model")
        return {"role": self.role, "content": "\n".join(part.text or "" for part in self.content)}


class Conversation(_Body):
    """Messages and how the chat template is to be applied to them."""

    messages: list[ChatMessage]
    add_generation_prompt: bool = True
    chat_template_kwargs: dict[str, Any] | None = None


class ChatRequest(Generate, Conversation):
    """POST /v1/chat/completions."""

    max_completion_tokens: Int64 | None = None
    logprobs: bool | None = False
    top_logprobs: Int64 | None = None


class CompletionRequest(Generate):
    """POST /v1/completions."""

    prompt: str | list[Token] | list[str] | list[list[Token]]
    logprobs: Int64 | None = None
    echo: bool | None = False
    add_special_tokens: bool = True


class TokenizeText(_Body):
    """POST /tokenize with a text."""

    model: str | None = None
    prompt: str
    add_special_tokens: bool = True
    return_token_strs: bool | None = False


class TokenizeChat(Conversation):
    """POST /tokenize with a conversation."""

    model: str | None = None
    add_special_tokens: bool = False
    return_token_strs: bool | None = False


class DetokenizeRequest(_Body):
    """POST /detokenize."""

    model: str | None = None
    tokens: list[Token]


class LoadRequest(_Body):
    """POST /v1/load_lora_adapter."""

    lora_name: str
    lora_path: str
    load_inplace: bool = False


class UnloadRequest(_Body):
    """POST /v1/unload_lora_adapter."""

    lora_name: str


_UNSUPPORTED: dict[str, tuple[object, ...]] = {
    "allowed_token_ids": (None,),
    "bad_words": (None, []),
    "best_of": (None, 1),
    "chat_template": (None,),
    "continue_final_message": (None, False),
    "include_stop_str_in_output": (None, False),
    "logit_bias": (None, {}),
    "logprob_token_ids": (None, []),
    "min_tokens": (None, 0),
    "prompt_logprobs": (None,),
    "response_format": (None, {"type": "text"}),
    "skip_special_tokens": (None, True),
    "stop_token_ids": (None, []),
    "structured_outputs": (None,),
    "suffix": (None, ""),
    "tools": (None, []),
    "truncate_prompt_tokens": (None,),
    "use_beam_search": (None, False),
}
"""Fields that change an answer in vLLM and are not served here, with the values that ask for nothing."""


def read(kind: type[Model], data: bytes, content_type: str) -> Model:
    """A request's body as `kind`. Raises ApiError as vLLM words it: status 400, type "Bad Request"."""
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise ApiError(400, "Unsupported Media Type: Only 'application/json' is allowed", kind="Bad Request")
    try:
        document = json.loads(data, parse_constant=_no_constant)
        json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"JSON decode error: {str(error)[:200]}", kind="Bad Request", param="body") from None
    try:
        request = kind.model_validate(document)
    except ValidationError as error:
        raise _schema_error(error) from None
    for field, neutral in _UNSUPPORTED.items():
        if isinstance(document, dict) and document.get(field) not in neutral:
            raise ApiError(400, f"`{field}` is not supported by the embedded seat.", param=field)
    return request


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON value")


def _schema_error(error: ValidationError) -> ApiError:
    details = error.errors(include_url=False, include_context=False)[:10]
    lines = [
        f"  {{'type': {item['type']!r}, 'loc': {('body', *item['loc'])!r}, 'msg': {item['msg']!r},"
        f" 'input': {repr(item['input'])[:200]}}}"
        for item in details
    ]
    count = error.error_count()
    title = f"{count} validation error{'s' if count > 1 else ''}:"
    place = ".".join(str(part) for part in ("body", *details[0]["loc"][:1]))
    return ApiError(400, "\n".join([title, *lines]), kind="Bad Request", param=place)


_RANGES: tuple[tuple[str, Callable[[float], bool], str], ...] = (
    ("presence_penalty", lambda value: -2 <= value <= 2, "must be in [-2, 2]"),
    ("frequency_penalty", lambda value: -2 <= value <= 2, "must be in [-2, 2]"),
    ("repetition_penalty", lambda value: value > 0, "must be greater than zero"),
    ("temperature", lambda value: value >= 0, "must be non-negative"),
    ("temperature", lambda value: value <= 2, "must be in [0, 2]"),
    ("top_p", lambda value: 0 < value <= 1, "must be in (0, 1]"),
    ("top_k", lambda value: value >= -1, "must be 0 (disable), or at least 1"),
    ("min_p", lambda value: 0 <= value <= 1, "must be in [0, 1]"),
    ("max_tokens", lambda value: value >= 1, "must be at least 1"),
    ("max_completion_tokens", lambda value: value >= 1, "must be at least 1"),
)


def check_sampling(request: Generate) -> None:
    """vLLM's rules on ranges. Raises ApiError for the first one broken."""
    for field, holds, rule in _RANGES:
        value = getattr(request, field, None)
        if value is not None and not holds(value):
            raise ApiError(400, f"{field} {rule}, got {value}. (parameter={field}, value={value})", param=field)
    if "" in request.stops:
        raise ApiError(400, "stop cannot contain an empty string.", param="stop")
    if request.n not in (None, 1):
        greedy = f"n must be 1 when using greedy sampling, got {request.n}."
        raise ApiError(400, greedy if request.temperature == 0 else "the embedded seat serves n = 1.", param="n")
    if request.stream_options is not None and not request.stream:
        raise ApiError(400, "Stream options can only be defined when `stream=True`.", param="stream_options")
