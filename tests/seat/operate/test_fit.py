"""What fits: vLLM's arithmetic for Qwen3-4B, worked by hand, and the house's placements."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gates.errors import UsageError
from gates.seat.operate.fit import Card, KvCache, ModelShape, adapters_against_merged, rank_to_ask
from gates.seat.operate.sizes import GIB, MIB, parse_size
from tests.flow.conftest import gates

QWEN3_4B = {
    "architectures": ["Qwen3ForCausalLM"],
    "hidden_size": 2560,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 9728,
    "num_hidden_layers": 36,
    "torch_dtype": "bfloat16",
}
SHAPE = ModelShape.of(QWEN3_4B, where="config.json")
CARD = Card(total=round(94.97 * GIB), free=round(11.16 * GIB))


def test_a_token_costs_two_vectors_a_layer_and_head() -> None:
    assert SHAPE.kv_bytes_per_token() == 2 * 36 * 8 * 128 * 2 == 147_456
    assert SHAPE.kv_bytes_per_token(cache_bytes=1) == 73_728


# Blocks = bytes // (147,456 * 16), worked out with pencil and paper from vLLM's formula.
@pytest.mark.parametrize(
    ("pool", "blocks", "tokens"),
    [("2G", 910, 14_560), ("2g", 847, 13_552), ("1.5GiB", 682, 10_912), ("1.5g", 635, 10_160)],
)
def test_tokens_of_a_pool(pool: str, blocks: int, tokens: int) -> None:
    cache = KvCache.of(parse_size(pool), 147_456)
    assert (cache.blocks, cache.tokens) == (blocks, tokens)


def test_the_logged_pool_of_a_tiny_model() -> None:
    # vLLM 0.32 logged exactly this for two layers, two heads of 32, bf16 and 64 MiB.
    assert KvCache.of(67_108_864, 512, block=32).tokens == 131_072


def test_the_house_saw_fewer_tokens_than_two_gib_hold_and_both_explanations_are_named() -> None:
    cache = KvCache.of(2 * GIB, 147_456)
    said = "\n".join(cache.explains(10_912, SHAPE, 2 * GIB))
    assert "2,147,483,648 bytes at 147,456 a token hold 14,560 tokens, not 10,912" in said
    assert "1,609,039,872 to 1,611,399,167 bytes (about 1.5 GiB)" in said
    assert "48 layers instead of 36" in said
    assert "vllm:cache_config_info" in said
    assert cache.explains(14_560, SHAPE, 2 * GIB) == []


def test_the_house_serves_one_and_a_third_requests_of_8192_tokens() -> None:
    cache = KvCache.of(parse_size("1.5GiB"), 147_456)
    assert cache.tokens == 10_912
    assert round(cache.concurrency(8192), 2) == 1.33


def test_vllm_refuses_when_less_is_free_than_it_asks_for_rounded_up() -> None:
    card = Card(total=101, free=51)
    assert card.asked(0.5) == 51
    assert not card.refuses(0.5)
    assert Card(total=101, free=50).refuses(0.5)


def test_the_house_placement_asks_for_a_ninth_and_is_refused_an_eighth() -> None:
    assert round(CARD.asked(0.11) / MIB, -2) == 10_700
    assert not CARD.refuses(0.11)
    assert CARD.refuses(0.12)
    assert CARD.fraction() == 0.11
    # 10,740 MiB were resident: with pinned KV bytes the fraction caps nothing.
    assert CARD.asked(0.11) < 10_740 * MIB < CARD.free


@pytest.mark.parametrize(("authors", "adapters", "merged"), [(3, 8.4, 23), (6, 9.2, 46)])
def test_the_house_keeps_adapters_instead_of_merged_models(authors: int, adapters: float, merged: float) -> None:
    together, apart = adapters_against_merged(parse_size("7.6GB"), [parse_size("264MB")] * authors)
    assert round(together / 1e9, 1) == adapters
    assert round(apart / 1e9) == merged


def test_a_slot_is_as_large_as_the_largest_rank_allowed() -> None:
    # hidden 2560, q 4096, kv 1024, ffn 9728: 57,344 ends a layer, times 36 layers, rank 16, 2 bytes.
    assert SHAPE.lora_slot_bytes(16) == 57_344 * 36 * 16 * 2 == 66_060_288
    assert rank_to_ask([8, 20]) == 32
    with pytest.raises(UsageError, match="rank 600 is over 512"):
        rank_to_ask([600])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layer_types": ["full_attention", "sliding_attention"]}, "layers of sliding_attention"),
        ({"layer_types": ["linear_attention"]}, "layers of linear_attention"),
        ({"kv_lora_rank": 512}, "latent attention"),
        ({"num_hidden_layers": None}, "num_hidden_layers is None"),
        ({"num_hidden_layers": True}, "num_hidden_layers is True"),
        ({"num_hidden_layers": -1}, "num_hidden_layers is -1"),
        ({"torch_dtype": "int4"}, "dtype 'int4'"),
        ({"torch_dtype": ["bfloat16"]}, "dtype .'bfloat16'. is none of"),
        ({"dtype": {}}, "dtype {} is none of"),
        ({"layer_types": {"0": "full_attention"}}, "layer_types that are no list"),
        ({"sliding_window": 4096}, "layers of sliding_attention"),
        ({"mamba_d_state": 16}, "layers of mamba_d_state"),
        ({"is_encoder_decoder": True}, "layers of is_encoder_decoder"),
        ({"num_key_value_heads": 7}, "do not share 2560 evenly"),
        ({"num_attention_heads": 24, "head_dim": None}, "do not share 2560 evenly"),
    ],
)
def test_what_the_arithmetic_does_not_hold_for_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ModelShape.of({**QWEN3_4B, **change}, where="config.json")


@pytest.mark.parametrize(
    ("text", "size"),
    [("2G", 2 * GIB), ("2g", 2 * 10**9), ("1.5g", 1_500_000_000), ("7.6GB", 7_600_000_000), ("2000000000", 2 * 10**9)],
)
def test_sizes_as_vllm_reads_them(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "x", "2 X", "1.5G", "-1", "1e9", "inf", "9" * 40, "24", "0", "0G", "1kB"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_size(text)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(QWEN3_4B), "utf-8")
    adapter = tmp_path / "lv-one"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text(json.dumps({"r": 16}), "utf-8")
    (adapter / "adapter_model.safetensors").write_bytes(b"0" * 1000)
    return tmp_path


def test_the_command_says_it_all_at_once(model: Path) -> None:
    card = ["--card-total", "94.97GiB", "--card-free", "11.16GiB", "--fraction", "0.12"]
    ended = gates(
        "seat", "fit", model, "--adapter", model / "lv-one", "--weights", "7.6GB", "--kv-bytes", "2G",
        "--seen-tokens", 10912, *card,
    )  # fmt: skip
    assert ended.returncode == 1
    for sentence in (
        "a token costs 147,456 bytes",
        "14,560 tokens",
        "the server says 10,912 tokens: 1.33 requests of 8,192 at once",
        "--max-lora-rank 16, 1 slot of 66.1 MB",
        "--gpu-memory-utilization up to 0.11 is not refused",
        "0.11 asks for 10,697 MiB of the card",
        "0.12 asks for 11.40 GiB, 11.16 GiB are free: vLLM REFUSES to start",
        "1 voice: 7.6 GB with adapters",
    ):
        assert sentence in ended.stdout
    assert "not worked out" not in ended.stdout
    found = json.loads(gates("seat", "fit", model, "--card-total", "94.97GiB", "--fraction", 0.11, "--json").stdout)
    assert found["fraction"]["refused"] is False


def test_what_was_not_worked_out_is_named_with_its_option(model: Path) -> None:
    said = gates("seat", "fit", model).stdout
    for option in ("--kv-bytes SIZE", "--weights SIZE", "--card-total SIZE"):
        assert option in said.partition("not worked out; it takes:")[2]
    said = gates("seat", "fit", model, "--weights", "7.6GB", "--card-total", "24GiB").stdout
    assert "the KV cache, not counted here" in said
    assert "the whole card is taken for free: --card-free" in said
    assert "--adapter PATH" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--fraction", 0.5), "--fraction says nothing without --card-total"),
        (("--card-free", "20GiB"), "--card-free says nothing without --card-total"),
        (("--seen-tokens", 10912), "--seen-tokens says nothing without --kv-bytes"),
        (("--card-total", "24GiB", "--card-free", "25GiB"), "more than --card-total 24.00 GiB"),
        (("--card-total", 24), "'24' is 24 bytes: no memory is that small"),
    ],
)
def test_an_option_that_would_count_for_nothing_is_refused(
    model: Path, options: tuple[object, ...], message: str
) -> None:
    ended = gates("seat", "fit", model, *options)
    assert ended.returncode == 2
    assert message in ended.stderr
    assert "next: " in ended.stderr


def test_the_rank_of_a_module_of_its_own_counts(model: Path) -> None:
    (model / "lv-one" / "adapter_config.json").write_text('{"r": 8, "rank_pattern": {"q_proj": 40}}', "utf-8")
    assert "--max-lora-rank 64" in gates("seat", "fit", model, "--adapter", model / "lv-one").stdout


def test_full_attention_that_is_declared_is_believed_and_experts_are_not_counted() -> None:
    window = {"sliding_window": 4096}
    assert ModelShape.of({**QWEN3_4B, **window, "use_sliding_window": False}, where="c") == SHAPE
    assert ModelShape.of({**QWEN3_4B, **window, "layer_types": ["full_attention"] * 36}, where="c") == SHAPE
    mixture = ModelShape.of({**QWEN3_4B, "num_experts": 128}, where="c")
    assert mixture.kv_bytes_per_token() == 147_456
    assert mixture.lora_slot_bytes(16) is None


def test_a_share_that_is_none_is_refused_and_what_does_not_fit_is_said(model: Path) -> None:
    card = ("--card-total", "10GiB", "--fraction")
    ended = gates("seat", "fit", model, *card, "nan")
    assert (ended.returncode, "nan is no share" in ended.stderr) == (2, True)
    ended = gates("seat", "fit", model, "--weights", "9GB", "--kv-bytes", "9GB", *card, "0.5")
    assert (ended.returncode, "RUNS OUT of memory" in ended.stdout) == (1, True)


def test_a_folder_that_is_no_adapter_is_named(model: Path) -> None:
    (model / "lv-one" / "adapter_config.json").write_text('{"r": "16"}', "utf-8")
    ended = gates("seat", "fit", model, "--adapter", model / "lv-one")
    assert ended.returncode == 2
    assert "adapter_config.json: r is '16', not a rank" in ended.stderr


def test_a_request_takes_whole_blocks() -> None:
    # 100 tokens are 7 blocks of 16, of which 14 hold two.
    assert KvCache(bytes_per_token=1, block=16, blocks=14).concurrency(100) == 2.0
