"""What fits on a card: the arithmetic of vLLM's KV cache, LoRA slots and start-up check, from a model's shape.

Source: vLLM 0.33, v1/core/kv_cache_planning.py, v1/worker/utils.py (request_memory), config/lora.py. The formulas hold
for models of full-attention layers; others are refused, never guessed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from gates.errors import UsageError
from gates.seat.operate.sizes import GIB

LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""What --max-lora-rank may be."""

EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
UNLIKE = (
    *("state_size", "mamba_d_state", "ssm_cfg", "hybrid_override_pattern", "layers_block_type", "block_types"),
    *("attn_layer_period", "attn_layer_indices", "full_attention_interval", "linear_num_key_heads"),
    *("is_encoder_decoder", "cross_attention_layers"),
)
"""Keys of a configuration whose model has other layers than those of a decoder with full attention."""

DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "fp8": 1}


@dataclass(frozen=True)
class ModelShape:
    """The sizes of a decoder that its memory depends on; `dtype_bytes` of its weights and activations."""

    layers: int
    kv_heads: int
    heads: int
    head_dim: int
    hidden: int
    intermediate: int
    dtype_bytes: int
    experts: bool = False

    @classmethod
    def of(cls, config: Mapping[str, JsonValue], *, where: str) -> ModelShape:
        """The shape in a Hugging Face config.json.

        Raises UsageError where a size is missing or no positive integer, or the cache is not one of full attention in
        every layer.
        """
        inner = config.get("text_config")
        config = inner if isinstance(inner, dict) else config
        other = _other_layers(config)
        if other:
            raise UsageError(
                f"{where}: layers of {', '.join(other)[:200]}: this arithmetic holds for full attention in every layer",
                next_step="start the server and read the log line `GPU KV cache size`",
            )
        heads, hidden = _positive(config, "num_attention_heads", where), _positive(config, "hidden_size", where)
        named = config.get("dtype", config.get("torch_dtype", "bfloat16"))
        if not isinstance(named, str) or named not in DTYPE_BYTES:
            raise UsageError(
                f"{where}: dtype {repr(named)[:60]} is none of {', '.join(DTYPE_BYTES)}",
                next_step="start the server and read the log line `GPU KV cache size`",
            )
        kv_heads = _positive(config, "num_key_value_heads", where, heads)
        if heads % kv_heads or (config.get("head_dim") is None and hidden % heads):
            raise UsageError(
                f"{where}: {heads} heads, {kv_heads} of them with a cache, do not share {hidden} evenly",
                next_step="see whether the file is whole",
            )
        return cls(
            layers=_positive(config, "num_hidden_layers", where),
            kv_heads=kv_heads,
            heads=heads,
            head_dim=_positive(config, "head_dim", where, hidden // heads),
            hidden=hidden,
            intermediate=_positive(config, "intermediate_size", where),
            dtype_bytes=DTYPE_BYTES[named],
            experts=any(config.get(name) for name in EXPERTS),
        )

    def kv_bytes_per_token(self, cache_bytes: int | None = None) -> int:
        """Key and value of one token in all layers; `cache_bytes` an element where the cache has a dtype of its own."""
        return 2 * self.layers * self.kv_heads * self.head_dim * (cache_bytes or self.dtype_bytes)

    def lora_slot_bytes(self, rank: int) -> int | None:
        """One LoRA slot at `rank` on all linear layers; vLLM allocates `max_loras` of them at `max_lora_rank`.

        None for a mixture of experts, whose layers this does not count.
        """
        if self.experts:
            return None
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        ends = (self.hidden + q) * 2 + (self.hidden + kv) * 2 + (self.hidden + self.intermediate) * 3
        return rank * ends * self.layers * self.dtype_bytes


def _other_layers(config: Mapping[str, JsonValue]) -> list[str]:
    """What a model has beside layers of full attention, as far as its configuration says."""
    kinds = config.get("layer_types")
    if isinstance(kinds, list):
        other = sorted({str(kind) for kind in kinds} - {"full_attention"})
    elif kinds is not None:
        other = ["layer_types that are no list"]
    else:
        sliding = config.get("sliding_window") is not None and config.get("use_sliding_window") is not False
        other = ["sliding_attention"] if sliding or config.get("use_sliding_window") is True else []
    other += ["latent attention"] if config.get("kv_lora_rank") is not None else []
    return other + [name for name in UNLIKE if config.get(name)]


def _positive(config: Mapping[str, JsonValue], key: str, where: str, default: int | None = None) -> int:
    value = config.get(key, default)
    value = default if value is None else value
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 10**9:
        raise UsageError(
            f"{where}: {key} is {repr(value)[:60]}, not a positive whole number",
            next_step="name the config.json that the server reads, of a decoder with attention in every layer",
        )
    return value


@dataclass(frozen=True)
class KvCache:
    """A KV pool: whole blocks of `block` tokens at `bytes_per_token`; one block is the null block."""

    bytes_per_token: int
    block: int
    blocks: int

    @classmethod
    def of(cls, pool: int, bytes_per_token: int, block: int = 16) -> KvCache:
        """The blocks that `pool` bytes hold."""
        return cls(bytes_per_token, block, pool // (bytes_per_token * block))

    @property
    def tokens(self) -> int:
        """Tokens of all blocks, the null block included, as vLLM logs them."""
        return self.blocks * self.block

    def concurrency(self, context: int) -> float:
        """How many requests of `context` tokens fit at once."""
        return self.blocks / math.ceil(context / self.block)

    def explains(self, tokens: int, shape: ModelShape, pool: int) -> list[str]:
        """What may be behind `tokens` that a server reports for a pool of `pool` bytes, as sentences; none if equal."""
        if tokens == self.tokens:
            return []
        found = [f"{pool:,} bytes at {self.bytes_per_token:,} a token hold {self.tokens:,} tokens, not {tokens:,}"]
        blocks = -(-tokens // self.block)
        least = blocks * self.block * self.bytes_per_token
        most = least + self.block * self.bytes_per_token - 1
        found.append(
            f"{tokens:,} tokens are a pool of {least:,} to {most:,} bytes (about {least / GIB:.3g} GiB): "
            "was another size asked for?"
        )
        layer = self.bytes_per_token // shape.layers
        layers = pool / (tokens * layer)
        if abs(layers - round(layers)) < 0.05 and round(layers) != shape.layers:
            found.append(f"or every token costs {round(layers)} layers instead of {shape.layers}: another base?")
        found.append(
            "to find out: `vllm:cache_config_info` in the server's /metrics tells kv_cache_memory_bytes, "
            "num_gpu_blocks, block_size and kv_cache_size_tokens"
        )
        found.append("and its log says `GPU KV cache size: N tokens`")
        return found


@dataclass(frozen=True)
class Card:
    """A GPU's memory in bytes: all of it, and what is free when the server starts."""

    total: int
    free: int

    def asked(self, fraction: float) -> int:
        """What vLLM asks for at this --gpu-memory-utilization."""
        return math.ceil(self.total * fraction)

    def refuses(self, fraction: float) -> bool:
        """Whether vLLM refuses to start: less is free than it asks for, pinned KV bytes or not."""
        return self.free < self.asked(fraction)

    def fraction(self) -> float:
        """The largest fraction of two decimals that is not refused; 0 where none is."""
        return math.floor(100 * self.free / self.total) / 100


def rank_to_ask(ranks: Sequence[int]) -> int:
    """The smallest --max-lora-rank that vLLM offers and that holds every rank. Raises UsageError when none does."""
    offered = [rank for rank in LORA_RANKS if rank >= max(ranks)]
    if not offered:
        raise UsageError(
            f"rank {max(ranks)} is over {LORA_RANKS[-1]}, the largest that vLLM serves",
            next_step="train the adapter with a smaller rank, or merge it",
        )
    return offered[0]


def adapters_against_merged(carrier: int, adapters: Sequence[int]) -> tuple[int, int]:
    """Bytes of one carrier with all adapters, and of as many merged models."""
    return carrier + sum(adapters), carrier * len(adapters)
