"""Signing a candidate off: nothing required may be unread, and nothing that failed ships without a stated waiver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gates.errors import GatesError, RefusedError, TamperedError, UsageError
from gates.flow.review import Reading
from gates.flow.world import World
from gates.record.body import said
from gates.record.chain import with_ancestors
from gates.record.files import locked
from gates.record.ledger import Ledger, Stored
from gates.record.rescore import told
from gates.record.review import latest
from gates.record.seal import AdapterIdentity
from gates.record.signing import fingerprint, public_key
from gates.record.signoff import (
    Decision,
    Doubt,
    Reason,
    Release,
    Serving,
    SignOff,
    release_of,
    signoff_path,
    signoffs,
    write_signoff,
)
from gates.records import Outcome, Record
from gates.report.release import alias_of, caveats, compose_line, readme_block
from gates.seat.identity import adapter_files
from gates.spec.schema import SignOffRule
from gates.spec.workspace import adapter_path


class Decided(Record):
    """What a person decides on which candidate, and why."""

    arm: str
    decision: Decision
    reason: Reason


@dataclass(frozen=True)
class Signer:
    """Who signs, when, with the key of which fingerprint."""

    by: str
    at: str
    key: str


@dataclass(frozen=True)
class Known:
    """What the ledger knew when a decision was made: runs of the gate, and in sentences the re-scores of this one."""

    attempts: int
    rescored: tuple[str, ...]


@dataclass(frozen=True)
class Signed:
    """A sign-off, its file, and what the candidate's sign-offs amount to; the texts that go with a release."""

    signoff: SignOff
    path: Path
    release: Release
    readme: str
    compose: str
    alias: str


def sign_off(reading: Reading, decided: Decided, world: World, alias: str | None = None) -> Signed:
    """Record and sign a decision.

    The same signed again before anything else is entered, as after an interruption, is the same sign-off.
    Raises RefusedError while something required is unread, and for `ship` where something stands against it;
    UsageError for an unknown arm, an empty reason, a key that cannot sign, or a waiver of nothing.
    """
    run, gate, key = reading.run, reading.run.seal.gate, world.key
    if key is None:
        raise UsageError("a sign-off is signed, and no key is given", next_step="name an SSH key with --key")
    _refuse_other_bytes(reading, decided.arm)
    stamp = world.stamp()
    signer = Signer(stamp.by, stamp.at, fingerprint(public_key(key)))
    made = draft(reading, decided, signer, _known(reading, Ledger(run.workspace / "prereg").entries(), decided.arm))
    reading.enter(world)
    ledger = Ledger(run.workspace / "prereg")
    with locked(run.store.folder / ".signoffs.lock", wait=True, busy="another process signs this run off"):
        last = signoffs(run.store, ledger.entries()[-1:])
        if last and last[0].signoff.model_copy(update={"at": made.at}) == made:
            world.say("signed already, and nothing has been entered since")
            made = last[0].signoff
        else:
            write_signoff(run.store, ledger, made, stamp)
    release, standing = _standing(reading, decided.arm, ledger.entries())
    return Signed(
        signoff=made,
        path=signoff_path(run.store, made),
        release=release,
        readme=readme_block(gate, run.verdict, standing, release) if release.complete else "",
        compose=compose_line(gate, decided.arm) if release.complete else "",
        alias=alias_of(gate, decided.arm, alias or gate.name) if release.complete else "",
    )


def draft(reading: Reading, decided: Decided, signer: Signer, known: Known, marks: int | None = None) -> SignOff:
    """The sign-off that these records and the first `marks` marks (all of them by default) allow; nothing is written.

    Raises as `sign_off` does.
    """
    run, arm = reading.run, decided.arm
    sealed, gate, needed = run.sealed, run.seal.gate, reading.needed(arm)
    marked = latest(reading.review.read(marks), reading.list_sha256, signer.by)
    unread = [name for name in needed if name not in marked]
    if unread:
        raise RefusedError(
            f"{signer.by} has not read {len(unread)} of {len(needed)} required items, the first {unread[0][:10]}",
            next_step=f"gates review {run.store.folder} --arm {arm} --by {signer.by}",
        )
    doubts = tuple(Doubt(item=name, note=marked[name].note) for name in needed if marked[name].mark == "bad")
    identity = sealed.seal.binding.adapters.get(arm, AdapterIdentity(files=None, card=None))
    outcome = run.verdict.candidates[arm].outcome
    _refuse(decided, _against(outcome, doubts, identity))
    state = reading.review.state(marks)
    seat = sealed.seal.seat_at()
    return SignOff(
        gate=gate.name,
        gate_sha256=sealed.seal.binding.gate,
        seal=sealed.sha256,
        arm=arm,
        decision=decided.decision,
        reason=decided.reason,
        outcome=outcome,
        attempts=known.attempts,
        generations_sha256=run.measurements.generations_sha256,
        measurements_sha256=run.verdict.measurements_sha256,
        verdict_sha256=run.verdict.digest(),
        list_sha256=reading.list_sha256,
        read=len(needed),
        marks=state.lines,
        review_sha256=state.sha256,
        doubts=doubts,
        serving=Serving(
            model=gate.arms.candidates[arm].model,
            adapter=identity,
            base=card if isinstance(card := seat.get("base_card"), dict) else {},
            base_card_sha256=str(seat.get("base_card_sha256")),
            server_version=_text(seat.get("version")),
            fingerprint=_text(seat.get("fingerprint")),
            sampling=gate.sampling,
        ),
        caveats=(*known.rescored, *caveats(sealed, run.measurements, run.verdict, arm, known.attempts)),
        signers=(gate.sign_off or SignOffRule()).signers,
        at=signer.at,
        by=signer.by,
        key=signer.key,
    )


