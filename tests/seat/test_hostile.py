"""A hostile server on a real socket: each call ends in an answer or an error of ours, and nothing goes elsewhere."""

from __future__ import annotations

import asyncio

from gates.seat.client import SeatClient
from tests.seat.hostile import KEY, SHORT, ask, serving

READ = {
    "complete": {
        *("early hints", "206", "reason that is no text", "header that is no text", "folded header", "cookie"),
        "unknown transfer",
        *("link elsewhere", "another way", "doubled keys", "half a pair", "the key"),
        *(f"charset {name}" for name in ("hex", "bz2", "zlib", "rot13", "idna", "punycode", "undefined")),
        *(f"charset {name}" for name in ("utf-16", "utf-7", "raw_unicode_escape")),
    },
    "timed": {"stream"},
}
"""What is an answer all the same: the rest is refused."""


def test_a_hostile_server_gets_an_error_of_ours_and_nothing_else() -> None:
    async def main() -> dict[str, set[str]]:
        read: dict[str, set[str]] = {call: set() for call in READ}
        name = ""
        async with serving(lambda: SHORT[name]) as (url, other), SeatClient(url, KEY, timeout_s=5) as client:
            for name in SHORT:
                for call, found in read.items():
                    said = await ask(client, call)
                    await other.still()  # else the next request might go to a connection that is ending
                    assert "no complete answer within" not in said, name
                    if said.startswith("read "):
                        found.add(name)
            assert other.reached == 0
        return read

    assert asyncio.run(main()) == READ
