"""Every verdict on one candidate of a run, side by side: the run's own and each re-score's; which of them one signs.

No verdict takes another away. A decision to ship names one of them, and what the others say can stand against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gates.errors import UsageError
from gates.judge.standing import STANDINGS, Standing, StandingName
from gates.judge.verdict import Verdict
from gates.record.body import said
from gates.record.chain import Stored
from gates.record.rescore import RescoreFiles, before, folder_of, read_rescore, said_first
from gates.record.store import RunStore
from gates.records import Outcome, Record, Sha256

AFTERWARDS: tuple[StandingName, ...] = ("post-hoc", "imported")
"""Standings of a rule that no seal held before the numbers it judges, or of texts of which nothing shows when."""


class RescoreVerdict(Record):
    """What a re-score says of one candidate: the folder and hashes of it, what was asked, its standing, its outcome.

    `first` must be said before the outcome.
    """

    folder: str
    rescore_sha256: Sha256
    verdict_sha256: Sha256
    asked: str
    first: tuple[str, ...]
    standing: Standing
    outcome: Outcome

    def __str__(self) -> str:
        return f"re-score {self.folder}, {self.asked}"


@dataclass(frozen=True)
class Given:
    """A re-score as it is recorded: what it says of the candidate, its number, and its files."""

    said: RescoreVerdict
    number: int
    files: RescoreFiles


@dataclass(frozen=True)
class Verdicts:
    """The verdicts on candidate `arm`: the run's `own` with its standing, the re-score signed or none, all `others`."""

    arm: str
    own: Verdict
    own_standing: Standing
    signed: Given | None
    others: tuple[Given, ...]

    @property
    def own_outcome(self) -> Outcome:
        """What the run itself says of the candidate."""
        return self.own.candidates[self.arm].outcome

    @property
    def outcome(self) -> Outcome:
        """What the verdict that is signed says of the candidate."""
        return self.own_outcome if self.signed is None else self.signed.said.outcome

    @property
    def standing(self) -> Standing:
        """The standing of the verdict that is signed."""
        return self.own_standing if self.signed is None else self.signed.said.standing

    def against(self) -> list[str]:
        """What of all this stands against shipping by the verdict that is signed; `weighs` says which others do."""
        found = [] if self.outcome is Outcome.PASS else [f"the verdict is {self.outcome.value}"]
        if self.signed is not None:
            if self.standing.name in AFTERWARDS:
                found.append(f"the re-score is {self.standing}")
            if self.own_outcome is not Outcome.PASS and weighs(self.own_standing.name, self.standing.name):
                found.append(f"the run's own verdict is {self.own_outcome.value} ({self.own_standing.name})")
        return found + [
            f"{other.said}{before(other.said.first)} says {other.said.outcome.value} ({other.said.standing.name})"
            for other in self.others
            if other.said.outcome is not Outcome.PASS and weighs(other.said.standing.name, self.standing.name)
        ]


def weighs(other: StandingName, signed: StandingName) -> bool:
    """Whether a verdict of standing `other` counts against one of standing `signed`.

    It does when a seal fixed its rule, and when it is worth no less than the one that is signed: whoever looks for a
    rule that fails finds one afterwards, and that alone takes nothing from a rule that was fixed before.
    """
    return other not in AFTERWARDS or STANDINGS.index(other) <= STANDINGS.index(signed)


def given(store: RunStore, entries: Sequence[Stored], arm: str) -> tuple[Given, ...]:
    """Every re-score of a run among these records, as it speaks of `arm`. Raises TamperedError for a changed file."""
    return tuple(_given(store, entered, arm) for entered in of_run(entries, store.gate, store.number))


def of_run(entries: Sequence[Stored], gate: str, run: int) -> list[Stored]:
    """The records of a run's re-scores."""
    mine = [one for one in entries if one.entry.kind == "rescore" and one.entry.gate == gate]
    return [one for one in mine if said(one, "run", int) == run]


def _given(store: RunStore, entered: Stored, arm: str) -> Given:
    folder = folder_of(store, entered)
    files = read_rescore(folder, entered)
    judged = files.verdict.candidates.get(arm)
    verdict = RescoreVerdict(
        folder=folder.name,
        rescore_sha256=said(entered, "rescore_sha256", str),
        verdict_sha256=said(entered, "verdict_sha256", str),
        asked=files.rescore.asked,
        first=files.rescore.first,
        standing=files.rescore.standing,
        outcome=Outcome.INVALID if judged is None else judged.outcome,
    )
    return Given(verdict, said(entered, "rescore", int), files)


def named(found: Sequence[Given], name: str) -> Given:
    """The one re-score of that number or folder. Raises UsageError when it is none or several."""
    number = int(name) if name.isascii() and name.isdecimal() and len(name) < 6 else None
    hits = [one for one in found if name == one.said.folder or number == one.number]
    if len(hits) == 1:
        return hits[0]
    known = ", ".join(one.said.folder for one in (hits or found)) or "there is none: `gates rescore` makes one"
    what = f"names {len(hits)} re-scores" if hits else "is no re-score of this run"
    raise UsageError(f"--rescore {name!r} {what}", next_step=f"name its folder: {known}")


def outcome_in(entered: Stored, arm: str) -> str:
    """What the ledger's record of a re-score says of a candidate; INVALID where it is silent."""
    candidates = entered.entry.body.get("candidates")
    return str(candidates.get(arm, "INVALID")) if isinstance(candidates, dict) else "INVALID"


def standing_in(entered: Stored) -> StandingName:
    """What the ledger's record of a re-score says of its standing; a word that is none weighs like the strongest."""
    name = said(entered, "standing", str)
    return next((known for known in STANDINGS if known == name), STANDINGS[0])


def told_of(entered: Stored, arm: str) -> str:
    """A re-score in one line by its ledger record, as it speaks of one candidate."""
    about = f"re-scored {said(entered, 'rescore', int):03d}, {said(entered, 'asked', str)}{before(said_first(entered))}"
    return f"{about}: {arm} {outcome_in(entered, arm)} ({said(entered, 'standing', str)})"
