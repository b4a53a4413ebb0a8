"""`gates seat fit`: what fits on a card."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from pydantic import JsonValue

from gates.cli.output import print_json, tell
from gates.cli.show import as_json
from gates.errors import ExitCode, UsageError
from gates.seat.operate.fit import (
    DTYPE_BYTES,
    Card,
    KvCache,
    ModelShape,
    adapters_against_merged,
    rank_to_ask,
)
from gates.seat.operate.sizes import GIB, MIB, gib, parse_size


class _Size(click.ParamType[int]):
    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ARG002 - click's interface
        return value if isinstance(value, int) else parse_size(str(value))


SIZE = _Size()


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--adapter", "adapters", multiple=True, type=click.Path(path_type=Path), help="A PEFT folder.")
@click.option("--kv-bytes", type=SIZE, help="--kv-cache-memory-bytes: 2G as vLLM reads it, or 2GiB.")
@click.option("--kv-dtype", type=click.Choice(list(DTYPE_BYTES)), help="The cache's dtype; the model's without it.")
@click.option("--block", default=16, show_default=True, type=click.IntRange(1, 4096), help="--block-size.")
@click.option("--context", default=8192, show_default=True, type=click.IntRange(1, 10**7), help="Tokens a request.")
@click.option("--max-loras", default=1, show_default=True, type=click.IntRange(1, 10_000), help="LoRA slots.")
@click.option("--weights", type=SIZE, help="Bytes of the weights; of the *.safetensors beside the config without it.")
@click.option("--card-total", type=SIZE, help="The card's memory.")
@click.option("--card-free", type=SIZE, help="What is free on it when the server starts.")
@click.option("--fraction", type=click.FloatRange(0, 1, min_open=True), help="--gpu-memory-utilization to try.")
@click.option("--seen-tokens", type=click.IntRange(1, 10**10), help="KV tokens that a running server reports.")
@as_json
def fit(model: Path, adapters: tuple[Path, ...], json_wanted: bool, **given: Any) -> int:
    """Say what fits: MODEL is a Hugging Face model folder or its config.json.

    Exit 1 where vLLM would refuse to start at --fraction.
    """
    config = model / "config.json" if model.is_dir() else model
    shape = ModelShape.of(_document(config), where=str(config))
    sizes = {path: _adapter(path) for path in adapters}
    found: dict[str, JsonValue] = {}
    lines: list[str] = []
    cache_bytes = DTYPE_BYTES[given["kv_dtype"]] if given["kv_dtype"] else None
    per_token = found["kv_bytes_per_token"] = shape.kv_bytes_per_token(cache_bytes)
    lines.append(f"a token costs {per_token:,} bytes of KV cache ({shape.layers} layers)")
    if given["kv_bytes"]:
        _kv(found, lines, shape, KvCache.of(given["kv_bytes"], per_token, given["block"]), given)
    rank = rank_to_ask([rank for rank, _ in sizes.values()]) if sizes else 16
    slot = found["lora_slot_bytes"] = shape.lora_slot_bytes(rank)
    found["max_lora_rank"] = rank
    slots = slot * given["max_loras"]
    lines.append(f"LoRA: --max-lora-rank {rank}, {given['max_loras']} slots of {slot / 1e6:.1f} MB, whatever is loaded")
    weights = given["weights"] or _weights(config.parent)
    if weights:
        _residency(found, lines, weights, slots, given["kv_bytes"] or 0)
        if sizes:
            _merged(found, lines, weights, [size for _, size in sizes.values()])
    refused = given["card_total"] is not None and _card(found, lines, given)
    if json_wanted:
        print_json(found)
    else:
        tell("\n".join(lines))
    return ExitCode.FAIL if refused else ExitCode.PASS


def _kv(
    found: dict[str, JsonValue], lines: list[str], shape: ModelShape, cache: KvCache, given: dict[str, Any]
) -> None:
    context, tokens = given["context"], given["seen_tokens"] or cache.tokens
    found |= {"kv_blocks": cache.blocks, "kv_tokens": cache.tokens}
    lines.append(
        f"{gib(given['kv_bytes'])} hold {cache.blocks} blocks of {cache.block}: {cache.tokens:,} tokens, one block of "
        f"them the null block; {cache.concurrency(context):.2f} requests of {context:,} tokens at once"
    )
    if given["seen_tokens"]:
        explained = cache.explains(tokens, shape, given["kv_bytes"])
        found["seen"] = {"tokens": tokens, "concurrency": tokens / context, "explained": list(explained)}
        lines.append(f"the server says {tokens:,} tokens: {tokens / context:.2f} requests of {context:,} at once")
        lines.extend(f"  {sentence}" for sentence in explained)
    if cache.concurrency(context) < 1:
        lines.append(f"NOTE: not one request of {context:,} tokens fits: vLLM refuses this --max-model-len")


def _residency(found: dict[str, JsonValue], lines: list[str], weights: int, slots: int, kv: int) -> None:
    least = found["resident_at_least"] = weights + slots + kv
    lines.append(
        f"resident: at least {gib(least)} (weights {gib(weights)}, LoRA slots {gib(slots)}, KV {gib(kv)}); "
        "activations, graphs and the driver come on top and are only known by measuring"
    )


def _merged(found: dict[str, JsonValue], lines: list[str], carrier: int, adapters: Sequence[int]) -> None:
    together, merged = adapters_against_merged(carrier, adapters)
    found["adapters_against_merged"] = {"authors": len(adapters), "adapters": together, "merged": merged}
    lines.append(
        f"{len(adapters)} author(s): {together / 1e9:.1f} GB with adapters, {merged / 1e9:.1f} GB as merged models"
    )


def _card(found: dict[str, JsonValue], lines: list[str], given: dict[str, Any]) -> bool:
    """What vLLM's check at start-up says; whether it refuses the fraction that was asked about."""
    card = Card(given["card_total"], given["card_total"] if given["card_free"] is None else given["card_free"])
    fraction = given["fraction"]
    largest = found["largest_fraction"] = card.fraction()
    lines.append(
        f"free {gib(card.free)} of {gib(card.total)}: --gpu-memory-utilization up to {largest:.2f} is not refused "
        f"({card.asked(largest) / MIB:,.0f} MiB asked)"
    )
    if given["kv_bytes"]:
        lines.append("  with --kv-cache-memory-bytes the fraction only passes this check; it is no cap on what is used")
    if fraction is None:
        return False
    refused = card.refuses(fraction)
    found["fraction"] = {"asked_bytes": card.asked(fraction), "refused": refused}
    verdict = "vLLM REFUSES to start" if refused else "vLLM starts"
    lines.append(f"  {fraction:g} asks for {card.asked(fraction) / GIB:.2f} GiB, {gib(card.free)} are free: {verdict}")
    return refused


def _document(path: Path) -> dict[str, JsonValue]:
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: cannot be read: {type(error).__name__}: {str(error)[:200]}") from None
    if not isinstance(document, dict):
        raise UsageError(f"{path}: not a JSON object")
    return document


def _adapter(folder: Path) -> tuple[int, int]:
    """Rank and bytes of a PEFT adapter."""
    config = folder / "adapter_config.json"
    rank = _document(config).get("r")
    if not isinstance(rank, int) or isinstance(rank, bool) or rank < 1:
        raise UsageError(f"{config}: r is {rank!r}, not a rank")
    size = _weights(folder)
    if not size:
        raise UsageError(f"{folder}: no *.safetensors in it")
    return rank, size


def _weights(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))