def check_signoffs(reading: Reading, entries: Sequence[Stored]) -> list[SignOff]:
    """Derive every sign-off of a run again, from the records and marks that it names. Raises TamperedError."""
    found = signoffs(reading.run.store, entries)
    for stored, signed in found:
        before = with_ancestors(entries, set(stored.entry.previous))
        known = _known(reading, [one for one in entries if one.sha256 in before], signed.arm)
        place = f"{reading.run.store.folder / 'signoffs'}: the sign-off of {signed.arm} by {signed.by}"
        signing_key = stored.entry.body.get("signing_key")
        if not isinstance(signing_key, str) or fingerprint(signing_key) != signed.key:
            raise TamperedError(f"{place} is not signed by the key that it names")
        if (stored.entry.at, stored.entry.by) != (signed.at, signed.by):
            raise TamperedError(f"{place} is not of the time or person that the ledger names")
        decided = Decided(arm=signed.arm, decision=signed.decision, reason=signed.reason)
        try:
            again = draft(reading, decided, Signer(signed.by, signed.at, signed.key), known, signed.marks)
        except GatesError as error:
            raise TamperedError(f"{place} could not have been made: {error.message}") from None
        if again != signed:
            raise TamperedError(f"{place}: derived again it differs")
    return [signed for _, signed in found]


def _known(reading: Reading, entries: Sequence[Stored], arm: str) -> Known:
    store = reading.run.store
    mine = [one for one in entries if one.entry.gate == store.gate]
    scored = [one for one in mine if one.entry.kind == "rescore" and said(one, "run", int) == store.number]
    return Known(
        attempts=sum(one.entry.kind == "run" for one in mine),
        rescored=tuple(f"{told(one)}; {arm}: {_outcome(one, arm)}" for one in scored),
    )


def _outcome(rescored: Stored, arm: str) -> str:
    candidates = rescored.entry.body.get("candidates")
    return str(candidates.get(arm, "not judged")) if isinstance(candidates, dict) else "not judged"


def _standing(reading: Reading, arm: str, entries: Sequence[Stored]) -> tuple[Release, list[SignOff]]:
    """What the sign-offs of a candidate amount to, and the last one of each key."""
    found = [signed for _, signed in signoffs(reading.run.store, entries)]
    needed = (reading.run.seal.gate.sign_off or SignOffRule()).signers
    return release_of(found, arm, needed), list({s.key: s for s in found if s.arm == arm}.values())


def _against(outcome: Outcome, doubts: Sequence[Doubt], identity: AdapterIdentity) -> list[str]:
    """What stands against shipping."""
    found = [] if outcome is Outcome.PASS else [f"the verdict is {outcome.value}"]
    found += [f"{len(doubts)} items are marked bad"] if doubts else []
    return found + ([] if identity.files else ["the seal does not know the adapter's bytes"])


def _refuse(decided: Decided, against: Sequence[str]) -> None:
    if decided.decision == "ship" and against:
        raise RefusedError(
            f"{decided.arm} cannot ship as it is: {'; '.join(against)}",
            next_step="--decision hold, or --decision waive with the reason why it ships all the same",
        )
    if decided.decision == "waive" and not against:
        raise UsageError(
            f"nothing stands against {decided.arm}: there is nothing to waive", next_step="--decision ship"
        )


def _refuse_other_bytes(reading: Reading, arm: str) -> None:
    """Raise RefusedError when the adapter's files can be read here and are not the sealed ones."""
    run = reading.run
    about = run.seal.gate.arms.candidates.get(arm)
    sealed = run.seal.binding.adapters.get(arm)
    if about is None or sealed is None or sealed.files is None:
        return
    path = adapter_path(run.workspace, run.workspace / run.seal.gate_file, about.adapter)
    now = adapter_files(path)
    if now is not None and now != sealed.files:
        raise RefusedError(
            f"{path}: these are not the bytes that were sealed and judged as {arm}",
            next_step="put the sealed adapter back, or seal and run the gate with this one",
        )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
