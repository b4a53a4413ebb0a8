"""Whether an answer is the asked model's own: not a proxy's cache or fallback, not another target, not cut short.

A proxy can write any model name into an answer (LiteLLM restamps it), so that its headers alone tell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from gates.seat.answers import Answer
from gates.seat.faults import NotCreditedError

TARGET = ("x-litellm-model-id", "x-litellm-model-api-base")
"""Headers that name the deployment behind a proxy."""

_FALLBACKS = "x-litellm-attempted-fallbacks"
_CACHE_KEY = "x-litellm-cache-key"
"""LiteLLM sends it on a hit of its response cache, and only then."""
_CACHES = ("cache-status", "cf-cache-status", "x-cache")
_HIT = re.compile(r"(?i)(\b|_)hit\b")


def target_of(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that name the target that answered; empty without a proxy that tells."""
    return {name: headers[name] for name in TARGET if name in headers}


def check_route(answer: Answer, target: Mapping[str, str] | None = None) -> None:
    """Raise NotCreditedError for an answer out of a cache, after a fallback, or from another target than `target`."""
    told = answer.headers
    cached = next((name for name in _CACHES if _HIT.search(told.get(name, ""))), "")
    cached = cached or (_CACHE_KEY if _CACHE_KEY in told else "") or ("age" if told.get("age", "0") != "0" else "")
    if cached:
        raise NotCreditedError(
            f"answered from a proxy's cache ({cached}: {told[cached]}): not a new text, and nobody knows whose; "
            "switch the proxy's cache off, or name the seat's own address as seat.base_url",
            headers=told,
        )
    if told.get(_FALLBACKS, "0") != "0":
        raise NotCreditedError(
            f"answered after a proxy's fallback ({_FALLBACKS}: {told[_FALLBACKS]}): another model may have answered "
            "under this name; remove the fallbacks, or name the seat's own address as seat.base_url",
            headers=told,
            retryable=True,
        )
    here = target_of(told)
    if target is not None and here != dict(target):
        raise NotCreditedError(
            f"answered by another target ({_named(here)}) than the canary ({_named(target)}): the proxy spreads this "
            "name over several servers; give it one, or name the seat's own address as seat.base_url",
            headers=told,
            retryable=True,
        )


def check_length(answer: Answer, max_tokens: int, context: int | None) -> None:
    """Raise NotCreditedError for an answer that the seat cut shorter than `max_tokens` to fit its context.

    vLLM clamps without an error; it shows in the count of tokens alone. `context` is the seat's, None when not told.
    """
    usage = answer.usage
    if usage is None or usage.completion_tokens >= max_tokens:
        return
    full = context is not None and usage.prompt_tokens + usage.completion_tokens >= context
    if answer.finish_reason == "length" or full:
        raise NotCreditedError(
            f"the seat ended the answer at {usage.completion_tokens} tokens, {max_tokens} are sealed: prompt "
            f"({usage.prompt_tokens} tokens) and answer do not fit its context of {context or 'unknown'} tokens; "
            "serve with a larger --max-model-len, or seal a smaller max_tokens",
            headers=answer.headers,
        )


def _named(target: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in target.items()) or "which names none"
