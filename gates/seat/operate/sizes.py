"""Sizes in bytes as people and vLLM write them."""

from __future__ import annotations

import re

from gates.errors import UsageError

GIB = 1 << 30
MIB = 1 << 20

_UNITS = {
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", start=1)},
    **{f"{letter}B": 1000**power for power, letter in enumerate(("k", "M", "G", "T"), start=1)},
    # vLLM's own suffixes: capitals are binary and take whole numbers only, small letters are decimal.
    **{letter: 1024**power for power, letter in enumerate("KMGT", start=1)},
    **{letter: 1000**power for power, letter in enumerate("kmgt", start=1)},
    "": 1,
    "B": 1,
}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([A-Za-z]*)")


def parse_size(text: str) -> int:
    """Bytes of a size: `2147483648`, `2GiB`, `7.6GB`, or as vLLM reads it: `2G` is binary, `2g` decimal.

    Raises UsageError for anything else, for a fraction before a capital (`1.5G`), which vLLM refuses, and for
    less than a MiB, whose unit was forgotten.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or match[2] not in _UNITS:
        raise UsageError(f"{text!r} is no size", next_step="write bytes, or for example 2GiB, 7.6GB, 264MB")
    number, unit = match.groups()
    if "." in number and unit in tuple("KMGT"):
        raise UsageError(f"{text!r}: vLLM takes no fraction before {unit}", next_step=f"write {number}{unit}iB")
    factor: int = _UNITS[unit]
    size = round(float(number) * factor) if "." in number else int(number) * factor
    if size < MIB:
        raise UsageError(f"{text!r} is {size} bytes: no memory is that small", next_step="write for example 24GiB")
    return size


def gib(count: float) -> str:
    """Bytes as GiB with two decimals."""
    return f"{count / GIB:.2f} GiB"
