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
from gates.seat.operate.bench import AGAIN, BASE, FEWEST, Bench, Difference, Plan, check_served, measure, summarise

PROMPT = "Write down, in full sentences, everything that can be seen from the window of a house at the sea."


@click.command()
@click.argument("adapters", nargs=-1)
@seat_options
@click.option("--base", default="voices-base", show_default=True, help="The base's served name.")
@click.option("--rounds", default=30, show_default=True, type=click.IntRange(FEWEST, 10_000), help="Answers an arm.")
@click.option("--tokens", default=128, show_default=True, type=click.IntRange(8, 100_000), help="Tokens an answer.")
@click.option(
    "--streams", default=1, show_default=True, type=click.IntRange(1, 1024), help="Answers at once of one arm."
)
@click.option("--warm-ups", default=2, show_default=True, type=click.IntRange(0, 1000), help="Unmeasured, an arm.")
@click.option("--prompt", default=PROMPT, help="What is asked.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Where to draw it (SVG).")
@as_json
def bench(adapters: tuple[str, ...], url: str, api_key_env: str | None, json_wanted: bool, **options: Any) -> int:
    """Measure decode and first-token speed of ADAPTERS (served names) against the base, and of the base against itself.

    Arms are interleaved request by request. The floor is the larger end of the interval that the base shows against
    itself; a difference resolves when its whole 95 % interval lies beyond it.
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
    if json_wanted:
        print_json(found.as_json())
    else:
        _print(found, plan.streams)
    if plot is not None:
        write_once(plot, bench_svg(found).encode())
        say(f"written: {plot}")
    return 0


async def _measured(client: SeatClient, plan: Plan) -> Bench:
    begun = 0.0

    def watch(done: int) -> None:
        nonlocal begun
        if done == 0:
            begun = time.perf_counter()
        elif done % 10 == 0 or done in (1, plan.rounds):
            left = (time.perf_counter() - begun) / done * (plan.rounds - done)
            say(f"round {done} of {plan.rounds}, about {left:.0f} s left")

    async with client:
        await check_served(client, plan)
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


def _print(found: Bench, streams: int) -> None:
    table = Table(title=Text(found.seat), title_justify="left")
    for head in ("arm", "figure", "median", "against the base, 95 %"):
        table.add_column(head, overflow="fold")
    decode = "decode" if streams == 1 else f"decode of all {streams}"
    for arm in found.arms:
        table.add_section()
        name = Text(one_line(arm.arm))
        table.add_row(name, decode, f"{arm.decode:.1f} tokens/s", _share(arm.decode_change))
        table.add_row("", "first token", f"{arm.first_s:.3f} s", _share(arm.first_change))
    console().print(table)
    tell("\n".join(sentences(found)))
    tell(f"{found.signature}; server {found.version or 'version not told'}")


def _share(change: Difference | None) -> str:
    return "–" if change is None else f"{change.median:+.1%} [{change.low:+.1%}, {change.high:+.1%}]"


def sentences(found: Bench) -> list[str]:
    """What each difference comes to against the floor; of the base alone, the floor."""
    told: list[str] = []
    unresolved = False
    for arm in found.arms:
        for what, change in (("decode", arm.decode_change), ("first token", arm.first_change)):
            if change is not None and arm.arm != AGAIN:
                unresolved |= not change.resolves
                verdict = "resolves" if change.resolves else "does not resolve"
                told.append(f"{arm.arm}, {what}: {change.median:+.1%} against a floor of {change.floor:.1%}: {verdict}")
    again = found.arms[-1]
    if not told and again.decode_change and again.first_change:
        floors = f"{again.decode_change.floor:.1%} of decode, {again.first_change.floor:.1%} of the first token"
        told.append(f"floor: {floors}; a smaller cost of an adapter could not be seen here")
    if unresolved:
        told.append("what does not resolve may yet be there: more --rounds, more --tokens or a quieter machine show it")
    return told
