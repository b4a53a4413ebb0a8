"""The command line: one JSON document or plain text, the right exit code, and no traceback whatever happens."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gates import __version__, flow
from gates.cli.output import open_streams, tell
from gates.cli.show import console, interactive, progress
from gates.record.store import gate_lock
from gates.records import Outcome, sha256
from gates.report.terminal import outcome_text
from gates.seat.progress import Progress
from tests.flow.conftest import Ended, gates, lines
from tests.seat.faulty import FaultySeat, Request, Wire, answer, error
from tests.small import small_workspace

QUESTION = "Does [bold]it[/] move\x1b[31m | toward\n<b>her</b>\x9b1m? :smile:"


class Small:
    """A small workspace and its gate."""

    def __init__(self, home: Path, **changes: Any) -> None:
        self.home, self.cache = home / "workspace", home / "cache"
        self.gate = small_workspace(self.home, self.cache, **changes)

    @property
    def files(self) -> list[str]:
        """Everything that commands have written, the empty files that they lock aside."""
        written = [
            *self.home.glob("prereg/seals/*"),
            *self.home.glob("prereg/ledger*"),
            *self.home.glob("reports/**/*"),
        ]
        kept = (path for path in written if path.is_file() and path.name != ".lock")
        return sorted(path.relative_to(self.home).as_posix() for path in kept)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """For commands that write nothing into the workspace."""
    return Small(tmp_path_factory.mktemp("small"))


@pytest.fixture(autouse=True)
def _at_home(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATES_CACHE", str(small.cache))
    monkeypatch.chdir(small.home)


async def tell_stories(request: Request, wire: Wire) -> None:
    """Answer as the seat does, with enough words, different for each arm, seed and prompt."""
    if request.body["model"] not in {"base", "voice-one"}:
        await wire.send(error("The model does not exist.", "NotFoundError", 404), 404)
        return
    document = answer(request.body)
    asked = [request.body.get(name) for name in ("model", "messages", "seed")]
    words = [sha256(f"{asked}{place}".encode())[:2] for place in range(40)]
    document["choices"][0]["message"]["content"] = " ".join(word.translate(LETTERS) for word in words)
    await wire.send(document)


LETTERS = str.maketrans("0123456789", "ghijklmnop")


@pytest.fixture(scope="module")
def seat() -> Iterator[FaultySeat]:
    """A seat in a thread of its own, so that commands can start their own event loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    served = FaultySeat(always=tell_stories, models=("base", "voice-one"))
    asyncio.run_coroutine_threadsafe(served.__aenter__(), loop).result(10)
    yield served
    asyncio.run_coroutine_threadsafe(served.__aexit__(None, None, None), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


@pytest.fixture
def fresh(tmp_path: Path, seat: FaultySeat, monkeypatch: pytest.MonkeyPatch) -> Small:
    """A workspace of the test's own, whose gate names the seat."""
    made = Small(tmp_path, seat={"base_url": seat.url}, question=QUESTION)
    monkeypatch.setenv("GATES_CACHE", str(made.cache))
    return made


def refused(ended: Ended, code: int, *parts: str) -> None:
    """The command ended with this code and one message, which holds these parts."""
    assert ended.returncode == code, ended
    assert "Traceback" not in ended.stderr
    for part in parts:
        assert part in ended.stderr, ended.stderr


def one_document(ended: Ended) -> Any:
    """The JSON document that is all of stdout."""
    found = json.loads(ended.stdout)
    assert ended.stdout == json.dumps(found, indent=2) + "\n"
    return found


def test_help_names_every_command_and_exit_code() -> None:
    shown = gates("--help")
    assert shown.returncode == 0
    for word in ("check", "seal", "run", "schema", "corpora", "seat", "demo", "0 PASS", "1 FAIL", "5 TAMPERED"):
        assert word in shown.stdout
    assert "70 internal error, 130 interrupted: neither is a verdict" in shown.stdout
    assert gates("--version").stdout == f"gates, version {__version__}\n"


def test_a_mistyped_command_is_corrected() -> None:
    refused(gates("chek", "x.yaml"), 2, "No such command 'chek'. Did you mean 'check'?")
    refused(gates("run"), 2, "Missing argument 'GATE'")


def test_check_in_words(small: Small) -> None:
    checked = gates("check", small.gate)
    assert checked.returncode == 0
    shown = checked.stdout.splitlines()
    assert "reference: 1 texts, the tokeniser loses at most 0.00% of letters" in shown
    # 24 answers, none a hit: 1 - 0.05 ** (1 / 24) = 0.1173.
    assert any(line.startswith("memorisation: 0 hits of 24 leave an upper limit of 0.117") for line in shown)
    assert shown[-1].startswith("gate small (")
    assert shown[-1].endswith("): complete, 48 generations; the seat was not contacted")


JSON_COMMANDS: dict[str, tuple[tuple[str, ...], int]] = {
    "check": (("check", "prereg/small.yaml"), 0),
    "check, no gate": (("check", "prereg/none.yaml"), 2),
    "check, no argument": (("check",), 2),
    "seal, seat down": (("seal", "prereg/small.yaml", "--yes"), 4),
    "run, no seal": (("run", "prereg/small.yaml"), 2),
    "run, unknown option": (("run", "prereg/small.yaml", "--unknown"), 2),
    "unknown command": (("launch",), 2),
    "list": (("corpora", "list"), 0),
    "show": (("corpora", "show", "author"), 0),
    "show, unknown": (("corpora", "show", "nobody"), 2),
    "fetch": (("corpora", "fetch", "author", "others"), 0),
    "fetch, unknown": (("corpora", "fetch", "nobody"), 2),
    "schema": (("schema",), 0),
}


@pytest.mark.parametrize("command", JSON_COMMANDS)
def test_json_is_one_document_on_stdout(command: str) -> None:
    arguments, code = JSON_COMMANDS[command]
    ended = gates(*arguments, "--json")
    assert ended.returncode == code, ended
    document = one_document(ended)
    if code:
        assert document["exit_code"] == code
        assert document["error"]
        assert document["error"].split("\n")[0] in ended.stderr
    else:
        assert "exit_code" not in document


def test_what_the_documents_say() -> None:
    assert [corpus["name"] for corpus in one_document(gates("corpora", "list", "--json"))] == ["author", "others"]
    shown = one_document(gates("corpora", "show", "author", "--json"))
    assert [(split["name"], split["words"]) for split in shown["splits"]] == [("train", 4000), ("heldout", 4000)]
    (fetched,) = one_document(gates("corpora", "fetch", "author", "--json"))
    assert (len(fetched["kept"]), fetched["fetched"], fetched["pinned"]) == (2, [], [])
    assert one_document(gates("schema", "--json")) == one_document(gates("schema"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "there is no such file"),
        (lambda path: path.mkdir(), "this is a folder"),
        (lambda path: path.write_bytes(bytes(range(256))), "the file is not UTF-8 here"),
        (lambda path: path.write_bytes(b"schema: \x1b[31m\n"), "control characters are not allowed"),
        (lambda path: path.write_bytes(b""), "document"),
    ],
    ids=["missing", "folder", "binary", "escape", "empty"],
)
@pytest.mark.parametrize("command", ["run", "check", "seal"])
def test_what_is_no_gate_file(tmp_path: Path, command: str, make: Callable[[Path], object], message: str) -> None:
    path = tmp_path / "x.yaml"
    make(path)
    ended = gates(command, path)
    refused(ended, 2, "gates: ", str(path), message)
    assert "\x1b" not in ended.stderr
    assert ended.stdout == ""


