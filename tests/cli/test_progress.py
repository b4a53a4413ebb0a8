"""How far costly work is: a line now and then, with the time left, and none for what is done at once."""

from __future__ import annotations

import pytest

from gates.cli.engine import progress


@pytest.mark.parametrize("last", [False, True])
def test_progress_is_said_now_and_then(last: bool, capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 1.0, 6.0, 7.0, 11.0, 12.0])
    watch = progress("parts read", last=last, clock=lambda: next(times))
    for done in range(1, 6):
        watch(done, 5)
    assert capsys.readouterr().err.splitlines() == [
        "2 of 5 parts read, about 9 s left",
        "4 of 5 parts read, about 3 s left",
        "5 of 5 parts read",
    ]
    times = iter([0.0, 1.0, 2.0])
    watch = progress("parts read", last=last, clock=lambda: next(times))
    watch(1, 2)
    watch(2, 2)
    assert capsys.readouterr().err == ("2 of 2 parts read\n" if last else "")
