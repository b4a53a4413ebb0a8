"""How the commands of `gates seat` reach a running seat."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from gates.errors import UsageError
from gates.seat.address import check_variable, host_of
from gates.seat.client import SeatClient

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
