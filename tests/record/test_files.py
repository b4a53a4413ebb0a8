"""Disk manners: written once and whole, lines never joined, locks that say so, errors that name their file."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gates.errors import DiskError, RecordError, TamperedError
from gates.record.files import (
    append_line,
    cut_torn_line,
    held,
    locked,
    make_folder,
    replace,
    stored_bytes,
    sync_folder,
    write_once,
)
from tests.durable import at_risk, names_in
from tests.kills import BIG, FORKED, killed_at

FULL = OSError(errno.ENOSPC, "No space left on device")


class Killed(BaseException):
    """Stands for a signal at that very place."""


def fail(error: BaseException):
    def call(*_: object, **__: object) -> None:
        raise error

    return call


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "verdict.json"
    write_once(path, b"one")
    write_once(path, b"one")
    for other in (b"two", b"one more", b"on", b""):
        with pytest.raises(RecordError, match=r"verdict.json: a record is written once, .* other content"):
            write_once(path, other)
    assert path.read_bytes() == b"one"
    assert names(path.parent) == ["verdict.json"]


@pytest.mark.parametrize("step", ["fsync", "link"])
@pytest.mark.parametrize("error", [FULL, Killed()], ids=["full", "killed"])
def test_what_is_interrupted_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    path = tmp_path / "report.md"
    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail(error))
        with pytest.raises(DiskError if error is FULL else Killed):
            write_once(path, b"whole")
        assert names(tmp_path) == []
    write_once(path, b"whole")
    assert path.read_bytes() == b"whole"


@pytest.mark.parametrize(
    "work",
    [
        lambda path: write_once(path, b"whole"),
        lambda path: replace(path, b"new"),
        lambda path: append_line(path.with_suffix(".jsonl"), b"a line"),
        lambda path: cut_torn_line(path.with_name("torn.jsonl")),
        lambda path: make_folder(path / "a" / "b"),
        lambda path: write_once(path.with_name("a") / "b" / path.name, b"whole"),
    ],
    ids=["write once", "replace", "append", "cut", "folders", "once in a new folder"],
)
def test_a_loss_of_power_takes_nothing_that_was_written(tmp_path: Path, work) -> None:
    (tmp_path / "torn.jsonl").write_bytes(b"one\ntw")
    before = names_in(tmp_path)
    steps = killed_at(BIG, tmp_path, work, tmp_path / "record", context=FORKED)
    assert steps
    assert at_risk(steps, before) == []


@pytest.mark.parametrize(
    ("steps", "risk"),
    [
        (["write .a.json.1.part", "link .a.json.1.part", "fsync ."], "a.json.1.part gets its name before it is on"),
        (["write .a.json.1.part", "fsync .a.json.1.part", "replace .a.json.1.part"], "at the end: name of a.json"),
        (["write a.json", "fsync a.json", "fsync ."], "a.json is written in its place"),
        (["fsync a.jsonl", "write a.jsonl", "fsync ."], "at the end: bytes of a.jsonl"),
        (["truncate old.jsonl"], "at the end: bytes of old.jsonl"),
        (["mkdir a", "mkdir a/b", "fsync a"], "at the end: name of a"),
        (["write old.jsonl", "write ledger.jsonl"], "ledger.jsonl tells of more: bytes of old.jsonl"),
        (["write .ledger.jsonl.1.part", "replace .ledger.jsonl.1.part"], "more: bytes of .ledger.jsonl.1.part"),
        (["write ledger.jsonl", "write ledger.jsonl"], "a line of ledger.jsonl before a.json"),
    ],
)
def test_what_a_careless_writer_risks_is_said(steps: list[str], risk: str) -> None:
    assert any(risk in found for found in at_risk(steps, {"old.jsonl"}, [{"old.jsonl"}, {"a.json"}]))


def test_a_real_kill_before_the_link_leaves_no_file_of_that_name(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    program = (
        "import os, pathlib, signal, sys\n"
        "from gates.record.files import write_once\n"
        "os.link = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_once(pathlib.Path(sys.argv[1]), b'whole')\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert not path.exists()
    write_once(path, b"whole")
    assert path.read_bytes() == b"whole"


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_pointer_is_the_old_one_or_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    path = tmp_path / "ledger.head"
    replace(path, b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os if step == "fsync" else Path, step, fail(FULL))
        with pytest.raises(DiskError, match=r"ledger\.head: No space left"):
            replace(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["ledger.head"]
    replace(path, b"new")
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize(
    "work",
    [
        lambda path: append_line(path, b"x"),
        cut_torn_line,
        lambda path: write_once(path, b"x"),
        lambda p: replace(p, b"x"),
    ],
    ids=["append", "cut", "write once", "replace"],
)
def test_the_error_of_a_full_disk_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work) -> None:
    path = tmp_path / "record"
    path.write_bytes(b"whole\ntorn")
    # The system's own error for write and fsync knows a descriptor, no name.
    monkeypatch.setattr(os, "fsync", fail(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(DiskError, match=rf"^{re.escape(str(path))}: No space left on device\n  next: make room"):
        work(path)


def test_the_error_of_a_folder_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", fail(OSError(errno.EIO, "Input/output error")))
    with pytest.raises(DiskError, match=rf"^{re.escape(str(tmp_path))}: Input/output error\n  next: see what ails"):
        sync_folder(tmp_path)


@pytest.mark.parametrize("written", [0, 3, 6])
def test_a_line_that_the_disk_refuses_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    """The room ends after so many bytes of a line, or, after all of them, when it is to be put on the disk."""
    path = tmp_path / "lines"
    append_line(path, b"one")
    with monkeypatch.context() as patch:
        if written == len(b"second"):
            patch.setattr(os, "fsync", fail(FULL))
        else:
            limit = path.stat().st_size + written
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        try:
            with pytest.raises(DiskError, match=r"lines: (File too large|No space left)"):
                append_line(path, b"second")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert path.read_bytes() == b"one\n"
    append_line(path, b"second")
    assert path.read_bytes() == b"one\nsecond\n"


def test_a_device_that_is_full_is_named() -> None:
    with pytest.raises(DiskError, match="/dev/full: No space left on device"):
        append_line(Path("/dev/full"), b"line")


@given(st.binary(max_size=40), st.integers(0, 3))
def test_a_torn_line_is_cut_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, blocks: int
) -> None:
    path = tmp_path_factory.mktemp("torn") / "lines"
    written = data + b"x" * (65_535 * blocks)
    path.write_bytes(written)
    cut = cut_torn_line(path)
    left = path.read_bytes()
    assert left == written[: len(written) - cut]
    assert left == b"" or left.endswith(b"\n")
    assert b"\n" not in written[len(left) :]


def test_no_file_has_no_torn_line(tmp_path: Path) -> None:
    assert cut_torn_line(tmp_path / "lines") == 0
    assert names(tmp_path) == []


def test_lines_are_appended_in_order(tmp_path: Path) -> None:
    for line in (b"one", b"two"):
        append_line(tmp_path / "lines", line)
    assert (tmp_path / "lines").read_bytes() == b"one\ntwo\n"


def test_a_lock_of_another_process_is_said_and_ends_with_it(tmp_path: Path) -> None:
    path = tmp_path / "gate" / ".lock"
    program = (
        "import pathlib, sys\n"
        "from gates.record.files import locked\n"
        "with locked(pathlib.Path(sys.argv[1]), wait=False, busy='busy'):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with (
            pytest.raises(RecordError, match=r"\.lock: somebody runs it\n  next: wait"),
            locked(path, wait=False, busy="somebody runs it"),
        ):
            pass
        other.kill()
        other.wait()
    with locked(path, wait=False, busy="somebody runs it"):
        pass


def test_who_only_looks_whether_a_lock_is_held_is_in_nobodys_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    path.touch()
    looks = os.open(path, os.O_RDONLY)
    fcntl.flock(looks, fcntl.LOCK_SH)
    monkeypatch.setattr("time.sleep", lambda _: fcntl.flock(looks, fcntl.LOCK_UN))
    with locked(path, wait=False, busy="busy"):
        assert held(path)
    os.close(looks)
    assert not held(path)


def test_a_lock_is_given_back_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="inside"), locked(tmp_path / "lock", wait=False, busy="busy"):
        raise ValueError("inside")
    with locked(tmp_path / "lock", wait=False, busy="busy"):
        pass


def lock(path: Path) -> None:
    with locked(path, wait=True, busy=""):
        pass


@pytest.mark.parametrize(
    ("write", "linked"),
    [
        (lambda path: append_line(path, b"{}"), "{0}"),
        (cut_torn_line, "{0}"),
        (lock, "{0}"),
        (lambda path: replace(path, b"{}"), ".{0}.{1}.part"),
        (lambda path: write_once(path, b"{}"), ".{0}.{1}.part"),
    ],
    ids=["append", "cut", "lock", "replace", "once"],
)
@pytest.mark.parametrize("there", [True, False])
def test_nothing_is_written_through_a_link(tmp_path: Path, write, linked: str, there: bool) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "home"
    inside.mkdir()
    if there:
        outside.write_bytes(b"mine, without an end")
    path = inside / "ledger.jsonl"
    (inside / linked.format(path.name, os.getpid())).symlink_to(outside)
    with pytest.raises(TamperedError, match="a record is a file of its own, and this is a link to"):
        write(path)
    assert outside.exists() is there
    assert not there or outside.read_bytes() == b"mine, without an end"


def test_a_file_takes_the_place_of_a_link(tmp_path: Path) -> None:
    """What is written whole is renamed into its place: the link goes, and what it led to stays."""
    outside, path = tmp_path / "outside", tmp_path / "head"
    outside.write_bytes(b"mine")
    path.symlink_to(outside)
    replace(path, b"{}")
    assert (outside.read_bytes(), path.is_symlink(), path.read_bytes()) == (b"mine", False, b"{}")


@pytest.mark.parametrize("target", ["/dev/zero", "nowhere", "."])
def test_a_device_pipe_or_folder_in_a_records_place_is_not_read(tmp_path: Path, target: str) -> None:
    """Reading it might never end."""
    path = tmp_path / "ledger.jsonl"
    assert stored_bytes(path) == b""
    path.symlink_to(target)
    with pytest.raises(TamperedError, match="a record is a file, and this is none"):
        stored_bytes(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(TamperedError, match="a record is a file, and this is none"):
        stored_bytes(path)
