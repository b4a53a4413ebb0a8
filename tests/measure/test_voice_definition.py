"""delta_cb@1 against its definition, written out slowly, and against chances worked out by hand."""

from __future__ import annotations

import hashlib
import json
import math

import numpy as np
import pytest

from gates.errors import UsageError
from gates.measure.delta import Array, Counts, Frame
from gates.measure.figures import VoiceFigures
from gates.measure.voice import (
    ArmCounts,
    Yardstick,
    _resampled,
    count_arm,
    disjoint_windows,
    distances,
    measure_voice,
)

# Ten words with n `a` and m `b` stand at z = (n − 4, m − 2).
SMALL = Frame(("a", "b"), np.array([0.4, 0.2]), np.array([0.1, 0.1]), "by hand")
SHARES = np.random.default_rng(7).dirichlet(np.full(31, 2.0))
FRAME = Frame(tuple(f"w{n}" for n in range(30)), SHARES[:-1], SHARES[:-1] / 3, "simulated")


def measured(arm: ArmCounts, base: ArmCounts, yardstick: Yardstick) -> VoiceFigures:
    figures = measure_voice(arm, base, yardstick)
    assert isinstance(figures, VoiceFigures)
    return figures


def text_of(*counts: int) -> str:
    return " ".join(["a"] * counts[0] + ["b"] * counts[1] + ["x"] * counts[2])


def example() -> tuple[ArmCounts, ArmCounts, Yardstick]:
    """An arm, a base and a yardstick with two imposters, all of random words; L = 300."""
    rng = np.random.default_rng(4)
    held, *foes = (rng.multinomial(6000, rng.dirichlet(SHARES * 200)) for _ in range(3))
    yardstick = Yardstick(FRAME, 300, np.repeat(np.arange(31), held), {"one": foes[0], "two": foes[1]}, ())

    def arm(lean: float) -> ArmCounts:
        shares = np.stack([rng.dirichlet((1 - lean) * SHARES * 60 + lean * held / 100) for _ in range(6)])
        return ArmCounts((1, 2, 3), rng.multinomial(rng.integers(80, 301, (3, 6)), shares))

    return arm(0.5), arm(0.0), yardstick


def z(counts: list[int]) -> list[float]:
    shares = [count / sum(counts) for count in counts[:-1]]
    return [(share - mean) / sd for share, mean, sd in zip(shares, FRAME.mean, FRAME.sd, strict=True)]


def apart(one: list[float], other: list[float]) -> float:
    return 1 - math.fsum(map(math.prod, zip(one, other, strict=True))) / math.hypot(*one) / math.hypot(*other)


def pooled(texts: Counts) -> list[int]:
    return [sum(column) for column in zip(*texts.tolist(), strict=True)]


def test_distances() -> None:
    """The seeding included: canonical JSON of signature, generation seed and draw number, SHA-256, PCG64."""
    arm, base, yardstick = example()
    figures = measured(arm, base, yardstick)

    def d(one: ArmCounts, goal: Counts) -> list[float]:
        found = []
        for seed, texts in zip(one.seeds, one.counts, strict=True):
            total = 0.0
            for draw in range(50):
                name = json.dumps([figures.signature, seed, draw], separators=(",", ":"))
                rng = np.random.Generator(np.random.PCG64(int(hashlib.sha256(name.encode()).hexdigest(), 16)))
                drawn = rng.multivariate_hypergeometric(pooled(texts), 300, method="marginals").tolist()
                total += apart(z(drawn), z(goal.tolist()))
            found.append(total / 50)
        return found

    held = np.bincount(yardstick.sequence, minlength=31)
    assert figures.distances == pytest.approx(d(arm, held), abs=1e-12)
    assert figures.base_distances == pytest.approx(d(base, held), abs=1e-12)
    assert figures.delta == pytest.approx(np.mean(d(base, held)) - np.mean(d(arm, held)), abs=1e-12)
    moves = {name: np.mean(d(base, foe)) - np.mean(d(arm, foe)) for name, foe in yardstick.imposters.items()}
    assert abs(moves["one"] - moves["two"]) > 0.01
    assert figures.imposters == pytest.approx(moves, abs=1e-12)
    assert figures.specificity == pytest.approx(figures.delta - max(moves.values()), abs=1e-12)