def test_an_unknown_candidate_is_refused_before_anything_is_generated(fresh: Small, seat: FaultySeat) -> None:
    before = len(seat.seen)
    refused(gates("run", fresh.gate, "--arm", "tow"), 2, "--arm 'tow'", "next: choose one of: one")
    assert len(seat.seen) == before
    assert fresh.files == []


def test_from_seal_to_verdict_on_a_server(fresh: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = one_document(gates("seal", fresh.gate, "--by", "me\x1b[1m <b>", "--json", "--yes"))
    assert Path(sealed["file"]).is_file()

    with gate_lock(fresh.home / "reports", "small"):
        refused(gates("run", fresh.gate), 2, "small/.lock: another process is running this gate", "next: wait")

    ran = gates("run", fresh.gate, "--json")
    document = one_document(ran)
    assert ran.returncode == document["exit_code"] == gates("run", fresh.gate, "--arm", "one").returncode
    assert document["attempts"] == 1
    assert len(lines(fresh.home / "reports/small/001/generations.jsonl")) == 48

    # The same verdict for people. click would strip escapes here by itself; what it cannot strip is what is visible.
    shown = gates("run", fresh.gate)
    assert "Does [bold]it[/] move\\x1b[31m | toward" in shown.stdout
    assert ":smile:" in shown.stdout
    assert all(char.isprintable() for line in shown.stdout.split("\n") for char in line)
    assert f"attempts of this gate: 1; record: {fresh.home.resolve()}/reports/small/001/report.md" in shown.stdout
    report = (fresh.home / "reports/small/001/report.md").read_text("utf-8")
    assert "me\\\\x1b\\[1m &lt;b&gt;" in report
    assert all(char.isprintable() for line in report.split("\n") for char in line)

    again = one_document(gates("run", fresh.gate, "--again", "--json"))
    assert again["attempts"] == 2
    assert again["run"].endswith("reports/small/002")


def fail(problem: BaseException) -> Callable[..., None]:
    def call(*_: object, **__: object) -> None:
        raise problem

    return call


@pytest.mark.parametrize(
    ("full_for", "named"),
    [(stat.S_ISREG, r"/prereg/seals/small-\w+\.json"), (stat.S_ISDIR, "")],
    ids=["file", "folder"],
)
def test_a_full_disk_is_said_and_leaves_nothing_half_written(
    fresh: Small, monkeypatch: pytest.MonkeyPatch, full_for: Callable[[int], bool], named: str
) -> None:
    fsync, full_disk = os.fsync, fail(OSError(errno.ENOSPC, "No space left on device"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda fd: full_disk() if full_for(os.fstat(fd).st_mode) else fsync(fd))
        full = gates("seal", fresh.gate, "--json", "--yes")
    refused(full, 2, "No space left on device", "next: make room")
    assert re.match(rf"gates: {re.escape(str(fresh.home.resolve()))}{named}.*: No space left", full.stderr), full.stderr
    assert "No space left on device" in one_document(full)["error"]
    assert fresh.files == []
    assert gates("seal", fresh.gate, "--yes").returncode == 0


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        (errno.EROFS, "make this file system writable"),
        (errno.EACCES, "give yourself the right to write there"),
        (errno.ENOLCK, "make room, or give the rights"),
    ],
)
def test_a_folder_that_cannot_be_written_is_named(
    fresh: Small, monkeypatch: pytest.MonkeyPatch, kind: int, remedy: str
) -> None:
    # Permissions do not stop every user that tests may run as; the system's error is the same for all.
    folder = fresh.home / "prereg" / "seals"
    monkeypatch.setattr(Path, "mkdir", fail(OSError(kind, os.strerror(kind), str(folder))))
    refused(
        gates("seal", fresh.gate, "--yes"),
        2,
        f"gates: {folder}: {os.strerror(kind)}",
        f"next: {remedy}; then repeat the command",
    )
    assert fresh.files == []


