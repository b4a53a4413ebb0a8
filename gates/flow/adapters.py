"""Whether an adapter's files are those that a record speaks of: by their hashes, in every seal of the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gates.errors import ExitCode, UsageError
from gates.record.body import said
from gates.record.ledger import Ledger
from gates.record.release import Ledgered, Release, release_of
from gates.record.seal import SealOnDisk, differences, read_seal
from gates.record.signoff import Entered, signoffs
from gates.record.store import RunStore, runs
from gates.record.verdicts import of_run, told_of
from gates.record.vouching import trusted_signers
from gates.records import Record, Sha256
from gates.seat.identity import adapter_files
from gates.spec.schema import SignOffRule


class Match(Record):
    """An arm whose sealed bytes these are, and what each finished run under that seal and each re-score says of it."""

    gate: str
    arm: str
    seal: Sha256
    sealed_at: str
    verdicts: dict[str, str]
    rescores: dict[str, tuple[str, ...]]
    signed_off: dict[str, str]
    released: bool
    held: bool


class Identified(Record):
    """Where the record knows an adapter's bytes: `matches`; `near` says what differs where only some are known."""

    files: dict[str, Sha256]
    matches: tuple[Match, ...]
    near: tuple[str, ...]

    @property
    def exit_code(self) -> ExitCode:
        """PASS when these bytes were signed off; FAIL when no seal has them or somebody holds them back.

        INCONCLUSIVE when they are known, and not or not by enough people signed off.
        """
        if not self.matches or any(match.held for match in self.matches):
            return ExitCode.FAIL
        return ExitCode.PASS if any(match.released for match in self.matches) else ExitCode.INCONCLUSIVE


def identify(workspace: Path, adapter: Path, allowed: Path | None = None) -> Identified:
    """Look an adapter up in every seal of a workspace. Raises UsageError where none is at `adapter`.

    With `allowed`, an allowed-signers file from outside, sign-offs count that somebody in it signed, under the names in
    it: one person with two keys is one. Without it they count under the names that they give themselves.
    """
    files = adapter_files(adapter)
    if files is None:
        raise UsageError(f"{adapter}: there is no adapter here", next_step="name the adapter's folder or file")
    ledger = Ledger(workspace / "prereg")
    records = ledger.entries()
    signers = None if allowed is None else trusted_signers(ledger.prereg, records, allowed)
    matches: list[Match] = []
    near: list[str] = []
    for stored in (record for record in records if record.entry.kind == "seal"):
        sealed = read_seal(ledger.prereg, said(stored, "seal", str), said(stored, "file", str))
        for arm, identity in sealed.seal.binding.adapters.items():
            if identity.files is None:
                near.append(f"{sealed.seal.gate.name}, {arm}: sealed by its model card alone, no file can be compared")
            elif _same(identity.files, files):
                matches.append(_match(ledger, sealed, arm, signers))
            elif set(identity.files.values()) & set(files.values()):
                changed = "; ".join(differences(dict(identity.files), dict(files)))
                near.append(f"{sealed.seal.gate.name}, {arm}, sealed {sealed.seal.sealed_at}: {changed}")
    return Identified(files=files, matches=tuple(matches), near=tuple(near))


def _same(sealed: dict[str, str], here: dict[str, str]) -> bool:
    """The same bytes under the same names; an adapter of one file may have been renamed."""
    return sealed == here or (len(sealed) == len(here) == 1 and [*sealed.values()] == [*here.values()])


def _counted(known: Sequence[Entered], signers: Mapping[str, str] | None) -> Iterator[Entered]:
    """The sign-offs that count: all of them, or those of people whom somebody trusts, each under that one name."""
    for one in known:
        if signers is None:
            yield one
        elif who := signers.get(one.stored.sha256):
            yield one._replace(signoff=one.signoff.model_copy(update={"by": who, "key": who}))


def _match(ledger: Ledger, sealed: SealOnDisk, arm: str, signers: Mapping[str, str] | None) -> Match:
    """What each finished run under a seal says of an arm, and what its sign-offs amount to, by the run's number."""
    gate, entries = sealed.seal.gate, ledger.entries()
    verdicts: dict[str, str] = {}
    rescored: dict[str, tuple[str, ...]] = {}
    releases: dict[str, Release] = {}
    after = " (post-hoc)" if sealed.seal.runs_before else ""
    for started, ended in runs(entries, gate.name):
        if ended is None or ended.entry.kind != "verdict" or started.entry.body.get("seal") != sealed.sha256:
            continue
        number = said(ended, "run", int)
        candidates = ended.entry.body.get("candidates")
        outcome = candidates.get(arm) if isinstance(candidates, dict) else None
        verdicts[f"{number:03d}"] = f"{outcome}{after}" if outcome else "not judged: no candidate"
        if outcome:
            rescored[f"{number:03d}"] = tuple(told_of(one, arm) for one in of_run(entries, gate.name, number))
        made = signoffs(RunStore(ledger.prereg.parent / "reports", gate.name, number), entries)
        found = [*_counted(made, signers)]
        if any(one.signoff.arm == arm for one in found):
            needed = (gate.sign_off or SignOffRule()).signers
            known = Ledgered(entries, gate.name, number, "post-hoc" if sealed.seal.runs_before else "prospective")
            releases[f"{number:03d}"] = release_of(found, arm, needed, known)
    return Match(
        gate=gate.name,
        arm=arm,
        seal=sealed.sha256,
        sealed_at=sealed.seal.sealed_at,
        verdicts=verdicts,
        rescores={run: told for run, told in rescored.items() if told},
        signed_off={run: str(release) for run, release in releases.items()},
        released=any(release.complete for release in releases.values()),
        held=any(release.held_by for release in releases.values()),
    )
