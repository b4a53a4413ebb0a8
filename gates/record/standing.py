"""Standings and attempts, computed from the ledger and the seals it names alone: nobody's word counts.

What came before what is asked of the chain of hashes, not of clocks: a record came before another when the other
follows it. What a merged branch held unseen did not come before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from gates.errors import RecordError, TamperedError
from gates.judge.standing import Attempts, Counted, Standing, Tries, one_passes
from gates.judge.verdict import Verdict
from gates.record.body import said
from gates.record.chain import Stored, heads, with_ancestors
from gates.record.seal import SEALING, Seal, read_seal
from gates.records import Sha256

IMPORTED = Standing(
    name="imported",
    reason="not sealed before generation: the texts are older than this record, which can show nothing of how they "
    "came about.",
)


@dataclass(frozen=True)
class History:
    """The ledger of the folder `prereg` as it stood at some moment: its records, in order.

    `read` are seals by hash that were read and found to be what the ledger says: who looks at a ledger again and again
    while it grows hands them on.
    """

    prereg: Path
    records: tuple[Stored, ...]
    read: dict[Sha256, Seal] = field(default_factory=dict, compare=False, repr=False)

    def as_of(self, ends: Sequence[Sha256]) -> History:
        """As it stood when these records were its ends. Raises RecordError for one that it does not hold."""
        unknown = set(ends) - {record.sha256 for record in self.records}
        if unknown:
            raise RecordError(f"{self.prereg / 'ledger.jsonl'}: it holds no record {', '.join(sorted(unknown))}")
        reached = with_ancestors(self.records, set(ends))
        return replace(self, records=tuple(record for record in self.records if record.sha256 in reached))

    def until_judged(self, gate: str, run: int) -> History:
        """As it stood when a run's last text was there: all that its verdict could know of. Raises RecordError."""
        last = self.run(gate, run)
        for record in self.records:
            if record.entry.kind == "session" and record.entry.gate == gate and said(record, "run", int) == run:
                last = record
        return self.as_of([last.sha256])

    @property
    def heads(self) -> tuple[Sha256, ...]:
        """The records that nothing follows yet."""
        return heads(self.records)

    @cached_property
    def seals(self) -> dict[Sha256, tuple[Stored, Seal]]:
        """Every seal and import by its hash, in the order of the ledger: the first record that names it, and itself."""
        found: dict[Sha256, tuple[Stored, Seal]] = {}
        for record in self.records:
            if record.entry.kind in SEALING:
                name = said(record, "seal", str)
                if name not in self.read:
                    self.read[name] = read_seal(self.prereg, name, said(record, "file", str)).seal
                found.setdefault(name, (record, self.read[name]))
        return found

    def sealed(self, name: Sha256) -> tuple[Stored, Seal]:
        """One seal with its record. Raises TamperedError where the ledger held none of this hash."""
        if name not in self.seals:
            raise TamperedError(
                f"{self.prereg / 'ledger.jsonl'}: a record rests on seal {name}, which no record before it enters",
                next_step="restore prereg/ from its last good commit",
            )
        return self.seals[name]

    def runs(self, gate: str) -> list[Stored]:
        """The records of the gate's runs, each made before its first generation."""
        return [record for record in self.records if record.entry.kind == "run" and record.entry.gate == gate]

    def run(self, gate: str, number: int) -> Stored:
        """The record of one run. Raises RecordError without it."""
        for record in self.runs(gate):
            if said(record, "run", int) == number:
                return record
        raise RecordError(f"{self.prereg / 'ledger.jsonl'}: it holds no run {number} of gate {gate!r}")

    def follows(self, later: Stored, earlier: Stored) -> bool:
        """Whether `later` was written in knowledge of `earlier`."""
        return earlier.sha256 in with_ancestors(self.records, {later.sha256})

    def runs_before(self, seal: Stored) -> list[Stored]:
        """The runs of a seal's gate that did not begin after it: they may have been seen when it was made."""
        return [run for run in self.runs(seal.entry.gate) if not self.follows(run, seal)]


