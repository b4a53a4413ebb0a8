"""Whether an adapter's files are those that a record speaks of: by their hashes, in every seal of the ledger."""

from __future__ import annotations

from pathlib import Path

from gates.errors import ExitCode, UsageError
from gates.record.body import said
from gates.record.ledger import Ledger, Stored
from gates.record.seal import differences, read_seal
from gates.record.store import runs
from gates.records import Record, Sha256
from gates.seat.identity import adapter_files


class Match(Record):
    """An arm whose sealed bytes these are, and what each finished run under that seal says of it."""

    gate: str
    arm: str
    seal: Sha256
    sealed_at: str
    verdicts: dict[str, str]


class Identified(Record):
    """Where the record knows an adapter's bytes: `matches`; `near` says what differs where only some are known."""

    files: dict[str, Sha256]
    matches: tuple[Match, ...]
    near: tuple[str, ...]

    @property
    def exit_code(self) -> ExitCode:
        """FAIL when no seal has these bytes, else INCONCLUSIVE: they are known, and nobody has signed them off."""
        return ExitCode.INCONCLUSIVE if self.matches else ExitCode.FAIL


def identify(workspace: Path, adapter: Path) -> Identified:
    """Look an adapter up in every seal of a workspace. Raises UsageError where none is at `adapter`."""
    files = adapter_files(adapter)
    if files is None:
        raise UsageError(f"{adapter}: there is no adapter here", next_step="name the adapter's folder or file")
    ledger = Ledger(workspace / "prereg")
    records = ledger.entries()
    matches: list[Match] = []
    near: list[str] = []
    for stored in (record for record in records if record.entry.kind == "seal"):
        sealed = read_seal(ledger.prereg, said(stored, "seal", str), said(stored, "file", str))
        for arm, identity in sealed.seal.binding.adapters.items():
            if identity.files is None:
                near.append(f"{sealed.seal.gate.name}, {arm}: sealed by its model card alone, no file can be compared")
            elif _same(identity.files, files):
                matches.append(
                    Match(
                        gate=sealed.seal.gate.name,
                        arm=arm,
                        seal=sealed.sha256,
                        sealed_at=sealed.seal.sealed_at,
                        verdicts=_verdicts(ledger, stored, arm),
                    )
                )
            elif set(identity.files.values()) & set(files.values()):
                changed = "; ".join(differences(dict(identity.files), dict(files)))
                near.append(f"{sealed.seal.gate.name}, {arm}: {changed}")
    return Identified(files=files, matches=tuple(matches), near=tuple(near))


def _same(sealed: dict[str, str], here: dict[str, str]) -> bool:
    """The same bytes under the same names; an adapter of one file may have been renamed."""
    return sealed == here or (len(sealed) == len(here) == 1 and [*sealed.values()] == [*here.values()])


def _verdicts(ledger: Ledger, seal: Stored, arm: str) -> dict[str, str]:
    """What each finished run under a seal says of an arm, by the run's number."""
    told: dict[str, str] = {}
    for started, ended in runs(ledger, seal.entry.gate):
        if ended is None or ended.entry.kind != "verdict" or started.entry.body.get("seal") != seal.entry.body["seal"]:
            continue
        candidates = ended.entry.body.get("candidates")
        outcome = candidates.get(arm) if isinstance(candidates, dict) else None
        told[f"{said(ended, 'run', int):03d}"] = str(outcome or "not judged: no candidate")
    return told
