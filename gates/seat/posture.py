"""What a seat does where a request says nothing, and what it lets anybody do who reaches its port."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import JsonValue

from gates.seat.client import SeatClient, SeatRequest
from gates.spec.schema import Gate

ROUTES = ("/v1/models", "/v1/load_lora_adapter", "/adapters", "/metrics")
"""Routes that are asked for without a key, with a GET, which changes nothing."""

LOADING = frozenset({"/v1/load_lora_adapter", "/adapters"})
"""Those of them through which adapters are loaded."""

Defaults = Literal["neutral", "own", "unclear"]

_NEUTRAL: dict[str, JsonValue] = {
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "repetition_penalty": 1.0,
}
_TEXT = "Once upon a time there was"
_TOKENS = 16
_SLOTS = re.compile(r'(?m)^vllm:lora_requests_info\{[^}]*max_lora="(\d{1,6})"')


async def defaults_in_force(client: SeatClient, gate: Gate) -> Defaults:
    """Whether a request without sampling fields is answered as one with neutral fields (temperature 1, top_p 1, ...).

    `own`: the server samples by values of its own, such as those of a generation_config.json. `unclear`: the neutral
    request does not give the same 16 tokens twice, so that nothing can be compared. A gate sends every field, and none
    of these values reaches its texts; another client's texts are sampled by them. Raises FaultError.
    """
    text: dict[str, JsonValue] = (
        {"messages": [{"role": "user", "content": _TEXT}]} if gate.prompts.endpoint == "chat" else {"prompt": _TEXT}
    )
    silent: dict[str, JsonValue] = {"model": gate.arms.base.model, "max_tokens": _TOKENS, "seed": 7, **text}
    bodies: tuple[dict[str, JsonValue], ...] = (silent | _NEUTRAL, silent | _NEUTRAL, silent)
    first, again, said = [(await client.complete(SeatRequest(gate.prompts.endpoint, body))).text for body in bodies]
    if first != again:
        return "unclear"
    return "neutral" if said == first else "own"


async def open_routes(client: SeatClient) -> tuple[str, ...]:
    """Those of ROUTES that the server has and that answer without an API key. Raises FaultError."""
    return tuple([route for route in ROUTES if await client.is_open(route)])


def lora_slots(metrics: str | None) -> int | None:
    """How many adapters the server holds ready at once (vLLM's --max-loras); None until one has been asked for."""
    found = _SLOTS.search(metrics or "")
    return int(found[1]) if found else None


def warnings_about(
    gate: Gate, *, open_to_all: tuple[str, ...], slots: int | None, defaults: Defaults | None, proxied: bool
) -> list[str]:
    """What a person must know of a seat that is fit to be asked, one sentence each with what to do."""
    adapters = len({arm.model for arm in gate.arms.all().values()} - {gate.arms.base.model})
    found = []
    doors = [route for route in open_to_all if route in LOADING]
    if doors:
        found.append(
            f"anybody who reaches the seat's port can load and remove adapters: {' and '.join(doors)} "
            f"answer{'s' if len(doors) == 1 else ''} without a key; serve without VLLM_ALLOW_RUNTIME_LORA_UPDATING, or "
            "keep the port to this machine"
        )
    if slots is not None and slots < adapters:
        found.append(
            f"the seat holds {slots} adapter(s) ready at once and the gate asks for {adapters}: unless --max-cpu-loras "
            f"is {adapters} or more (it is --max-loras where nobody set it), an adapter that was put out is read from "
            f"disk again, whatever lies there by then; start the server with --max-cpu-loras {adapters}"
        )
    if defaults == "own":
        found.append(
            "the seat samples by defaults of its own where a request leaves a field out (generation_config.json, or "
            "--override-generation-config); the gate sends every field, other clients' texts are not comparable with "
            "its texts"
        )
    if proxied:
        found.append(
            "a proxy stands before the seat and writes model names into answers: only the canary's log probabilities "
            "prove which weights answer; name the seat's own address as seat.base_url where it can be reached"
        )
    return found
