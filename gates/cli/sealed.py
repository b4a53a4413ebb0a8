"""`gates seal`, `amend`, `show`: a gate's seals, made and read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from gates import flow
from gates.cli.corpora import workspace_of, workspace_option
from gates.cli.gate import print_check
from gates.cli.output import manners, print_json, say, tell
from gates.cli.show import as_json, earlier_run, gate_file, head_at_the_end, interactive, signing_key
from gates.errors import ExitCode, UsageError
from gates.record.seal import SealOnDisk, find_seal
from gates.report.sealed import readable
from gates.spec.fields import stated
from gates.spec.load import load_gate

by_whom = click.option("--by", help="Who does it; your user name by default.")


@click.command()
@gate_file
@click.option("--yes", is_flag=True, help="Seal without asking.")
@by_whom
@signing_key
@earlier_run
@as_json
def seal(gate: Path, yes: bool, by: str | None, key: Path | None, earlier: Path | None, json_wanted: bool) -> int:
    """Pre-register GATE: check it, bind everything it rests on, and enter it in the ledger before any generation."""
    _can_ask(gate, yes)
    head_at_the_end(gate)
    world = flow.this_world(say, by=by, key=key)
    _check_first(gate, world, earlier, json_wanted)
    _confirm("Seal this gate?", yes)
    _print_sealed(flow.seal(gate, world, earlier), json_wanted)
    return ExitCode.PASS


@click.command()
@gate_file
@click.option("--reason", required=True, help="Why; it stands in the seal and in every report from then on.")
@click.option("--yes", is_flag=True, help="Amend without asking.")
@by_whom
@signing_key
@as_json
def amend(gate: Path, reason: str, yes: bool, by: str | None, key: Path | None, json_wanted: bool) -> int:
    """Seal a changed GATE anew: the new seal names the old one, the reason, and every field that differs.

    Made after the first generation, it is post-hoc for ever, in every report. The old seal and all that was judged
    under it stay.

    \b
    gates amend prereg/lv-bronte.yaml --reason "ran_on margin 0.10 cannot be proved with 100 texts"
    """
    stated(reason)
    _can_ask(gate, yes)
    head_at_the_end(gate)
    world = flow.this_world(say, by=by, key=key)
    _check_first(gate, world, None, json_wanted)

    def agree(changed: Sequence[str]) -> None:
        show = say if json_wanted else tell
        show("\n".join(["differs from the seal in force:", *(f"  {change}" for change in changed)]))
        _confirm("Amend the seal?", yes)

    sealed = flow.seal(gate, world, reason=reason, agree=agree)
    _print_sealed(sealed, json_wanted)
    return ExitCode.PASS


def _check_first(gate: Path, world: flow.World, earlier: Path | None, json_wanted: bool) -> None:
    found = flow.check(gate, world, earlier)
    if found.missing:
        raise UsageError("\n".join([f"{gate}: the gate cannot be sealed yet:", *found.missing]))
    if not (json_wanted or manners.quiet):
        print_check(found)


def _can_ask(gate: Path, yes: bool) -> None:
    """Refuse at once, and not after all the work of a check; but a file with mistakes has to hear of these."""
    load_gate(gate)
    if not yes and not interactive():
        raise UsageError("sealing asks for confirmation, and there is no terminal to ask", next_step="add --yes")


def _confirm(question: str, yes: bool) -> None:
    if not yes:
        click.confirm(question, abort=True, err=True)


def _print_sealed(sealed: SealOnDisk, json_wanted: bool) -> None:
    seal = sealed.seal
    if json_wanted:
        amended = {} if seal.amendment is None else {"amends": seal.amends, **seal.amendment.as_json()}
        print_json({"seal": sealed.sha256, "file": str(sealed.path), "gate_sha256": seal.binding.gate, **amended})
        return
    tell(f"sealed {seal.gate.name}: {sealed.sha256}\n  {sealed.path}")
    if seal.runs_before:
        tell(f"post-hoc: {seal.runs_before} run(s) of this gate had begun; every report says so")


@click.command()
@click.argument("seal")
@workspace_option
@as_json
def show(seal: str, workspace: Path | None, json_wanted: bool) -> int:
    """Show SEAL: every field of its gate, defaults included, what it binds, what it can prove, what it amends.

    SEAL is a gate's name (its seal in force), the beginning of a seal's hash, or its file.

    \b
    gates show lv-bronte
    gates show prereg/seals/lv-bronte-0f2e9a11c3d7.json
    """
    found = find_seal(workspace_of(workspace) / "prereg", seal)
    if json_wanted:
        print_json({"sha256": found.sha256, "file": str(found.path), **found.seal.as_json()})
    else:
        tell(readable(found))
    return ExitCode.PASS
