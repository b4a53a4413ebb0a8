"""The damage axes by name: those built in, and those that installed distributions plug in as `gates.axes`."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo
from pydantic_core import PydanticCustomError

from gates.spec.plugins import AXES, plugged_in

BUILT_IN: dict[str, str] = {
    "ran_on": "texts that used up the token limit; higher is worse",
    "on_beat": "texts whose own beat is the nearest of all the gate's beats; lower is worse",
    "empty": "texts without a single word; higher is worse",
    "repetition": "share of words inside 4-word runs that the text repeats; higher is worse",
    "echo": "texts that copy their prompt back; higher is worse",
    "template_leak": "texts with chat markers, mark-up or assistant talk beyond the author's own rate; higher is worse",
    "garble": "share of words that neither reference, author nor prompt know; higher is worse",
    "name_leak": "texts with a proper name of the train split that the prompt does not hold; higher is worse",
    "judged_on_beat": "texts that tell of their beat, as the judging model of `judge` says; lower is worse",
}
"""What each built-in axis measures, in the order in which people read them."""

PATTERN = "^[a-z][a-z0-9_]{0,63}$"
TAKEN = frozenset({"extraction", "memorisation", "run", "seed_spread", "validity", "voice", "words"})
"""Names that stand for something else in a seal or verdict, where an axis of that name would hide it."""


def installed_axes() -> list[str]:
    """The axes that a gate file may name: those built in, and those plugged in."""
    return [*BUILT_IN, *sorted(plugged_in(AXES).keys() - BUILT_IN.keys())]


def _axis_name(name: str, info: ValidationInfo) -> str:
    """Records are read wherever they are found, so only a gate file is held to what is installed here."""
    if name in BUILT_IN:
        return name
    known = info.context["axes"]() if info.context else None
    if known is not None and name not in known:
        raise PydanticCustomError("extra_forbidden", "no such axis is installed", {"allowed": known})
    if name in TAKEN or not re.fullmatch(PATTERN, name):
        raise ValueError("an axis needs a name of lower-case letters, digits and underscores that nothing else has")
    return name


AxisName = Annotated[str, AfterValidator(_axis_name)]
"""The name of a damage axis, built in or plugged in."""
