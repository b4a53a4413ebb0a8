"""Adapters on their way in: PEFT and GGUF forms read alike, everything else refused by name."""

import json
import struct
from contextlib import suppress

import numpy as np
import pytest
from gguf import GGUFReader
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from gates.errors import InputError, UsageError
from gates.seat.embedded.lora import Lora, identity, read_gguf, write_gguf
from gates.seat.embedded.model import interleave, separate
from gates.seat.embedded.peft import prepare, read_adapter
from tests.seat.embedded.conftest import E12

KEY = "base_model.model.model.layers.{}.{}.lora_{}.weight"
CONFIG = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "bias": "none", "use_rslora": False, "modules_to_save": None}


def products(rank=2):
    """A small adapter: one query and one down projection, with small numbers that float16 holds exactly."""
    random = np.random.default_rng(5)
    return {
        KEY.format(layer, module, side): (random.integers(-64, 64, shape) / 64).astype(np.float32)
        for layer, module, width_in, width_out in ((0, "self_attn.q_proj", 576, 576), (29, "mlp.down_proj", 1536, 576))
        for side, shape in (("A", (rank, width_in)), ("B", (width_out, rank)))
    }


def folder_of(path, tensors=None, config=None):
    path.mkdir()
    path.joinpath("adapter_config.json").write_text(json.dumps(CONFIG | (config or {})), "utf-8")
    path.joinpath("adapter_model.safetensors").write_bytes(save(products() if tensors is None else tensors))
    return path


def test_rows_of_a_rotary_projection_are_interleaved():
    """By hand: two heads of width four; halves 0 1 | 2 3 become the pairs 0 2, 1 3."""
    rows = np.arange(8).reshape(8, 1)
    assert interleave(rows, 2).ravel().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert np.array_equal(separate(interleave(rows, 2), 2), rows)


def test_a_peft_folder_becomes_gguf_that_another_reader_understands(tmp_path):
    target = tmp_path / "out.gguf"
    write_gguf(read_adapter(folder_of(tmp_path / "peft")), target)
    reader = GGUFReader(target)
    assert reader.fields["general.type"].contents() == "adapter"
    assert reader.fields["general.architecture"].contents() == "llama"
    assert reader.fields["adapter.lora.alpha"].contents() == 4.0
    found = {tensor.name: tensor.data for tensor in reader.tensors}
    wanted = products()
    assert sorted(found) == [
        "blk.0.attn_q.weight.lora_a",
        "blk.0.attn_q.weight.lora_b",
        "blk.29.ffn_down.weight.lora_a",
        "blk.29.ffn_down.weight.lora_b",
    ]
    assert np.array_equal(found["blk.29.ffn_down.weight.lora_b"], wanted[KEY.format(29, "mlp.down_proj", "B")])
    query = wanted[KEY.format(0, "self_attn.q_proj", "B")]
    assert np.array_equal(found["blk.0.attn_q.weight.lora_b"][:4], query[[0, 32, 1, 33]]), "head width 64, half 32"


def test_the_same_adapter_gives_the_same_bytes_in_either_form(tmp_path):
    folder = folder_of(tmp_path / "peft")
    first = prepare(folder, tmp_path / "cache")
    assert prepare(first, tmp_path / "cache") == first
    write_gguf(read_adapter(folder), tmp_path / "again.gguf")
    assert first.read_bytes() == (tmp_path / "again.gguf").read_bytes()
    assert [path.name for path in (tmp_path / "cache" / "adapters").iterdir()] == [first.name]


def test_bfloat16_is_read(tmp_path):
    """The upper half of a float32 is its bfloat16; these numbers lose nothing by it."""
    plain = products()
    header, body = {}, b""
    for key, value in plain.items():
        raw = (value.view(np.uint32) >> 16).astype("<u2").tobytes()
        header[key] = {"dtype": "BF16", "shape": value.shape, "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    folder = folder_of(tmp_path / "bf16")
    text = json.dumps(header).encode()
    folder.joinpath("adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)
    assert identity(read_adapter(folder)) == identity(read_adapter(folder_of(tmp_path / "f32")))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("use_rslora", True),
        ("use_dora", True),
        ("rank_pattern", {"q_proj": 4}),
        ("alpha_pattern", {"q_proj": 4}),
        ("modules_to_save", ["lm_head"]),
        ("lora_bias", True),
        ("bias", "all"),
        ("fan_in_fan_out", True),
        ("init_lora_weights", "pissa_niter_4"),
        ("alora_invocation_tokens", [1]),
        ("trainable_token_indices", [5]),
        ("peft_type", "IA3"),
        ("lora_alpha", "16"),
        ("lora_alpha", 10**400),
        ("lora_alpha", -1),
        ("r", None),
        ("r", 3),
    ],
)
def test_what_is_not_plain_lora_is_refused_by_name(tmp_path, field, value):
    folder = folder_of(tmp_path / "peft", config={field: value})
    with pytest.raises(InputError) as caught:
        read_adapter(folder)
    if (field, value) == ("r", 3):
        assert "does not have the configured rank 3" in str(caught.value)
    else:
        assert [problem.path for problem in caught.value.problems] == [field]
    assert str(folder) in str(caught.value)
    assert "next: train a plain LoRA" in str(caught.value)


