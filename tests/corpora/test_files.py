"""Anybody's texts: read by place, or refused by place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gates.corpora.files import read_prompts, read_texts
from gates.errors import InputError, UsageError


def test_files_folders_and_jsonl_in_the_order_given(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    (folder / "b.txt").write_bytes("\ufeffbeta\r\nend".encode())
    (folder / "sub" / "a.txt").write_text("alpha", "utf-8")
    (folder / ".hidden").write_bytes(b"\xff")
    (folder / ".git").mkdir()
    (folder / ".git" / "c.txt").write_text("no", "utf-8")
    lines = tmp_path / "lines.jsonl"
    # A line separator inside a string ends no line.
    lines.write_text('{"text": "one\u2028two", "prompt": "p"}\n\n{"text": "", "extra": 1}\n', "utf-8")
    found = read_texts([lines, folder])
    assert [(text.name.removeprefix(f"{tmp_path.as_posix()}/"), text.text, text.prompt) for text in found] == [
        ("lines.jsonl:1", "one\u2028two", "p"),
        ("lines.jsonl:3", "", None),
        ("folder/b.txt", "beta\nend", None),
        ("folder/sub/a.txt", "alpha", None),
    ]


def test_a_recorded_generation_brings_what_its_request_showed(tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "Write."}, {"role": "user", "content": "Beat: rain"}]
    rows = [{"messages": messages}, {"prompt": "Beat: rain"}, {}, "odd"]
    path = tmp_path / "generations.jsonl"
    path.write_text("\n".join(json.dumps({"text": "t", "prompt": 4, "request": row}) for row in rows), "utf-8")
    assert [text.prompt for text in read_texts([path])] == ["Write.\n\nBeat: rain", "Beat: rain", None, None]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.txt", b"fine\nna\xefve", "a.txt:2: byte = b'\\xef': the file is not UTF-8 here (save it as UTF-8)"),
        ("a.txt", b" \n", "a.txt: file: the file is empty (leave it out)"),
        ("a.jsonl", b"", "a.jsonl: file: the file is empty"),
        ("a.jsonl", b'{"text": "x"}\n{"text": ', "a.jsonl:2: line = '{\"text\": ': this is no JSON: Expecting value"),
        ("a.jsonl", b"[" * 100_000, "a.jsonl:1: line = "),
        ("a.jsonl", b'\n["x"]', "a.jsonl:2: line = '[\"x\"]': must be a JSON object"),
        ("a.jsonl", b'{"texts": "x"}', "a.jsonl:1: text: must be there, and a string"),
        ("a.jsonl", b'{"text": 7}', "a.jsonl:1: text = 7: must be there, and a string"),
        ("a.jsonl", b'{"text": "x", "prompt": 7}', "a.jsonl:1: prompt = 7: must be a string"),
    ],
)
def test_bad_input_is_named_with_file_and_line(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError) as refused:
        read_texts([tmp_path / name])
    assert message in str(refused.value)


def test_all_mistakes_are_listed_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.txt").write_bytes(b"\xff")
    with pytest.raises(InputError) as refused:
        read_texts([tmp_path / "empty", tmp_path / "nowhere", tmp_path / "bad.txt"])
    assert [problem.rule for problem in refused.value.problems] == [
        "there is no text in it",
        "there is no such file or folder",
        "the file is not UTF-8 here",
    ]


def test_prompts_are_as_many_as_the_texts_or_one_for_all(tmp_path: Path) -> None:
    lines, rows = tmp_path / "p.txt", tmp_path / "p.jsonl"
    lines.write_text("one\n\nthree\n", "utf-8")
    rows.write_text('{"text": "one"}\n{"text": "", "prompt": "two"}\n', "utf-8")
    assert read_prompts(lines, 3) == ("one", "", "three")
    assert read_prompts(rows, 2) == ("one", "two")
    lines.write_text("all", "utf-8")
    assert read_prompts(lines, 2) == ("all", "all")
    with pytest.raises(UsageError, match=r"p\.jsonl: 2 prompts for 3 texts"):
        read_prompts(rows, 3)
    lines.write_bytes(b"\n\xff")
    with pytest.raises(InputError, match=r"p\.txt:2: byte"):
        read_prompts(lines, 3)
