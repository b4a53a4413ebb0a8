"""Movers: the shifts of words worked out by hand, both directions, and what a move toward the author is."""

from __future__ import annotations

import numpy as np
import pytest

from gates.measure.delta import Frame
from gates.measure.movers import measure_movers
from gates.measure.voice import ArmCounts, Yardstick, count_arm

FRAME = Frame(("the", "of", "she"), np.array([0.2, 0.1, 0.1]), np.array([0.1, 0.05, 0.1]), "frame@1|made:up")


def yardstick(heldout: str) -> Yardstick:
    return Yardstick.of(FRAME, [("Book", heldout)], {}, words_per_seed=10)


def arm(*texts: str) -> ArmCounts:
    return count_arm(tuple(range(1, len(texts) + 1)), [[text] for text in texts], yardstick("the"))


def test_shifts_are_z_scores_of_the_arm_less_those_of_the_base() -> None:
    # Base: the 0.2, of 0.2, she 0.1. Arm: the 0.2, of 0.1, she 0.3. Author: of 0.15, she 0.4 of twenty words.
    base, own = arm("the the of of she a b c d e"), arm("the the of she she she a b c d")
    found = measure_movers(own, base, yardstick("of of of she she she she she she she she " + "x " * 9))
    assert found is not None
    (she,), (of,) = found.up, found.down
    assert (she.word, of.word) == ("she", "of")
    assert (she.base, she.arm, she.author) == pytest.approx((0.0, 2.0, 3.0))
    assert (of.base, of.arm, of.author) == pytest.approx((2.0, 0.0, 1.0))
    assert (she.shift, of.shift) == pytest.approx((2.0, -2.0))
    assert (she.toward, of.toward) == (True, False)
    # Of three words only "she" came nearer: "the" did not move, "of" is as far as before on the other side.
    assert found.toward == pytest.approx(1 / 3)


def test_the_spread_is_the_larger_range_over_seeds_and_each_seed_counts_alike() -> None:
    base = arm("the the a a a a a a a a", "the the a a a a a a a a " * 3)
    own = arm("the the the a a a a a a a", "the a a a a a a a a a " * 5)
    found = measure_movers(own, base, yardstick("the the a a a a a a a a"))
    assert found is not None
    assert (found.up, found.down) == ((), ())
    own = arm("the the the the a a a a a a", "the the a a a a a a a a " * 5)
    found = measure_movers(own, base, yardstick("the the a a a a a a a a"))
    assert found is not None
    assert found.up[0].shift == pytest.approx(1.0)
    assert found.up[0].spread == pytest.approx(2.0)


def test_at_most_so_many_words_the_largest_first() -> None:
    base, own = arm("a b c d e f g h i j"), arm("the the the of of she a b c d")
    found = measure_movers(own, base, yardstick("the of she"), most=2)
    assert found is not None
    assert [mover.word for mover in found.up] == ["of", "the"]


def test_a_seed_without_words_has_no_movers() -> None:
    assert measure_movers(arm("the of she", ""), arm("the of", "she the"), yardstick("the")) is None


def test_the_spread_is_each_word_s_own() -> None:
    base = arm("the of of x x x x x x x", "the of x x x x x x x x")
    own = arm("the the the of of she x x x x", "the the the of she x x x x x")
    found = measure_movers(own, base, yardstick("the of she"))
    assert found is not None
    # In both arms "of" lies between 0.1 and 0.2, two of its sd of 0.05; the others do not vary.
    assert {mover.word: round(mover.spread, 9) for mover in found.up} == {"the": 0.0, "she": 0.0}
    falling = measure_movers(base, own, yardstick("the of she"))
    assert falling is not None
    assert {mover.word: round(mover.spread, 9) for mover in falling.down} == {"the": 0.0, "she": 0.0}


def test_ties_stand_in_the_order_of_the_frame_and_the_signature_says_how() -> None:
    words = tuple(f"w{a}{b}" for a in "abcdefgh" for b in "abcdefgh")
    frame = Frame(words, np.full(64, 0.01), np.full(64, 0.01), "frame@1|made:up")
    goal = Yardstick.of(frame, [("Book", " ".join(words))], {}, words_per_seed=10)
    base, own = (count_arm((1,), [[text]], goal) for text in ("x " * 64, " ".join(words[::2]) + " x" * 32))
    found = measure_movers(own, base, goal, most=30)
    assert found is not None
    assert [mover.word for mover in found.up] == list(words[:60:2])
    assert found.signature == "movers@1|frame:frame@1,made:up|most:30"
