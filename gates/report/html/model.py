"""What the page of a run shows, gathered before anything is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gates.judge.verdict import Verdict
from gates.measure.figures import Measurements, Source
from gates.measure.memorisation import Excerpt
from gates.measure.movers import Movers
from gates.record.seal import SealOnDisk
from gates.record.votes import Tally
from gates.records import Generation


@dataclass(frozen=True)
class Place:
    """Where a matched run comes from; `text` only where the page may hold words of that source."""

    source: Source
    text: Excerpt | None = None


@dataclass(frozen=True)
class Matched:
    """A matched run as a person reads it: in which answer, in its own context, and every place it comes from.

    `kind`: exact, near-verbatim, protected, or extraction (an answer to the probe). `changed`: offsets within the run
    of the words that differ from the source. `elsewhere`: where texts of other authors hold it too.
    """

    arm: str
    kind: str
    prompt: int
    seed: int
    length: int
    sha256: str
    answer: Excerpt
    changed: tuple[int, ...]
    places: tuple[Place, ...]
    elsewhere: tuple[Source, ...] = ()


@dataclass(frozen=True)
class Line:
    """One candidate of one run in the list of a workspace; `outcome` is empty, and `state` says why, without one.

    `author` is the held-out corpus, `page` the run's own page relative to the list, `events` what came after.
    """

    place: str
    author: str
    begun: str
    state: str
    standing: str
    page: str
    candidate: str
    outcome: str
    move: float | None
    required: float | None
    events: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """Everything on the page of one finished run.

    `prompts` are what the arms were shown, by number. What needs the gate's texts is None or empty where these are not
    at hand, and `lacking` says why: `movers` by arm, `own_runs` the lengths in words of the runs that the author's
    held-out text shares with the train split. `power` holds (shift in seed sd, share that passes).
    `events` say what came after the verdict: re-scores, sign-offs. `readers` are blind readers' votes, each reader's
    own on each candidate.
    """

    sealed: SealOnDisk
    number: int
    attempts: int
    measurements: Measurements
    verdict: Verdict
    prompts: Mapping[int, str]
    generations: tuple[Generation, ...]
    matched: tuple[Matched, ...]
    power: tuple[tuple[float, float], ...]
    deviations: tuple[str, ...] = ()
    movers: Mapping[str, Movers] = field(default_factory=dict)
    own_runs: tuple[int, ...] | None = None
    lacking: str = ""
    sources_shown: bool = False
    events: tuple[str, ...] = ()
    readers: tuple[Tally, ...] = ()
