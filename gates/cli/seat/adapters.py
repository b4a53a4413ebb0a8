"""`gates seat status`, `load`, `unload`: what is served, and what should be."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from gates.cli.output import print_json, tell
from gates.cli.seat.connect import asked, client_of, seat_options
from gates.cli.show import as_json, console
from gates.errors import ExitCode, UsageError
from gates.report.wording import one_line
from gates.seat.client import SeatClient
from gates.seat.operate.adapters import Timed, check_adapter
from gates.seat.operate.adapters import load as load_adapter
from gates.seat.operate.adapters import unload as unload_adapter
from gates.seat.operate.service import read_service
from gates.seat.operate.status import Row, Served, ask, compare

_FILE = click.Path(path_type=Path, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)
MAX_NAME = 256


@click.command()
@seat_options
@click.option("--compose", type=_FILE, help="The compose file that starts the seat.")
@click.option("--service", metavar="NAME", help="The seat's service in it, where there are several.")
@click.option("--adapters", type=_FOLDER, help="The folder that holds the adapters' folders.")
@as_json
def status(
    url: str, api_key_env: str | None, compose: Path | None, service: str | None, adapters: Path | None,
    json_wanted: bool,
) -> int:  # fmt: skip
    """Say what is served, listed and on disk, and where these differ. Exit 1 with any drift."""
    if adapters is not None and not adapters.is_dir():
        raise UsageError(
            f"--adapters {adapters}: there is no such folder", next_step="name the folder that holds the adapters' own"
        )
    listed = read_service(compose, service) if compose else None
    served = asked(_asked(client_of(url, api_key_env)))
    rows = compare(served, listed, adapters)
    drift = [sentence for row in rows for sentence in row.drift]
    drift += [f"{name} is served more than once: one model hides the other" for name in served.twice]
    against = [name for name, given in (("compose file", compose), ("disk", adapters or compose)) if given]
    if json_wanted:
        told = {"compared_with": against, "rows": [asdict(row) for row in rows], "drift": drift}
        print_json({"seat": url, **asdict(served), **told})
    else:
        _print(url, served, rows)
        tell("\n".join(drift) if drift else _no_drift(against))
    return ExitCode.FAIL if drift else ExitCode.PASS


@click.command()
@click.argument("name")
@click.argument("path")
@seat_options
@click.option("--local", type=_FOLDER, help="The same adapter's folder here, where PATH is the server's own.")
@click.option("--max-lora-rank", type=click.IntRange(1, 512), help="The server's limit, to check before the call.")
@as_json
def load(name: str, path: str, url: str, api_key_env: str | None, json_wanted: bool, **checked: Any) -> int:
    """Load the adapter at PATH, as the server sees it, under NAME, until the next restart."""
    here = checked["local"] or Path(path)
    if checked["local"] is not None or here.is_dir():
        wrong = check_adapter(here, max_rank=checked["max_lora_rank"])
        if wrong:
            raise UsageError(
                "\n".join(["vLLM would refuse this adapter; the seat was not asked:", *wrong]),
                next_step="remedy what is named, then load it again",
            )
    _check_name(name)
    done = asked(_loaded(client_of(url, api_key_env), name, path))
    _done(done, json_wanted, f"{name} is loaded until the next restart; list it in --lora-modules to keep it")
    return ExitCode.PASS


@click.command()
@click.argument("name")
@seat_options
@as_json
def unload(name: str, url: str, api_key_env: str | None, json_wanted: bool) -> int:
    """Take the adapter NAME off the seat; one that is listed comes back at the next restart."""
    _check_name(name)
    done = asked(_unloaded(client_of(url, api_key_env), name))
    _done(done, json_wanted, f"{name} is off the list; never load other bytes under this name again")
    return ExitCode.PASS


def _check_name(name: str) -> None:
    if not 0 < len(name) <= MAX_NAME or not name.isprintable() or "," in name or "=" in name:
        raise UsageError(
            f"{name!r} is no name for an adapter: 1 to {MAX_NAME} printable characters, no comma, no =",
            next_step="--lora-modules and the server's metrics divide names by these; for example lv-bronte-475",
        )


async def _asked(client: SeatClient) -> Served:
    async with client:
        return await ask(client)


async def _loaded(client: SeatClient, name: str, path: str) -> Timed:
    async with client:
        return await load_adapter(client, name, path, time.perf_counter)


async def _unloaded(client: SeatClient, name: str) -> Timed:
    async with client:
        return await unload_adapter(client, name, time.perf_counter)


def _done(done: Timed, json_wanted: bool, hint: str) -> None:
    if json_wanted:
        print_json({"said": done.said, "seconds": done.seconds})
    else:
        tell(f"{done.said} ({done.seconds:.3f} s)\n{hint}")


def _no_drift(against: list[str]) -> str:
    if against:
        return "no drift"
    return "compared with nothing: --compose FILE says what should be served, --adapters FOLDER what could be"


def _print(url: str, served: Served, rows: list[Row]) -> None:
    tell(f"{url}: {served.version or 'version not told'}; base {', '.join(served.bases) or 'none'}")
    if served.runtime_lora:
        tell("runtime loading is on: whoever reaches the port can add and remove adapters")
    table = Table()
    for head in ("adapter", "served from", "listed", "on disk"):
        table.add_column(head, overflow="fold")
    for row in rows:
        place = "out of sight" if row.out_of_sight else row.on_disk
        table.add_row(*(Text(one_line(cell or "–")) for cell in (row.name, row.served, row.listed, place)))
    if rows:
        console().print(table)
