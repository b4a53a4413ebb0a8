"""Whatever a file holds, its reader reads it or says what is wrong: no traceback, no hang, no memory without end."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.bombs import BOMBS
from tests.fuzz.mutations import mutated
from tests.fuzz.readers import Reader, readers, survives

MOST_MIB = 400


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[Reader, ...]]:
    home = tmp_path_factory.mktemp("readers")
    return home, readers(home)


def test_every_reader_takes_its_whole_files(attacked: tuple[Path, tuple[Reader, ...]]) -> None:
    """Else the hostile ones would be refused for another reason."""
    home, known = attacked
    refused = {}
    for reader in known:
        folder = home / "whole" / reader.name.replace(" ", "-")
        folder.mkdir(parents=True)
        answers = [survives(reader, folder, data) for data in reader.seeds]
        if None not in answers:
            refused[reader.name] = str(answers[0])
    # A header without weights, a made-up key, a table with an empty row, and a proxy whose seat is another one.
    assert set(refused) <= {"adapter for vLLM", "signature", "Parquet"}, refused


@settings(max_examples=400, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 4))
def test_a_hostile_file_ends_in_an_error_of_ours(
    attacked: tuple[Path, tuple[Reader, ...]], seed: int, count: int
) -> None:
    home, known = attacked
    rng = random.Random(seed)
    for reader in rng.sample(known, 3):
        folder = home / "hostile" / reader.name.replace(" ", "-")
        folder.mkdir(parents=True, exist_ok=True)
        survives(reader, folder, mutated(rng.choice(reader.seeds), reader.kind, seed, count))


@pytest.mark.slow
def test_no_file_is_more_than_it_looks(root: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.bombs"], cwd=root, capture_output=True, text=True, check=False
    )
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    assert (ended.returncode, [name for name, *_ in found]) == (0, [name for name, *_ in BOMBS]), ended.stderr[-2000:]
    read = {name for name, said, *_ in found if said.startswith("read")}
    assert read == {"rows.parquet"}
    assert [each for each in found if each[1].startswith("TRACEBACK") or each[2] > MOST_MIB] == []
