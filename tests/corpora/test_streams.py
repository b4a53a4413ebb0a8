"""Sources in parts: whatever the cuts, the words of the whole; every packing; every way a source can be wrong."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
from functools import partial
from pathlib import Path

import fsspec
import pyarrow
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gates.corpora.cluster import pages
from gates.corpora.streams import read
from gates.corpora.streams.plan import Part, plan
from gates.corpora.streams.read import documents_of, text_of
from gates.errors import InputError, UsageError
from gates.text import prose_words, split
from gates.text.quick import flat, unwrapped

PROSE = st.lists(
    st.sampled_from(["ab", "é", " ", "\n", "-\n", "-\r\n", "\u2010\n\t", "_", "'", "\n\n", "-", "漢"])
).map("".join)
PACKED = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": partial(pyarrow.compress, codec="zstd", asbytes=True),
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "_CHUNK", 5)


def parted(path: Path, data: bytes, part_bytes: int | None) -> list[list[bytes]]:
    path.write_bytes(data)
    return [list(text_of(part)) for part in plan([str(path)], part_bytes)]


@example(text=" ab", part_bytes=1, chunk=1)
@example(text="ab-\nab\nab", part_bytes=2, chunk=3)
@example(text="ab\u2010\r\nab\n", part_bytes=2, chunk=3)
@example(text="ab\u00ad\nab\nab", part_bytes=2, chunk=3)
@example(text="abab-\n abab", part_bytes=None, chunk=4)
@given(text=PROSE.filter(bool), part_bytes=st.integers(1, 40) | st.none(), chunk=st.integers(1, 7))
def test_parts_hold_all_of_a_text_and_cut_no_word(
    tmp_path_factory: pytest.TempPathFactory, text: str, part_bytes: int | None, chunk: int
) -> None:
    data = text.encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read, "_CHUNK", chunk)
        pieces = parted(tmp_path_factory.mktemp("text") / "a.txt", data, part_bytes)
    assert b"".join(piece for part in pieces for piece in part) == data
    assert [w for part in pieces for piece in part for w in split(flat(unwrapped(piece)))] == prose_words(text)


@given(
    lines=st.lists(st.sampled_from(['{"text": "a"}', "", "  ", '{"text": "x\\ny", "prompt": "z"}']), min_size=1),
    part_bytes=st.integers(1, 60),
)
def test_ranges_of_jsonl_hold_every_line_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], part_bytes: int
) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    found = [document.text for part in plan([str(path)], part_bytes) for document in documents_of(part)]
    assert found == [json.loads(line)["text"].encode() if line.strip() else None for line in lines]


def test_a_mark_of_utf_8_is_one_only_where_a_file_begins(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "a"}\n\xef\xbb\xbf{"text": "b"}\n')
    first, second, _rest = plan([str(tmp_path / "a.jsonl")], 14)
    assert [document.text for document in documents_of(first)] == [b"a"]
    with pytest.raises(InputError, match="this is no JSON"):
        list(documents_of(second))


@pytest.mark.parametrize("packing", PACKED)
def test_packed_text_and_lines_are_read_alike(tmp_path: Path, packing: str, small: None) -> None:
    text = "It was a dark and stormy ni-\nght.\n" * 40
    data = text.encode()
    (tmp_path / f"a.txt{packing}").write_bytes(PACKED[packing](data[:100]) + PACKED[packing](data[100:]))
    (tmp_path / f"b.jsonl{packing}").write_bytes(PACKED[packing](b'{"text": "one"}\n\n{"text": "two"}'))
    first, second = plan([str(tmp_path)], 10)
    assert b"".join(text_of(first)).decode() == text
    assert [(document.line, document.text) for document in documents_of(second)] == [
        (1, b"one"),
        (2, None),
        (3, b"two"),
    ]


def test_parquet_is_read_by_row_groups_and_remote_files_as_local_ones(tmp_path: Path) -> None:
    pq.write_table(
        pyarrow.table({"id": [1, 2, 3], "text": ["one", "two", "three"]}), tmp_path / "a.parquet", row_group_size=2
    )
    parts = plan([str(tmp_path / "a.parquet")], 1)
    assert [[document.text for document in documents_of(part)] for part in parts] == [[b"one", b"two"], [b"three"]]
    (whole,) = plan([str(tmp_path / "a.parquet")], 1 << 20)
    assert [document.text for document in documents_of(whole)] == [b"one", b"two", b"three"]
    memory = fsspec.filesystem("memory")
    memory.pipe("/books/b.txt", b"a line\nanother one\n")
    memory.pipe("/books/.hidden", b"no")
    assert [part.file for part in plan(["memory://books"], 9)] == ["memory:///books/b.txt"] * 3
    assert (
        b"".join(piece for part in plan(["memory://books"], 9) for piece in text_of(part)) == b"a line\nanother one\n"
    )


def test_a_part_is_found_from_another_folder_under_the_name_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("here", "utf-8")
    pq.write_table(pyarrow.table({"text": ["there"]}), tmp_path / "b.parquet")
    monkeypatch.chdir(tmp_path)
    text, rows = plan(["a.txt", "b.parquet"])
    monkeypatch.chdir("/")  # as a worker
    assert (text.file, b"".join(text_of(text))) == ("a.txt", b"here")
    assert [document.text for document in documents_of(rows)] == [b"there"]
    (tmp_path / "b.parquet").unlink()
    with pytest.raises(InputError, match=r"  b\.parquet: file: cannot be read"):
        list(documents_of(rows))


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("settings", [{}, {"use_dictionary": False}, {"data_page_version": "2.0"}])
def test_the_pages_of_a_column_are_found_and_bound_what_it_unpacks_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: str, settings: dict[str, object]
) -> None:
    words = [f"row {number} " * 200 for number in range(500)]
    path = tmp_path / "a.parquet"
    table = pyarrow.table({"id": range(500), "text": words})
    pq.write_table(table, path, compression=compression, data_page_size=10_000, **settings)
    column = pq.read_metadata(path).row_group(0).column(1)
    (part,) = plan([str(path)])
    monkeypatch.setattr(pages, "LARGEST", column.total_uncompressed_size)
    assert [document.text for document in documents_of(part)] == [text.encode() for text in words]
    monkeypatch.setattr(pages, "LARGEST", column.total_uncompressed_size - 1)
    with pytest.raises(InputError, match=r"a\.parquet: row group 0, text = [\d,]+ bytes: by the footer, more than"):
        list(documents_of(part))


def test_a_footer_that_promises_less_than_its_pages_unpack_to_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "LARGEST", 2**20)
    path = tmp_path / "a.parquet"
    pq.write_table(pyarrow.table({"text": ["a" * 2**21]}), path, compression="zstd", use_dictionary=False)
    column = pq.read_metadata(path).row_group(0).column(0)
    path.write_bytes(path.read_bytes().replace(_varint(column.total_uncompressed_size), _varint(1000, 4)))
    assert path.stat().st_size < 2000
    assert pq.read_metadata(path).row_group(0).column(0).total_uncompressed_size == 1000
    with pytest.raises(
        InputError, match=r"text = 2,097,\d+ bytes: by its pages, more than the 1,048,576 bytes"
    ) as told:
        list(documents_of(plan([str(path)])[0]))
    assert "smaller row groups" in str(told.value)


def test_every_row_group_is_bound_and_fewer_rows_than_promised_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    rows = ["a", "b" * 5000]
    pq.write_table(pyarrow.table({"text": rows}), path, row_group_size=1, compression="none", use_dictionary=False)
    monkeypatch.setattr(pages, "LARGEST", 1000)
    (whole,) = plan([str(path)])
    with pytest.raises(InputError, match=r"row group 1, text = [\d,]+ bytes: by the footer"):
        next(documents_of(whole))
    monkeypatch.undo()
    pq.write_table(pyarrow.table({"text": ["a"] * 777}), path, use_dictionary=False, write_statistics=False)
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    path.write_bytes(data[:footer] + data[footer:].replace(_varint(777), _varint(900)))
    with pytest.raises(InputError, match=r"a\.parquet: rows = 777: the footer promises 900"):
        list(documents_of(plan([str(path)])[0]))


def _varint(number: int, length: int = 0) -> bytes:
    """A number as Parquet's footer has it, in so many bytes."""
    left, found = number << 1, []
    while left or len(found) < length:
        found.append(left & 127 | 128)
        left >>= 7
    return bytes([*found[:-1], found[-1] & 127])