def test_the_interval() -> None:
    """Prompts drawn with replacement for both arms at once, all seeds kept, L words drawn with replacement."""
    arm, base, yardstick = example()
    figures = measured(arm, base, yardstick)
    rng = np.random.default_rng(12)
    goal = z(np.bincount(yardstick.sequence, minlength=31).tolist())
    moves = []
    for _ in range(1000):
        chosen = rng.integers(0, 6, 6)
        d = {"arm": 0.0, "base": 0.0}
        for name, one in (("arm", arm), ("base", base)):
            for texts in one.counts:
                pool = np.array(pooled(texts[chosen]))
                d[name] += apart(z(rng.multinomial(300, pool / pool.sum()).tolist()), goal) / 3
        moves.append(d["base"] - d["arm"])
    low, high = np.quantile(moves - np.mean(moves), (0.025, 0.975))
    # Ends of 1,000 replicates have a standard error of about 4 % of the half-width; two such ends are compared.
    wide = 0.2 * (high - low) / 2
    assert figures.interval == pytest.approx((figures.delta + low, figures.delta + high), abs=wide)


def test_both_arms_share_the_resampled_prompts() -> None:
    # Prompts differ wildly and the arms not at all: resampled apart, the interval would be as wide as prompts make it.
    yardstick = Yardstick.of(SMALL, [("book", text_of(6, 1, 3))], {}, words_per_seed=2000)
    base = count_arm((1,), [[" ".join([text_of(8, 0, 2)] * 40), " ".join([text_of(0, 8, 2)] * 40)] * 4], yardstick)
    low, high = measured(base, base, yardstick).interval
    assert -0.3 < low < 0 < high < 0.3


def test_the_interval_rests_on_what_prompts_differ_by() -> None:
    yardstick = Yardstick.of(SMALL, [("book", text_of(6, 1, 3))], {}, words_per_seed=16_000)
    one, other = (" ".join([text_of(*counts)] * 100) for counts in ((6, 0, 4), (4, 4, 2)))
    base = count_arm((1,), [[other + " " + other] * 8], yardstick)
    even = count_arm((1,), [[one + " " + other] * 8], yardstick)
    odd = count_arm((1,), [[one + " " + one, other + " " + other] * 4], yardstick)
    widths = [high - low for low, high in (measured(arm, base, yardstick).interval for arm in (even, odd))]
    assert widths[1] > 2 * widths[0]


def test_influence_by_hand() -> None:
    yardstick = Yardstick.of(SMALL, [("book", text_of(5, 2, 3))], {}, words_per_seed=10)  # (1, 0)
    base = count_arm((1,), [[text_of(4, 3, 3), text_of(4, 3, 3)]], yardstick)  # (0, 1): d = 1, with one or both
    arm = count_arm((1,), [[text_of(5, 2, 3), text_of(4, 3, 3)]], yardstick)  # (1, 0), (0, 1), together (½, ½)
    move = 0.5**0.5
    assert measured(arm, base, yardstick).influence == pytest.approx((0 - move, 1 - move))


def test_words_are_drawn_without_replacement() -> None:
    # One word, z > 0 and d = 0 when at least 2 of 4 drawn words are `a`, else d = 2. From 6 `a` and 6 others the chance
    # of fewer is (15 + 120) / 495 by the hypergeometric formula; with replacement it would be 5/16.
    frame = Frame(("a",), np.array([0.4]), np.array([0.1]), "one word")
    yardstick = Yardstick.of(frame, [("book", "a")], {}, words_per_seed=4)
    arm = count_arm(tuple(range(200)), [["a a a x x x", "x x x a a a"]] * 200, yardstick)
    assert distances(arm, yardstick).mean() == pytest.approx(2 * 135 / 495, abs=0.03)  # 3.4 standard errors


