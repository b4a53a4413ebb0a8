"""A LoRA adapter of the carrier: one record, checked tensor by tensor, that is read from GGUF and written as GGUF.

llama.cpp is never shown a stranger's file: whatever a caller names is read here, checked against the carrier, and
written again in one canonical form under its own hash, so that a hostile or foreign header ends in an error message.
Products are stored as float16: bfloat16 weights of usual size keep every bit; the carrier itself has 4 bits a weight.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFWriter
from numpy.typing import NDArray

from gates.errors import InputError, Problem, UsageError
from gates.seat.embedded.model import LAYERS, LINEAR, NAME, as_float32, whole

MAX_BYTES = 256 * 2**20
MAX_ALPHA = 65504
_TENSOR = re.compile(r"blk\.(\d{1,4})\.([a-z_]+)\.weight\.lora_([ab])")
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_FORMATS = {0: "B", 1: "b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_MOST = 1_000_000
_KINDS = {0: ("F32", 4), 1: ("F16", 2), 30: ("BF16", 2)}


@dataclass(frozen=True)
class Lora:
    """An adapter: alpha, and by GGUF name the float16 `lora_a` (R, I) and `lora_b` (O, R); its scale is alpha / R."""

    alpha: float
    tensors: Mapping[str, NDArray[np.float16]]


def lora(where: Path, alpha: float, tensors: Mapping[str, NDArray[np.float32]]) -> Lora:
    """Check products against the carrier and make the record. Raises InputError with every mistake found."""
    problems = list(_misfits(str(where), tensors))
    if not 0 < alpha <= MAX_ALPHA:
        problems.insert(0, Problem(str(where), "alpha", repr(alpha), f"must lie above 0 and not above {MAX_ALPHA}"))
    if problems:
        raise refusal(where, problems)
    return Lora(float(alpha), {name: tensors[name].astype(np.float16) for name in sorted(tensors)})


def refusal(where: Path, problems: list[Problem]) -> InputError:
    """The error that lists why an adapter cannot be used; at most ten reasons are spelled out."""
    more = len(problems) - 10
    title = f"{where}: not an adapter that {NAME} can wear" + (f" ({more} more reasons like these)" if more > 0 else "")
    step = "train a plain LoRA on the carrier's linear layers, as scripts/train_adapter.py does"
    return InputError(title, tuple(problems[:10]), next_step=step)


def _misfits(where: str, tensors: Mapping[str, NDArray[np.float32]]) -> list[Problem]:
    if not tensors:
        return [Problem(where, "tensors", "", "the adapter holds none")]
    found = []
    for name, value in sorted(tensors.items()):
        match = _TENSOR.fullmatch(name)
        if match is None or match[2] not in LINEAR or int(match[1]) >= LAYERS:
            found.append(Problem(where, name, "", "the carrier has no such linear layer"))
            continue
        partner = tensors.get(f"{name[:-1]}{'b' if match[3] == 'a' else 'a'}")
        _, outputs, inputs = LINEAR[match[2]]
        width, axis = (inputs, 0) if match[3] == "a" else (outputs, 1)
        if partner is None:
            found.append(Problem(where, name, "", "its partner is missing: lora_a and lora_b come in pairs"))
        elif value.ndim != 2 or partner.ndim != 2 or value.shape[1 - axis] != width:
            found.append(Problem(where, name, str(value.shape), f"must have {width} {'rows' if axis else 'columns'}"))
        elif value.shape[axis] != partner.shape[1 - axis] or not value.shape[axis]:
            found.append(Problem(where, name, str(value.shape), f"rank differs from its partner's {partner.shape}"))
        elif not np.isfinite(value).all() or np.abs(value).max() > np.finfo(np.float16).max:
            found.append(Problem(where, name, "", "holds NaN, infinity or a number past 65504"))
    return found


def write_gguf(adapter: Lora, target: Path) -> None:
    """Write an adapter as llama.cpp reads it; the same adapter gives the same bytes."""
    with whole(target) as part:
        writer = GGUFWriter(part, "llama")
        writer.add_type("adapter")
        writer.add_string("adapter.type", "lora")
        writer.add_float32("adapter.lora.alpha", adapter.alpha)
        for name, value in adapter.tensors.items():
            writer.add_tensor(name, np.ascontiguousarray(value))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def identity(adapter: Lora) -> str:
    """SHA-256 over alpha and every tensor's name, shape and bytes, in hex."""
    state = hashlib.sha256(struct.pack("<d", adapter.alpha))
    for name, value in adapter.tensors.items():
        state.update(f"{name}{value.shape}".encode())
        state.update(value.tobytes())
    return state.hexdigest()


