"""Sources that are not what they seem: they change, lead elsewhere, are of another kind, or end in something else."""

from __future__ import annotations

import bz2
import io
import json
import os
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet as pq
import pytest

from gates.corpora.cluster import pages
from gates.corpora.files import read_texts
from gates.corpora.streams.plan import plan
from gates.corpora.streams.read import documents_of, text_of
from gates.errors import InputError
from tests.flow.conftest import gates

RUN = "the quick brown fox jumps over the lazy dog and then sleeps well"
LINE = json.dumps({"text": RUN}) + "\n"


def read_all(source: Path) -> list[bytes]:
    return [
        piece
        for part in plan([str(source)])
        for piece in (text_of(part) if part.kind == "text" else (one.text or b"" for one in documents_of(part)))
    ]


def overlap(source: object, tmp_path: Path) -> tuple[int, str]:
    """How `gates overlap` of RUN with a source ends, and what it says."""
    (tmp_path / "own.txt").write_text(RUN, "utf-8")
    ended = gates("overlap", "--source", source, "--texts", tmp_path / "own.txt", "--json")
    return ended.returncode, ended.stderr or ended.stdout


def grow(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"more\n")


def rewrite(path: Path) -> None:
    """Other bytes, as many as before, at another time."""
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(1, 1))


def shrink(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5])


@pytest.mark.parametrize("change", [grow, rewrite, shrink])
def test_a_file_that_changes_once_the_work_is_planned_is_refused(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"{RUN}\n" * 3, "utf-8")
    (part,) = plan([str(path)])
    change(path)
    with pytest.raises(
        InputError, match=r"a\.txt: file: changed while it was read.*: size 195, mtime \d+ when planned"
    ):
        next(text_of(part))  # before anything of it is given


def test_an_archive_that_changes_once_the_work_is_planned_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    for words in (b"one two", b"two one"):
        with tarfile.open(path, "w") as archive:
            member = tarfile.TarInfo("a.txt")
            member.size = len(words)
            archive.addfile(member, io.BytesIO(words))
        if words == b"one two":
            folder, file = plan([f"tar://::{path}"]) + plan([f"tar://a.txt::{path}"])
    for part in (folder, file):
        with pytest.raises(
            InputError, match=r"changed while it was read.*: size 7, in one of size 10240, mtime [\d.]+ when"
        ):
            list(text_of(part))


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"{RUN}\n" * 3, "utf-8")
    (part,) = plan([str(path)])
    pieces = text_of(part)
    next(pieces)
    rewrite(path)
    with pytest.raises(InputError, match="changed while it was read"):
        list(pieces)


def test_a_table_that_changes_once_the_work_is_planned_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pyarrow.table({"text": [RUN]}), path)
    (part,) = plan([str(path)])
    pq.write_table(pyarrow.table({"text": [RUN, RUN]}), path)
    with pytest.raises(InputError, match="changed while it was read"):
        list(documents_of(part))


def pipe(folder: Path) -> None:
    os.mkfifo(folder / "b.txt")


def nowhere(folder: Path) -> None:
    (folder / "b.txt").symlink_to("none")


def circle(folder: Path) -> None:
    (folder / "b.txt").symlink_to("b.txt")


def elsewhere(folder: Path) -> None:
    (folder.parent / "other").mkdir()
    (folder / "b.txt").symlink_to(folder.parent / "other")


@pytest.mark.parametrize(
    ("put", "said"),
    [
        (pipe, "this is not a regular file"),
        (nowhere, "the link leads nowhere"),
        (circle, "cannot be read: Too many levels of symbolic links"),
        (elsewhere, "a link to a folder is not followed"),
    ],
)
def test_nothing_in_a_folder_is_passed_over_or_waited_for(
    tmp_path: Path, put: Callable[[Path], None], said: str
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text(RUN, "utf-8")
    put(folder)
    code, told = overlap(folder, tmp_path)
    assert (code, f"{folder}/b.txt: path: {said}" in told) == (2, True), told


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    at = os.open(tmp_path, os.O_RDONLY)
    for _ in range(17):  # deeper than a path can be long
        os.mkdir("n" * 250, dir_fd=at)
        above, at = at, os.open("n" * 250, os.O_RDONLY, dir_fd=at)
        os.close(above)
    os.close(at)
    (tmp_path / "a.txt").write_text(RUN, "utf-8")
    with pytest.raises(InputError, match="nnn: folder: cannot be read: File name too long"):
        plan([str(tmp_path)])
    shutil.rmtree(tmp_path / ("n" * 250))


@pytest.mark.parametrize("name", ["a*b", "a[1]", "a?b", "a#b", "a%20b", "a::b", "~x", "{a}", "a:b", "new\nline", "-x"])
@pytest.mark.parametrize("ending", [".txt", ".jsonl", ".parquet"])
def test_a_name_is_a_name_whatever_its_signs(tmp_path: Path, name: str, ending: str) -> None:
    path = tmp_path / f"{name}{ending}"
    if ending == ".parquet":
        pq.write_table(pyarrow.table({"text": [RUN]}), path)
    else:
        path.write_text(RUN if ending == ".txt" else LINE, "utf-8")
    assert b"".join(read_all(path)).decode() == RUN


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.txt", RUN.encode("utf-16"), "a NUL byte has no place in a text"),
        ("a.txt", b"PK\x03\x04\0\0", "a NUL byte has no place in a text"),
        ("a.txt", LINE.encode(), "this is JSON, not text"),
        ("a.jsonl", b'{"text": "one", "text": "two"}\n', "one of its keys stands twice"),
        ("a.txt.bz2", bz2.compress(RUN.encode()) + b"rubbish", "cannot be read: Invalid data stream"),
        ("a.txt.bz2", bz2.compress(RUN.encode()) + bz2.compress(b"more")[:-9], "cannot be read"),
    ],
)
def test_another_kind_of_file_is_refused(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(data)
    code, told = overlap(tmp_path / name, tmp_path)
    assert (code, said in told) == (2, True), told


def test_a_text_to_be_judged_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(RUN.encode("utf-16-le"))
    with pytest.raises(InputError, match=r"a\.txt:1: byte = b'\\x00': a NUL byte has no place in a text"):
        read_texts([tmp_path / "a.txt"])


def test_a_mark_of_utf_8_before_the_first_line_is_no_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + LINE.encode())
    assert read_all(tmp_path / "a.jsonl") == [RUN.encode()]


