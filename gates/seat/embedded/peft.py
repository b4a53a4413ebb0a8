"""PEFT's folders (configuration and safetensors) read as a `Lora`; what is not plain is refused by name.

Only what the carrier can wear exactly is taken: another scaling (rsLoRA, rank and alpha patterns), other mathematics
(DoRA, biases, initialisations that change the base weights) or whole modules would otherwise be applied wrongly and
silently, since llama.cpp's form knows a product and one alpha.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from numpy.typing import NDArray

from gates.errors import Problem, UsageError
from gates.seat.embedded.lora import MAX_ALPHA, Lora, bounded, identity, lora, read_gguf, refusal, write_gguf
from gates.seat.embedded.model import LINEAR, ROTARY, as_float32, interleave

_WEIGHTS = "adapter_model.safetensors"
_KEY = re.compile(r"base_model\.model\.model\.layers\.(\d{1,4})\.([a-z_]+\.[a-z_]+)\.lora_([AB])\.weight")
_GGUF_NAMES = {huggingface: gguf for gguf, (huggingface, _, _) in LINEAR.items()}

_NEUTRAL: dict[str, tuple[tuple[object, ...], str]] = {
    "use_rslora": ((False,), "rsLoRA scales by alpha / sqrt(rank)"),
    "use_dora": ((False,), "DoRA adds magnitude vectors"),
    "use_qalora": ((False,), "QA-LoRA pools its inputs"),
    "use_bdlora": ((False,), "block-diagonal LoRA has another form"),
    "rank_pattern": (({},), "modules of different rank have different scales"),
    "alpha_pattern": (({},), "modules of different alpha have different scales"),
    "modules_to_save": (([],), "whole modules cannot be carried by an adapter here"),
    "lora_bias": ((False,), "biases are not carried"),
    "bias": (("none",), "biases are not carried"),
    "fan_in_fan_out": ((False,), "the carrier's layers are not transposed"),
    "layer_replication": (([],), "the carrier's layers stay as many as they are"),
    "trainable_token_indices": (([], {}), "token embeddings are not carried"),
    "target_parameters": (([],), "only linear layers are adapted"),
    "alora_invocation_tokens": (([],), "the adapter would act on some tokens only"),
    "init_lora_weights": ((True, False, "gaussian", "eva", "orthogonal"), "this start changes the base weights"),
}
_STEP = "retrain with this setting off"


def read_peft(folder: Path) -> Lora:
    """Read a PEFT folder. Raises UsageError when files are missing, InputError with every reason why it is refused."""
    settings, weights = folder / "adapter_config.json", folder / _WEIGHTS
    for file in (settings, weights):
        if not file.is_file():
            raise UsageError(f"{folder}: no adapter: {file.name} is missing", next_step="name a PEFT adapter's folder")
    config = _config(settings)
    problems = [
        Problem(str(settings), key, json.dumps(config[key])[:80], reason, _STEP)
        for key, (allowed, reason) in _NEUTRAL.items()
        if config.get(key) is not None and not any(_same(config[key], value) for value in allowed)
    ]
    if config.get("peft_type") != "LORA":
        problems.append(Problem(str(settings), "peft_type", repr(config.get("peft_type"))[:80], "must be 'LORA'"))
    problems += [
        Problem(str(settings), key, repr(config.get(key))[:80], f"must be a number above 0 and not above {MAX_ALPHA}")
        for key in ("lora_alpha", "r")
        if not _is_size(config.get(key))
    ]
    if problems:
        raise refusal(folder, problems)
    return lora(folder, float(config["lora_alpha"]), _products(weights, config["r"]))


def _same(found: object, neutral: object) -> bool:
    return type(found) is type(neutral) and found == neutral


def _is_size(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MAX_ALPHA


def _config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(bounded(path, 2**20))
    except (ValueError, RecursionError) as error:
        raise refusal(path, [Problem(str(path), "document", "", f"not JSON: {error}")]) from None
    if not isinstance(config, dict):
        raise refusal(path, [Problem(str(path), "document", "", "not a JSON object")])
    return config


def _products(path: Path, rank: float) -> dict[str, NDArray[np.float32]]:
    try:
        entries = safetensors.deserialize(bounded(path))  # type: ignore[no-untyped-call]  # written in Rust, no stub
    except safetensors.SafetensorError as error:
        raise refusal(path, [Problem(str(path), "header", "", f"not a safetensors file: {error}")]) from None
    problems, products = [], {}
    for key, entry in entries:
        match = _KEY.fullmatch(key)
        shape, kind = tuple(entry["shape"]), entry["dtype"]
        if match is None or match[2] not in _GGUF_NAMES:
            problems.append(Problem(str(path), key[:200], "", _stranger(key), "adapt linear layers of a Llama alone"))
        elif kind not in ("F32", "F16", "BF16"):
            problems.append(Problem(str(path), key, kind, "must be F32, F16 or BF16"))
        elif len(shape) != 2 or shape[match[3] == "B"] != rank:
            problems.append(Problem(str(path), key, str(shape), f"does not have the configured rank {rank}"))
        else:
            module = _GGUF_NAMES[match[2]]
            value = as_float32(bytes(entry["data"]), kind, shape)
            if match[3] == "B" and module in ROTARY and value.shape[0] == LINEAR[module][1]:
                value = interleave(value, ROTARY[module])
            products[f"blk.{int(match[1])}.{module}.weight.lora_{match[3].lower()}"] = value
    if problems:
        raise refusal(path, sorted(problems, key=lambda problem: problem.path))
    return products


def _stranger(key: str) -> str:
    if "embed" in key or "lm_head" in key:
        return "embeddings and lm_head are not carried"
    if "magnitude" in key:
        return "DoRA adds magnitude vectors"
    return "no product of a Llama layer's linear module"


def read_adapter(path: Path) -> Lora:
    """Read an adapter from a GGUF file or a PEFT folder. Raises UsageError or InputError."""
    if path.is_dir():
        return read_peft(path)
    if not path.is_file():
        raise UsageError(f"{path}: no such adapter", next_step="name a GGUF file or a PEFT folder that exists")
    return read_gguf(path)


def prepare(path: Path, cache: Path) -> Path:
    """The canonical GGUF form of the adapter at `path`, in the cache under its own hash.

    The seat loads this copy, so later changes of the caller's file change nothing until it is loaded again.
    """
    adapter = read_adapter(path)
    target = cache / "adapters" / f"{identity(adapter)}.gguf"
    write_gguf(adapter, target)
    return target
