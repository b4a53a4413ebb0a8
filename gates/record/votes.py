"""Votes of blind readers: RUN/votes.jsonl, one chained line a vote, and what they come to, reader by reader."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue

from gates.record.ledger import Stamp
from gates.record.lines import Chained, Lines, State
from gates.record.review import Note
from gates.records import Record, Sha256
from gates.stats import clopper_pearson

Who = Literal["base", "candidate", "author"]
WHO: tuple[Who, ...] = ("base", "candidate", "author")


class Trial(Record):
    """Three passages of `words` words that were shown in `order`, of the base, a candidate and the author.

    Base and candidate answer the same prompt under the same seed; the author's passage begins at `author_start`, in
    words of white space from 0, of the held-out file.
    """

    arm: str
    prompt: int = Field(ge=0)
    seed: int
    words: int = Field(ge=1)
    author_file: str
    author_start: int = Field(ge=0)
    order: tuple[Who, Who, Who]


class Choice(Record):
    """What a reader says of a trial, by places from 0: which is the author's, which reads best; what is wrong."""

    author: int = Field(ge=0, le=2)
    best: int = Field(ge=0, le=2)
    note: Note = ""


class Vote(Chained):
    """One vote (`gates.vote/1`): what the reader took for the author's, and what reads best."""

    schema_: Literal["gates.vote/1"] = Field(default="gates.vote/1", alias="schema")
    seal: Sha256
    generations_sha256: Sha256
    trial: Trial
    author: Who
    best: Who
    note: Note = ""


class Votes(Lines[Vote]):
    """The votes on the run in `folder`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "votes.jsonl", Vote, "votes")

    def read(self, state: State | None = None) -> tuple[Vote, ...]:
        """As of any lines; of one reader's votes on one trial, as two git branches may hold, the first alone counts."""
        first: dict[tuple[str, Trial], Vote] = {}
        for vote in super().read(state):
            first.setdefault((vote.by, vote.trial), vote)
        return tuple(first.values())

    def told(self) -> dict[str, JsonValue]:
        """What the votes so far come to, reader by reader."""
        return {"readers": [tally.as_json() for tally in tallies(self.read())]}

    def vote(self, trial: Trial, choice: Choice, run: tuple[str, str], stamp: Stamp) -> Vote:
        """Append a vote on a trial of the run of this seal and these generations (their hashes).

        There is one a reader and trial: a later one is not kept, and the first is given back.
        """
        return self.add(
            lambda previous: Vote(
                previous=previous,
                seal=run[0],
                generations_sha256=run[1],
                trial=trial,
                author=trial.order[choice.author],
                best=trial.order[choice.best],
                note=choice.note,
                at=stamp.at,
                by=stamp.by,
            ),
            lambda votes: next((vote for vote in votes if (vote.by, vote.trial) == (stamp.by, trial)), None),
        )


class Share(Record):
    """`hits` of `n`, in [0, 1], with its exact two-sided 95 % limits."""

    hits: int
    n: int
    rate: float
    low: float
    high: float


class Tally(Record):
    """One reader's votes on one candidate: what they took for the author's, and what they thought best.

    A reader who cannot tell names each in a third of the trials. Never mixed into a voice figure.
    """

    by: str
    arm: str
    author: dict[Who, Share]
    best: dict[Who, Share]


def tallies(votes: Iterable[Vote]) -> tuple[Tally, ...]:
    """What the votes come to, by reader and candidate in the order in which they first come."""
    apart: dict[tuple[str, str], list[Vote]] = {}
    for vote in votes:
        apart.setdefault((vote.by, vote.trial.arm), []).append(vote)
    return tuple(
        Tally(
            by=by,
            arm=arm,
            author={who: _share([vote.author for vote in mine], who) for who in WHO},
            best={who: _share([vote.best for vote in mine], who) for who in WHO},
        )
        for (by, arm), mine in apart.items()
    )


def _share(said: Sequence[Who], who: Who) -> Share:
    hits, n = said.count(who), len(said)
    low, high = clopper_pearson(hits, n, 0.975)
    return Share(hits=hits, n=n, rate=hits / n, low=low, high=high)
