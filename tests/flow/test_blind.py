"""Blind reading: what is drawn, what is shown of it, and that votes stand beside the figures unchanged."""

from __future__ import annotations

import io
import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gates.errors import CorpusError, TamperedError, UsageError
from gates.flow.blind import BlindDesk, BlindReading, check_votes, enter_votes
from gates.flow.review import Reading, open_reading
from gates.flow.verifying import verify
from gates.record.ledger import Ledger
from gates.record.votes import Choice, Votes, tallies
from gates.report.blind import readers_table, share
from tests.finished import finished_run, two_voices, world_of
from tests.flow.conftest import gates
from tests.flow.test_forged import rebuild


@pytest.fixture
def desk(reading: Reading) -> BlindDesk:
    blind = BlindReading(reading, "two", "ann")
    return BlindDesk(blind, world_of(reading.cache, "ann"), tuple(islice(blind.trials(), 6)))


def test_the_draw_is_each_readers_own_and_the_same_each_time(reading: Reading, desk: BlindDesk) -> None:
    again = BlindReading(reading, "two", "ann")
    assert tuple(islice(again.trials(), 3)) == desk.shown[:3]
    bob = tuple(islice(BlindReading(reading, "two", "bob").trials(), 6))
    assert bob != desk.shown
    whole = list(again.trials())
    assert len(whole) == 24
    assert len({(trial.prompt, trial.seed) for trial in whole}) == 24
    # Every order comes, and no place belongs to one of the three.
    for place in range(3):
        assert {trial.order[place] for trial in whole} == {"base", "candidate", "author"}
    with pytest.raises(UsageError, match="'three' is no candidate"):
        next(BlindReading(reading, "three", "ann").trials())


def test_passages_are_of_one_length_and_the_page_is_told_no_label(reading: Reading, desk: BlindDesk) -> None:
    trial = desk.shown[0]
    passages = dict(zip(trial.order, desk.blind.passages(trial), strict=True))
    assert {len(text.split()) for text in passages.values()} == {trial.words}
    generated = reading.generations["two", trial.prompt, trial.seed].text
    assert passages["candidate"].split() == generated.split()[: trial.words]
    heldout = (reading.cache / "corpora" / "author" / "heldout.txt").read_text("utf-8").split()
    assert passages["author"].split() == heldout[trial.author_start : trial.author_start + trial.words]
    told = json.dumps([desk.overview(), *(desk.item(str(n)) for n in range(1, 7))])
    for label in ("base", "candidate", "two", "author", "heldout"):
        assert f'"{label}"' not in told
    assert set(json.loads(told)[1]) == {"prompt", "passages"}


def test_typography_that_tells_print_from_model_is_made_alike(tmp_path: Path, made_cache: Path) -> None:
    folder = finished_run(tmp_path / "work", made_cache, lambda a, p, s: f"“I”—_so_ -- ’tis {two_voices('two', p, s)}")
    blind = BlindReading(open_reading(folder, made_cache), "one", "ann")
    trial = next(blind.trials())
    shown = dict(zip(trial.order, blind.passages(trial), strict=True))
    assert shown["base"].startswith('"I" so \'tis ')


def test_votes_are_kept_once_counted_and_bound(reading: Reading, desk: BlindDesk) -> None:
    for n, trial in enumerate(desk.shown, 1):
        right, wrong = trial.order.index("author"), trial.order.index("candidate")
        desk.say(str(n), {"author": right if n <= 4 else wrong, "best": wrong, "note": "<b>" if n == 1 else ""})
    with pytest.raises(UsageError, match="a vote on this trial already"):
        desk.say("1", {"author": 0, "best": 0})
    with pytest.raises(UsageError, match="'7' is no trial"):
        desk.say("7", {"author": 0, "best": 0})
    (tally,) = tallies(desk.blind.votes.read())
    assert (tally.by, tally.arm) == ("ann", "two")
    known = tally.author["author"]
    # Exact 95 % limits of 4 of 6, from a table of Clopper and Pearson's.
    assert (known.hits, known.n) == (4, 6)
    assert (known.low, known.high) == (pytest.approx(0.2228, abs=1e-4), pytest.approx(0.9567, abs=1e-4))
    assert (tally.author["candidate"].hits, tally.author["base"].hits) == (2, 0)
    assert tally.best["candidate"].hits == 6
    before = (reading.run.store.folder / "verdict.json").read_bytes()
    assert any("no ledger record holds its last 6 votes yet" in s for s in verify_of(reading)[1])
    enter_votes(desk.blind, desk.world)
    entry = Ledger(reading.run.workspace / "prereg").entries()[-1].entry
    assert (entry.kind, entry.body["lines"]) == ("votes", 6)
    assert entry.body["readers"] == [tally.as_json()]
    assert verify_of(reading) == ((), ())
    assert (reading.run.store.folder / "verdict.json").read_bytes() == before
    shown = gates("read", reading.run.store.folder)
    delta = reading.run.measurements.arms["two"].voice.delta
    assert f"{delta:+.3f}" in shown.stdout
    assert "│ author known                   │ 4 of 6 [0.22, 0.96] │" in shown.stdout
    narrow = io.StringIO()
    Console(file=narrow, width=80).print(readers_table(reading.run.measurements, (tally,)))
    assert all(f"│ {share(one)} │\n" in narrow.getvalue() for one in (*tally.author.values(), *tally.best.values()))
    assert json.loads(gates("read", reading.run.store.folder, "--json").stdout)["readers"] == [tally.as_json()]


