"""The clock of a streamed answer: when its first and last words came, and how many tokens it counted."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from gates.seat.faults import BrokenContractError, printable
from gates.spec.source import without_keys

_DATA = "data:"
_LONGEST = 1_000_000


@dataclass(frozen=True)
class Timing:
    """Seconds from sending to the first and to the last words, and the completion tokens that the seat counted.

    `pieces` is how many events brought words; `model` who answered, None where nothing tells; `begun` the clock's
    reading when it was sent, so that answers of one moment can be laid beside each other.
    """

    first_s: float
    last_s: float
    tokens: int
    pieces: int = 2
    model: str | None = None
    begun: float = 0.0

    @property
    def decode(self) -> float:
        """Tokens a second after the first one."""
        return decode_of([self])


def decode_of(timings: Sequence[Timing]) -> float:
    """Tokens a second of answers that were asked for together: all but each one's first, from the earliest first words
    to the latest last ones. Of a single answer that is its own speed after its first token.
    """
    first = min(timing.begun + timing.first_s for timing in timings)
    last = max(timing.begun + timing.last_s for timing in timings)
    return sum(timing.tokens - 1 for timing in timings) / max(1e-9, last - first)


async def read_stream(lines: AsyncIterator[str], begun: float, clock: Callable[[], float]) -> Timing:
    """The timing of server-sent events. Raises BrokenContractError for a stream that is none or breaks off."""
    first = last = None
    tokens = None
    pieces = 0
    models: set[str] = set()
    done = False
    async for line in lines:
        if not line.startswith(_DATA):
            continue
        data = line[len(_DATA) :].strip()
        if data == "[DONE]":
            done = True
            break
        event = _event(data)
        if _brings_words(event):
            last = clock() - begun
            first = last if first is None else first
            pieces += 1
        if isinstance(event.get("model"), str):
            models.add(str(event["model"]))
        usage = event.get("usage")
        if isinstance(usage, dict) and type(usage.get("completion_tokens")) is int:
            tokens = usage["completion_tokens"]
    if not done or first is None or last is None or tokens is None:
        raise BrokenContractError("the stream ended before its last event, or without tokens and their count")
    if len(models) > 1:
        raise BrokenContractError("the stream names more than one model")
    return Timing(first, last, tokens, pieces, next(iter(models), None), begun)


def _event(data: str) -> dict[str, object]:
    try:
        event = json.loads(data) if len(data) <= _LONGEST else None
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        raise BrokenContractError("an event of the stream is no JSON object")
    if "error" in event:
        said = printable(without_keys(str(event["error"])))
        raise BrokenContractError(f"the stream broke off: {said}", retryable=True)
    return event


def _brings_words(event: dict[str, object]) -> bool:
    choices = event.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return False
    delta = choice.get("delta")
    return bool(choice.get("text") or (isinstance(delta, dict) and delta.get("content")))
