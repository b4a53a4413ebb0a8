"""The overlap of anybody's texts, by hand and through the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gates.errors import UsageError
from gates.measure.ngrams import Piece
from gates.measure.overlap import overlap
from gates.text import prose_words
from tests.flow.conftest import gates

SENTENCE = "the old clock upon the stairs struck nine before Margaret Hale came down"
COPY = "She said: THE old clock upon the stairs\u2014struck nine before Margaret went."


def test_nothing_to_look_at_and_nothing_to_look_in_are_refused() -> None:
    with pytest.raises(UsageError, match="there is no text to look at") as refused:
        overlap([], 6, [], [])
    assert refused.value.next_step == "name other files, or a smaller n"
    with pytest.raises(UsageError, match="the sources hold no run of 14 words"):
        overlap([], 0, [("t", prose_words(COPY))], [None], 14)


def test_a_run_has_eight_words_unless_told() -> None:
    words = prose_words(SENTENCE)
    found = overlap([Piece("s", words)], 6, [("seven", words[:7]), ("eight", words[:8])], [None, None])
    assert (found.n, [(run.name, run.length) for run in found.runs]) == (8, [("eight", 8)])


def test_a_prompt_takes_out_its_own_ngrams_alone() -> None:
    texts = [("t", prose_words(SENTENCE)), ("u", prose_words(SENTENCE))]
    found = overlap([Piece("s", prose_words(SENTENCE))], 10, texts, ["upon the stairs struck nine", None], 4)
    assert [(run.text, run.start, run.length) for run in found.runs] == [(0, 0, 6), (0, 5, 8), (1, 0, 13)]
    assert (found.hits, found.hit_rate, found.signature.rsplit("|")[-1]) == (2, 1.0, "prompt:subtracted")


def test_the_whole_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("books").mkdir()
    Path("books/one.txt").write_text(f"Late. {SENTENCE}.", "utf-8")
    Path("books/two.txt").write_text(SENTENCE, "utf-8")
    Path("texts.jsonl").write_text(f'{{"text": "nothing of the kind"}}\n{json.dumps({"text": COPY})}\n', "utf-8")
    ended = gates("overlap", "--source", "books", "--texts", "texts.jsonl", "--json")
    assert ended.returncode == 0
    assert json.loads(ended.stdout) == {
        "signature": "ngram_hits@1|n:8|tokens:words@1+prose|prompt:none",
        "n": 8,
        "texts": 2,
        "hits": 1,
        "hit_rate": 0.5,
        "runs": [
            {
                "text": 1,
                "name": "texts.jsonl:2",
                "start": 2,
                "length": 10,
                "words": "the old clock upon the stairs struck nine before margaret",
                "sources": [{"file": "books/one.txt", "start": 1}, {"file": "books/two.txt", "start": 0}],
            }
        ],
    }
    said = gates("overlap", "--source", "books/two.txt", "--texts", "texts.jsonl", "--n", "9")
    assert said.stdout.splitlines() == [
        "1 of 2 texts hold 9 words in a row of the source (0.500)",
        "  texts.jsonl:2 at word 2, 10 words, as in books/two.txt at word 0: "
        "the old clock upon the stairs struck nine before margaret",
        "ngram_hits@1|n:9|tokens:words@1+prose|prompt:none",
    ]
    Path("prompts.txt").write_text(f"\n{SENTENCE}\n", "utf-8")
    given = gates("overlap", "--source", "books", "--texts", "texts.jsonl", "--prompts", "prompts.txt", "--json")
    assert json.loads(given.stdout)["hits"] == 0


def test_mistakes_are_named_and_end_with_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("source.txt").write_text(SENTENCE, "utf-8")
    Path("texts.jsonl").write_text('{"text": "x", "prompt": "p"}\n{"text"\n', "utf-8")
    broken = gates("overlap", "--source", "source.txt", "--texts", "texts.jsonl", "--json")
    assert broken.returncode == 2
    assert "texts.jsonl:2: line = " in json.loads(broken.stdout)["error"]
    Path("texts.jsonl").write_text('{"text": "x", "prompt": "p"}\n', "utf-8")
    twice = gates("overlap", "--source", "source.txt", "--texts", "texts.jsonl", "--prompts", "source.txt")
    assert (twice.returncode, "the texts bring their own prompts" in twice.stderr) == (2, True)
    assert gates("overlap", "--texts", "texts.jsonl").returncode == 2
