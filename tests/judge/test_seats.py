"""What several seats mean for a verdict: refused, allowed, lost, or nothing to tell."""

from __future__ import annotations

from gates.judge.seats import refused_seats, seat_warnings
from gates.measure.figures import SeatFigures, SeatsFigures
from tests.judge.arms import a_gate

TWO = [{"base_url": "http://a/v1"}, {"base_url": "http://b/v1"}]


def seats(split: int = 0, **second: object) -> SeatsFigures:
    one = {"seat": "http://a/v1", "texts": {"base": 6, "a": 6}, "errors": {}, "unlike": (), "lost": (), "closed": True}
    two = one | {"seat": "http://b/v1"} | second
    return SeatsFigures(seats=(SeatFigures(**one), SeatFigures(**two)), blocks=12, split=split)


def gate(**changes: object):
    return a_gate(seat=None, seats=TWO, **changes)


def test_like_seats_that_stayed_bring_nothing() -> None:
    for found in (None, seats()):
        assert refused_seats(gate(), found) == seat_warnings(gate(), found) == []


def test_unlike_seats_are_refused_or_told_of_with_the_reason_for_them() -> None:
    unlike = seats(unlike=("version is 2, 1 at http://a/v1", "root is x"))
    assert refused_seats(gate(), unlike) == [
        "http://b/v1 differs, and the gate allows no unlike seats: version is 2, 1 at http://a/v1"
    ]
    assert seat_warnings(gate(), unlike) == []
    allowed = gate(unlike_seats="until March")
    assert refused_seats(allowed, unlike) == []
    assert seat_warnings(allowed, unlike) == [
        "the seats differ, which the gate allows (until March): http://b/v1: version is 2, 1 at http://a/v1; root is x"
    ]


def test_a_seat_that_was_lost_is_told_of_with_what_it_means() -> None:
    assert seat_warnings(gate(), seats(lost=("lost http://b/v1: gone",), closed=False, split=2)) == [
        "lost http://b/v1: gone",
        "http://b/v1 gave 12 texts and was not looked at again after the last of them: that the sealed weights gave "
        "them rests on its look before, and on each answer's model and fingerprint",
        "2 of 12 prompts and seeds had their arms answered by more than one seat, since one was lost; the others are "
        "matched",
    ]
    assert seat_warnings(gate(), seats(lost=("lost",), closed=False, texts={"a": 0})) == ["lost"]
