"""`gates seat audit`: LiteLLM's keys and aliases, read only."""

from __future__ import annotations

from dataclasses import asdict

import click

from gates.cli.output import print_json, tell
from gates.cli.seat.connect import Reached, asked, client_of
from gates.cli.show import as_json
from gates.errors import ExitCode
from gates.seat.address import host_of
from gates.seat.client import SeatClient
from gates.seat.operate.audit import Audit, listed
from gates.seat.operate.audit import audit as audit_proxy
from gates.seat.operate.status import ask

PROXY = Reached("the proxy", "--proxy URL", "--key-env NAME")
SEAT = Reached("the seat", "--seat URL", "--seat-key-env NAME")


@click.command()
@click.option("--proxy", required=True, metavar="URL", help="LiteLLM's address, without /v1.")
@click.option("--key-env", metavar="NAME", help="The environment variable that holds an admin's key.")
@click.option("--seat", metavar="URL", help="The seat's address, to ask what it serves.")
@click.option("--seat-key-env", metavar="NAME", help="The environment variable that holds the seat's key.")
@click.option("--seat-as", metavar="URL", help="The seat's address as the proxy knows it; --seat without it.")
@as_json
def audit(
    proxy: str, key_env: str | None, seat: str | None, seat_key_env: str | None, seat_as: str | None, json_wanted: bool
) -> int:
    """Read every key and alias of a LiteLLM proxy, and print what a person should repair, and how.

    Nothing is written, no key is printed. Exit 1 when there is something to repair.
    """
    if seat_as is not None:
        host_of(seat_as, "--seat-as")
    client = client_of(proxy, key_env, options=("--proxy", "--key-env"))
    seat_client = client_of(seat, seat_key_env, options=("--seat", "--seat-key-env")) if seat else None
    served = asked(_served(seat_client), SEAT) if seat_client else None
    found = asked(_read(client, served, seat_as or seat), PROXY)
    if json_wanted:
        print_json(
            asdict(found)
            | {"findings": [asdict(one) | {"plan": one.plan} for one in found.findings], "clean": found.clean}
        )
    else:
        _print(found, compared=seat is not None)
    return ExitCode.PASS if found.clean else ExitCode.FAIL


async def _served(client: SeatClient) -> frozenset[str]:
    async with client:
        served = await ask(client)
    return frozenset({*served.bases, *served.adapters})


async def _read(client: SeatClient, served: frozenset[str] | None, seat: str | None) -> Audit:
    async with client:
        return await audit_proxy(client, served, seat)


def _print(found: Audit, *, compared: bool) -> None:
    tell(f"{found.keys} keys, {len(found.aliases)} aliases: {listed(found.aliases) or 'none'}")
    for sentence in found.unread:
        tell(f"not read: {sentence}")
    for one in found.findings:
        tell(f"key {one.label}: nothing answers to {listed(one.dead)}")
        if one.opens:
            tell("  taking the last dead name off would open this key to ALL models")
        tell(f"  plan: {one.plan}")
    for sentence in found.unserved:
        tell(f"alias {sentence}\n  plan: load that voice again (`gates seat load`), or take the alias out of the proxy")
    for label in found.open_keys:
        tell(f"note: key {label} is open to every model now")
    for label in found.team_keys:
        tell(f"note: key {label} takes its team's list, which is not read here")
    if not compared:
        tell("note: what the aliases lead to was not compared: --seat URL says what is served")
    if found.clean:
        tell("nothing to repair" if compared else "nothing to repair in the keys")