def test_an_xz_of_several_streams_is_read_whole_and_one_of_a_huge_dictionary_is_not(tmp_path: Path) -> None:
    text = b"It was a dark night.\n" * 50_000
    (tmp_path / "a.txt.xz").write_bytes(lzma.compress(text) + bytes(8) + lzma.compress(b"The end.\n") + bytes(4))
    huge = lzma.compress(b"words", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 512 * 2**20}])
    (tmp_path / "b.txt.xz").write_bytes(huge)
    first, second = plan([str(tmp_path)])
    assert b"".join(text_of(first)) == text + b"The end.\n"
    with pytest.raises(InputError, match=r"b\.txt\.xz: file: cannot be read: Memory usage limit exceeded"):
        list(text_of(second))


def test_a_long_line_is_cut_at_blanks_unless_it_may_hold_italics(small: None) -> None:
    def pieces(text: str, path: str = "memory://long.txt") -> list[bytes]:
        fsspec.filesystem("memory").pipe("/long.txt", text.encode())
        return [piece for piece in text_of(Part(path, "text", "")) if piece]

    assert max(map(len, pieces("some words " * 50))) < 20
    assert pieces("_some words " * 50) == [("_some words " * 50).encode()]


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(read, "MAX_LINE", 1 << 20)
    for name, data in {"a.txt.gz": b"_" * (1 << 23), "a.jsonl.gz": b" " * (1 << 23)}.items():
        (tmp_path / name).write_bytes(gzip.compress(data))
        (part,) = plan([str(tmp_path / name)])
        with pytest.raises(InputError, match="one line is longer than 1,048,576 bytes"):
            list(documents_of(part) if "jsonl" in name else text_of(part))


