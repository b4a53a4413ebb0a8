"""The floor rules by name and version: those built in, and those that installed distributions plug in."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo

from gates.spec.plugins import FLOORS, plugged_in

BUILT_IN_FLOORS = ("pairwise-range@1", "pairwise-calibrated@1", "all-arms-range@1")
PATTERN = r"^[a-z][a-z0-9-]{0,63}@[1-9][0-9]{0,3}$"


def installed_floors() -> list[str]:
    """The rules that a gate file may name: those built in, and the names plugged in, each with any version."""
    return [*BUILT_IN_FLOORS, *(f"{name}@VERSION" for name in sorted(plugged_in(FLOORS)))]


def _floor_name(name: str, info: ValidationInfo) -> str:
    """Records are read wherever they are found, so only a gate file is held to what is installed here."""
    if name in BUILT_IN_FLOORS:
        return name
    known = info.context["floors"]() if info.context else None
    stem = name.rpartition("@")[0]
    if known is not None and f"{stem}@VERSION" not in known:
        near = get_close_matches(name, known, n=1)
        hint = f" (did you mean `{near[0]}`?)" if near else ""
        raise ValueError(f"must be {' or '.join(f'`{rule}`' for rule in known)}{hint}")
    if not re.fullmatch(PATTERN, name):
        raise ValueError(
            "a floor rule is named NAME@VERSION, in lower-case letters, digits and hyphens, such as lord@1"
        )
    return name


FloorName = Annotated[
    str,
    AfterValidator(_floor_name),
    Field(
        description="a floor rule with its version, built in or plugged in",
        json_schema_extra={"anyOf": [{"enum": list(BUILT_IN_FLOORS)}, {"pattern": PATTERN}]},
    ),
]
"""The name and version of a floor rule."""
