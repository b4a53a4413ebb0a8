"""Signing a candidate off: nothing required may be unread, and nothing that failed ships without a stated waiver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gates.errors import RefusedError, UsageError
from gates.flow.review import Reading
from gates.flow.world import World
from gates.judge.verdict import Verdict
from gates.record.ledger import Ledger, Stored
from gates.record.lines import State
from gates.record.release import Ledgered, Release, release_of
from gates.record.review import latest
from gates.record.review_list import reading_list
from gates.record.seal import AdapterIdentity
from gates.record.signing import fingerprint, public_key
from gates.record.signoff import (
    Decision,
    Doubt,
    Reason,
    Serving,
    SignOff,
    signoff_path,
    signoffs,
    write_signoff,
)
from gates.record.standing import own_standing
from gates.record.verdicts import Verdicts, given, named
from gates.records import Record
from gates.report.beside import beside
from gates.report.release import alias_of, caveats, compose_line, readme_block
from gates.seat.identity import adapter_files
from gates.spec.fields import stated
from gates.spec.schema import SignOffRule
from gates.spec.workspace import adapter_path


class Decided(Record):
    """What a person decides on which candidate, and why; `rescore` names the re-score whose verdict they sign."""

    arm: str
    decision: Decision
    reason: Reason
    rescore: str | None = None


@dataclass(frozen=True)
class Signer:
    """Who signs, when, with the key of which fingerprint."""

    by: str
    at: str
    key: str


@dataclass(frozen=True)
class Known:
    """What the ledger knew when a decision was made: runs of the gate, and every verdict on the candidate."""

    attempts: int
    verdicts: Verdicts


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

    It is drafted while nobody else can enter anything, so that it knows of every re-score that the ledger holds before
    it. The same signed again before anything else is entered, as after an interruption, is the same sign-off.
    Raises RefusedError while something required is unread, and for `ship` where something stands against it;
    UsageError for an unknown arm, an empty reason, a key that cannot sign, or a waiver of nothing.
    """
    run, gate, key = reading.run, reading.run.seal.gate, world.key
    if key is None:
        raise UsageError("a sign-off is signed, and no key is given", next_step="name an SSH key with --key")
    _refuse_other_bytes(reading, decided.arm)
    stamp = world.stamp()
    signer = Signer(stamp.by, stamp.at, fingerprint(public_key(key)))
    ledger = Ledger(run.workspace / "prereg")
    draft(reading, decided, signer, known_then(reading, ledger.entries(), decided))
    reading.enter(world)
    with ledger.writing():
        entries = ledger.entries()
        made = draft(reading, decided, signer, known_then(reading, entries, decided))
        last = signoffs(run.store, entries[-1:])
        if last and last[0].signoff.model_copy(update={"at": made.at}) == made:
            world.say("signed already, and nothing has been entered since")
            made = last[0].signoff
        else:
            write_signoff(run.store, ledger, made, stamp)
    release = _release(reading, decided.arm, ledger.entries())
    return Signed(
        signoff=made,
        path=signoff_path(run.store, made),
        release=release,
        readme=readme_block(gate, _signed(reading, entries, release), release) if release.complete else "",
        compose=compose_line(gate, decided.arm) if release.complete else "",
        alias=alias_of(gate, decided.arm, alias or gate.name) if release.complete else "",
    )


def draft(reading: Reading, decided: Decided, signer: Signer, known: Known, marks: State | None = None) -> SignOff:
    """The sign-off that these records and `marks` (all of them by default) allow; nothing is written.

    Raises as `sign_off` does.
    """
    stated(decided.reason)
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
    verdicts = known.verdicts
    _refuse(decided, [*verdicts.against(), *_against(doubts, identity), *_unlisted(reading, verdicts)])
    judged = run if verdicts.signed is None else verdicts.signed.files
    state = marks or reading.review.state()
    seat = sealed.seal.seat_at()
    return SignOff(
        gate=gate.name,
        gate_sha256=sealed.seal.binding.gate,
        seal=sealed.sha256,
        arm=arm,
        decision=decided.decision,
        reason=decided.reason,
        outcome=verdicts.own_outcome,
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
        caveats=(
            *beside(verdicts),
            *caveats(sealed, judged.measurements or run.measurements, judged.verdict, arm, known.attempts),
        ),
        signers=_signers(reading, verdicts),
        at=signer.at,
        by=signer.by,
        key=signer.key,
        rescored=verdicts.signed.said if verdicts.signed else None,
        others=tuple(other.said for other in verdicts.others),
    )


def known_then(reading: Reading, entries: Sequence[Stored], decided: Decided) -> Known:
    """What these records tell of the candidate that is decided on. Raises UsageError for an unknown re-score."""
    run, arm = reading.run, decided.arm
    reading.needed(arm)  # a name that is no candidate's is refused
    found = given(run.store, entries, arm)
    signed = None if decided.rescore is None else named(found, decided.rescore)
    return Known(
        attempts=sum(one.entry.kind == "run" and one.entry.gate == run.store.gate for one in entries),
        verdicts=Verdicts(
            arm=arm,
            own=run.verdict,
            own_standing=own_standing(run.seal, run.verdict),
            signed=signed,
            others=tuple(one for one in found if one is not signed),
        ),
    )


def _signers(reading: Reading, verdicts: Verdicts) -> int:
    """How many must sign: what the sealed gate says, or the gate that judges now where it asks for more."""
    gates = [reading.run.seal.gate, *([verdicts.signed.files.rescore.gate] if verdicts.signed else [])]
    return max((gate.sign_off or SignOffRule()).signers for gate in gates)


def _release(reading: Reading, arm: str, entries: Sequence[Stored]) -> Release:
    run = reading.run
    needed = (run.seal.gate.sign_off or SignOffRule()).signers
    known = Ledgered(entries, run.store.gate, run.store.number, own_standing(run.seal, run.verdict).name)
    return release_of(signoffs(run.store, entries), arm, needed, known)


def _signed(reading: Reading, entries: Sequence[Stored], release: Release) -> Verdict:
    """The verdict that those who released a candidate have signed."""
    last = release.signed[-1]
    if last.rescored is None:
        return reading.run.verdict
    return named(given(reading.run.store, entries, last.arm), last.rescored.folder).files.verdict


def _against(doubts: Sequence[Doubt], identity: AdapterIdentity) -> list[str]:
    """What stands against shipping beside the verdicts."""
    found = [f"{len(doubts)} items are marked bad"] if doubts else []
    return found + ([] if identity.files else ["the seal does not know the adapter's bytes"])


def _unlisted(reading: Reading, verdicts: Verdicts) -> list[str]:
    """What a re-score that measured otherwise has found in the texts, and no reading list has asked anybody to read."""
    measured = verdicts.signed.files.measurements if verdicts.signed else None
    if measured is None:
        return []
    found = reading_list(
        reading.run.seal.gate, measured, reading.generations.values(), samples=reading.list.samples
    ).required(verdicts.arm)
    listed = {(item.key, item.match) for item in reading.items.values()}
    unread = {(item.key, item.match) for item in found.values()} - listed
    return [f"the re-score found {len(unread)} items that are on no reading list"] if unread else []


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
