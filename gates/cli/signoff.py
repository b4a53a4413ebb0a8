"""`gates signoff`: a person's signed decision on one candidate of a finished run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

import click
from pydantic import ValidationError

from gates.cli.output import print_json, say, tell
from gates.cli.show import as_json, head_at_the_end
from gates.corpora.cache import cache_dir
from gates.errors import ExitCode, UsageError
from gates.flow import this_world
from gates.flow.review import open_reading
from gates.flow.signoff import Decided, Signed, sign_off
from gates.record.signoff import Decision


@click.command()
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--arm", required=True, help="The candidate.")
@click.option("--decision", required=True, type=click.Choice(get_args(Decision)), help="waive ships all the same.")
@click.option("--reason", required=True, help="Why, for everybody to read.")
@click.option(
    "--rescore", metavar="N|NAME", help="Sign this re-score's verdict, by number or folder, not the run's own."
)
@click.option(
    "--key",
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    envvar="GATES_SIGNING_KEY",
    show_envvar=True,
    help="Your SSH key: a private key, or a public one that your agent holds.",
)
@click.option("--by", help="Who signs, as in the review; your user name by default.")
@click.option("--alias", help="The name that LiteLLM routes to the adapter; the gate's name by default.")
@as_json
def signoff(run: Path, json_wanted: bool, key: Path, by: str | None, alias: str | None, **decided: str | None) -> int:
    """Sign off one candidate of the finished RUN: ship, hold, or waive what stands against it.

    Refused while the signer has not read all that is required, and `ship` unless the verdict is PASS and nothing is
    marked bad. Prints what goes with a released adapter. Exits with 0 when the candidate is released, else with 3.

    A re-score's verdict takes the place of the run's with --rescore. `ship` is refused on one whose rule is post-hoc or
    imported, and while another verdict on the same texts stands against it: `waive` says so with its reason.

    \b
    gates signoff reports/demo/001 --arm lv-bronte-e12 --decision ship \\
        --reason "reads well, no copied sentence" --key ~/.ssh/id_ed25519
    """
    head_at_the_end(run)
    world = this_world(say, by=by, key=key)
    made = sign_off(open_reading(run, cache_dir(os.environ)), _decided(decided), world, alias)
    if json_wanted:
        print_json(_told(made))
    else:
        _print(made)
    return ExitCode.PASS if made.release.complete else ExitCode.INCONCLUSIVE


def _decided(asked: dict[str, str | None]) -> Decided:
    try:
        return Decided.model_validate(asked)
    except ValidationError as error:
        raise UsageError(
            f"--reason: {error.errors(include_url=False)[0]['msg']}", next_step="a sign-off states its reason in words"
        ) from None


def _told(made: Signed) -> dict[str, object]:
    return {
        "signoff": made.signoff.as_json(),
        "sha256": made.signoff.digest(),
        "file": str(made.path),
        "released": made.release.complete,
        "state": str(made.release),
        "readme": made.readme,
        "compose": made.compose,
        "alias": made.alias,
    }


def _print(made: Signed) -> None:
    signed = made.signoff
    on = f" on {signed.rescored}" if signed.rescored else ""
    tell(f"{signed.arm}: {signed.decision}{on}, signed by {signed.by} with {signed.key}; {made.release}\n  {made.path}")
    for sentence in signed.caveats:
        tell(f"caveat: {sentence}")
    if made.release.complete:
        tell(f"\n# the adapter's README\n{made.readme}")
        tell(f"# the seat's compose file, so that it is there after a restart\n{made.compose}\n")
        tell(f"# LiteLLM's model_list\n{made.alias}")
