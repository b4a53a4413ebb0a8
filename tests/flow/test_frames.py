"""Frames of a run: their rows against the records, the CSV, reprs that no text can bend, and the worked notebook."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import gates as package
from gates import load_run
from gates.errors import TamperedError
from scripts.notebook import executed
from tests.finished import TWO, finished_run, two_voices
from tests.flow.conftest import gates

EVIL = "<script>x</script> & does it move?"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("frames")
    return finished_run(home / "work", home / "cache", two_voices, **TWO, name="demo", question=EVIL)


def test_one_row_per_arm_seed_prompt_and_axis(finished: Path) -> None:
    values = load_run(finished).values
    record = json.loads((finished / "measurements.json").read_bytes())["arms"]
    assert list(values.columns) == ["arm", "role", "seed", "prompt", "axis", "value"]
    assert not values.duplicated(["arm", "seed", "prompt", "axis"]).any()
    # Three arms, two seeds: 12 prompts on two axes, and one distance a seed.
    assert len(values) == 3 * 2 * (12 * 2 + 1)
    for name, arm in record.items():
        own = values[values["arm"] == name]
        ran_on = own[own["axis"] == "ran_on"].sort_values(["seed", "prompt"])["value"]
        assert list(ran_on) == [value for row in arm["damage"]["ran_on"]["values"] for value in row]
        assert own[own["axis"] == "memorisation"]["value"].sum() == arm["memorisation"]["hits"]
    hits = values[(values["axis"] == "memorisation") & (values["value"] == 1)]
    found = set(hits[["arm", "prompt", "seed"]].itertuples(index=False, name=None))
    assert found == {("one", 3, 1), ("base", 5, 2), ("two", 1, 1)}
    voice = values[values["axis"] == "voice"]
    assert voice["prompt"].isna().all()
    assert list(voice[voice["arm"] == "base"]["value"]) == record["one"]["voice"]["base_distances"]
    assert list(voice[voice["arm"] == "two"]["value"]) == record["two"]["voice"]["distances"]


def test_texts_and_verdicts(finished: Path) -> None:
    run = load_run(finished)
    lines = [json.loads(line) for line in (finished / "generations.jsonl").read_bytes().splitlines()]
    assert list(run.texts["text"]) == [line["text"] for line in lines]
    assert list(run.texts["completion_tokens"]) == [30] * 72
    verdict = json.loads((finished / "verdict.json").read_bytes())
    told = {(row.arm, row.axis): row.outcome for row in run.verdicts.itertuples()}
    assert told == {
        (name, axis): found["outcome"]
        for name, candidate in verdict["candidates"].items()
        for axis, found in candidate["axes"].items()
    }


def test_the_csv_is_the_frame(finished: Path, tmp_path: Path) -> None:
    ended = gates("table", finished)
    assert ended.returncode == 0
    rows = list(csv.DictReader(io.StringIO(ended.stdout)))
    values = load_run(finished).values
    assert [float(row["value"]) for row in rows] == list(values["value"])
    assert {row["prompt"] for row in rows if row["axis"] == "voice"} == {""}
    gates("table", finished, "--out", tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text("utf-8") == ended.stdout
    document = json.loads(gates("table", finished, "--json").stdout)
    assert len(document) == len(rows)
    assert document[0]["prompt"] is None


def test_reprs_say_the_verdict_and_hold_no_markup_of_a_text(finished: Path) -> None:
    run = load_run(finished)
    outcome = run.verdict.outcome.value
    assert repr(run).startswith(f"demo, run 001: {outcome}\n")
    shown = run._repr_html_()
    assert "&lt;script&gt;x&lt;/script&gt; &amp; does it move?" in shown
    assert "<script" not in shown


def test_a_changed_run_is_not_loaded(finished: Path) -> None:
    path = finished / "measurements.json"
    kept = path.read_bytes()
    try:
        path.write_bytes(kept + b" ")
        with pytest.raises(TamperedError):
            load_run(finished)
    finally:
        path.write_bytes(kept)


def test_the_package_is_imported_without_what_it_does_not_need(root: Path) -> None:
    asked = "import sys, gates; print([name for name in ('pandas', 'numpy', 'pydantic') if name in sys.modules])"
    environ = os.environ | {"PYTHONPATH": str(root)}
    ended = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, env=environ, check=True)
    assert ended.stdout == "[]\n"
    assert all(hasattr(package, name) for name in package.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'load_runs'"):
        _ = package.load_runs


def test_the_worked_notebook_works(finished: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every code cell, in order, in one namespace; the last expression of each is shown, as a notebook does."""
    monkeypatch.chdir(finished.parents[2])
    document = json.loads((root / "docs" / "notebook.ipynb").read_text("utf-8"))
    space: dict[str, object] = {}
    shown = list(executed(document, space))
    assert len(shown) == 7
    for cell, value in shown:
        (kept,) = cell["outputs"]
        text = {kind: "".join(lines) for kind, lines in kept["data"].items()}
        # What is kept is of the demonstration's run: other figures, the same columns; small, and of no machine.
        assert text.keys() == {"text/html", "text/plain"}
        assert sum(map(len, text.values())) < 20_000
        assert not re.search(r"/(?:tmp|home|root|work|usr|Users)\b|[A-Z]:\\", str(text))
        if isinstance(value, pd.DataFrame):
            heads = value.columns if value.columns.name is None else [value.columns.name]
            assert [head for head in heads if f"<th>{head}</th>" not in text["text/html"]] == []
        else:
            assert "demo, run 001" in text["text/plain"]
        assert value._repr_html_()
    by_hand = space["by_hand"]
    assert isinstance(by_hand, pd.DataFrame)
    verdicts = load_run(finished).verdicts.query("axis == 'voice'").set_index("arm")
    assert by_hand["move"].to_dict() == pytest.approx(verdicts["value"].to_dict())
    assert by_hand["floor"].to_dict() == pytest.approx(verdicts["floor"].to_dict())
