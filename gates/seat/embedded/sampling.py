"""vLLM's sampling fields as llama.cpp's, every other sampler of llama.cpp switched off.

Order, as in vLLM: penalties, temperature, min_p, top_k, top_p, then one draw. `repetition_penalty` counts prompt and
output in both. llama.cpp also counts the prompt in presence and frequency penalties, where vLLM counts the output only.
With `ignore_eos` llama.cpp never draws an end token, where vLLM draws it and goes on.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

from gates.seat.embedded.protocol import Generate

_RANDOM_SEED = 2**32 - 1  # llama.cpp takes this one for "no seed"

SAMPLERS = ("penalties", "temperature", "min_p", "top_k", "top_p")


def fields(
    request: Generate, prompt: Sequence[int], *, max_tokens: int, context: int, candidates: int
) -> dict[str, Any]:
    """llama.cpp's fields for a checked request; `candidates` > 0 asks for that many log probabilities a token."""
    temperature = 1.0 if request.temperature is None else request.temperature
    top_k = request.top_k or 0
    return {
        "n_predict": max_tokens,
        "seed": seed32(request.seed, prompt),
        "samplers": list(SAMPLERS),
        "temperature": max(temperature, 0.01) if temperature > 0 else 0.0,
        "top_k": max(top_k, 0) if top_k < 2**31 else 0,
        "top_p": 1.0 if request.top_p is None else request.top_p,
        "min_p": request.min_p or 0.0,
        "repeat_last_n": context,
        "repeat_penalty": 1.0 if request.repetition_penalty is None else request.repetition_penalty,
        "presence_penalty": request.presence_penalty or 0.0,
        "frequency_penalty": request.frequency_penalty or 0.0,
        "stop": request.stops,
        "ignore_eos": request.ignore_eos,
        "n_probs": candidates,
        # Off for certain, whatever the defaults of the version installed:
        "typical_p": 1.0,
        "top_n_sigma": -1.0,
        "xtc_probability": 0.0,
        "dry_multiplier": 0.0,
        "dynatemp_range": 0.0,
        "mirostat": 0,
        "min_keep": 0,
    }


def seed32(seed: int | None, prompt: Sequence[int]) -> int:
    """llama.cpp's 32-bit seed for a 64-bit one and a prompt's token ids; None and -1 are random.

    The prompt is folded in because llama.cpp draws one number a token: under a bare seed the n-th token of every text
    would sit at the same quantile (seed 1 begins at 0.997), and texts of different prompts would not be independent.
    Arms that share prompt and seed share the draws, as they do in vLLM.
    """
    if seed is None or seed == -1:
        return secrets.randbelow(_RANDOM_SEED)
    name = ",".join(str(number) for number in (seed, *prompt))
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % _RANDOM_SEED
