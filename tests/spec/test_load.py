"""The example gate loads as written, and the JSON schema agrees with the loader."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from gates.errors import InputError
from gates.spec.asking import Seat
from gates.spec.load import json_schema, load_gate
from gates.spec.schema import Gate

GATE = Path(__file__).parent / "gate.yaml"


def test_the_example_gate_loads_as_written() -> None:
    gate = load_gate(GATE)
    assert gate.arms.base.model == "voices-base"
    assert gate.corpora.reference == ("english-prose",)
    assert gate.arms.candidates["ckpt475"].notes == {"epochs": 0.5}
    assert isinstance(gate.seat, Seat)
    assert gate.seat.concurrency == 8
    assert gate.sampling.seeds == (1, 2, 3, 4, 5)
    assert gate.validity.max_errors == 0
    assert gate.declarations.data_seen == "none"
    assert list(gate.arms.all()) == ["base", "ckpt475", "ckpt925"]


def test_a_gate_comes_back_from_its_canonical_form() -> None:
    gate = load_gate(GATE)
    assert Gate.parse(gate.model_dump_json().encode(), where="seal") == gate


def test_the_long_forms_say_the_same(tmp_path: Path) -> None:
    text = GATE.read_text(encoding="utf-8")
    path = tmp_path / "gate.yaml"
    long = text.replace("base: voices-base", "base: {model: voices-base}").replace(
        "reference: english-prose", "reference: [english-prose]"
    )
    assert long != text
    path.write_text(long, encoding="utf-8")
    assert load_gate(path).digest() == load_gate(GATE).digest()


def _set(path: str, value: object) -> Callable[[dict[str, Any]], None]:
    def change(gate: dict[str, Any]) -> None:
        *around, last = path.split(".")
        for key in around:
            gate = gate[key]
        gate[last] = value

    return change


def _example() -> dict[str, Any]:
    gate: dict[str, Any] = yaml.safe_load(GATE.read_text(encoding="utf-8"))
    return copy.deepcopy(gate)


@pytest.mark.parametrize(
    "change",
    [
        _set("seat", "embedded"),
        _set("arms.base", {"model": "m", "system": "Write plainly."}),
        _set("corpora.reference", ["a", "b/c"]),
        _set("prompts.template", [{"role": "user", "content": "{beat}"}]),
        _set("arms.controls", {"again": {"model": "m", "seeds": [6, 7, 8, 9, 10]}}),
        _set("sampling.extra_body", {"chat_template_kwargs": {"enable_thinking": False}}),
        _set("sampling.max_tokens", 1),
    ],
)
def test_the_json_schema_accepts_what_the_loader_accepts(
    tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    gate = _example()
    change(gate)
    jsonschema.Draft202012Validator(json_schema()).validate(gate)
    path = tmp_path / "gate.yaml"
    path.write_text(yaml.safe_dump(gate), encoding="utf-8")
    assert load_gate(path).name == "lv-bronte"


TWO = [{"base_url": "http://a/v1"}, {"base_url": "http://b/v1", "concurrency": 2}]


def test_several_seats_stand_in_the_place_of_one(tmp_path: Path) -> None:
    path = tmp_path / "gate.yaml"
    gate = {name: value for name, value in _example().items() if name != "seat"}
    path.write_text(yaml.safe_dump({**gate, "seats": TWO, "unlike_seats": "until Friday"}), encoding="utf-8")
    loaded = load_gate(path)
    assert [(seat.name, seat.concurrency) for seat in loaded.servers] == [("http://a/v1", 8), ("http://b/v1", 2)]
    assert "seat" not in loaded.as_json()
    for wrong, said in (
        ({"seat": "embedded", "seats": TWO}, "seat or seats: name one of them"),
        ({}, "seat or seats: name one of them"),
        ({"seat": "embedded", "unlike_seats": "until Friday"}, "unlike_seats belongs to seats"),
    ):
        path.write_text(yaml.safe_dump({**gate, **wrong}), encoding="utf-8")
        with pytest.raises(InputError, match=said):
            load_gate(path)


@pytest.mark.parametrize(
    "change",
    [
        _set("seat", "embeded"),
        _set("arms.base", 5),
        _set("arms.candidates", {}),
        _set("arms.candidates", {"a b": {"model": "m", "adapter": "a"}}),
        _set("corpora.reference", []),
        _set("prompts.template", [{"role": "usr", "content": "{beat}"}]),
        _set("sampling.temperature", "0.9"),
        _set("sampling.seeds", [1]),
        _set("sampling.max_token", 400),
        _set("voice.mfw", 3),
        _set("schema", "gates/2"),
        lambda gate: gate.pop("question"),
    ],
)
def test_the_json_schema_refuses_mistakes(change: Callable[[dict[str, Any]], None]) -> None:
    gate = _example()
    change(gate)
    assert not jsonschema.Draft202012Validator(json_schema()).is_valid(gate)


def test_the_json_schema_is_one_and_describes_its_parts() -> None:
    schema: dict[str, Any] = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["description"] == Gate.__doc__
    assert [name for name, part in schema["$defs"].items() if "properties" in part and "description" not in part] == []
