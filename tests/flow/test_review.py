"""Reading a finished run: what is on the list, what counts as read, and that no mark changes unseen."""

from __future__ import annotations

import json
import os
import pty
import random
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gates.errors import TamperedError, UsageError
from gates.flow.blind import BlindReading, enter_votes
from gates.flow.review import Reading, open_reading
from gates.flow.signoff import Decided, sign_off
from gates.flow.verifying import verify
from gates.flow.world import World
from gates.record.ledger import Ledger
from gates.record.review import Said
from gates.record.votes import Choice, Trial, Votes
from tests.finished import COPIED, finished_run, some_words, world_of
from tests.flow.conftest import gates, lines
from tests.record.test_signing import make_key
from tests.small import prose


def told(reading: Reading, **wanted: object) -> list[str]:
    return [n for n, item in reading.items.items() if all(getattr(item, k) == v for k, v in wanted.items())]


def test_the_list_holds_every_run_every_flag_and_the_drawn_samples(reading: Reading) -> None:
    matches = [item for item in reading.list.items if item.match is not None]
    assert [item.key for item in matches if item.match.against == "train"] == [
        ("base", 5, 2),
        ("one", 3, 1),
        ("two", 1, 1),
    ]
    assert {item.match.length for item in matches if item.match.against == "train"} == {12}
    assert [item.key for item in reading.list.items if "empty" in item.why] == [("one", 7, 2)]
    for arm in ("base", "one", "two"):
        drawn = [item.key for item in reading.list.items if item.arm == arm and "sample" in item.why]
        assert len(drawn) == 5
    # Drawn from the seal: each arm has a draw of its own, the same one each time.
    keys = [{i.key[1:] for i in reading.list.items if i.arm == arm and "sample" in i.why} for arm in ("base", "one")]
    assert keys[0] != keys[1]
    again = open_reading(reading.run.store.folder, reading.cache)
    assert again.list_sha256 == reading.list_sha256


def test_what_is_entered_again_says_no_head_and_quiet_says_none(reading: Reading) -> None:
    run, item = reading.run.store.folder, next(iter(reading.items))
    marked = gates("review", run, "--mark", item, "ok", "--json")
    assert json.loads(marked.stdout)["list_sha256"] == reading.list_sha256
    records = Ledger(reading.run.workspace / "prereg").entries()
    assert marked.stderr == f"ledger head {records[-1].sha256} ({len(records)} records)\n"
    assert gates("review", run, "--mark", item, "ok").stderr == ""
    assert gates("review", run, "--mark", item, "bad", "--quiet").stderr == ""


def test_another_candidate_is_not_needed_and_another_reader_does_not_count(reading: Reading) -> None:
    needed = reading.needed("one")
    assert {item.arm for item in needed.values()} == {"base", "one"}
    assert {item.arm for item in reading.needed().values()} == {"base", "one", "two"}
    name = next(iter(needed))
    reading.mark(name[:8], Said(mark="ok"), world_of(reading.cache, "ann"))
    assert name not in reading.unread("ann", "one")
    assert name in reading.unread("bob", "one")
    with pytest.raises(UsageError, match="'three' is no candidate"):
        reading.needed("three")
    with pytest.raises(UsageError, match="is no item"):
        reading.mark("zz", Said(mark="ok"), world_of(reading.cache, "ann"))
    with pytest.raises(UsageError, match="is no item"):
        reading.mark("", Said(mark="ok"), world_of(reading.cache, "ann"))


def test_a_run_is_shown_with_its_source_from_the_cache_and_no_record_holds_it(reading: Reading, tmp_path: Path) -> None:
    shown = reading.show(told(reading, arm="one", prompt=3, seed=1)[0])
    assert shown.run.run == COPIED
    assert shown.quotes[0].words.run == COPIED
    assert shown.quotes[0].words.before.split()[-3:] == prose(0, 4000).split()[497:500]
    assert "The girl waits at the gate" in shown.prompt
    empty = open_reading(reading.run.store.folder, tmp_path / "nothing")
    assert empty.show(shown.name).quotes[0].words is None
    train = next((reading.cache / "corpora" / "author").glob("train.txt"))
    good = train.read_bytes()
    train.write_bytes(good[:-1] + b"x")
    try:
        changed = open_reading(reading.run.store.folder, reading.cache)
        assert changed.show(shown.name).quotes[0].words is None
    finally:
        train.write_bytes(good)


def test_the_last_mark_counts_and_the_ledger_holds_every_sitting(reading: Reading) -> None:
    world, name = world_of(reading.cache, "ann"), told(reading, arm="one", prompt=3, seed=1)[0]
    reading.mark(name, Said(mark="ok"), world)
    reading.mark(name, Said(mark="bad", label="protectable", note="a whole sentence"), world)
    reading.mark(name, Said(mark="bad", label="protectable", note="a whole sentence"), world)
    assert reading.marks("ann")[name].mark == "bad"
    assert len(reading.review.read()) == 2, "what counts already is not said twice"
    found = verify(reading.run.workspace, reading.cache)
    assert found.breaks == ()
    assert "no ledger record holds its last 2 marks yet" in found.not_derived[0]
    reading.enter(world)
    reading.enter(world)
    ledger = Ledger(reading.run.workspace / "prereg")
    assert [s.entry.kind for s in ledger.entries()][-2:] == ["verdict", "review"]
    found = verify(reading.run.workspace, reading.cache)
    assert (found.breaks, found.not_derived) == ((), ())
    assert [json.loads(line)["mark"] for line in reading.review.path.read_bytes().splitlines()] == ["ok", "bad"]


