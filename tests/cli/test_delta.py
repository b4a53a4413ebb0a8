"""`gates delta`: the published way to a matrix, by hand on three tiny texts."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.flow.conftest import gates

TEXTS = {"a": "the cat and the dog", "b": "a cat or the dog or", "c": "The sea and The sea"}


@pytest.fixture
def texts(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{name}.txt" for name in TEXTS]
    for path, text in zip(paths, TEXTS.values(), strict=True):
        path.write_text(text, "utf-8")
    return paths


def test_min_max_by_hand(texts: list[Path]) -> None:
    # Shares of a: the .4, cat .2, and .2, dog .2; of c in lower case: the .4, sea .4, and .2. Min .6 of max 1.4.
    ended = gates("delta", *texts, "--measure", "min-max", "--mfw", 10)
    rows = list(csv.reader(io.StringIO(ended.stdout)))
    assert rows[0] == ["", "a", "b", "c"]
    assert [float(row[row_number + 1]) for row_number, row in enumerate(rows[1:])] == [0, 0, 0]
    assert float(rows[1][3]) == pytest.approx(1 - 0.6 / 1.4, abs=1e-8)
    assert "min-max-delta@1|mfw:7|culling:0.0|case:lower|tokens:words|frame:the 3 texts" in ended.stderr


def test_case_kept_tells_capitals_apart(texts: list[Path]) -> None:
    ended = gates("delta", *texts, "--measure", "min-max", "--mfw", 10, "--case", "keep", "--json")
    found = json.loads(ended.stdout)
    # Only `and` (.2) is shared now: min .2 of max 1.8.
    assert found["distances"][0][2] == pytest.approx(1 - 0.2 / 1.8)
    assert found["names"] == ["a", "b", "c"]


def test_cosine_of_two_texts_in_their_own_frame_is_two(texts: list[Path]) -> None:
    # z-scores of two texts are each other's opposites, so their cosine distance is 2 whatever they say.
    found = json.loads(gates("delta", *texts[:2], "--mfw", 10, "--json").stdout)
    assert found["distances"][0][1] == pytest.approx(2.0)


def test_a_reference_gives_mean_and_sd_and_out_takes_the_matrix(texts: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "matrix.csv"
    ended = gates("delta", *texts[:2], "--reference", texts[0], "--reference", texts[2], "--mfw", 10, "--out", out)
    assert ended.stdout == ""
    assert "frame:2 reference texts" in ended.stderr
    rows = list(csv.reader(io.StringIO(out.read_text("utf-8"))))
    assert 0 <= float(rows[1][2]) < 2


def test_letters_cut_at_apostrophes_and_culling_drops_rare_words(tmp_path: Path) -> None:
    for name, text in {"x": "don't go home home", "y": "don't go go away"}.items():
        (tmp_path / f"{name}.txt").write_text(text, "utf-8")
    paths = sorted(tmp_path.glob("*.txt"))
    culled = json.loads(gates("delta", *paths, "--measure", "min-max", "--culling", 100, "--json").stdout)
    # Of the two words that stand in both texts, don't varies in neither: go alone is left, .25 against .5.
    assert "mfw:1|" in culled["signature"]
    assert culled["distances"][0][1] == pytest.approx(0.5)
    letters = json.loads(gates("delta", *paths, "--measure", "min-max", "--tokens", "letters", "--json").stdout)
    # Of five words now: go .2 against .4, home .4 against 0, away 0 against .2; don and t do not vary.
    assert "mfw:3|" in letters["signature"]
    assert letters["distances"][0][1] == pytest.approx(1 - 0.2 / 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda paths: paths[:1], "one text has no distance to another"),
        (lambda paths: [*paths, paths[0]], "texts share a name: a"),
        (lambda paths: [*paths, paths[0].with_name("none.txt")], "none.txt"),
    ],
)
def test_what_has_no_matrix_is_refused(texts: list[Path], change, message: str) -> None:
    ended = gates("delta", *change(texts))
    assert ended.returncode == 2
    assert message in ended.stderr


def test_a_text_without_words_is_named(texts: list[Path]) -> None:
    texts[0].write_text("1234 !", "utf-8")
    ended = gates("delta", *texts)
    assert ended.returncode == 2
    assert "a.txt: there is not one word in it" in ended.stderr
