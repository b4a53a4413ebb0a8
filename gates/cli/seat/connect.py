"""How the commands of `gates seat` reach a running seat."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from gates.errors import UsageError
from gates.seat.address import check_variable, host_of
from gates.seat.client import SeatClient
from gates.seat.faults import (
    FaultError,
    RefusedRequestError,
    TransientError,
    UnauthorisedError,
    UnknownModelError,
    UnreachableError,
)

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def seat_options(command: F) -> F:
    """`--seat` and `--api-key-env`, which the environment may give once for all of an operator's commands."""
    key = click.option(
        "--api-key-env",
        envvar="GATES_SEAT_KEY_ENV",
        metavar="NAME",
        help="The environment variable that holds the seat's API key; else the one that GATES_SEAT_KEY_ENV names.",
    )
    url = click.option(
        "--seat",
        "url",
        envvar="GATES_SEAT",
        default="http://127.0.0.1:8027/v1",
        show_default="GATES_SEAT, else http://127.0.0.1:8027/v1",
        metavar="URL",
    )
    return url(key(command))


def key_of(variable: str | None, option: str = "--api-key-env") -> str | None:
    """The key in the environment variable of this name, which `option` gave. Raises UsageError when it is not set."""
    if variable is None:
        return None
    check_variable(variable, option)
    key = os.environ.get(variable)
    if not key:
        raise UsageError(f"{option} {variable}: this variable is not set", next_step=f"export {variable}=...")
    return key


def client_of(
    url: str,
    api_key_env: str | None,
    *,
    timeout_s: float = 60.0,
    options: tuple[str, str] = ("--seat", "--api-key-env"),
) -> SeatClient:
    """A client for the server at `url`; `options` gave address and key, and are named in errors."""
    host_of(url, options[0])
    return SeatClient(url, key_of(api_key_env, options[1]), timeout_s=timeout_s)


@dataclass(frozen=True)
class Reached:
    """Whom a command asks, and the options that say where it is and which key it takes: no gate names them here."""

    who: str = "the seat"
    url: str = "--seat URL, or GATES_SEAT,"
    key: str = "--api-key-env NAME, or GATES_SEAT_KEY_ENV,"

    def next_step(self, fault: FaultError) -> str:
        """What an operator does about a fault; empty where only the server's own words help."""
        steps: dict[type[FaultError], str] = {
            UnreachableError: f"see that {self.who} is up at this address; {self.url} names another",
            TransientError: f"see that {self.who} is up and not overloaded, then try again",
            UnauthorisedError: f"{self.key} names the variable that holds the key of {self.who}; see that it is right",
            UnknownModelError: "`gates seat status` lists what is served",
        }
        known = next((step for kind, step in steps.items() if isinstance(fault, kind)), "")
        if not known and isinstance(fault, RefusedRequestError) and fault.stops:
            known = f"check the address of {self.who}: {self.url} names it, and a seat's usually ends in /v1"
        return known or fault.next_step


SEAT = Reached()


def asked(asking: Coroutine[Any, Any, T], reached: Reached = SEAT) -> T:
    """What a coroutine brings that asks a server; a fault says which option of this command to look at."""
    try:
        return asyncio.run(asking)
    except FaultError as fault:
        fault.next_step = reached.next_step(fault)
        fault.message = fault.message.replace("the seat", reached.who)
        raise
