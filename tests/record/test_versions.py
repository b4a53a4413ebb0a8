"""Every record kind refuses a schema version that it does not know, and stands in the written history of the format."""

from __future__ import annotations

import importlib
import json
import pkgutil
from pathlib import Path

import pytest

import gates
from gates.errors import RecordError
from gates.records import Record


def _kinds() -> dict[str, type[Record]]:
    """Every record that carries a schema, by it: all that the package defines."""
    for module in pkgutil.walk_packages(gates.__path__, "gates."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    left, found = [Record], {}
    while left:
        kind = left.pop()
        left.extend(kind.__subclasses__())
        if "schema_" in kind.model_fields and kind.__module__.startswith("gates."):
            schema = kind.model_json_schema()["properties"]["schema"]["const"]
            assert found.setdefault(schema, kind) is kind, f"two records call themselves {schema}"
    return found


KINDS = _kinds()


def test_the_kinds_are_found() -> None:
    assert {"gates.seal/1", "gates.ledger/1", "gates.ledger.head/1", "gates.generation/1", "gates.verdict/1"} < set(
        KINDS
    )


@pytest.mark.parametrize("schema", sorted(KINDS))
def test_an_unknown_version_is_refused(schema: str) -> None:
    name, _, version = schema.rpartition("/")
    for other in (f"{name}/{int(version) + 1}", f"{name}/0", name, f"{schema}.1", "", None):
        with pytest.raises(ValueError, match="schema") as refused:
            KINDS[schema].model_validate_json(json.dumps({"schema": other}))
        about = [error["type"] for error in refused.value.errors() if error["loc"] == ("schema",)]
        assert about == ["literal_error"], other
        with pytest.raises(RecordError, match=r"^here: not a record of this version"):
            KINDS[schema].parse(json.dumps({"schema": other}).encode(), where="here")


@pytest.mark.parametrize("schema", sorted(KINDS))
def test_the_history_of_the_format_names_every_version(root: Path, schema: str) -> None:
    history = (root / "docs" / "records.md").read_text("utf-8").split("## History of the format")[1]
    assert f"`{schema}`" in history
