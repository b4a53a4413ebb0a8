"""Marks and votes of several people at once: added one after the other, and no vote twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from gates.record.files import held
from gates.record.ledger import Ledger, Stamp
from gates.record.lines import State
from gates.record.review import Mark, Review, Said
from gates.record.votes import Choice, Trial, Votes
from tests.judge.arms import HASH

STAMP = Stamp("2026-01-01T00:00:00+00:00", "ann")


def test_nobody_else_adds_a_line_between_the_last_one_and_the_next(tmp_path: Path) -> None:
    review, seen = Review(tmp_path), []

    def make(previous: str | None) -> Mark:
        seen.append(held(tmp_path / ".review.jsonl.lock"))
        about = {"list_sha256": HASH, "item": HASH, "mark": "ok", "at": STAMP.at, "by": STAMP.by}
        return Mark(previous=previous, **about)

    for _ in range(2):
        review.add(make)
    assert (seen, len(review.read())) == ([True, True], 2)


def test_nobody_adds_a_line_while_those_so_far_are_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    review, real, seen = Review(tmp_path), Review.state, []
    review.mark(HASH, HASH, Said(mark="ok"), STAMP)

    def state(lines: Review) -> State:
        seen.append(held(tmp_path / ".review.jsonl.lock"))
        return real(lines)

    monkeypatch.setattr(Review, "state", state)
    review.enter(Ledger(tmp_path / "prereg"), "demo", 1, STAMP)
    assert seen == [True]


def test_of_two_votes_on_one_trial_the_first_is_kept(tmp_path: Path) -> None:
    """Also where two pages are open, each of which has seen none yet."""
    votes = Votes(tmp_path)
    trial = Trial(
        arm="one", prompt=0, seed=1, words=20, author_file="a", author_start=0, order=("base", "candidate", "author")
    )
    first = votes.vote(trial, Choice(author=0, best=1), (HASH, HASH), STAMP)
    assert votes.vote(trial, Choice(author=2, best=2), (HASH, HASH), STAMP) == first
    assert len(votes.path.read_bytes().splitlines()) == 1
    votes.vote(trial, Choice(author=2, best=2), (HASH, HASH), Stamp(STAMP.at, "bob"))
    assert len(votes.path.read_bytes().splitlines()) == 2
