"""A workspace for the pages of docs/ that need a real seat: manifests, beats, and an adapter in PEFT form."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from gates.seat.embedded.lora import read_gguf
from gates.seat.embedded.model import LINEAR, ROTARY, separate
from tests.flow.conftest import cache, new_workspace

__all__ = ["cache"]


@pytest.fixture
def workspace(tmp_path: Path, root: Path, cache: Path) -> Path:
    """The workspace, with adapters/lv-bronte beside prereg/ and corpora/."""
    made = new_workspace(tmp_path, root)
    as_peft(root / "prereg" / "demo" / "adapters" / "lv-bronte-e12.gguf", made / "adapters" / "lv-bronte")
    return made


@pytest.fixture
def port() -> str:
    """A port that was free a moment ago."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return str(listening.getsockname()[1])


def as_peft(gguf: Path, folder: Path) -> None:
    """Write an adapter of the carrier as PEFT does."""
    adapter = read_gguf(gguf)
    tensors = {}
    for name, value in adapter.tensors.items():
        _, layer, module, _, which = name.split(".")
        letter = which.removeprefix("lora_").upper()
        rows = separate(value, ROTARY[module]) if letter == "B" and module in ROTARY else value
        key = f"base_model.model.model.layers.{layer}.{LINEAR[module][0]}.lora_{letter}.weight"
        tensors[key] = np.ascontiguousarray(rows)
    rank = next(value.shape[0] for name, value in adapter.tensors.items() if name.endswith("lora_a"))
    modules = sorted({LINEAR[name.split(".")[2]][0].split(".")[1] for name in adapter.tensors})
    config = {"peft_type": "LORA", "r": rank, "lora_alpha": adapter.alpha, "target_modules": modules}
    folder.mkdir(parents=True)
    save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps(config), "utf-8")
