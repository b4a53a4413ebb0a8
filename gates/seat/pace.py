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