@pytest.mark.parametrize(
    "column",
    [
        pyarrow.array([[RUN]]),
        pyarrow.array([{"a": RUN}]),
        pyarrow.array([RUN.encode()]),
        pyarrow.array([1]),
        pyarrow.array([None]),
    ],
)
def test_a_table_whose_texts_are_no_strings_is_refused(tmp_path: Path, column: pyarrow.Array) -> None:
    pq.write_table(pyarrow.table({"text": column}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="must be a column of strings"):
        read_all(tmp_path / "a.parquet")


def test_a_table_with_two_texts_or_whose_pages_were_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pyarrow.Table.from_arrays([pyarrow.array([RUN])] * 2, ["text", "text"]), path)
    with pytest.raises(InputError, match="must hold one named text"):
        read_all(path)
    pq.write_table(
        pyarrow.table({"text": [RUN]}),
        path,
        use_dictionary=False,
        compression="none",
        write_page_checksum=True,
        write_statistics=False,
    )
    path.write_bytes(path.read_bytes().replace(b"quick", b"quack", 1))
    with pytest.raises(InputError, match="CRC checksum verification failed"):
        read_all(path)


def test_the_files_of_an_archive_are_of_the_kind_that_their_own_names_say(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("in/a.jsonl", LINE)
        archive.writestr("in/b.txt", "nothing of it\n")
    parts = plan([f"zip://in::{tmp_path}/x.zip"])
    assert [(part.file, part.kind) for part in parts] == [
        (f"zip://in/a.jsonl::{tmp_path}/x.zip", "lines"),
        (f"zip://in/b.txt::{tmp_path}/x.zip", "text"),
    ]
    assert [one.text for one in documents_of(parts[0])] == [RUN.encode()]


def test_a_column_chunk_that_contradicts_its_schema_ends_no_process(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pyarrow.table({"text": [RUN]}), path)
    optional, required = (b"\x15\x0c\x25" + kind + b"\x18\x04text" for kind in (b"\x02", b"\x00"))
    found = path.read_bytes()
    assert found.count(optional) == 1, "the column's kind of repetition, in the footer"
    path.write_bytes(found.replace(optional, required))
    with pytest.raises(InputError, match=r"a\.parquet: "):  # pyarrow's object for the chunk ends the process
        read_all(path)


@pytest.mark.parametrize("cut", range(1, 200, 7))
def test_a_footer_with_less_in_it_is_refused(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pyarrow.table({"text": [RUN]}), path)
    found = path.read_bytes()
    length = int.from_bytes(found[-8:-4], "little") - cut
    path.write_bytes(found[: -8 - cut] + length.to_bytes(4, "little") + found[-4:])
    with pytest.raises(InputError, match=r"a\.parquet: "):
        read_all(path)


def test_row_groups_are_those_of_pyarrow(tmp_path: Path) -> None:
    rows = [
        {"a": {"b": number, "c": [1.5, None]}, "text": f"{RUN} {number}", "d": bool(number % 2)} for number in range(50)
    ]
    pq.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet", row_group_size=7)
    metadata = pq.read_metadata(tmp_path / "a.parquet")
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    told = [[group.column(at) for at in range(group.num_columns)] for group in groups]
    found = pages.row_groups(metadata)
    assert [group.rows for group in found] == [group.num_rows for group in groups] == [7] * 7 + [1]
    assert [[(chunk.unpacked, chunk.packed, chunk.begin) for chunk in group.chunks] for group in found] == [
        [
            (
                column.total_uncompressed_size,
                column.total_compressed_size,
                min(at for at in (column.dictionary_page_offset, column.data_page_offset) if at),
            )
            for column in group
        ]
        for group in told
    ]
    assert len(read_all(tmp_path / "a.parquet")) == 50
