"""The gate file: from its path to a Gate, and the JSON schema by which an editor completes it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pydantic import JsonValue

from gates.spec.axes import installed_axes
from gates.spec.document import read_document
from gates.spec.floors import installed_floors
from gates.spec.schema import Gate
from gates.spec.shape import schema_of

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def load_gate(path: Path) -> Gate:
    """The gate that a YAML file fixes. Raises InputError with all its mistakes at once.

    An axis or floor rule that it names must be installed; looked up once, and only if need be.
    """
    return read_document(path, Gate, {"axes": cache(installed_axes), "floors": cache(installed_floors)})


def json_schema() -> dict[str, JsonValue]:
    """The JSON schema (draft 2020-12) of a gate file, short forms such as `base: NAME` included.

    It knows keys, types, ranges and names; rules between fields are checked by `load_gate` alone.
    """
    return {"$schema": DIALECT, **schema_of(Gate), "title": "gate file, gates/1"}
