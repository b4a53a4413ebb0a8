"""What a document may hold at a place, asked of the JSON schema of its model: keys, choices, kinds of value."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from gates.records import Record
from gates.spec.tree import Loc

Form = dict[str, Any]
"""One JSON schema that a value may satisfy, references followed and alternatives split."""

_KINDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
}


@cache
def schema_of(model: type[Record]) -> Form:
    """The JSON schema of what a document of `model` may say."""
    schema = model.model_json_schema(mode="validation", by_alias=True)
    for node in _nodes(schema):
        if "patternProperties" in node:
            # pydantic's way to write a mapping by name, which leaves other names open
            node.setdefault("additionalProperties", False)
    return schema


def forms(model: type[Record], loc: Loc) -> list[Form]:
    """Every form that the value at `loc` may take; none for a place the model does not know."""
    top = schema_of(model)
    found = list(_split(top, top))
    for step in loc:
        found = [inner for form in found for child in _inside(form, step) for inner in _split(child, top)]
    return found


def _split(form: Form, top: Form) -> Iterator[Form]:
    if "$ref" in form:
        yield from _split(top["$defs"][form["$ref"].rsplit("/", 1)[1]], top)
    elif "anyOf" in form or "oneOf" in form:
        for each in form.get("anyOf") or form["oneOf"]:
            yield from _split(each, top)
    else:
        yield form


def _inside(form: Form, step: str | int) -> Iterator[Form]:
    if isinstance(step, str):
        named = form.get("properties", {}).get(step)
        others = [form.get("additionalProperties"), *form.get("patternProperties", {}).values()]
        inside = [named] if named is not None else others
    else:
        inside = [form.get("items")]
    yield from (child for child in inside if isinstance(child, dict))


def keys(found: list[Form]) -> list[str]:
    """The keys that mappings of these forms name, in the order of the schema."""
    return list(dict.fromkeys(key for form in found for key in form.get("properties", {})))


def choices(found: list[Form]) -> list[str]:
    """The words that are allowed where only certain words are."""
    return [str(word) for form in found for word in form.get("enum", [form["const"]] if "const" in form else [])]


def needs(found: list[Form]) -> str:
    """What kinds of value these forms are, in plain words; empty when anything may stand here."""
    kinds = []
    for form in found:
        words = choices([form])
        kinds += [f"`{word}`" for word in words] or [_KINDS.get(form.get("type", ""), "")]
    return " or ".join(dict.fromkeys(kind for kind in kinds if kind))


def meaning(model: type[Record], pattern: str) -> str:
    """How the schema describes the texts of a pattern; the pattern itself where it says nothing."""
    return _patterns(model).get(pattern, f"text that matches {pattern}")


@cache
def _patterns(model: type[Record]) -> dict[str, str]:
    return {
        node["pattern"]: node["description"]
        for node in _nodes(schema_of(model))
        if isinstance(node.get("pattern"), str) and isinstance(node.get("description"), str)
    }


def _nodes(node: Any) -> Iterator[Form]:
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _nodes(child)
