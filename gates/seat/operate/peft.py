"""A PEFT adapter's configuration as far as vLLM's limits concern it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gates.spec.foreign import read_object

_NEXT = "name the folder of a PEFT adapter: adapter_config.json beside adapter_model.safetensors"


def adapter_config(folder: Path) -> dict[str, object]:
    """What adapter_config.json in `folder` says. Raises UsageError when it cannot be read or is no object."""
    return {**read_object(folder / "adapter_config.json", _NEXT)}


def largest_rank(config: Mapping[str, object]) -> int | None:
    """The rank that --max-lora-rank is held against: `r`, or a module's own in rank_pattern; None without any.

    Source: vLLM 0.32, lora/peft_helper.py, validate_legal.
    """
    own = config.get("rank_pattern") or {}
    ranks = [config.get("r"), *(own.values() if isinstance(own, dict) else [own])]
    if not all(isinstance(rank, int) and not isinstance(rank, bool) and 0 < rank < 10**9 for rank in ranks):
        return None
    return max(rank for rank in ranks if isinstance(rank, int))


def no_rank(config: Mapping[str, object]) -> str:
    """Why `largest_rank` finds none, in words."""
    own = config.get("rank_pattern")
    told = f"r is {repr(config.get('r'))[:60]}" + (f", rank_pattern is {repr(own)[:60]}" if own else "")
    return f"{told}, not a rank"
