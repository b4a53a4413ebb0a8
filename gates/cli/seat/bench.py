"""`gates seat bench`: what an adapter costs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from gates.cli.output import print_json, say, tell
from gates.cli.seat.connect import asked, client_of, seat_options
from gates.cli.show import as_json, console
from gates.errors import SeatError, UsageError
from gates.record.files import write_once
from gates.report.bench import bench_svg, check_drawing
from gates.report.wording import one_line
from gates.seat.client import SeatClient
from gates.seat.faults import printable
from gates.seat.operate.bench import AGAIN, BASE, FEWEST, ArmSpeed, Bench, Difference, Plan, measure, summarise

PROMPT = "Write down, in full sentences, everything that can be seen from the window of a house at the sea."


@click.command()
@click.argument("adapters", nargs=-1)
@seat_options
@click.option("--base", default="voices-base", show_default=True, help="The base's served name.")
@click.option("--rounds", default=30, show_default=True, type=click.IntRange(FEWEST, 10_000), help="Answers an arm.")
@click.option("--tokens", default=128, show_default=True, type=click.IntRange(8, 100_000), help="Tokens an answer.")
@click.option("--streams", default=1, show_default=True, type=click.IntRange(1, 1024), help="Answers at once.")
@click.option("--warm-ups", default=2, show_default=True, type=click.IntRange(0, 1000), help="Unmeasured, an arm.")
@click.option("--prompt", default=PROMPT, help="What is asked.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Where to draw it (SVG).")
@as_json
def bench(adapters: tuple[str, ...], url: str, api_key_env: str | None, json_wanted: bool, **options: Any) -> int:
    """Measure decode and first-token speed of ADAPTERS (served names) against the base, and of the base against itself.

    Arms are interleaved request by request; a difference resolves when its interval lies beyond the A-vs-A floor.
    """
    plot: Path | None = options.pop("plot")
    plan = Plan(adapters=adapters, **options)
    if len({plan.base, *adapters}) != len(adapters) + 1:
        raise UsageError("base and adapters must be different served names", next_step="`gates seat status` lists them")
    for name in {"", BASE, AGAIN} & {*adapters}:
        raise UsageError(
            f"{name!r} is what this table calls an arm of the base, or no name", next_step="serve it under another name"
        )
    if plot is not None:
        check_drawing(plot)
    found = asked(_measured(client_of(url, api_key_env, timeout_s=600.0), plan))
    if plot is not None:
        write_once(plot, bench_svg(found).encode())
    if json_wanted:
        print_json(found.as_json())
    else:
        _print(found)
    return 0


async def _measured(client: SeatClient, plan: Plan) -> Bench:
    def watch(done: int) -> None:
        if done % 10 == 0 or done == plan.rounds:
            say(f"round {done} of {plan.rounds}")

    async with client:
        version = await client.version()
        samples = await measure(client, plan, time.perf_counter, watch)
        now = await client.version()
    if now != version:
        raise SeatError(
            f"the server was {printable(str(version))} at first and {printable(str(now))} at last: two servers' speeds "
            "do not compare",
            next_step="measure again while nobody restarts it",
        )
    return Bench(
        signature=plan.signature,
        seat=client.base_url,
        version=version and printable(version),
        arms=summarise(plan, samples),
        samples=samples,
    )


def _print(found: Bench) -> None:
    heads = ("arm", "decode, tokens/s", "against the base", "first token, s", "against the base")
    table = Table(*heads, title=Text(found.seat))
    for arm in found.arms:
        name = Text(one_line(arm.arm))
        table.add_row(
            name, f"{arm.decode:.1f}", _share(arm.decode_change), f"{arm.first_s:.3f}", _share(arm.first_change)
        )
    console().print(table)
    for arm in found.arms:
        tell("\n".join(_sentences(arm)))
    tell(f"{found.signature}; server {found.version or 'version not told'}")


def _share(change: Difference | None) -> str:
    return "–" if change is None else f"{change.median:+.1%} [{change.low:+.1%}, {change.high:+.1%}]"


def _sentences(arm: ArmSpeed) -> list[str]:
    told = (("decode", arm.decode_change), ("first token", arm.first_change))
    return [
        f"{arm.arm}, {what}: {change.median:+.1%} against a floor of {change.floor:.1%}: "
        + ("resolves" if change.resolves else "does not resolve")
        for what, change in told
        if change is not None
    ]