def test_every_changed_byte_of_the_marks_is_found(reading: Reading) -> None:
    world = world_of(reading.cache, "ann")
    for name in list(reading.items)[:3]:
        reading.mark(name, Said(mark="ok", note="read"), world)
    reading.enter(world)
    path = reading.review.path
    good = path.read_bytes()
    spoiled = [good[:k] + bytes([good[k] ^ 1]) + good[k + 1 :] for k in random.Random(3).sample(range(len(good)), 60)]
    rows = good.splitlines(keepends=True)
    spoiled += [b"".join(rows[:2]), b"".join(rows[1:]), b"".join([rows[1], rows[0], rows[2]]), b"", good[:-5]]
    for data in spoiled:
        path.write_bytes(data)
        with pytest.raises(TamperedError, match=r"review\.jsonl"):
            open_reading(reading.run.store.folder, reading.cache)
    path.unlink()
    with pytest.raises(TamperedError, match=r"review\.jsonl"):
        open_reading(reading.run.store.folder, reading.cache)


def test_a_killed_writer_leaves_a_line_that_is_cut(reading: Reading) -> None:
    world, names = world_of(reading.cache, "ann"), list(reading.items)
    reading.mark(names[0], Said(mark="ok"), world)
    with reading.review.path.open("ab") as handle:
        handle.write(b'{"at":"20')
    assert len(reading.marks()) == 1
    reading.mark(names[1], Said(mark="ok"), world)
    assert list(reading.marks()) == names[:2]


def test_the_command_lists_marks_and_says_what_is_left(reading: Reading) -> None:
    folder = reading.run.store.folder
    listed = gates("review", folder, "--arm", "one", "--by", "ann", "--json")
    found = json.loads(listed.stdout)
    assert listed.returncode == 3
    assert found["unread"] == len(found["items"]) == len(reading.needed("one"))
    for item in found["items"][:-1]:
        assert gates("review", folder, "--mark", item["name"], "ok", "--by", "ann").returncode == 3
    last = found["items"][-1]["name"]
    ended = gates("review", folder, "--arm", "one", "--mark", last, "bad", "--note", "<i>no", "--by", "ann")
    assert ended.returncode == 0
    assert "<i>no" in ended.stdout
    assert "to sign one off: 0 unread" in ended.stdout
    assert gates("review", folder, "--arm", "one", "--by", "bob").returncode == 3
    assert "also read by: ann" in gates("review", folder, "--by", "bob").stdout
    assert len(lines(folder / "review.jsonl")) == len(found["items"])
    refused = gates("review", folder, "--mark", last, "ok", "--note", "x" * 2001)
    assert refused.returncode == 2
    assert "at most 2000 characters" in refused.stderr
    assert gates("review", folder, "--mark", last, "ok", "--note", "\udcff").returncode == 2


def test_a_terminal_shows_item_after_item_and_keeps_each_mark(reading: Reading, root: Path) -> None:
    """A real terminal: two marks, one skipped, then quit; what is left comes first the next time."""
    folder = reading.run.store.folder
    answers = "ok quotation from the hymn\nwhat\nb copied\nskip\nquit\n"
    screen = on_terminal(["review", str(folder), "--arm", "one", "--by", "ann"], answers, reading.cache, root)
    names = list(reading.needed("one"))
    marks = lines(folder / "review.jsonl")
    assert [(m["item"], m["mark"], m["label"], m["note"]) for m in marks] == [
        (names[0], "ok", "quotation", "from the hymn"),
        (names[1], "bad", None, "copied"),
    ]
    assert f"[[{COPIED}" in " ".join(screen.split())
    assert f"ann has read 2 of {len(names)}" in screen
    assert next(iter(reading.unread("ann", "one"))) == names[2]


