"""The seat's client against hostile servers on real sockets: `python scripts/fuzz_wire.py [SECONDS]`.

Every attack of tests/seat/hostile.py under every call of the client, then answers with random changes for SECONDS
(default 60). What breaks it: anything raised but an error of this package, a call that ends more than 3 s after the
client's time-out of 2 s, more than 400 MiB, a connection to another server, the key in what is said. Each is printed,
and the script then ends with 1. scripts/fuzz_wire.txt keeps the output of the last full run.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from gates.seat.client import SeatClient  # noqa: E402 - the repository is not installed with its tests
from tests.fuzz.bombs import _status  # noqa: E402
from tests.fuzz.mutations import mutated  # noqa: E402
from tests.seat.hostile import CALLS, KEY, LONG, SHORT, Elsewhere, Says, ask, once, serving  # noqa: E402

TIMEOUT_S = 2.0
LATE_S = 3.0
MOST_MIB = 400


async def one(client: SeatClient, call: str, other: Elsewhere) -> tuple[str, float, int]:
    """What broke one call, empty for nothing; its seconds, and the MiB it took at most."""
    Path("/proc/self/clear_refs").write_text("5", "utf-8")  # the peak from here on
    before, begun, broke = _status("VmRSS"), time.monotonic(), ""
    try:
        async with asyncio.timeout(TIMEOUT_S + 10):
            await ask(client, call)
    except Exception as error:  # noqa: BLE001 - what is looked for
        broke = f"{type(error).__name__}: {str(error)[:200]}"
    took, most = time.monotonic() - begun, _status("VmHWM") - before
    if took > TIMEOUT_S + LATE_S or most > MOST_MIB:
        broke = broke or f"took {took:.1f} s and {most} MiB"
    if other.reached:
        broke, other.reached = "it went elsewhere", 0
    return broke, took, most


def changed() -> Iterator[tuple[str, Says]]:
    """Answers without end, each with random changes; the name says which."""
    plain = [(name, b"".join(says("http://127.0.0.1:9/"))) for name, says in SHORT.items()]
    number = 0
    while True:
        number += 1
        rng = random.Random(number)  # noqa: S311 - a test, no secret
        name, data = rng.choice(plain)
        yield f"{name}, change {number}", once(mutated(data, rng.choice(("binary", "text")), number, rng.randint(1, 4)))


async def attack(seconds: float) -> int:
    """All attacks, then changed answers for some seconds; how many calls were broken."""
    said: list[Says] = []
    broken = 0
    async with serving(lambda: said[-1]) as (url, other):
        for title, table in (("at once", SHORT), ("without end", LONG)):
            slowest, largest = 0.0, 0
            for name, says in table.items():
                said.append(says)
                async with SeatClient(url, KEY, timeout_s=TIMEOUT_S) as client:
                    for call in CALLS:
                        broke, took, most = await one(client, call, other)
                        slowest, largest = max(slowest, took), max(largest, most)
                        broken += _told(f"{name}, {call}", broke)
            print(
                f"{len(table):4} answers {title:11} x {len(CALLS)} calls: slowest {slowest:.1f} s, most {largest} MiB",
                flush=True,
            )
        count, end, slowest, largest = 0, time.monotonic() + seconds, 0.0, 0
        async with SeatClient(url, KEY, timeout_s=TIMEOUT_S) as client:
            for (name, says), call in zip(changed(), _turns(), strict=False):
                said[:] = [says]
                broke, took, most = await one(client, call, other)
                slowest, largest, count = max(slowest, took), max(largest, most), count + 1
                broken += _told(f"{name}, {call}", broke)
                if time.monotonic() > end:
                    break
        print(f"{count:4} answers changed at random: slowest {slowest:.1f} s, most {largest} MiB")
    return broken


def _turns() -> Iterator[str]:
    while True:
        yield from CALLS


def _told(name: str, broke: str) -> bool:
    if broke:
        print(f"    {name}: {broke}", flush=True)
    return bool(broke)


def main() -> int:
    """Attack; 1 where something broke."""
    broken = asyncio.run(attack(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0))
    print(f"{broken or 'none'} broke; the client's time-out was {TIMEOUT_S:g} s")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
