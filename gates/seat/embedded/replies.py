"""An answer in the shapes of the chat and completions endpoints, whole or as a stream of chunks, nulls included."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gates.seat.embedded.engine import End, Piece

_FLOOR = -9999.0
_FINISH = {"limit": "length", "eos": "stop", "word": "stop"}


@dataclass
class Reply:
    """What is the same in every chunk of one answer; `candidates` is None where no log probabilities were asked for."""

    chat: bool
    model: str
    fingerprint: str
    prompt: tuple[int, ...]
    echo: str = ""
    candidates: int | None = None
    with_ids: bool = False
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, pieces: Sequence[Piece], end: End) -> dict[str, Any]:
        """The answer in one document."""
        text = self.echo + "".join(piece.text for piece in pieces)
        said: dict[str, Any] = {"text": text}
        if self.chat:
            empty = dict.fromkeys(("refusal", "annotations", "audio", "function_call", "reasoning"))
            said = {"message": {"role": "assistant", "content": text, **empty}}
        choice = self._choice(said, pieces, end, offset=len(self.echo)) | self._prompt_ids(choice=True)
        extras = {"prompt_logprobs": None, "prompt_text": None, "kv_transfer_params": None, "metrics": None}
        usage = {"usage": self.usage(end)}
        return self._top("", [choice], self.fingerprint) | usage | self._prompt_ids(choice=False) | extras

    def chunk(self, pieces: Sequence[Piece], end: End | None, *, offset: int, first: bool = False) -> dict[str, Any]:
        """One chunk of a stream: first, middle, or last (with `end`); `offset` counts the text sent before."""
        text = (self.echo if first else "") + "".join(piece.text for piece in pieces)
        said: dict[str, Any] = {"text": text}
        if self.chat:
            said = {"delta": {"role": "assistant", "content": ""} if first else {"content": text}}
        choice = self._choice(said, pieces, end, offset=offset)
        if first:
            choice |= self._prompt_ids(choice=True)
        top = self._top(".chunk", [choice], self.fingerprint if end else None)
        return top | (self._prompt_ids(choice=False) if first else {})

    def usage_chunk(self, end: End) -> dict[str, Any]:
        """The chunk without choices that tells the tokens used."""
        return self._top(".chunk", [], self.fingerprint) | {"usage": self.usage(end)}

    def usage(self, end: End) -> dict[str, Any]:
        """Tokens as vLLM counts them."""
        prompt, completion = len(self.prompt), end.completion_tokens
        return {
            "prompt_tokens": prompt,
            "total_tokens": prompt + completion,
            "completion_tokens": completion,
            "prompt_tokens_details": None,
        }

    def _top(self, suffix: str, choices: list[dict[str, Any]], fingerprint: str | None) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.id}" if self.chat else f"cmpl-{self.id}",
            "object": f"chat.completion{suffix}" if self.chat else "text_completion",
            "created": self.created,
            "model": self.model,
            "choices": choices,
            "service_tier": None,
            "system_fingerprint": fingerprint,
        }

    def _prompt_ids(self, *, choice: bool) -> dict[str, Any]:
        """vLLM tells the prompt's ids beside the choices of a chat, and inside the choice of a completion."""
        if choice == self.chat:
            return {}
        return {"prompt_token_ids": list(self.prompt) if self.with_ids else None}

    def _choice(self, said: dict[str, Any], pieces: Sequence[Piece], end: End | None, *, offset: int) -> dict[str, Any]:
        tokens = [token for piece in pieces for token in piece.tokens]
        return {
            "index": 0,
            **said,
            "logprobs": self._logprobs([item for piece in pieces for item in piece.candidates], offset),
            "finish_reason": _FINISH.get(end.reason, "stop") if end else None,
            "stop_reason": end.word if end else None,
            "token_ids": tokens if self.with_ids else None,
        }

    def _logprobs(self, items: Sequence[dict[str, Any]], offset: int) -> dict[str, Any] | None:
        if self.candidates is None:
            return None
        if self.chat:
            content = [
                _entry(item) | {"top_logprobs": [_entry(top) for top in item["top_logprobs"][: self.candidates]]}
                for item in items
            ]
            return {"content": content}
        tokens = [item["token"] for item in items]
        starts = [offset]
        for token in tokens:
            starts.append(starts[-1] + len(token))
        return {
            "text_offset": starts[:-1],
            "token_logprobs": [_floored(item["logprob"]) for item in items],
            "tokens": tokens,
            "top_logprobs": [_best(item, item["top_logprobs"][: self.candidates]) for item in items],
        }


def _best(chosen: dict[str, Any], tops: Iterable[dict[str, Any]]) -> dict[str, float]:
    return {item["token"]: _floored(item["logprob"]) for item in (chosen, *tops)}


def _entry(item: dict[str, Any]) -> dict[str, Any]:
    return {"token": item["token"], "logprob": _floored(item["logprob"]), "bytes": item["bytes"]}


def _floored(value: float | None) -> float:
    return _FLOOR if value is None else max(value, _FLOOR)