def on_terminal(arguments: list[str], typed: str, cache: Path, root: Path) -> str:
    """What a command shows on a terminal of 200 columns while this is typed."""
    ours, theirs = pty.openpty()
    environ = os.environ | {"GATES_CACHE": str(cache), "PYTHONPATH": str(root), "COLUMNS": "200", "NO_COLOR": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "gates", *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environ
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    process.wait(60)
    os.close(ours)
    return shown.decode()


def test_hostile_text_commands_no_terminal(tmp_path: Path, made_cache: Path) -> None:
    evil = "\x1b]0;owned\x07 \x1b[2J [bold]x[/bold] " + COPIED
    folder = finished_run(tmp_path / "work", made_cache, lambda arm, p, s: f"{evil} {some_words(arm, p, s)}")
    reading = open_reading(folder, made_cache)
    name = next(iter(reading.items))
    reading.mark(name, Said(mark="ok", note="\x1b[31mred"), world_of(made_cache, "ann"))
    reading.enter(world_of(made_cache, "ann"))
    ended = gates("review", folder, "--by", "ann")
    assert "\x1b" not in ended.stdout
    assert "x1b[31mred" in ended.stdout
    screen = on_terminal(["review", str(folder), "--by", "ann"], "s\nquit\n", made_cache, Path(__file__).parents[2])
    assert "\x07" not in screen
    assert "[2J" not in screen.replace("\\x1b[2J", "")
    assert "[bold]x[/bold]" in screen or "bold x bold" in screen


def git(home: Path, *words: str, check: bool = True) -> int:
    named = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", "-C", home, *named, *words], check=check, capture_output=True).returncode


def commit(home: Path, message: str) -> None:
    git(home, "add", ".")
    git(home, "commit", "-qm", message)


def two_branches(reading: Reading, ann: World, bob: World, trial: Trial) -> None:
    """Ann reads on one branch and signs there, Bob on the other; Ann votes on one trial on both; git merges them."""
    home, run, items = reading.run.workspace, reading.run.store.folder, list(reading.needed("two"))
    hashes = (reading.run.sealed.sha256, reading.run.measurements.generations_sha256)

    def vote(best: int, by: World) -> None:
        Votes(run).vote(trial, Choice(author=0, best=best), hashes, by.stamp())
        enter_votes(BlindReading(reading, "two", by.by), by)

    reading.mark(items[0], Said(mark="bad"), ann)
    reading.enter(ann)
    git(home, "init", "-q")
    commit(home, "one mark")
    git(home, "branch", "other")
    for item in items:
        reading.mark(item, Said(mark="ok"), ann)
    vote(1, ann)
    sign_off(reading, Decided(arm="two", decision="hold", reason="made-up words"), ann)
    commit(home, "ours")
    git(home, "checkout", "-q", "other")
    reading.mark(items[1], Said(mark="bad", note="a proverb"), bob)
    reading.enter(bob)
    later = datetime.now(UTC) + timedelta(hours=1)
    vote(2, replace(ann, now=lambda: later))
    commit(home, "theirs")
    git(home, "checkout", "-q", "main")
    assert git(home, "merge", "other", check=False) == 1


def test_what_two_git_branches_have_marked_and_voted_is_joined_and_nothing_is_lost(
    reading: Reading, tmp_path: Path
) -> None:
    home, run = reading.run.workspace, reading.run.store.folder
    ann, bob = (world_of(reading.cache, by, make_key(tmp_path, by)) for by in ("ann", "bob"))
    trial = next(BlindReading(reading, "two", "ann").trials())
    two_branches(reading, ann, bob, trial)
    mixed = (run / "review.jsonl").read_bytes()
    with pytest.raises(TamperedError, match=r"review\.jsonl"):
        reading.marks()
    done = gates("ledger", "merge", "--workspace", home, "--by", "ann", "--json")
    merged = json.loads(done.stdout)
    assert done.stderr.endswith(f"ledger head {merged['head'][0]} ({len(Ledger(home / 'prereg').entries())} records)\n")
    assert [Path(path).name for path in merged["lines"]] == ["review.jsonl", "votes.jsonl"]
    commit(home, "joined")
    kept = {line for line in mixed.splitlines() if line.startswith(b"{")}
    assert kept < set((run / "review.jsonl").read_bytes().splitlines())
    items = list(reading.needed("two"))
    assert (len(reading.marks("ann")), reading.marks("bob")[items[1]].note) == (len(items), "a proverb")
    # Of two votes of one reader on one trial the first counts, on whichever branch it was.
    assert [(vote.by, vote.best) for vote in Votes(run).read()] == [("ann", trial.order[1])]
    found = verify(home, reading.cache)
    assert (found.breaks, found.not_derived) == ((), ())

    # It goes on from there, a second merge has nothing to do, and every line is held by the ledger.
    reading.mark(items[0], Said(mark="ok"), bob)
    reading.enter(bob)
    again = json.loads(gates("ledger", "merge", "other", "--workspace", home, "--json").stdout)
    assert (again["joined"], again["lines"]) == (False, [])
    entries, good = Ledger(home / "prereg").entries(), reading.review.path.read_bytes()
    first, second, *rest = good.splitlines(keepends=True)
    for changed in (
        [first, *rest],
        [second, first, *rest],
        [first, second, *rest[:-2]],
        [line for line in (first, second, *rest) if b"gates.join/1" not in line],
        [first, second, *rest, rest[-1]],
    ):
        reading.review.path.write_bytes(b"".join(changed))
        with pytest.raises(TamperedError, match=r"review\.jsonl"):
            reading.review.check(entries, "small", 1)
    reading.review.path.write_bytes(good)
    assert reading.review.check(entries, "small", 1) == 0
