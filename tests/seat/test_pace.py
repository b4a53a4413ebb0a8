"""How long a failed request waits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gates.seat.pace import LONGEST_BACKOFF_S, LONGEST_WAIT_S, Pace, clock_warnings

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def pace(seed: int = 0) -> Pace:
    return Pace(concurrency=1, attempts=3, jitter=np.random.default_rng(seed), now=lambda: NOW)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        (" 120 ", 120.0),
        ("Thu, 01 Jan 2026 12:00:42 GMT", 42.0),  # 2026-01-01 is a Thursday
        ("Thursday, 01-Jan-26 12:01:00 GMT", 60.0),  # the obsolete form that RFC 9110 makes recipients accept
        ("999999999999", LONGEST_WAIT_S),
        ("Fri, 01 Jan 2027 12:00:00 GMT", LONGEST_WAIT_S),
    ],
)
def test_retry_after_is_obeyed_in_both_forms_up_to_a_bound(header: str, seconds: float) -> None:
    assert pace().wait_s(1, header) == seconds


@pytest.mark.parametrize("header", [None, "", "-5", "soon", "1e9", "NaN", "٣", "Thu, 01 Jan 2020 00:00:00 GMT"])
def test_without_a_usable_header_the_backoff_decides(header: str | None) -> None:
    assert 0.5 <= pace().wait_s(1, header) <= 1.0


@given(st.integers(1, 10_000), st.integers(0, 2**32), st.none() | st.text(max_size=40))
def test_a_wait_is_bounded_and_grows(attempt: int, seed: int, header: str | None) -> None:
    wait = pace(seed).wait_s(attempt, header)
    assert min(LONGEST_BACKOFF_S, 2.0 ** min(attempt - 1, 6)) / 2 <= wait <= LONGEST_WAIT_S


def test_waits_are_spread() -> None:
    one = pace()
    assert len({one.wait_s(3, None) for _ in range(20)}) == 20


@pytest.mark.parametrize(
    ("wall", "counted", "said"),
    [(100.0, 100.0, None), (104.0, 100.0, None), (3700.0, 100.0, "+3600 s"), (40.0, 100.0, "-60 s")],
)
def test_a_clock_that_is_set_while_generating_is_said(wall: float, counted: float, said: str | None) -> None:
    begun = (datetime(2026, 1, 1, tzinfo=UTC), 7.0)
    found = clock_warnings(begun, (begun[0] + timedelta(seconds=wall), begun[1] + counted))
    assert [said in sentence for sentence in found] == ([] if said is None else [True])
