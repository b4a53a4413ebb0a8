"""Everything a workspace's ledger tells of its gates over time: runs, verdicts, standing, what came after them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from gates.judge.verdict import Verdict
from gates.record.body import said
from gates.record.ledger import Ledger, Stored
from gates.record.rescore import before, said_first
from gates.record.seal import Seal, entered_seal
from gates.record.store import RunStore, is_running, runs
from gates.records import Record, sha256

_AFTER = {"rescore": "re-score", "signoff": "sign-off", "review": "review", "votes": "votes", "rechecked": "recheck"}
"""Kinds of ledger records that concern a run after its verdict, and what they are called."""


class Event(Record):
    """Something that happened to a run after its verdict: what, when, by whom, and its main figures in words."""

    what: str
    at: str
    by: str
    said: str

    def sentence(self) -> str:
        """The event on one line."""
        told = f"{self.what} of {self.at[:10]}"
        # Who asked for what is computed says nothing of it; who read or signed does.
        told += "" if self.what in (_AFTER["rescore"], _AFTER["rechecked"]) else f" by {self.by}"
        return f"{told}: {self.said}" if self.said else told


class Judged(Record):
    """A candidate of a run: its outcome, its move and the move required (None where voice has none)."""

    outcome: str
    move: float | None
    required: float | None


class RunItem(Record):
    """One run of one gate. `state`: finished, spoiled, running, stopped, or changed (not what the ledger says).

    `standing`: the verdict's, or what the seal alone shows of it. `author`: the corpus of the held-out text. `page`:
    where to look, relative to reports/, empty where there is nothing yet.
    """

    gate: str
    run: int
    question: str
    author: str
    begun: str
    by: str
    state: str
    standing: str
    outcome: str
    candidates: dict[str, Judged]
    events: tuple[Event, ...]
    page: str


class History(Record):
    """The gates of a workspace: every sealed one with its number of seals, and every run in the ledger's order."""

    sealed: dict[str, int]
    runs: tuple[RunItem, ...]


def history(workspace: Path) -> History:
    """What the ledger of a workspace tells. Raises TamperedError where its chain does not hold."""
    entries = Ledger(workspace / "prereg").entries()
    sealed: dict[str, int] = {}
    for stored in entries:
        if stored.entry.kind == "seal":
            sealed[stored.entry.gate] = sealed.get(stored.entry.gate, 0) + 1
    order = {stored.sha256: place for place, stored in enumerate(entries)}
    found = [(started, ended) for gate in sealed for started, ended in runs(entries, gate)]
    found.sort(key=lambda pair: order[pair[0].sha256])
    return History(sealed=sealed, runs=tuple(_item(workspace, entries, *pair) for pair in found))


def _item(workspace: Path, entries: Sequence[Stored], started: Stored, ended: Stored | None) -> RunItem:
    gate, number = started.entry.gate, said(started, "run", int)
    store = RunStore(workspace / "reports", gate, number)
    seal = entered_seal(workspace / "prereg", entries, said(started, "seal", str)).seal
    state, verdict = _verdict(store, ended, is_running(workspace / "reports", gate))
    return RunItem(
        gate=gate,
        run=number,
        question=seal.gate.question,
        author=seal.gate.corpora.heldout.split("/", 1)[0],
        begun=started.entry.at,
        by=started.entry.by,
        state=state,
        standing=_standing(seal, verdict),
        outcome="INVALID" if state == "spoiled" else verdict.outcome.value if verdict else "",
        candidates=_candidates(verdict) if verdict else {},
        events=events_of(entries, gate, number),
        page=next((f"{gate}/{number:03d}/{name}" for name in _PAGES if (store.folder / name).is_file()), ""),
    )


def _standing(seal: Seal, verdict: Verdict | None) -> str:
    """As the verdict says; of one that is older than standings, or not there yet, as the seal shows."""
    if verdict is not None and verdict.standing is not None:
        return verdict.standing.name
    return "post-hoc" if seal.runs_before else "prospective"


def events_of(entries: Sequence[Stored], gate: str, number: int) -> tuple[Event, ...]:
    """What the ledger holds of a run after its verdict, in its order."""
    return tuple(_event(s) for s in entries if s.entry.kind in _AFTER and _concerns(s, gate, number))


_PAGES = ("report.html", "report.md")


def _verdict(store: RunStore, ended: Stored | None, held: bool) -> tuple[str, Verdict | None]:
    """The run's state, and its verdict where the file is the one that the ledger names."""
    if ended is None:
        return ("running" if held else "stopped"), None
    if ended.entry.kind == "spoiled":
        return "spoiled", None
    path = store.folder / "verdict.json"
    data = path.read_bytes() if path.is_file() else b""
    if sha256(data) != said(ended, "verdict_sha256", str):
        return "changed", None
    return "finished", Verdict.parse(data, where=str(path))


def _candidates(verdict: Verdict) -> dict[str, Judged]:
    voices = {name: one.axes.get("voice") for name, one in verdict.candidates.items()}
    return {
        name: Judged(
            outcome=verdict.candidates[name].outcome.value,
            move=voice.value if voice else None,
            required=voice.threshold if voice else None,
        )
        for name, voice in voices.items()
    }


def _concerns(stored: Stored, gate: str, number: int) -> bool:
    return stored.entry.gate == gate and stored.entry.body.get("run") == number


def _event(stored: Stored) -> Event:
    """The parts of a record's body that are words and not hashes; what must be said first before any outcome."""
    body = stored.entry.body
    parts = [_plain(body[key]) for key in ("arm", "decision", "rescored", "asked") if key in body]
    parts += [before(said_first(stored)).strip()] if said_first(stored) else []
    parts += [_plain(body[key]) for key in ("standing", "outcome") if key in body]
    return Event(what=_AFTER[stored.entry.kind], at=stored.entry.at, by=stored.entry.by, said=", ".join(parts))


def _plain(value: JsonValue) -> str:
    return str(value)
