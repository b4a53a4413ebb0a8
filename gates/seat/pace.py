"""How hard a seat is pressed and how long a failed request waits before the next try."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import numpy as np

LONGEST_BACKOFF_S = 60.0
LONGEST_WAIT_S = 300.0
"""The longest time that a Retry-After header is obeyed, in seconds."""


LARGEST_JUMP_S = 5.0
"""How far clock and counter may drift apart in one generation before it is said, in seconds."""

Instant = tuple[datetime, float]
"""A time of the clock, and the seconds of a counter that nobody can set."""


@dataclass(frozen=True)
class Pace:
    """Requests at a time, attempts a request, and the sources of time and chance.

    `now` gives an aware datetime; `jitter` spreads the waits; `monotonic` counts seconds.
    """

    concurrency: int
    attempts: int
    jitter: np.random.Generator
    now: Callable[[], datetime]
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def instant(self) -> Instant:
        """Clock and counter now."""
        return self.now(), self.monotonic()

    def wait_s(self, attempt: int, retry_after: str | None) -> float:
        """Seconds to wait after failed attempt number `attempt` (from 1).

        Exponential with jitter (half to all of 1, 2, 4, ... up to 60 s), and never less than what Retry-After asks
        for, itself bounded by 300 s. RFC 9110, section 10.2.3: a number of seconds or a date.
        """
        backoff = min(LONGEST_BACKOFF_S, 2.0 ** min(attempt - 1, 10)) * self.jitter.uniform(0.5, 1.0)
        return max(float(backoff), min(LONGEST_WAIT_S, self._asked_s(retry_after)))

    def _asked_s(self, retry_after: str | None) -> float:
        value = (retry_after or "").strip()
        if value.isascii() and value.isdigit():
            return float(value[:10])
        try:
            at = parsedate_to_datetime(value)
        except (TypeError, ValueError, OverflowError):
            return 0.0  # no header, or one in neither form: the backoff alone decides
        return max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - self.now()).total_seconds())


def clock_warnings(begun: Instant, ended: Instant) -> list[str]:
    """A sentence when the clock was set, or the machine slept, between two instants; else nothing."""
    jump = (ended[0] - begun[0]).total_seconds() - (ended[1] - begun[1])
    if abs(jump) <= LARGEST_JUMP_S:
        return []
    return [
        f"this machine's clock moved {jump:+.0f} s against its counter while generating (it was set, or the machine "
        "slept): recorded times are off by as much; latencies and waits are counted, not read off the clock"
    ]
