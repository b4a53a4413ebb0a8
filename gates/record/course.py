"""The course of a ledger: which records may follow which, and what the body of each kind may say at all.

A record that somebody appends breaks no chain and contradicts no anchor. So one that gates would never have appended (a
second verdict of a run, with other files put in the place of the first one's; a sign-off of a run that nobody judged)
has to be known by its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gates.errors import TamperedError
from gates.record.body import said
from gates.record.chain import Kind, Stored

_VERDICT = "run seal generations_sha256 measurements_sha256 verdict_sha256 sessions_sha256 report_sha256"
_RESCORE = "run rescore seal rescore_sha256 verdict_sha256 report_sha256 asked standing outcome candidates"
_RECHECKED = "run recheck plan_sha256 generations_sha256 recheck_sha256 report_sha256 outcome"

_SAYS: dict[Kind, tuple[str, str]] = {
    "seal": ("seal file gate_sha256", ""),
    "import": ("seal file gate_sha256", ""),
    "run": ("run seal", ""),
    "session": ("run session_sha256 phase", ""),
    "spoiled": ("run why", ""),
    "verdict": (f"{_VERDICT} outcome candidates", "judgements_sha256 gates"),
    "merge": ("moved commit", ""),
    "recheck": ("run recheck plan_sha256 arm", ""),
    "rechecked": (_RECHECKED, "judgements_sha256 gates"),
    "review": ("run lines lines_sha256", ""),
    "votes": ("run lines lines_sha256 readers", ""),
    "signoff": ("run arm decision signoff_sha256", "rescored"),
    "rescore": (_RESCORE, "measurements_sha256 gates first"),
}
"""What the body of each kind says: always, and at times. Any record may name the key that signs it."""

Run = tuple[str, int]
"""A gate's name and a run's number."""


def course_breaks(records: Sequence[Stored]) -> list[str]:
    """Every record of a ledger, in its order, that gates would not have entered there, and why."""
    course, found = _Course(), []
    for record in records:
        entry = record.entry
        place = f"ledger record {record.sha256} ({entry.kind} of {entry.gate!r})"
        try:
            found += [f"{place}: {why}" for why in _body(record) or course.refuses(record)]
        except TamperedError as error:
            found.append(error.message)
    return found


def _body(record: Stored) -> list[str]:
    always, at_times = (set(keys.split()) for keys in _SAYS[record.entry.kind])
    told = record.entry.body.keys() - {"signing_key"}
    missing, more = sorted(always - told), sorted(told - always - at_times)
    return [
        *([f"it does not say its {', '.join(missing)}"] if missing else []),
        *([f"gates says nothing called {', '.join(repr(key[:80]) for key in more)} there"] if more else []),
    ]


@dataclass
class _Course:
    """What a ledger holds so far: seals by gate, runs with their seals, how each ended, rechecks and their ends."""

    seals: set[tuple[str, str]] = field(default_factory=set)
    runs: dict[Run, str] = field(default_factory=dict)
    ended: dict[Run, str] = field(default_factory=dict)
    rechecks: dict[tuple[str, int, str], bool] = field(default_factory=dict)

    def refuses(self, record: Stored) -> Iterator[str]:
        """Why the record cannot stand where it does; it is then known."""
        kind, gate = record.entry.kind, record.entry.gate
        if kind in ("seal", "import"):
            self.seals.add((gate, said(record, "seal", str)))
        elif kind != "merge":
            yield from self._of_run(record, (gate, said(record, "run", int)))

    def _of_run(self, record: Stored, run: Run) -> Iterator[str]:
        kind = record.entry.kind
        if kind == "run":
            yield from self._begun(record, run)
        elif run not in self.runs:
            yield "no such run had begun"
        elif kind in ("session", "spoiled", "verdict"):
            if run in self.ended:
                yield f"the run had ended, with a record of kind {self.ended[run]}"
            if kind == "verdict" and said(record, "seal", str) != self.runs[run]:
                yield "it names another seal than the run has"
            if kind != "session":
                self.ended.setdefault(run, kind)
        elif self.ended.get(run) != "verdict":
            yield "the run had no verdict"
        elif kind in ("recheck", "rechecked"):
            yield from self._rechecked(record, (*run, said(record, "plan_sha256", str)))

    def _begun(self, record: Stored, run: Run) -> Iterator[str]:
        seal = said(record, "seal", str)
        if run[1] < 1:
            yield "runs are counted from 1"
        if run in self.runs:
            yield "a run of this number had begun"
        if (run[0], seal) not in self.seals:
            yield f"the gate had no seal {seal}"
        self.runs.setdefault(run, seal)

    def _rechecked(self, record: Stored, which: tuple[str, int, str]) -> Iterator[str]:
        if record.entry.kind == "recheck":
            self.rechecks.setdefault(which, False)
        elif self.rechecks.get(which) is not False:
            yield "this recheck had ended" if self.rechecks.get(which) else "no such recheck had begun"
        else:
            self.rechecks[which] = True