def test_a_file_in_the_place_of_a_folder_is_named(fresh: Small) -> None:
    (fresh.home / "prereg" / "seals").write_text("no folder")
    refused(gates("seal", fresh.gate, "--yes"), 2, "prereg/seals: File exists")


@pytest.mark.parametrize("arguments", [("schema",), ("schema", "--json"), ("corpora", "list", "--json")], ids=str)
def test_a_full_stdout_is_no_traceback(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "gates", *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ended.returncode == 2
    assert "No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_mistake_of_ours_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "check", fail(ZeroDivisionError("what?")))
    ended = gates("check", "prereg/small.yaml", "--json")
    refused(ended, 70, "internal error in gates", "not a verdict: ZeroDivisionError: what?", "GATES_TRACEBACK=1")
    assert one_document(ended)["exit_code"] == 70
    monkeypatch.setenv("GATES_TRACEBACK", "1")
    told = gates("check", "prereg/small.yaml")
    assert told.returncode == 70
    assert "Traceback (most recent call last):" in told.stderr


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("seal prereg/small.yaml <&-", 2, "there is no terminal to ask"),
        ("run prereg/small.yaml 2>&-", 2, ""),
        ("chek 2>&-", 2, ""),
        ("corpora list <&- >&- 2>&-", 0, ""),
    ],
)
def test_closed_streams_are_no_traceback(command: str, code: int, said: str) -> None:
    shell = ["sh", "-c", f'exec "$0" -m gates {command}', sys.executable]
    ended = subprocess.run(shell, capture_output=True, text=True, check=False)
    assert ended.returncode == code, ended
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_without_a_terminal_progress_is_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as watch:
        watch(Progress(done=1, total=3, completion_tokens=20, retries=0, errors={}))
        arms = {"base": (1, 1), "one": (2, 2)}
        watch(Progress(done=3, total=3, completion_tokens=60, retries=2, errors={"one": 1}, arms=arms))
    first, *rest = capsys.readouterr().err.splitlines()
    assert rest == []  # the first answer came before a line was due; the last one always has its line
    assert first.startswith("generated 3 of 3, ")
    assert first.endswith(" tokens/s, about 0 s left, 2 retries, 1 errors in one, base 1/1, one 2/2")