def test_every_reason_is_given_at_once(tmp_path):
    folder = folder_of(tmp_path / "peft", config={"use_dora": True, "use_rslora": True, "bias": "all"})
    with pytest.raises(InputError) as caught:
        read_adapter(folder)
    assert {problem.path for problem in caught.value.problems} == {"use_dora", "use_rslora", "bias"}


def changed(**changes):
    tensors = products()
    for key, value in changes.items():
        tensors.pop(key, None)
        if value is not None:
            tensors[key] = value
    return tensors


QUERY_A, QUERY_B = (KEY.format(0, "self_attn.q_proj", side) for side in "AB")
SMALL = np.zeros((2, 576), np.float32)


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        (changed(**{QUERY_B: None}), "its partner is missing"),
        (changed(**{QUERY_A: np.zeros((2, 577), np.float32)}), "must have 576 columns"),
        (changed(**{QUERY_B: np.zeros((575, 2), np.float32)}), "must have 576 rows"),
        (changed(**{QUERY_A: np.zeros((3, 576), np.float32)}), "rank 2"),
        (changed(**{QUERY_A: SMALL.astype(np.int32)}), "must be F32, F16 or BF16"),
        (changed(**{QUERY_A: SMALL + np.float32("nan")}), "holds NaN, infinity"),
        (changed(**{QUERY_A: SMALL + np.float32(70_000)}), "past 65504"),
        (changed(**{KEY.format(30, "mlp.up_proj", "A"): SMALL}), "no such linear layer"),
        (changed(**{"base_model.model.lm_head.lora_A.weight": SMALL}), "embeddings and lm_head are not carried"),
        (changed(**{"base_model.model.model.embed_tokens.lora_embedding_A": SMALL}), "embeddings and lm_head"),
        (changed(**{KEY.format(0, "self_attn.qkv_proj", "A"): SMALL}), "no product of a Llama layer's linear module"),
        (changed(**{QUERY_A.replace("lora_A.weight", "lora_magnitude_vector"): SMALL}), "DoRA"),
        ({}, "the adapter holds none"),
    ],
)
def test_tensors_that_do_not_fit_the_carrier_are_refused(tmp_path, tensors, words):
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        read_adapter(folder_of(tmp_path / "peft", tensors))


def test_paths_that_hold_no_adapter(tmp_path):
    with pytest.raises(UsageError, match="no such adapter"):
        read_adapter(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"adapter_config\.json is missing"):
        read_adapter(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, "\xff"])
def test_a_configuration_that_is_no_json_object(tmp_path, text):
    folder = folder_of(tmp_path / "peft")
    folder.joinpath("adapter_config.json").write_text(text, "latin-1")
    with pytest.raises(InputError, match=r"not JSON|not a JSON object"):
        read_adapter(folder)


@pytest.mark.parametrize("data", [b"", b"\xff" * 16, struct.pack("<Q", 2**60), struct.pack("<Q", 10) + b"x" * 10])
def test_a_hostile_safetensors_header(tmp_path, data):
    folder = folder_of(tmp_path / "peft")
    folder.joinpath("adapter_model.safetensors").write_bytes(data)
    with pytest.raises(InputError, match="not a safetensors file"):
        read_adapter(folder)


def small_gguf(path):
    tensors = {
        "blk.0.attn_k.weight.lora_a": np.ones((1, 576), np.float16),
        "blk.0.attn_k.weight.lora_b": np.ones((192, 1), np.float16),
    }
    write_gguf(Lora(8.0, tensors), path)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"llama", b"qwen3", "general.architecture = 'qwen3': must be 'llama'"),
        (b"adapter.type", b"adapter.typo", "adapter.type = None: must be 'lora'"),
        (struct.pack("<f", 8.0), struct.pack("<f", float("nan")), "alpha = nan"),
        (b"attn_k.weight.lora_a", b"attn_x.weight.lora_a", "no such linear layer"),
        (b"adapter.type", b"adapter.alor", "must be 'lora'"),
    ],
)
def test_a_gguf_of_another_kind_is_refused(tmp_path, old, new, words):
    path = tmp_path / "small.gguf"
    data = small_gguf(path)
    assert old in data
    path.write_bytes(data.replace(old, new))
    with pytest.raises(InputError) as caught:
        read_gguf(path)
    assert words in str(caught.value)


def test_a_gguf_over_the_size_limit_is_not_read(tmp_path):
    path = tmp_path / "huge.gguf"
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(InputError, match="may not exceed 268435456 bytes"):
        read_gguf(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)
@given(at=st.integers(0, 450), new=st.binary(min_size=1, max_size=9), cut=st.integers(0, 40))
def test_a_damaged_gguf_is_read_or_refused_and_nothing_else(tmp_path, at, new, cut):
    path = tmp_path / "small.gguf"
    data = bytearray(small_gguf(path))
    data[at : at + len(new)] = new
    path.write_bytes(data[: len(data) - cut * 10])
    with suppress(InputError):
        adapter = read_gguf(path)
        assert all(np.isfinite(value).all() for value in adapter.tensors.values())


def test_the_demonstration_adapter_is_a_plain_lora():
    adapter = read_adapter(E12)
    assert (len(adapter.tensors), adapter.alpha) == (420, 16.0)
    assert adapter.tensors["blk.3.ffn_up.weight.lora_b"].shape == (1536, 8)