WRONG = {
    "a.txt.gz": (b"no gzip", "cannot be read: Not a gzipped file"),
    "a.txt.xz": (b"no xz", "cannot be read: Input format not supported"),
    "a.txt.bz2": (b"no bz2", "cannot be read: Invalid data stream"),
    "a.txt.zst": (b"no zst at all", "cannot be read: .*ZSTD"),
    "a.jsonl": (b'{"text": 1}\n{"text"\n\xff\n[]', "4 problems"),
    "b.jsonl": (b"[]\n" * 200, "100 problems"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    data, said = WRONG[name]
    (tmp_path / name).write_bytes(data)
    (part,) = plan([str(tmp_path / name)])
    with pytest.raises(InputError, match=said) as raised:
        list(documents_of(part) if part.kind == "lines" else text_of(part))
    assert f"{tmp_path}/{name}" in str(raised.value)


@pytest.mark.parametrize("packing", PACKED)
@pytest.mark.parametrize("lost", [1, 5, 5000])
def test_an_archive_that_ends_early_is_no_shorter_source(tmp_path: Path, packing: str, lost: int) -> None:
    packed = PACKED[packing](random.Random(1).randbytes(10_000).hex().encode())
    (tmp_path / f"a.txt{packing}").write_bytes(packed[:-lost])
    with pytest.raises(InputError, match="cannot be read: "):
        list(text_of(plan([str(tmp_path / f"a.txt{packing}")])[0]))


def test_a_plan_names_all_that_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError) as raised:
        plan([str(tmp_path / "empty.txt"), str(tmp_path / "none"), str(tmp_path / "missing")])
    rules = ["the file is empty", "there is no text in it", "there is no such file or folder"]
    assert [problem.rule for problem in raised.value.problems] == rules
    (tmp_path / "a.parquet").write_bytes(b"no parquet")
    with pytest.raises(InputError, match=r"a\.parquet: file: cannot be read"):
        plan([str(tmp_path / "a.parquet")])
    pq.write_table(pyarrow.table({"id": [1]}), tmp_path / "b.parquet")
    with pytest.raises(InputError, match="columns = id: must hold one named text"):
        list(documents_of(plan([str(tmp_path / "b.parquet")])[0]))
    pq.write_table(pyarrow.table({"text": ["a", None]}), tmp_path / "c.parquet")
    with pytest.raises(InputError, match=r"c\.parquet:2: text = null: must be there, and a string"):
        list(documents_of(plan([str(tmp_path / "c.parquet")])[0]))


@pytest.mark.parametrize("url", ["s3://user:secret@host/books", "https://host/books?signature=secret"])
def test_a_url_with_a_secret_is_refused_without_saying_it(url: str) -> None:
    with pytest.raises(UsageError) as raised:
        plan([url])
    assert "secret" not in str(raised.value)


def test_an_unknown_scheme_and_a_missing_remote_file_are_named() -> None:
    with pytest.raises(InputError, match="nosuch://x/y: file: cannot be read: Protocol not known"):
        plan(["nosuch://x/y"])
    with pytest.raises(InputError, match="memory://no/such: file: cannot be read"):
        plan(["memory://no/such"])
    with pytest.raises(InputError, match=r"memory://no/\\x1bc: file: cannot be read: /no/\\x1bc$"):
        plan(["memory://no/\x1bc"])
