"""Where a seat is and which variable holds its key: what may be printed and recorded, because it holds no secret."""

from __future__ import annotations

import re

import httpx2

from gates.errors import UsageError
from gates.seat.faults import printable
from gates.spec.fields import ADDRESS, VARIABLE


def host_of(address: str, what: str = "seat.base_url") -> str:
    """The host of an http or https address; `what` names the address in an error.

    Raises UsageError for one that is none, or that has a user name, a query or a fragment: they may be secrets, and
    addresses stand in output and records. Such an address is not repeated in the error.
    """
    if any(mark in address for mark in "@?#"):
        raise UsageError(
            f"{what} has a user name, a query or a fragment: an address is printed and recorded, and these may be "
            "secrets",
            next_step="write http://HOST:PORT/v1, and name the variable that holds the key",
        )
    try:
        url = httpx2.URL(address)
        fault = "" if url.host and (url.port is None or 0 < url.port < 2**16) else "no host, or a port outside 1-65535"
    except httpx2.InvalidURL as error:
        fault = printable(str(error))
    if not (fault or re.fullmatch(ADDRESS, address)):
        fault = "no http or https address"
    if fault:
        raise UsageError(f"{what} {address!r} is no address: {fault}", next_step="write http://HOST:PORT/v1")
    return url.host


def check_variable(name: str, option: str) -> None:
    """Raise UsageError unless `name` can be an environment variable's; it is not repeated, for it may be the key."""
    if not re.fullmatch(VARIABLE, name):
        raise UsageError(
            f"{option} takes the name of an environment variable, and this is none",
            next_step=f"export VOICES_API_KEY=... and write {option} VOICES_API_KEY; never the key itself",
        )
