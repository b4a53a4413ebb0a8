"""What pydantic found wrong, in plain words: the rule that is broken, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from gates.spec.shape import Form, choices, needs
from gates.spec.source import shown
from gates.spec.tree import NUMBER

WRONG_KINDS = frozenset(
    {
        "bool_type",
        "dict_type",
        "float_type",
        "int_type",
        "list_type",
        "literal_error",
        "model_attributes_type",
        "model_type",
        "none_required",
        "string_type",
        "tuple_type",
    }
)
"""Pydantic's error types that say: another kind of value is needed here."""

_LIMITS = {
    "greater_than": ("gt", "must be above"),
    "greater_than_equal": ("ge", "must be at least"),
    "less_than": ("lt", "must be below"),
    "less_than_equal": ("le", "must be at most"),
}
_YES_NO = frozenset({"yes", "no", "on", "off", "y", "n"})


def explain(kind: str, context: Mapping[str, Any], value: object, found: list[Form]) -> tuple[str, str]:
    """The rule that `value` breaks and a suggestion, for pydantic's error type `kind` where `found` may stand."""
    if kind == "literal_error" and isinstance(value, str):
        allowed = needs(found)
        return f"must be {allowed}", did_you_mean(value, choices(found)) if " or " in allowed else ""
    if kind in WRONG_KINDS:
        return _wrong_kind(value, found)
    if kind in _LIMITS:
        name, words = _LIMITS[kind]
        limit = context[name]
        return f"{words} {int(limit) if limit == int(limit) else limit}", ""
    if kind in {"value_error", "assertion_error"}:
        return str(context["error"]), ""
    return _by_size(kind, context, value)


def _by_size(kind: str, context: Mapping[str, Any], value: object) -> tuple[str, str]:
    size = len(value) if isinstance(value, str | list | dict) else 0
    least, most = context.get("min_length", 0), context.get("max_length", 0)
    rules = {
        "string_too_short": f"must have at least {least} characters, this has {size}" if size else "must not be empty",
        "string_too_long": f"must have at most {most:,} characters, this has {size:,}",
        "too_short": f"needs at least {_entries(least)}, this has {size}",
        "too_long": f"takes at most {_entries(most)}, this has {size}",
        "finite_number": "a finite number is needed; infinity and not-a-number are refused",
    }
    return rules.get(kind, f"not valid here ({kind.replace('_', ' ')})"), ""


def _entries(count: int) -> str:
    return f"{count} {'entry' if count == 1 else 'entries'}"


def did_you_mean(value: str, words: list[str]) -> str:
    """`did you mean ...?` for the most similar of `words`; empty when none is."""
    match = similar(value, words)
    return f"did you mean `{match}`?" if match else ""


def similar(value: str, words: list[str]) -> str | None:
    """The most similar of `words`, letter case aside; None when none is similar."""
    by_lower = {word.lower(): word for word in words}
    found = get_close_matches(value[:64].lower(), list(by_lower), n=1)
    return by_lower[found[0]] if found else None


def _wrong_kind(value: object, found: list[Form]) -> tuple[str, str]:
    kinds = {form.get("type") for form in found}
    return f"{needs(found) or 'another kind of value'} is needed, this is {_kind(value)}", _instead(value, kinds)


def _kind(value: object) -> str:
    if value is None:
        return "empty"
    kinds = {bool: "true or false", int: "a whole number", float: "a number with a point", str: "text", list: "a list"}
    return kinds.get(type(value), "a mapping")


def _instead(value: object, kinds: set[Any]) -> str:
    hint = ""
    if value is None or isinstance(value, dict | list):
        pass
    elif isinstance(value, str) and kinds & {"integer", "number"}:
        hint = _digits(value)
    elif isinstance(value, str) and "boolean" in kinds:
        hint = "yes, no, on and off are text: write true or false" if value.lower() in _YES_NO else ""
    elif isinstance(value, float) and value.is_integer() and "integer" in kinds:
        hint = f"write {value:.0f}"
    elif not isinstance(value, str) and "string" in kinds:
        hint = f'write "{shown(value)}" with quotes'
    elif "array" in kinds:
        hint = f"write [{value if isinstance(value, str) and value.isalnum() else shown(value)}]"
    elif kinds == {"object"}:
        hint = "write indented `key: value` lines"
    return hint


def _digits(value: str) -> str:
    """How to write the number that a text seems to mean."""
    plain = re.sub(r"(?<=\d)[_ ](?=\d)", "", value.strip())
    plain = re.sub(r"^([-+]?)0+(?=\d)", r"\1", plain)
    if not NUMBER.fullmatch(plain) or len(plain) > 30:
        return ""
    return f"write {plain} without quotes" if plain == value else f"write {plain}"
