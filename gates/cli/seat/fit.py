"""`gates seat fit`: what fits on a card."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from pydantic import JsonValue

from gates.cli.output import print_json, tell
from gates.cli.show import as_json
from gates.errors import ExitCode, UsageError
from gates.seat.operate.compose import RANK
from gates.seat.operate.fit import (
    DTYPE_BYTES,
    Card,
    KvCache,
    ModelShape,
    adapters_against_merged,
    rank_to_ask,
)
from gates.seat.operate.peft import adapter_config, largest_rank, no_rank
from gates.seat.operate.sizes import GIB, MIB, gib, parse_size
from gates.spec.foreign import read_object


class _Size(click.ParamType[int]):
    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ARG002 - click's interface
        return value if isinstance(value, int) else parse_size(str(value))


class _Share(click.FloatRange):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        share = float(super().convert(value, param, ctx))
        if math.isnan(share):
            self.fail("nan is no share", param, ctx)
        return share


SIZE = _Size()
_NEXT = "name the folder of a Hugging Face model, or its config.json (of a GGUF file there is none)"


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--adapter", "adapters", multiple=True, type=click.Path(path_type=Path), help="A PEFT folder.")
@click.option("--kv-bytes", type=SIZE, help="--kv-cache-memory-bytes: 2G as vLLM reads it, or 2GiB.")
@click.option("--kv-dtype", type=click.Choice(list(DTYPE_BYTES)), help="The cache's dtype; the model's without it.")
@click.option("--block", default=16, show_default=True, type=click.IntRange(1, 4096), help="--block-size.")
@click.option(
    "--context",
    default=8192,
    show_default=True,
    type=click.IntRange(1, 10**7),
    help="--max-model-len: tokens a request.",
)
@click.option("--max-loras", default=1, show_default=True, type=click.IntRange(1, 10_000), help="LoRA slots.")
@click.option("--weights", type=SIZE, help="Bytes of the weights; of the *.safetensors beside the config without it.")
@click.option("--card-total", type=SIZE, help="The card's memory.")
@click.option("--card-free", type=SIZE, help="What is free on it when the server starts.")
@click.option("--fraction", type=_Share(0, 1, min_open=True), help="--gpu-memory-utilization to try.")
@click.option("--seen-tokens", type=click.IntRange(1, 10**10), help="KV tokens that a running server reports.")
@as_json
def fit(model: Path, adapters: tuple[Path, ...], json_wanted: bool, **given: Any) -> int:
    """Say what fits: MODEL is a Hugging Face model folder or its config.json.

    Exit 1 where vLLM would refuse to start at --fraction, or run out of memory.
    """
    _check_given(given)
    config = model / "config.json" if model.is_dir() else model
    shape = ModelShape.of(read_object(config, _NEXT), where=str(config))
    sizes = {path: _adapter(path) for path in adapters}
    found: dict[str, JsonValue] = {}
    lines: list[str] = []
    cache_bytes = DTYPE_BYTES[given["kv_dtype"]] if given["kv_dtype"] else None
    per_token = found["kv_bytes_per_token"] = shape.kv_bytes_per_token(cache_bytes)
    lines.append(f"a token costs {per_token:,} bytes of KV cache ({shape.layers} layers)")
    if given["kv_bytes"]:
        _kv(found, lines, shape, KvCache.of(given["kv_bytes"], per_token, given["block"]), given)
    slots = _slots(found, lines, shape, [rank for rank, _ in sizes.values()], given["max_loras"])
    weights = given["weights"] or _weights(config.parent)
    if weights:
        _residency(found, lines, weights, slots, given["kv_bytes"])
        if sizes:
            _merged(found, lines, weights, [size for _, size in sizes.values()])
    refused = given["card_total"] is not None and _card(found, lines, given)
    lines += _unsaid(given, weights=bool(weights), adapters=bool(sizes))
    if json_wanted:
        print_json(found)
    else:
        tell("\n".join(lines))
    return ExitCode.FAIL if refused else ExitCode.PASS


def _check_given(given: dict[str, Any]) -> None:
    """Raise UsageError for an option that would count for nothing, or figures that no card has."""
    for option, needs in (("fraction", "card_total"), ("card_free", "card_total"), ("seen_tokens", "kv_bytes")):
        if given[option] is not None and given[needs] is None:
            flag, other = (f"--{name.replace('_', '-')}" for name in (option, needs))
            raise UsageError(f"{flag} says nothing without {other}", next_step=f"give {other}, too")
    total, free = given["card_total"], given["card_free"]
    if free is not None and free > total:
        raise UsageError(
            f"--card-free {gib(free)} is more than --card-total {gib(total)}", next_step="read both off nvidia-smi"
        )


def _unsaid(given: dict[str, Any], *, weights: bool, adapters: bool) -> list[str]:
    """What was not worked out for want of a figure, and which option gives it."""
    wanting = (
        (given["kv_bytes"] is None, "--kv-bytes SIZE: tokens, and requests at once"),
        (
            not weights,
            "--weights SIZE (no *.safetensors beside the config): what is resident, adapters against merging",
        ),
        (weights and not adapters, "--adapter PATH, for each voice: the rank to ask for, adapters against merging"),
        (given["card_total"] is None, "--card-total SIZE and --card-free SIZE: the fraction to ask for"),
    )
    told = [f"  {option}" for want, option in wanting if want]
    return ["not worked out; it takes:", *told] if told else []


def _slots(
    found: dict[str, JsonValue], lines: list[str], shape: ModelShape, ranks: list[int], max_loras: int
) -> int | None:
    """Bytes of all LoRA slots at the rank that the adapters need (without any 16, vLLM's default); None: not known."""
    rank = found["max_lora_rank"] = rank_to_ask(ranks) if ranks else RANK
    slot = found["lora_slot_bytes"] = shape.lora_slot_bytes(rank)
    number = f"{max_loras} slot{'' if max_loras == 1 else 's'}"
    size = "a size that is not known here (mixture of experts)" if slot is None else f"{slot / 1e6:.1f} MB"
    lines.append(f"LoRA: --max-lora-rank {rank}, {number} of {size}, whatever is loaded")
    return None if slot is None else slot * max_loras


def _kv(
    found: dict[str, JsonValue], lines: list[str], shape: ModelShape, cache: KvCache, given: dict[str, Any]
) -> None:
    context, tokens = given["context"], given["seen_tokens"] or cache.tokens
    found |= {"kv_blocks": cache.blocks, "kv_tokens": cache.tokens}
    lines.append(
        f"{gib(given['kv_bytes'])} hold {cache.blocks:,} blocks of {cache.block}, one of them the null block: "
        f"{cache.tokens:,} tokens,"
    )
    lines.append(f"  {cache.concurrency(context):.2f} requests of {context:,} tokens at once")
    if given["seen_tokens"]:
        explained = cache.explains(tokens, shape, given["kv_bytes"])
        found["seen"] = {"tokens": tokens, "concurrency": tokens / context, "explained": list(explained)}
        lines.append(f"the server says {tokens:,} tokens: {tokens / context:.2f} requests of {context:,} at once")
        lines.extend(f"  {sentence}" for sentence in explained)
    if cache.concurrency(context) < 1:
        lines.append(f"NOTE: not one request of {context:,} tokens fits: vLLM refuses this --max-model-len")


def _residency(found: dict[str, JsonValue], lines: list[str], weights: int, slots: int | None, kv: int | None) -> None:
    least = found["resident_at_least"] = weights + (slots or 0) + (kv or 0)
    held = "not counted" if slots is None else gib(slots)
    cache = "the KV cache, not counted here" if kv is None else f"KV {gib(kv)}"
    lines.append(f"resident: at least {gib(least)} (weights {gib(weights)}, LoRA slots {held}, {cache});")
    lines.append("  activations, graphs and the driver come on top and are only known by measuring")


def _merged(found: dict[str, JsonValue], lines: list[str], carrier: int, adapters: Sequence[int]) -> None:
    together, merged = adapters_against_merged(carrier, adapters)
    found["adapters_against_merged"] = {"authors": len(adapters), "adapters": together, "merged": merged}
    voices = f"{len(adapters)} voice{'' if len(adapters) == 1 else 's'}"
    lines.append(f"{voices}: {together / 1e9:.1f} GB with adapters, {merged / 1e9:.1f} GB as merged models")


def _card(found: dict[str, JsonValue], lines: list[str], given: dict[str, Any]) -> bool:
    """What vLLM's check at start-up says; whether it refuses the fraction that was asked about."""
    card = Card(given["card_total"], given["card_total"] if given["card_free"] is None else given["card_free"])
    fraction = given["fraction"]
    largest = found["largest_fraction"] = card.fraction()
    lines.append(
        f"free {gib(card.free)} of {gib(card.total)}: --gpu-memory-utilization up to {largest:.2f} is not refused"
    )
    lines.append(f"  {largest:.2f} asks for {card.asked(largest) / MIB:,.0f} MiB of the card")
    if given["card_free"] is None:
        lines.append("  the whole card is taken for free: --card-free SIZE says what is")
    if given["kv_bytes"]:
        lines.append("  with --kv-cache-memory-bytes the fraction only passes this check; it is no cap on what is used")
    if fraction is None:
        return False
    refused = card.refuses(fraction)
    found["fraction"] = {"asked_bytes": card.asked(fraction), "refused": refused}
    least = found.get("resident_at_least")
    too_much = isinstance(least, int) and least > card.free
    verdict = "vLLM REFUSES to start" if refused else "vLLM starts"
    if too_much and not refused:
        verdict = "vLLM passes this check and RUNS OUT of memory, for more than that is resident"
    lines.append(f"  {fraction:g} asks for {card.asked(fraction) / GIB:.2f} GiB, {gib(card.free)} are free: {verdict}")
    return refused or too_much


def _adapter(folder: Path) -> tuple[int, int]:
    """Rank and bytes of a PEFT adapter."""
    config = adapter_config(folder)
    rank = largest_rank(config)
    if rank is None:
        said = f"{folder / 'adapter_config.json'}: {no_rank(config)}"
        raise UsageError(said, next_step="name the folder of a PEFT adapter")
    size = _weights(folder)
    if not size:
        raise UsageError(f"{folder}: no *.safetensors in it", next_step="name the folder of a PEFT adapter")
    return rank, size


def _weights(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.safetensors") if path.is_file())