def standing_of(history: History, seal: Sha256) -> Standing:
    """The standing of a run under its own seal."""
    record, _ = history.sealed(seal)
    if record.entry.kind == "import":
        return IMPORTED
    before = len(history.runs_before(record))
    if before:
        return Standing(name="post-hoc", reason=f"sealed after {before} earlier run(s) of this gate had begun.")
    return Standing(name="prospective", reason="sealed before any generation of this gate.")


def own_standing(seal: Seal, verdict: Verdict) -> Standing:
    """The standing of a run's own verdict; of one that an earlier gates wrote without it, as the seal shows."""
    if verdict.standing is not None:
        return verdict.standing
    if not seal.runs_before:
        return Standing(name="prospective", reason="sealed before any generation of this gate.")
    return Standing(name="post-hoc", reason=f"sealed after {seal.runs_before} earlier run(s) of this gate had begun.")


def attempts_at(history: History, gate: str, seal: Sha256, more: int = 0) -> Attempts:
    """Everything tried so far, of a gate and of the candidates that its `seal` binds; `more`: tries not entered yet.

    By ledger and seals alone, which every share of a record holds. So a try on the texts of another one (a re-score, a
    seat that repeats itself) counts anew: such tries pass together, and the chance errs toward doubt.
    """
    _, sealed = history.sealed(seal)
    mine = {arm: _bytes(sealed, arm) for arm in sealed.gate.arms.candidates}
    tried = {arm: [_false_pass(sealed)] * more for arm in mine}
    others: dict[str, None] = {}
    bound: dict[Sha256, set[tuple[str, ...] | None]] = {}
    for record in history.records:
        if record.entry.kind not in ("run", "rescore"):
            continue
        name = said(record, "seal", str)
        _, under = history.sealed(name)
        if name not in bound:
            bound[name] = {_bytes(under, other) for other in under.gate.arms.candidates}
        here = record.entry.gate == gate
        for arm, own in mine.items():
            known = own is not None and own in bound[name]
            if known or (here and own is None and arm in under.gate.arms.candidates):
                tried[arm].append(_false_pass(under))
                if not here:
                    others[record.entry.gate] = None
    return Attempts(
        this_gate=_counted(history, gate),
        other_gates={name: _counted(history, name) for name in others},
        candidates={arm: Tries(tries=len(rates), chance=one_passes(rates)) for arm, rates in tried.items() if rates},
    )


def in_context(verdict: Verdict, history: History, gate: str, run: int) -> Verdict:
    """The verdict of a run with its standing, and with every attempt that came before it."""
    known = history.until_judged(gate, run)
    standing, attempts = standing_of(known, verdict.seal), attempts_at(known, gate, verdict.seal)
    warnings = (*verdict.warnings, *([str(IMPORTED)] if standing.name == "imported" else []))
    return verdict.model_copy(update={"standing": standing, "attempts": attempts, "warnings": warnings})


def _counted(history: History, gate: str) -> Counted:
    kinds = [record.entry.kind for record in history.records if record.entry.gate == gate]
    return Counted(
        seals=kinds.count("seal"),
        runs=kinds.count("run"),
        floors=kinds.count("verdict") + kinds.count("rescore"),
    )


def _bytes(seal: Seal, arm: str) -> tuple[str, ...] | None:
    """The hashes of an arm's adapter files, in order; None where the seal knows none."""
    identity = seal.binding.adapters.get(arm)
    files = identity.files if identity is not None else None
    return tuple(sorted(files.values())) if files else None


def _false_pass(seal: Seal) -> float:
    """How often a candidate that moved nothing passes voice under a seal; 1 where the seal does not say."""
    voice = seal.operating.get("voice")
    rate = voice.get("false_pass") if isinstance(voice, dict) else None
    return float(rate) if isinstance(rate, int | float) and 0 <= rate <= 1 else 1.0
