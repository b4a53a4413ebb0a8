"""A PEFT adapter's configuration as far as vLLM's limits concern it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from gates.errors import UsageError

_NEXT = "name the folder of a PEFT adapter: adapter_config.json beside adapter_model.safetensors"


def adapter_config(folder: Path) -> dict[str, object]:
    """What adapter_config.json in `folder` says. Raises UsageError when it cannot be read or is no object."""
    path = folder / "adapter_config.json"
    try:
        config = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}", next_step=_NEXT) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: no JSON: {str(error)[:200]}", next_step=_NEXT) from None
    if not isinstance(config, dict):
        raise UsageError(f"{path}: not a JSON object", next_step=_NEXT)
    return config


def largest_rank(config: Mapping[str, object]) -> int | None:
    """The rank that --max-lora-rank is held against: `r`, or a module's own in rank_pattern; None without any.

    Source: vLLM 0.32, lora/peft_helper.py, validate_legal.
    """
    own = config.get("rank_pattern")
    ranks = [config.get("r"), *(own.values() if isinstance(own, dict) else ())]
    if not all(isinstance(rank, int) and not isinstance(rank, bool) and rank > 0 for rank in ranks):
        return None
    return max(rank for rank in ranks if isinstance(rank, int))


def no_rank(config: Mapping[str, object]) -> str:
    """Why `largest_rank` finds none, in words."""
    own = config.get("rank_pattern")
    return f"r is {config.get('r')!r}" + (f", rank_pattern is {own!r}" if own else "") + ", not a rank"