def test_without_stderr_there_is_nobody_to_ask_or_to_show_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed):
        monkeypatch.setattr(sys, "stdin", stream)
        assert not interactive()
    monkeypatch.setattr(sys, "stderr", None)
    with progress() as watch:
        watch(Progress(done=2, total=2, completion_tokens=8, retries=0, errors={}))


def test_an_outcome_keeps_its_sign_on_a_terminal_of_ascii_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    open_streams()
    for outcome in Outcome:
        console().print(outcome_text(outcome))
    tell("2.0× the floor ≤ –")
    sys.stdout.flush()
    assert written.getvalue() == b"+ PASS\nx FAIL\n? INCONCLUSIVE\n! INVALID\n2.0x the floor <= -\n"


@pytest.mark.parametrize(
    ("by", "said"), [("\udcff M\u00e9\x1b[1m\n x", "? M\u00e9\\x1b[1m x"), (" \n", "user?")], ids=ascii
)
def test_a_name_is_one_printable_line(monkeypatch: pytest.MonkeyPatch, by: str, said: str) -> None:
    monkeypatch.setenv("LOGNAME", "user\udcff")
    assert flow.this_world(tell, by=by).by == said


def test_a_list_outside_any_workspace_is_no_empty_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused(gates("corpora", "list"), 2, f"{tmp_path}: no workspace", "corpora/NAME.yaml", "next: change into")
    refused(gates("corpora", "list", "--workspace", tmp_path), 2, f"{tmp_path}: no workspace")


def test_an_interruption_says_that_the_command_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "check", fail(KeyboardInterrupt()))
    ended = gates("check", "prereg/small.yaml", "--json")
    refused(ended, 130, "interrupted; what was recorded stays: give the same command again")
    assert one_document(ended)["exit_code"] == 130


def test_a_manifest_commands_no_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Small(tmp_path)
    path = made.home / "corpora" / "others.yaml"
    text = path.read_text("utf-8").replace("Title of others", r"A\u001b[31m ✔ \u009b1m\u202e title")
    path.write_text(text, "utf-8")
    monkeypatch.chdir(made.home)
    listed = gates("corpora", "list")
    assert "A\\x1b[31m ✔ \\x9b1m\\u202e title" in listed.stdout
    assert all(char.isprintable() for line in listed.stdout.split("\n") for char in line)
    # A terminal that has no tick in its character set gets the rest.
    ended = subprocess.run(
        [sys.executable, "-m", "gates", "corpora", "show", "others"],
        env=os.environ | {"PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert rb"others: A\x1b[31m + \x9b1m\u202e title" in ended.stdout
    assert one_document(gates("corpora", "show", "others", "--json"))["title"] == "A\x1b[31m ✔ \x9b1m\u202e title"
