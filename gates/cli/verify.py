"""`gates verify`: whether a workspace's record still holds, derived again, and whether an adapter is one it knows."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gates.cli.corpora import workspace_of
from gates.cli.output import print_json, tell
from gates.cli.show import as_json
from gates.corpora.cache import cache_dir
from gates.errors import ExitCode
from gates.flow.adapters import Identified, identify
from gates.flow.verifying import Verified
from gates.flow.verifying import verify as verify_workspace
from gates.report.wording import one_line


@click.command()
@click.argument("workspace", required=False, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--allowed-signers",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Whom you trust: an allowed-signers file of ssh-keygen, kept outside the workspace.",
)
@click.option(
    "--adapter",
    type=click.Path(path_type=Path, exists=True),
    help="Say, too, which gate, verdict and sign-off this adapter's bytes have.",
)
@as_json
def verify(workspace: Path | None, allowed_signers: Path | None, adapter: Path | None, json_wanted: bool) -> int:
    """Derive the record of WORKSPACE again: ledger, signatures, seals, measurements, verdicts, reports.

    Exits with 0 when everything was derived again and holds, 3 when something could not be derived here (a text that
    the cache lacks, an unfinished run) or is covered by no trusted signature, 5 when something does not hold; each is
    named. With --adapter, once nothing is broken: 0 when these bytes were signed off and all of the above holds, 1 when
    no seal knows them or they were held back, 3 when they are known and not signed off, or a re-score that was entered
    since stands against what was signed. With --allowed-signers
    those sign-offs count that people in that file made, and one person with two keys is one.

    \b
    gates verify --allowed-signers ~/.ssh/allowed_signers
    gates verify --adapter /adapters/lv-bronte-475
    """
    home = workspace_of(workspace)
    found = verify_workspace(home, cache_dir(os.environ), allowed_signers)
    known = identify(home, adapter, allowed_signers) if adapter is not None and not found.breaks else None
    status = known.exit_code if known is not None and known.exit_code else found.exit_code
    if json_wanted:
        asked = {} if known is None else {"adapter": known.as_json()}
        print_json({**found.as_json(), **asked, "exit_code": int(status)})
    else:
        _print(found)
        if known is not None:
            _print_adapter(known)
    return status


def _tell(sentence: str) -> None:
    """One sentence on one line: no name of a file or person in it can look like a line of its own."""
    tell(one_line(sentence))


def _print(found: Verified) -> None:
    for sentence in found.breaks:
        _tell(f"BROKEN: {sentence}")
    for sentence in found.not_derived:
        _tell(f"not re-derived: {sentence}")
    for sentence in (*found.signatures, *found.not_checked):
        _tell(sentence)
    state = {ExitCode.PASS: "everything holds", ExitCode.TAMPERED: f"{len(found.breaks)} breaks"}
    _tell(
        f"{found.records} records, {found.seals} seals, {found.runs} runs: "
        f"{state.get(found.exit_code, f'{len(found.not_derived)} not re-derived, the rest holds')}"
    )
    _tell(f"anchor: {found.anchor}")


def _print_adapter(known: Identified) -> None:
    for match in known.matches:
        verdicts = ", ".join(f"run {run}: {outcome}" for run, outcome in match.verdicts.items()) or "no finished run"
        _tell(f"this adapter is {match.arm} of {match.gate}, sealed {match.sealed_at} ({match.seal[:12]}): {verdicts}")
        for run, sentences in match.rescores.items():
            for sentence in sentences:
                tell(f"  {one_line(f'run {run}, {sentence}')}")
        for run, release in match.signed_off.items():
            tell(f"  {one_line(f'run {run}, signed off: {release}')}")
    for sentence in known.near:
        _tell(f"not this adapter: {sentence}")
    if not any(match.signed_off for match in known.matches):
        _tell("nobody has signed these bytes off" if known.matches else "no seal of this ledger knows these bytes")