def test_the_ceiling_by_trying_every_place() -> None:
    """One text of exactly L words: one window and nothing to draw, so its 31 places are all the chance there is."""
    frame = Frame(("a", "b"), np.array([0.35, 0.25]), np.array([0.1, 0.1]), "between whole words")
    tokens = " ".join(["a a x b", "b x x a", "a x a x", "b b b x", "a a a b"] * 2).split()
    yardstick = Yardstick.of(frame, [("book", " ".join(tokens))], {}, words_per_seed=10)
    base = count_arm((1,), [[text_of(3, 4, 3)]], yardstick)

    def direction(part: list[str]) -> Array:
        towards = np.array([part.count("a") / len(part) - 0.35, part.count("b") / len(part) - 0.25])
        return np.asarray(towards / np.linalg.norm(towards))

    every = [
        1 - direction(tokens[start : start + 10]) @ direction(tokens[:start] + tokens[start + 10 :])
        for start in range(31)
    ]
    assert np.std(every) > 0.1
    ceiling = measured(base, base, yardstick).ceiling
    assert ceiling == pytest.approx(np.mean(every), abs=4 * np.std(every) / 200**0.5)


def test_the_ceiling_takes_as_many_windows_as_prompts_and_the_seeds_in_turn() -> None:
    # z of the halves: (2, −2) and (2, 2). One window stands in one of them, six in both, as the whole (2, 0) does.
    yardstick = Yardstick.of(SMALL, [("book", "a a a x x " * 60 + "a a a b b " * 60)], {}, words_per_seed=60)
    rows = [[text_of(36, 12, 12), "", "", "", "", ""], [text_of(6, 2, 2)] * 6]
    one, six, both = (
        measured(arm, arm, yardstick)
        for arm in (count_arm(tuple(range(len(row))), row, yardstick) for row in (rows[:1], rows[1:], rows))
    )
    assert one.ceiling is not None
    assert six.ceiling is not None
    assert 0.05 < six.ceiling < one.ceiling / 1.5
    assert both.ceiling == pytest.approx((one.ceiling + six.ceiling) / 2, abs=0.02)
    # These arms have the shares of the whole text, so they stand nearer than the author's windows: nothing to close.
    assert one.span == pytest.approx(-one.ceiling)
    assert one.span_closed is None


def test_windows_reach_both_ends_of_the_text() -> None:
    rng = np.random.default_rng(3)
    places = [disjoint_windows(rng, np.array([2, 3]), 8) for _ in range(200)]
    assert {first.start for first, _ in places} == {0, 1, 2, 3}
    assert {second.stop for _, second in places} == {5, 6, 7, 8}


def test_recorded_figures_stay_what_they_are() -> None:
    """Records are derived again by later versions: whatever else is drawn, or under another name, breaks them.

    Figures of `delta_cb@1` as this version made them, and as `test_distances` derives those of its draws.
    """
    arm, base, yardstick = example()
    figures = measured(arm, base, yardstick)
    assert figures.ceiling == pytest.approx(1.3163704906959817, abs=1e-9)
    assert figures.interval == pytest.approx((0.2776270242634714, 0.8341735275810718), abs=1e-9)


def test_the_span_closed_by_hand() -> None:
    # Any ten held-out words in a row stand at (1, 0), like the rest: the ceiling is 0. d of base (1, 1) and arm (2, 1).
    held = " ".join([text_of(5, 2, 3)] * 2)
    yardstick = Yardstick.of(SMALL, [("book", held)], {"foe": [text_of(5, 5, 10)]}, words_per_seed=10)
    base, arm = (count_arm((1, 2), [[text_of(*counts)]] * 2, yardstick) for counts in ((5, 3, 2), (6, 3, 1)))
    figures = measured(arm, base, yardstick)
    before, after = 1 - 1 / 2**0.5, 1 - 2 / 5**0.5
    # Twenty held-out words are just enough for windows of ten, and an imposter of twenty is long enough.
    assert (figures.ceiling, figures.notes) == (pytest.approx(0.0, abs=1e-12), ("ceiling within one book",))
    assert figures.span == pytest.approx(before)
    assert figures.span_closed == pytest.approx((before - after) / before)
    with pytest.raises(UsageError, match="no words in imposter foe") as caught:
        Yardstick.of(SMALL, [("book", held)], {"foe": ["..."]}, words_per_seed=10)
    assert caught.value.next_step == "name texts that the tokeniser can read"


def test_a_resample_of_empty_texts_alone_repeats_the_whole_pool() -> None:
    counts, weights = np.array([[0, 0, 0], [1, 2, 1], [2, 0, 2]]), np.array([[3, 0, 0], [1, 2, 0], [0, 1, 2]])
    assert _resampled(counts, weights).tolist() == [[0.375, 0.25, 0.375], [0.25, 0.5, 0.25], [5 / 12, 2 / 12, 5 / 12]]
