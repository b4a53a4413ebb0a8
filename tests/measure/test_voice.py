"""delta_cb@1: hand-computed distances, what may not change a number, what is refused, and how sure the interval is."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cosine as scipy_cosine

from gates.corpora.texts import Document
from gates.errors import UsageError
from gates.measure.delta import Counts, Frame, make_frame
from gates.measure.figures import Unmeasured, VoiceFigures
from gates.measure.voice import ArmCounts, Yardstick, count_arm, disjoint_windows, distances, measure_voice
from gates.text import words

SMALL = Frame(("a", "b"), np.array([0.4, 0.2]), np.array([0.1, 0.1]), "by hand")
WORDS = 60
SHARES = np.random.default_rng(7).dirichlet(np.full(WORDS + 1, 2.0))
FRAME = Frame(tuple(f"w{n}" for n in range(WORDS)), SHARES[:-1], SHARES[:-1] / 3, "simulated")


def measured(arm: ArmCounts, base: ArmCounts, yardstick: Yardstick) -> VoiceFigures:
    figures = measure_voice(arm, base, yardstick)
    assert isinstance(figures, VoiceFigures)
    return figures


def style(rng: np.random.Generator, amount: float) -> np.ndarray:
    return np.asarray(np.log(SHARES) + rng.normal(0, amount, WORDS + 1))


def simulated(rng: np.random.Generator, logits: np.ndarray, shape: tuple[int, int] = (3, 6)) -> Counts:
    shares = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    return np.asarray(rng.multinomial(rng.integers(80, 301, shape), shares))


def example(seed: int, imposters: int = 2) -> tuple[ArmCounts, ArmCounts, Yardstick]:
    """An arm, a base, and a yardstick of 6,000 held-out words, all simulated."""
    rng = np.random.default_rng(seed)
    author, other = style(rng, 0.3), style(rng, 0.3)
    held = rng.permutation(
        np.repeat(np.arange(WORDS + 1), rng.multinomial(6000, np.exp(author) / np.exp(author).sum()))
    )
    foes = {f"foe{n}": simulated(rng, style(rng, 0.3), (1, 20))[0].sum(axis=0) for n in range(imposters)}
    yardstick = Yardstick(FRAME, 300, held, foes, ("a note",))
    return (
        ArmCounts((1, 2, 3), simulated(rng, (author + other) / 2)),
        ArmCounts((1, 2, 3), simulated(rng, other)),
        yardstick,
    )


def text_of(*counts: int) -> str:
    return " ".join(["a"] * counts[0] + ["b"] * counts[1] + ["x"] * counts[2])


def test_delta_by_hand() -> None:
    """Pools of exactly L words leave nothing to chance, so every draw is the whole pool."""
    # z of the held-out text: (0.6 − 0.4) / 0.1 = 2 and (0.1 − 0.2) / 0.1 = −1. z of the imposter: (−2, 1).
    yardstick = Yardstick.of(SMALL, [("book", text_of(60, 10, 30))], {"foe": [text_of(20, 30, 50)]}, words_per_seed=10)
    # Base: z = (0, 2) in both seeds; cos with (2, −1) is −2 / (2√5). Arm: z = (2, 0), cos 4 / (2√5); then z = (2, −1).
    base = count_arm((1, 2), [[text_of(4, 4, 2)], [text_of(4, 4, 2)]], yardstick)
    arm = count_arm((1, 2), [[text_of(6, 2, 2)], [text_of(6, 1, 3)]], yardstick)
    figures = measured(arm, base, yardstick)
    root = 5**0.5
    assert figures.base_distances == pytest.approx((1 + 1 / root, 1 + 1 / root))
    assert figures.distances == pytest.approx((1 - 2 / root, 0), abs=1e-12)
    assert figures.delta == pytest.approx(0.5 + 2 / root)
    assert figures.spread == pytest.approx(1 - 2 / root)
    assert figures.base_spread == 0
    # The imposter lies opposite the author: base 1 − 1/√5, arm 1 + 2/√5 and 2.
    assert figures.imposters == pytest.approx({"foe": 1 - 1 / root - (3 + 2 / root) / 2})
    assert figures.specificity == pytest.approx(figures.delta - figures.imposters["foe"])
    assert figures.words == figures.base_words == (10, 10)
    assert figures.influence == pytest.approx((-figures.delta,))
    assert figures.frame_sha256 == SMALL.digest()
    assert figures.signature == ("delta_cb@1|frame:by hand|words_per_seed:10|draws:50|ceiling_draws:200|resamples:1000")


def test_the_ceiling_of_a_text_that_repeats_one_word_is_zero() -> None:
    yardstick = Yardstick.of(SMALL, [("one", "a " * 90), ("two", "a " * 10)], {}, words_per_seed=10)
    base = count_arm((1, 2), [[text_of(4, 4, 2)] * 2] * 2, yardstick)
    figures = measured(base, base, yardstick)
    # Windows and rest both hold nothing but a: z = (6, −2) on both sides.
    assert figures.ceiling == pytest.approx(0, abs=1e-12)
    assert figures.span == pytest.approx(sum(figures.base_distances) / 2)
    assert figures.span_closed == figures.delta == 0
    assert figures.imposters == {}
    assert figures.specificity is None
    assert figures.notes == ()


def test_a_heldout_text_too_short_for_the_windows_has_no_ceiling() -> None:
    yardstick = Yardstick.of(SMALL, [("book", "a " * 39)], {"foe": ["b " * 20]}, words_per_seed=10)
    base = count_arm((1, 2), [[text_of(4, 4, 2)] * 2] * 2, yardstick)
    figures = measured(base, base, yardstick)
    assert (figures.ceiling, figures.span, figures.span_closed) == (None, None, None)
    assert figures.notes == (
        "ceiling within one book",
        "imposter foe has 20 words, the held-out text 39",
        "no ceiling: 20 words of windows leave less than half of 39 held-out words",
    )


def test_the_ceiling_is_what_an_arm_of_the_author_reaches() -> None:
    """Arms of twenty seeds whose words come from the distribution that the held-out text was drawn from."""
    gaps = []
    for seed in range(8):
        arm, base, yardstick = example(seed)
        texts = simulated(np.random.default_rng(11), style(np.random.default_rng(seed), 0.3), (20, 6))
        reached = distances(ArmCounts(tuple(range(20)), texts), yardstick)[:, 0].mean()
        gaps.append((measured(arm, base, yardstick).ceiling or 0) - reached)
    # Each held-out text is one draw: its gap has an sd of about 0.05, the mean of eight 0.017.
    assert np.mean(gaps) == pytest.approx(0, abs=0.05)


def test_imposters_are_cut_to_the_heldout_size() -> None:
    yardstick = Yardstick.of(SMALL, [("book", "a b x")], {"foe": ["b b", "a b a a a"]}, words_per_seed=10)
    assert yardstick.imposters["foe"].tolist() == [1, 2, 0]
    assert yardstick.heldout.tolist() == [1, 1, 1]


def test_an_arm_short_of_words_is_unmeasured_alone() -> None:
    arm, base, yardstick = example(1)
    counts = arm.counts.copy()
    counts[1] = 0
    counts[1, 0, 0] = 299
    short = dataclasses.replace(arm, counts=counts)
    assert measure_voice(short, base, yardstick) == Unmeasured(
        unmeasured="the arm is short of words_per_seed = 300: seed 2 has 299 words"
    )
    assert measure_voice(arm, short, yardstick) == Unmeasured(
        unmeasured="base is short of words_per_seed = 300: seed 2 has 299 words"
    )


@pytest.mark.parametrize(("heldout", "foe", "named"), [("12 !", "a", "the held-out text"), ("a", "—", "imposter foe")])
def test_a_yardstick_needs_words(heldout: str, foe: str, named: str) -> None:
    with pytest.raises(UsageError, match=f"no words in {named}"):
        Yardstick.of(SMALL, [("book", heldout)], {"foe": [foe]}, words_per_seed=10)


def test_an_arm_against_itself_moves_nowhere() -> None:
    arm, _, yardstick = example(1)
    figures = measured(arm, arm, yardstick)
    assert figures.delta == 0
    assert set(figures.imposters.values()) == {0}


def test_draws_are_seeded_by_signature_seed_and_number_alone() -> None:
    """The same distances, written out from the definition with other libraries."""
    arm, _, yardstick = example(1)
    held = np.bincount(yardstick.sequence, minlength=WORDS + 1)
    goal = (held[:-1] / held.sum() - FRAME.mean) / FRAME.sd
    expected = []
    for seed, pool in zip(arm.seeds, arm.counts.sum(axis=1), strict=True):
        found = []
        for number in range(50):
            key = json.dumps([yardstick.signature, seed, number], separators=(",", ":")).encode()
            rng = np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(key).digest(), "big")))
            drawn = rng.multivariate_hypergeometric(pool, 300, method="marginals")
            assert drawn.sum() == 300
            found.append(scipy_cosine((drawn[:-1] / 300 - FRAME.mean) / FRAME.sd, goal))
        expected.append(np.mean(found))
    assert distances(arm, yardstick)[:, 0] == pytest.approx(expected, abs=1e-12)


@settings(deadline=None, max_examples=6)
@given(st.integers(0, 99), st.permutations(range(3)), st.permutations(range(6)))
def test_the_order_of_seeds_and_prompts_changes_nothing(seed: int, order: list[int], prompts: list[int]) -> None:
    arm, base, yardstick = example(seed)
    before = measured(arm, base, yardstick)
    seeds = tuple(arm.seeds[place] for place in order)
    turned = [ArmCounts(seeds, one.counts[order][:, prompts]) for one in (arm, base)]
    after = measured(turned[0], turned[1], yardstick)
    assert after.distances == tuple(before.distances[place] for place in order)
    assert after.delta == before.delta
    assert after.ceiling == before.ceiling
    assert after.influence == pytest.approx([before.influence[prompt] for prompt in prompts], abs=1e-12)
    if prompts == sorted(prompts):
        assert after.interval == pytest.approx(before.interval, abs=1e-12)


@settings(deadline=None, max_examples=6)
@given(st.integers(0, 99), st.integers(0, 2))
def test_the_move_toward_the_author_does_not_hang_on_imposters(seed: int, kept: int) -> None:
    arm, base, yardstick = example(seed)
    fewer = dataclasses.replace(yardstick, imposters=dict(list(yardstick.imposters.items())[:kept]))
    names = ("imposters", "specificity")
    all_of_them, some = measured(arm, base, yardstick), measured(arm, base, fewer)
    assert some.model_copy(update={name: getattr(all_of_them, name) for name in names}) == all_of_them


@settings(deadline=None, max_examples=6)
@given(st.integers(0, 99), st.lists(st.integers(0, 99), max_size=3))
def test_other_arms_change_nothing(seed: int, others: list[int]) -> None:
    """Arms have no names here, and those measured before on the same yardstick leave no trace."""
    arm, base, yardstick = example(seed)
    alone = measured(arm, base, yardstick)
    for other in others:
        measured(example(other)[0], base, yardstick)
    assert measured(arm, base, yardstick) == alone


TEXT = st.lists(st.sampled_from(["a", "b", "don't", "x", "O'b", " - ", "--"]), min_size=20, max_size=40).map(" ".join)


@settings(deadline=None, max_examples=25)
@given(st.lists(TEXT, min_size=4, max_size=4), st.sampled_from("’‘ʼ´"), st.sampled_from("—–−"))
def test_typographic_quotes_and_dashes_change_nothing(texts: list[str], quote: str, dash: str) -> None:
    frame = Frame(("a", "b", "don't"), np.array([0.2, 0.2, 0.1]), np.array([0.1, 0.1, 0.1]), "by hand")

    def figures(texts: Sequence[str]) -> VoiceFigures | Unmeasured:
        yardstick = Yardstick.of(frame, [("book", texts[2] * 5)], {"foe": [texts[3]]}, words_per_seed=8)
        arm, base = ([[text], [text * 2]] for text in texts[:2])
        return measure_voice(count_arm((1, 2), arm, yardstick), count_arm((1, 2), base, yardstick), yardstick)

    assert figures([text.replace("'", quote).replace("-", dash) for text in texts]) == figures(texts)


@settings(deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.integers(0, 40), st.integers(0, 9))
def test_windows_are_disjoint_and_inside(lengths: list[int], spare: int, seed: int) -> None:
    size = sum(lengths) + spare
    places = disjoint_windows(np.random.default_rng(seed), np.array(lengths), size)
    assert [place.stop - place.start for place in places] == lengths
    assert places[0].start >= 0
    assert places[-1].stop <= size
    assert all(one.stop <= two.start for one, two in pairwise(places))


def test_influence_names_the_prompt_that_carries_the_result() -> None:
    rng = np.random.default_rng(2)
    _, base, yardstick = example(2)
    own = np.bincount(yardstick.sequence, minlength=WORDS + 1) / yardstick.sequence.size
    counts = base.counts.copy()
    counts[:, 4] = rng.multinomial(300, own, size=3)
    figures = measured(ArmCounts(base.seeds, counts), base, yardstick)
    assert figures.delta > 0.05
    assert figures.influence[4] < -0.05
    assert max(abs(one) for place, one in enumerate(figures.influence) if place != 4) < 0.05


def population(rng: np.random.Generator, variety: float) -> Callable[[int], tuple[ArmCounts, ArmCounts]]:
    """Runs of one gate: 24 prompts and 3 seeds drawn anew each time, from two arms that differ by a fixed shift.

    `variety` is the sd of a prompt's own effect on the log-shares, common to both arms; half of it is an arm's own at
    that prompt, half a generation's own.
    """
    arm, base = style(rng, 0.3), style(rng, 0.3)

    def run(number: int) -> tuple[ArmCounts, ArmCounts]:
        beats = rng.normal(0, variety, (24, WORDS + 1))
        seeds = tuple(range(3 * number, 3 * number + 3))
        counts = []
        for shift in (arm, base):
            own = rng.normal(0, variety / 2, (24, WORDS + 1)) + rng.normal(0, variety / 2, (3, 24, WORDS + 1))
            counts.append(simulated(rng, shift + beats + own, (3, 24)))
        return ArmCounts(seeds, counts[0]), ArmCounts(seeds, counts[1])

    return run


@pytest.mark.long
@pytest.mark.parametrize(("variety", "stated"), [(0.5, 0.99), (1.25, 0.91), (2.0, 0.85)])
def test_the_coverage_of_the_interval(variety: float, stated: float) -> None:
    """Share of 200 simulated gates of 24 prompts whose nominal 95 % interval holds the mean of all their moves.

    The more prompts differ, the more the interval claims: it is wide where drawing L words makes most of the variance,
    and short, as a bootstrap of 24 clusters is, where the prompts do.
    """
    rng = np.random.default_rng(24)
    run = population(rng, variety)
    yardstick = Yardstick(FRAME, 1500, rng.choice(WORDS + 1, size=5000, p=SHARES), {}, ())
    figures = [measured(*run(number), yardstick) for number in range(200)]
    truth = np.mean([one.delta for one in figures])
    coverage = np.mean([one.interval[0] <= truth <= one.interval[1] for one in figures])
    # Three standard errors of a coverage of 0.9 at 200 gates.
    assert coverage == pytest.approx(stated, abs=3 * (0.9 * 0.1 / 200) ** 0.5)


def pairs_of(rng: np.random.Generator, book: np.ndarray, count: int, size: int) -> tuple[ArmCounts, ArmCounts]:
    """`count` pairs of pools from one novel, as arms of so many seeds: 24 short pieces, 24 long ones beside them."""
    counts = np.zeros((2, count, 24, size), dtype=np.int64)
    for pair in range(count):
        lengths = np.concatenate([rng.integers(80, 121, 24), rng.integers(250, 301, 24)])
        order = rng.permutation(48)
        for piece, where in zip(order, disjoint_windows(rng, lengths[order], book.size), strict=True):
            counts[piece // 24, pair, piece % 24] = np.bincount(book[where], minlength=size)
    return ArmCounts(tuple(range(count)), counts[0]), ArmCounts(tuple(range(count, 2 * count)), counts[1])


@pytest.mark.external
def test_length_alone_moves_nothing(novels: tuple[Document, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """2,000 pairs of 24 short (80-120 words) and 24 long (250-300) disjoint pieces of one novel.

    Each pair is measured against another novel of the same author, where length matters most, in a frame without that
    author: the 25 authors are held out in five groups of five.
    """
    rng = np.random.default_rng(80300)
    tokens = [(novel.author, words(novel.text)) for novel in novels]
    authors = sorted({author for author, _ in tokens})
    moves: list[float] = []
    for group in range(5):
        tested = authors[group::5]
        frame = make_frame([one for one in tokens if one[0] not in tested], mfw=300)
        place = {word: index for index, word in enumerate(frame.words)}
        for author in tested:
            books = [np.array([place.get(w, len(place)) for w in text]) for name, text in tokens if name == author]
            for book, held in ((0, 1), (1, 2), (2, 0), (0, 2)):
                short, long = pairs_of(rng, books[book], 20, len(frame.words) + 1)
                yardstick = Yardstick(frame, 1500, books[held], {}, ())
                moves.extend(distances(short, yardstick)[:, 0] - distances(long, yardstick)[:, 0])
    error = np.std(moves, ddof=1) / len(moves) ** 0.5
    with capsys.disabled():
        print(f"\nlength null: mean {np.mean(moves):+.4f}, standard error {error:.4f}, {len(moves)} pairs")  # noqa: T201 - it is to be read
    assert len(moves) == 2000
    assert abs(np.mean(moves)) <= 0.010


def test_the_interval_of_two_prompts_by_hand() -> None:
    """Resamples of two texts take the one twice in a quarter of cases, so that both ends are texts of one word."""
    # The author writes a alone: z = (6, −2); a text of b alone has z = (−4, 8), cos −40 / √(40 · 80) = −1 / √2.
    yardstick = Yardstick.of(SMALL, [("book", "a " * 400)], {}, words_per_seed=10)
    base = count_arm((1,), [["b " * 90, "b " * 10]], yardstick)
    arm = count_arm((1,), [["b " * 90, "a " * 10]], yardstick)
    figures = measured(arm, base, yardstick)
    low, high = figures.interval
    assert high - low == pytest.approx(1 + 1 / 2**0.5)
    # Three of four resamples are all or nearly all b, as far from the author as the base: their mean lies low.
    assert high - figures.delta > 1.5 * (figures.delta - low)


def test_the_draws_of_one_signature_stay_as_they_are() -> None:
    """Figures of simulated arms as first computed: other draws need another version of the measure."""
    figures = measured(*example(0))
    assert figures.ceiling == pytest.approx(0.6352244449604775)
    assert figures.interval == pytest.approx((0.011512330616487154, 0.3960615697560299))
    assert figures.distances == pytest.approx((0.7497531423634107, 0.7825600051136286, 0.7698358561103226))


def test_a_base_that_is_the_author_already_has_no_span_to_close() -> None:
    frame = Frame(("a", "b"), np.array([0.5, 0.0]), np.array([0.125, 0.125]), "by hand")
    yardstick = Yardstick.of(frame, [("book", "a " * 100)], {}, words_per_seed=10)
    base = count_arm((1, 2), [["a " * 10] * 2] * 2, yardstick)
    figures = measured(base, base, yardstick)
    assert (figures.ceiling, figures.span, figures.span_closed) == (0.0, 0.0, None)
