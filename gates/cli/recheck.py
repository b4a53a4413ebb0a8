"""`gates recheck`: after a new server, model or serving form, does a judged voice still answer alike?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gates import flow
from gates.cli.output import print_json, say, tell
from gates.cli.show import as_json, console, head_at_the_end, progress, signing_key
from gates.errors import UsageError
from gates.flow.finished import read_run
from gates.flow.rechecking import Asked, Rechecked
from gates.flow.rechecking import recheck as recheck_run
from gates.flow.sample import SEEDS
from gates.record.recheck import RecheckPlan
from gates.report.recheck import headline, worth
from gates.report.terminal import verdict_table
from gates.seat.address import check_variable, host_of
from gates.spec.asking import Seat


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--arm", help="The candidate; needed where the run has several.")
@click.option("--seat", "url", metavar="URL", help="The seat to ask, where it is not the gate's own.")
@click.option("--api-key-env", metavar="NAME", help="With --seat: the environment variable that holds its API key.")
@click.option("--model", help="The name that the voice is served under now, where it is another.")
@click.option("--alone", is_flag=True, help="The seat serves the voice without the base: merged or quantised.")
@click.option("--seeds", default=SEEDS, show_default=True, type=click.IntRange(2, 1000), help="How many to repeat.")
@click.option("--by", help="Who rechecks; your user name by default.")
@signing_key
@as_json
def recheck(run: Path, arm: str | None, url: str | None, json_wanted: bool, **options: Any) -> int:
    """Generate a small sample of the finished RUN again and hold it against the run itself.

    The sample's seeds are drawn from the seal. Voice must stay within the run's own floor, memorisation and damage
    within the gate's limits; what is served otherwise than what was judged is named.

    \b
    gates recheck reports/lv-bronte/001
    gates recheck reports/lv-bronte/001 --seat http://127.0.0.1:8028/v1 --model lv-bronte-merged --alone
    """
    candidates = read_run(run).seal.gate.arms.candidates
    if arm is None and len(candidates) > 1:
        raise UsageError(f"{run} has several candidates", next_step=f"name one with --arm: {', '.join(candidates)}")
    if options["api_key_env"] is not None and url is None:
        raise UsageError("--api-key-env belongs to --seat", next_step="name the seat, or leave the key to the gate")
    seat = None if url is None else _seat(url, options["api_key_env"])
    asked = Asked(
        arm=next(iter(candidates)) if arm is None else arm,
        model=options["model"],
        seat=seat,
        alone=options["alone"],
        seeds=options["seeds"],
    )
    head_at_the_end(run)
    with progress() as watch:
        found = recheck_run(run, asked, flow.this_world(say, watch, options["by"], options["key"]))
    if json_wanted:
        print_json({**found.recheck.as_json(), "plan": found.plan.as_json(), "report": str(found.report)})
    else:
        _print(found)
    return int(found.recheck.outcome.exit_code)


def _seat(url: str, api_key_env: str | None) -> Seat:
    host_of(url, "--seat")
    if api_key_env is not None:
        check_variable(api_key_env, "--api-key-env")
    return Seat(base_url=url, api_key_env=api_key_env)


def _form(plan: RecheckPlan) -> str:
    """Whether this is the serving form that was judged, and what follows where it is not."""
    if not plan.changed:
        return "the same serving form"
    what = plan.otherwise.rpartition(" ")[2]
    return (
        f"{plan.otherwise}; the notes name each difference ({len(plan.changed)})\n"
        f"  what was {what} covers one serving form alone: to ship this one, seal a gate for it, run it, sign it off"
    )


def _print(found: Rechecked) -> None:
    plan, recheck = found.plan, found.recheck
    console().print(verdict_table(headline(plan.arm, recheck.outcome), recheck))
    tell(f"{recheck.same_texts} of {recheck.texts} texts are the same to the letter")
    tell(worth(plan))
    tell(_form(plan))
    tell(f"record: {found.report}")
