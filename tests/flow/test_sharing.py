"""Sharing without the text: no word of the train split leaves, and what is left can still be checked."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from gates.errors import UsageError
from gates.flow.review import Reading, open_reading
from gates.flow.sharing import share
from gates.flow.verifying import verify
from gates.record.ledger import Ledger
from gates.record.review import Said
from gates.records import canonical, sha256
from tests.finished import COPIED, finished_run, some_words, world_of
from tests.flow.conftest import gates, lines
from tests.flow.test_history import meanwhile
from tests.flow.test_signoff import make_key, read_all, signed
from tests.small import prose

MARKER = "zanzibar quagmire obelisk whisper tundra marmalade pelican overcoat"


def everything(folder: Path) -> dict[str, str]:
    """Every file under a folder, as text in lower case."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_text("utf-8", "replace").lower() for path in files}


def test_no_train_text_enters_reports_whatever_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A marker stands in the train split; a run, a review, a sign-off, a page and a share are searched."""
    home, cache = tmp_path / "work", tmp_path / "cache"
    monkeypatch.setenv("GATES_CACHE", str(cache))
    # The first words of the marker are copied by a text, so that the run's source stands next to the rest of it.
    copied = f"one two three {MARKER}"
    monkeypatch.setattr("tests.small.prose", marked(f"{copied} SECRET afterwards secret"))
    folder = finished_run(
        home, cache, lambda a, p, s: f"{some_words(a, p, s)} {MARKER if (a, p) == ('one', 3) else ''}"
    )
    reading = open_reading(folder, cache)
    assert [i.match.length for i in reading.list.items if i.match and i.match.against == "train"] == [8, 8]
    name = next(iter(reading.items))
    assert "SECRET" in reading.show(name).quotes[0].words.after
    read_all(reading, "one", "ann")
    assert gates("review", folder, "--by", "ann").returncode == 0
    gates("signoff", folder, "--arm", "one", "--decision", "waive", "--reason", "r", "--key", make_key(tmp_path / "k"))
    assert gates("report", folder).returncode == 0
    assert gates("report", folder, "--share", tmp_path / "shared").returncode == 0
    assert (tmp_path / "shared" / "reports" / "small" / "001" / "report.html").is_file()
    for where in (home / "reports", home / "prereg", tmp_path / "shared"):
        assert [name for name, text in everything(where).items() if "secret" in text] == []
    # With sources, and then only, the page holds them.
    assert gates("report", folder, "--with-sources").returncode == 0
    assert "secret" in everything(home / "reports")["small/001/report.html"]
    both = gates("report", folder, "--share", tmp_path / "other", "--with-sources")
    assert (both.returncode, (tmp_path / "other").exists()) == (2, False)
    # What a model has copied stands in its own text, and is left out of a share.
    assert MARKER in everything(home / "reports")["small/001/generations.jsonl"]
    assert [name for name, text in everything(tmp_path / "shared").items() if "marmalade" in text] == []


def marked(text: str):
    """The made-up prose with this text in the middle of the train split."""

    def made(seed: int, words: int, lean: float = 0.0) -> str:
        found = prose(seed, words, lean)
        return f"{found} {text} {found}" if (seed, words) == (0, 4000) else found

    return made


@pytest.fixture
def shared(reading: Reading, tmp_path: Path) -> Path:
    read_all(reading, "two", "ann")
    signed(reading, make_key(tmp_path / "keys"))
    reading.mark(next(iter(reading.items)), Said(mark="ok", note="a note"), world_of(reading.cache, "bob"))
    share(reading, tmp_path / "shared")
    return tmp_path / "shared"


def test_matched_words_are_replaced_by_their_count(reading: Reading, shared: Path) -> None:
    rows = {(r["arm"], r["prompt"], r["seed"]): r for r in lines(shared / "reports/small/001/generations.shared.jsonl")}
    assert rows.keys() == reading.generations.keys()
    copied = {("one", 3, 1), ("base", 5, 2), ("two", 1, 1)}
    assert all(rows[key]["omitted"] >= 12 for key in copied)
    for key in copied:
        around = some_words(*key)
        assert rows[key]["text"].startswith(around.rsplit(" ", 3)[0])
        assert " words] " in rows[key]["text"]
    whole = [key for key, row in rows.items() if not row["omitted"]]
    assert all(rows[key]["text"] == reading.generations[key].text for key in whole)
    assert len(whole) > 60
    assert [name for name, text in everything(shared).items() if COPIED in text] == []
    assert not (shared / "reports/small/001/review.jsonl").exists()


def test_it_verifies_as_far_as_it_goes_and_no_further(shared: Path, reading: Reading) -> None:
    found = verify(shared, reading.cache)
    assert (found.breaks, int(found.exit_code)) == ((), 3)
    assert "measurements, marks and sign-offs are not derived again" in found.not_derived[0]
    assert verify(reading.run.workspace, reading.cache).breaks == ()
    rng = random.Random(5)
    for path in sorted(p for p in shared.rglob("*") if p.is_file()):
        good = path.read_bytes()
        for place in range(0, len(good), 9) if path.name == "share.json" else rng.sample(range(len(good)), 2):
            path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
            changed = verify(shared, reading.cache)
            assert int(changed.exit_code) == 5, (path, place, good[max(0, place - 30) : place + 30])
        path.write_bytes(good)


def test_a_share_that_leaves_out_other_words_is_found(shared: Path, reading: Reading) -> None:
    path = shared / "reports/small/001/generations.shared.jsonl"
    rows = lines(path)
    good = next(row for row in rows if not row["omitted"])
    good["omitted"], good["text"] = 5, "[5 words] and lies"
    data = b"".join(canonical(row) + b"\n" for row in rows)
    path.write_bytes(data)
    manifest = json.loads((shared / "share.json").read_bytes())
    (shared / "share.json").write_bytes(canonical(manifest | {"texts_sha256": sha256(data)}))
    assert any("matched are others" in sentence for sentence in verify(shared, reading.cache).breaks)


def test_sharing_that_was_interrupted_goes_on(shared: Path, reading: Reading, tmp_path: Path) -> None:
    whole = {path.relative_to(shared): path.read_bytes() for path in shared.rglob("*") if path.is_file()}
    part = shutil.copytree(shared, tmp_path / "part")
    for name in sorted(whole, key=str)[::2]:
        (part / name).unlink()
    (part / "prereg" / ".ledger.jsonl.7.part").write_bytes(b"half")
    share(reading, part)
    assert {name: (part / name).read_bytes() for name in whole} == whole


def test_a_share_is_of_one_moment_whatever_is_entered_meanwhile(
    reading: Reading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = [reading.run.workspace / "prereg" / name / ".left.json.7.part" for name in ("seals", "signatures")]
    for path in half:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"left by a killed writer")
    with monkeypatch.context() as patch:
        meanwhile(patch, reading.run.workspace / "prereg", reading.run.sealed.sha256)
        share(reading, tmp_path / "shared")
    assert verify(tmp_path / "shared", reading.cache).breaks == ()
    assert [path for path in (tmp_path / "shared").rglob("*") if path.suffix == ".part"] == []
    assert len(Ledger(reading.run.workspace / "prereg").entries()) == 1 + len(
        Ledger(tmp_path / "shared" / "prereg").entries()
    )


def test_a_share_is_written_into_a_new_folder(reading: Reading, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("x")
    with pytest.raises(UsageError, match="not empty"):
        share(reading, tmp_path / "there")


def test_a_share_needs_no_page(reading: Reading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra `report`, which draws the page, the record is shared all the same."""
    monkeypatch.setattr("gates.cli.report.can_draw", lambda: False)
    ended = gates("report", reading.run.store.folder, "--share", tmp_path / "plain")
    assert (ended.returncode, "no page: it needs the extra `report`" in ended.stdout) == (0, True), ended.stderr
    assert (tmp_path / "plain" / "reports" / "small" / "001" / "report.md").is_file()
    assert not (tmp_path / "plain" / "reports" / "small" / "001" / "report.html").exists()


def test_a_workspace_does_not_pass_for_a_share(reading: Reading) -> None:
    """Of a share less is checked: whoever lays its manifest into a workspace would have less looked at."""
    workspace = reading.run.workspace
    told = {"schema": "gates.share/1", "run": "small/001", "texts_sha256": "0" * 64, "texts": 0, "omitted": 0}
    (workspace / "share.json").write_bytes(canonical(told | {"withheld": []}))
    found = verify(workspace, reading.cache)
    assert any("a share withholds generations.jsonl, and " in sentence for sentence in found.breaks)
