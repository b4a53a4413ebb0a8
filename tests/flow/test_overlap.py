"""Overlap with sources that stream by: the slow matcher's runs, the same however the work is parted and packed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gates.corpora.files import NamedText
from gates.errors import InputError
from gates.flow import overlap as module
from gates.flow.overlap import Here, overlap
from gates.text import prose_words
from tests.measure.test_ngrams import slow_matches

WORDS = st.lists(st.sampled_from(["a", "b", "cé", "consideration"]), min_size=1, max_size=20)


class Parted:
    """Parts of a few bytes, the last one first."""

    def __init__(self, part_bytes: int) -> None:
        self.part_bytes = part_bytes

    def run(self, make: Callable[[], Any], work: Callable[[Any, Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        shared = make()
        results = {number: work(shared, items[number]) for number in reversed(range(len(items)))}
        return (results[number] for number in range(len(items)))


@given(
    books=st.lists(WORDS, min_size=1, max_size=3),
    texts=st.lists(WORDS, min_size=1, max_size=3),
    size=st.integers(1, 200),
    batch=st.integers(1, 30),
)
@example(books=[["a", "b"], ["b", "b"], ["a", "a"]], texts=[["a", "a"]], size=30, batch=1)
def test_the_runs_are_the_slow_matchers_however_the_sources_are_parted(
    tmp_path_factory: pytest.TempPathFactory, books: list[list[str]], texts: list[list[str]], size: int, batch: int
) -> None:
    folder = tmp_path_factory.mktemp("books")
    sources = []
    for number, words in enumerate(books):
        (folder / f"{number}.txt").write_text("\n".join(words) + ".", "utf-8")
        sources.append((f"{folder}/{number}.txt", words))
    lines = [json.dumps({"text": ", ".join(words)}) for words in books]
    (folder / "lines.jsonl").write_text("\n\n".join(lines), "utf-8")
    sources += [(f"{folder}/lines.jsonl:{2 * number + 1}", words) for number, words in enumerate(books)]
    named = [NamedText(f"{number}", " ".join(words), None) for number, words in enumerate(texts)]
    sources = [*sources, sources[0], sources[0]]
    if all(len(words) < 2 for _, words in sources):
        return
    given_ = [str(folder), sources[0][0], sources[0][0]]
    told: list[tuple[int, int]] = []
    found = overlap(given_, named, [None] * len(named), 2, Here(lambda *done: told.append(done)))
    parts = len(books) + 3
    assert told == [(done, parts) for done in range(1, parts + 1)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BATCH", batch)
        assert overlap(given_, named, [None] * len(named), 2, Parted(size)) == found
    assert [(run.text, run.start, run.length, run.sources) for run in found.runs] == [
        (match.text, match.start, match.length, match.sources) for match in slow_matches(sources, texts, [], 2)
    ]


def test_every_form_of_a_source_gives_the_same_runs(tmp_path: Path) -> None:
    texts = [
        "It was the best of times, it was the worst of\ntimes",
        "it was the age of wisdom, it was the age of foo-\nlishness",
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), "utf-8")
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes()))
    pq.write_table(pyarrow.table({"text": texts}), tmp_path / "a.parquet", row_group_size=1)
    asked = [NamedText("t", "He said it was the age of foolishness, it was the best of times.", None)]
    rows = {}
    for name in ("a.jsonl", "a.jsonl.gz", "a.parquet"):
        found = overlap([str(tmp_path / name)], asked, [None], 3, Here())
        rows[name] = [(run.words, [(s.file.rsplit(":")[-1], s.start) for s in run.sources]) for run in found.runs]
    assert rows["a.jsonl.gz"] == rows["a.parquet"] == rows["a.jsonl"]
    matches = slow_matches(
        [(str(k + 1), prose_words(text)) for k, text in enumerate(texts)], [prose_words(asked[0].text)], [], 3
    )
    assert rows["a.jsonl"] == [
        (" ".join(prose_words(asked[0].text)[m.start : m.start + m.length]), [(s.file, s.start) for s in m.sources])
        for m in matches
    ]


@pytest.mark.parametrize("data", [b"words and \xff more", b"half a pair \xed\xa0\x80", b"cut short \xc3"])
def test_a_source_that_is_no_utf8_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    with pytest.raises(InputError, match=r"a\.txt: bytes = .*: the file is not UTF-8 here"):
        overlap([str(tmp_path / "a.txt")], [NamedText("t", "words and more", None)], [None], 2, Here())