def bounded(path: Path, limit: int = MAX_BYTES) -> bytes:
    """A file's bytes. Raises UsageError when it cannot be read, InputError when it is over `limit` bytes."""
    try:
        size = path.stat().st_size
        if size > limit:
            raise refusal(path, [Problem(str(path), "size", f"{size} bytes", f"may not exceed {limit} bytes")])
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}", next_step="check the adapter's path") from None


class _Cursor:
    """Reads forward through bytes and never past their end."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise ValueError(f"the file ends inside a field at byte {self.at}")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, code: int) -> Any:
        return struct.unpack(_FORMATS[code], self.take(_SIZES[code]))[0]

    def string(self) -> str:
        return self.take(self.number(10)).decode("utf-8")

    def value(self) -> Any:
        """A metadata value; arrays are stepped over, since an adapter's meaning needs none."""
        code = self.number(4)
        if code == _STRING:
            return self.string()
        if code != _ARRAY:
            return self.number(code)
        code, count = self.number(4), self.number(10)
        if count > _MOST:
            raise ValueError(f"an array of {count} values in the metadata of an adapter")
        if code == _STRING:
            for _ in range(count):
                self.string()
        else:
            self.take(_SIZES[code] * count)
        return None


def read_gguf(path: Path) -> Lora:
    """Read a GGUF adapter. Raises InputError when it is damaged, of another model, or more than a plain LoRA."""
    try:
        metadata, tensors = _parse(bounded(path))
    except (KeyError, ValueError, struct.error) as error:
        raise refusal(path, [Problem(str(path), "header", "", f"not a readable GGUF file: {error}")]) from None
    wanted = {"general.architecture": "llama", "general.type": "adapter", "adapter.type": "lora"}
    problems = [
        Problem(str(path), key, repr(metadata.get(key))[:80], f"must be {value!r}")
        for key, value in wanted.items()
        if metadata.get(key) != value
    ]
    problems += [
        Problem(str(path), key, "", "adapters that act on some tokens only are refused")
        for key in metadata
        if key.startswith("adapter.alora")
    ]
    alpha = metadata.get("adapter.lora.alpha")
    if not isinstance(alpha, float):
        problems.append(Problem(str(path), "adapter.lora.alpha", repr(alpha)[:80], "must be a number"))
    if problems or not isinstance(alpha, float):
        raise refusal(path, problems)
    return lora(path, alpha, tensors)


def _parse(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[np.float32]]]:
    cursor = _Cursor(data)
    if cursor.take(4) != b"GGUF" or cursor.number(4) not in (2, 3):
        raise ValueError("it does not begin with GGUF, version 2 or 3")
    tensor_count, pair_count = cursor.number(10), cursor.number(10)
    if max(tensor_count, pair_count) > _MOST:
        raise ValueError(f"{tensor_count} tensors and {pair_count} metadata are no adapter's")
    metadata = {}
    for _ in range(pair_count):
        key = cursor.string()
        metadata[key] = cursor.value()
    heads = [_tensor_head(cursor) for _ in range(tensor_count)]
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 1 <= alignment <= 4096:
        raise ValueError(f"general.alignment is {alignment!r}")
    start = -(-cursor.at // alignment) * alignment
    tensors, taken = {}, 0
    for name, shape, code, offset in heads:
        if code not in _KINDS:
            raise ValueError(f"{name} is quantised (type {code}); F32, F16 and BF16 are read")
        kind, width = _KINDS[code]
        begin, size = start + offset, shape[0] * shape[1] * width
        taken += size
        if begin + size > len(data) or taken > len(data) or name in tensors:
            raise ValueError(f"{name} lies outside the file, or twice in it, or over another tensor")
        tensors[name] = as_float32(data[begin : begin + size], kind, shape)
    return metadata, tensors


def _tensor_head(cursor: _Cursor) -> tuple[str, tuple[int, int], int, int]:
    name, dimensions = cursor.string(), cursor.number(4)
    if dimensions != 2:
        raise ValueError(f"{name[:80]!r} has {dimensions} dimensions, not 2")
    columns, rows = cursor.number(10), cursor.number(10)
    return name, (rows, columns), cursor.number(4), cursor.number(10)
