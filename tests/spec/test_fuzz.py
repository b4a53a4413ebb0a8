"""Whatever a gate file holds, the loader answers with a gate or with InputError."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gates.errors import InputError
from gates.spec.load import load_gate
from gates.spec.schema import Gate
from tests.fuzz.mutations import KINDS

GATE = (Path(__file__).parent / "gate.yaml").read_bytes()

QUICK = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
THOROUGH = settings(QUICK, max_examples=1500)


def load(file: Path) -> Gate | InputError:
    try:
        return load_gate(file)
    except InputError as error:
        return error


def check(path: Path, data: bytes) -> None:
    file = path / "gate.yaml"
    file.write_bytes(data)
    answer = load(file)
    if isinstance(answer, Gate):
        assert Gate.parse(answer.model_dump_json().encode(), where="again").digest() == answer.digest()
    else:
        assert answer.problems
        for problem in answer.problems:
            assert problem.where.startswith(str(file))
            assert problem.rule
            assert str(problem).isprintable()


@THOROUGH
@given(seed=st.integers(0, 2**32), count=st.integers(1, 6))
def test_a_mutated_gate(tmp_path: Path, seed: int, count: int) -> None:
    rng = random.Random(seed)
    data = GATE
    for _ in range(count):
        data = rng.choice(KINDS["yaml"])(data, rng)
    check(tmp_path, data)


@QUICK
@given(data=st.binary(max_size=200))
def test_random_bytes(tmp_path: Path, data: bytes) -> None:
    check(tmp_path, data)


KEYS = st.sampled_from(
    ["seat", "Seat", "arms", "base", "[key]", "model", "candidates", "prompts", "template", "notes", "x"]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["embedded", "{beat}"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=4) | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)
SECTIONS = st.sampled_from(sorted(yaml.safe_load(GATE)))


@QUICK
@given(sections=st.dictionaries(SECTIONS | KEYS, VALUES, min_size=1, max_size=4))
def test_values_of_any_kind_in_any_section(tmp_path: Path, sections: dict[str, object]) -> None:
    check(
        tmp_path, yaml.safe_dump(yaml.safe_load(GATE) | sections, allow_unicode=True).encode("utf-8", "surrogatepass")
    )


@pytest.mark.parametrize("line", range(1, len(GATE.splitlines()) + 1))
def test_a_gate_cut_off_after_any_line(tmp_path: Path, line: int) -> None:
    check(tmp_path, b"\n".join(GATE.splitlines()[:line]))