def verify_of(reading: Reading) -> tuple[tuple[str, ...], tuple[str, ...]]:
    found = verify(reading.run.workspace, reading.cache)
    return found.breaks, found.not_derived


def test_forged_votes_are_found(reading: Reading, desk: BlindDesk) -> None:
    desk.say("1", {"author": 0, "best": 1})
    enter_votes(desk.blind, desk.world)
    entries = Ledger(reading.run.workspace / "prereg").entries()
    path = desk.blind.votes.path
    good = path.read_bytes()
    for place in range(0, len(good), 7):
        path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        with pytest.raises(TamperedError, match=r"votes\.jsonl"):
            check_votes(reading, entries)
    path.write_bytes(good)
    # A vote on a trial that was never drawn, though chained and entered.
    strange = desk.shown[1].model_copy(update={"author_start": desk.shown[1].author_start + 1})
    run = (reading.run.sealed.sha256, reading.run.measurements.generations_sha256)
    votes = Votes(reading.run.store.folder)
    votes.vote(strange, Choice(author=0, best=0), run, desk.world.stamp())
    with pytest.raises(TamperedError, match="never drawn for them"):
        check_votes(reading, entries)
    votes.vote(strange.model_copy(update={"arm": "nobody"}), Choice(author=0, best=0), run, desk.world.stamp())
    assert "no arm of" in gates("read", reading.run.store.folder).stdout


def test_each_word_of_the_ledger_on_votes_is_held_against_them(reading: Reading, desk: BlindDesk) -> None:
    desk.say("1", {"author": 0, "best": 1})
    enter_votes(desk.blind, desk.world)
    ledger = Ledger(reading.run.workspace / "prereg")
    known = ledger.entries()[-1].entry.body
    (tally,) = known["readers"]  # type: ignore[misc, union-attr]
    share = {"hits": 3, "n": 2, "rate": 0.25, "low": 0.1, "high": 0.9}
    assert not share.items() & tally["author"]["author"].items()
    forged: list[tuple[dict[str, Any], tuple[str, ...]]] = [
        ({"run": 2}, ("no such run had begun",)),
        ({"lines": 2}, ("votes.jsonl",)),
        ({"lines_sha256": "0" * 64}, ("votes.jsonl",)),
        ({"readers": []}, ("readers: stored [], derived",)),
        ({"readers": [{**tally, "by": "bob", "arm": "one", "best": {}}]}, (".by: ", ".arm: ", ".best.base: ")),
        (
            {"readers": [{**tally, "author": {**tally["author"], "author": share}}]},
            tuple(f".author.author.{word}: stored {said}, " for word, said in share.items()),
        ),
    ]
    kept = ledger.path.read_bytes(), ledger.head_path.read_bytes()
    for words, told in forged:
        rebuild(reading.run.workspace, lambda kind, body, words=words: body.update(words if kind == "votes" else {}))
        breaks = " ".join(verify_of(reading)[0])
        assert [said for said in told if said not in breaks] == [], (words, breaks)
        ledger.path.write_bytes(kept[0])
        ledger.head_path.write_bytes(kept[1])
    assert verify_of(reading) == ((), ())


def test_without_the_held_out_text_there_is_no_blind_reading(reading: Reading, tmp_path: Path) -> None:
    away = open_reading(reading.run.store.folder, tmp_path / "nothing")
    with pytest.raises(CorpusError, match="cannot be used"):
        next(BlindReading(away, "two", "ann").trials())
    several = gates("read", reading.run.store.folder, "--blind")
    assert several.returncode == 2
    assert "--arm, one of: one, two" in several.stderr
