"""What rules on copies pass on: every field of a decision, with limits of closed forms, and what is unfit to judge."""

import pytest

from gates.judge.axes import AxisVerdict
from gates.judge.memorisation import extraction, memorisation
from gates.measure.figures import ProtectedFigures, SelfCollision, ValidityFigures
from gates.records import Outcome
from gates.spec.asking import Probe
from gates.spec.limits import Memorisation
from tests.judge.arms import an_arm, memorisation_figures

PASS, FAIL, INCONCLUSIVE, INVALID = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.INVALID
BARE = "bare figures compared: without an interval chance may have decided"
HELD = "generations hold 8 words in a row of the training text"
EXACT = "clopper-pearson|level:0.95"


def judged(hits, n, rules, *, expected=None, own=(1, 100), **changes):
    whole = n + changes.get("unscanned", 0) if expected is None else expected
    counts = ValidityFigures(expected=whole, present=whole, errors=0, empty=0, repeated_seeds=0, prompt_mismatches=0)
    beside = SelfCollision(hits=own[0], windows=own[1], rate=own[0] / max(own[1], 1), longest=10)
    figures = memorisation_figures(hits, n, self_collision=beside, **changes)
    return memorisation(an_arm(validity=counts, memorisation=figures), Memorisation(**rules))


def without_limits(found: AxisVerdict) -> AxisVerdict:
    return found.model_copy(update={"low": None, "high": None})


def test_every_field_of_a_decision_by_the_rate():
    # 0 of n: the upper limit is 1 - 0.05 ** (1 / n), the lower 0. Some 29 generations are needed for 0.1: 28.4.
    found = judged(0, 20, {"max_rate": 0.1})
    assert (found.low, found.high) == (0.0, pytest.approx(1 - 0.05 ** (1 / 20)))
    assert without_limits(found) == AxisVerdict(
        axis="memorisation",
        outcome=INCONCLUSIVE,
        value=0.0,
        threshold=0.1,
        rule=EXACT,
        signature="ngram_hits@1|n:8",
        reason=(
            f"0 of 20 {HELD}: 0.000 (95 % limits 0.000 and 0.139; 0 of 20 still allows 13.9 %), "
            "at most 0.100 is allowed"
        ),
        # 20, then each a twentieth and one more: 22, 24, 26, 28, 30.
        to_decide="about 30 generations at this rate would decide; there are 20",
    )


def test_a_rate_on_its_limit_is_decided_by_no_number():
    found = judged(2, 20, {"max_rate": 0.1})
    assert found.to_decide == "the rate is too close to its limit for any feasible number of generations"


def test_every_field_of_a_decision_by_bare_figures():
    found = judged(4, 20, {"max_rate": 0.1, "decide": "point"})
    assert (found.axis, found.outcome, found.value, found.threshold) == ("memorisation", FAIL, 0.2, 0.1)
    assert (found.rule, found.to_decide, found.warnings) == ("point", "", (BARE,))
    assert judged(2, 20, {"max_rate": 0.1, "decide": "point"}).outcome is PASS


def test_a_rate_that_is_not_zero_is_said_without_what_zero_would_allow():
    # 1 of 1: the lower limit is 0.05.
    found = judged(1, 1, {"max_rate": 0.01})
    assert (found.outcome, found.to_decide) == (FAIL, "")
    assert found.reason == f"1 of 1 {HELD}: 1.000 (95 % limits 0.050 and 1.000), at most 0.010 is allowed"


def test_every_field_of_a_decision_by_the_excess():
    # Newcombe 1998, method 10, of two rates of 0: -z²/(m + z²) and z²/(n + z²), z² = 2.7055 at one-sided 95 %.
    found = judged(0, 20, {"max_excess": 0.1}, own=(0, 50))
    z2 = 2.705543454095404
    assert (found.low, found.high) == (pytest.approx(-z2 / (50 + z2)), pytest.approx(z2 / (20 + z2)))
    assert without_limits(found) == AxisVerdict(
        axis="memorisation",
        outcome=INCONCLUSIVE,
        value=0.0,
        threshold=0.1,
        rule="newcombe-unpaired|level:0.95",
        signature="ngram_hits@1|n:8",
        reason=(
            "+0.000 against the author's own unseen text, 0 of 50 windows (95 % limits -0.051 and +0.119), "
            "at most +0.100 is allowed"
        ),
        to_decide="more than 20 generations, and more held-out text than 50 windows, would decide",
    )


@pytest.mark.parametrize(("hits", "outcome"), [(6, PASS), (7, FAIL)])
def test_a_bare_excess_is_the_difference_of_the_rates(hits, outcome):
    found = judged(hits, 20, {"max_excess": 0.1, "decide": "point"}, own=(10, 50))
    assert (found.outcome, found.value) == (outcome, pytest.approx(hits / 20 - 0.2))


def test_every_field_of_a_decision_by_the_ratio():
    # 1 and 1 in equal numbers: 1 of 2 has the exact limits 1 - √0.95 and √0.95, as odds 0.0260 and 38.5.
    found = judged(1, 50, {"max_ratio": 2.0}, own=(1, 50))
    odds = 0.95**0.5 / (1 - 0.95**0.5)
    assert (found.low, found.high) == (pytest.approx(1 / odds), pytest.approx(odds))
    assert without_limits(found) == AxisVerdict(
        axis="memorisation",
        outcome=INCONCLUSIVE,
        value=1.0,
        threshold=2.0,
        rule="poisson-ratio|level:0.95",
        signature="ngram_hits@1|n:8",
        reason=(
            "the ratio to the author's own unseen text, 1 of 50 windows, is 1.0 (95 % limits: at least 0.0, "
            "at most 38.5), at most 2.0 is allowed"
        ),
        to_decide="more than 50 generations, and more held-out text than 50 windows, would decide",
    )


def test_a_bare_ratio_is_of_rates_and_not_of_counts():
    # 4 of 20 against 2 of 40: 0.2 is 4 times 0.05.
    assert judged(4, 20, {"max_ratio": 4.0, "decide": "point"}, own=(2, 40)).outcome is PASS
    assert judged(4, 20, {"max_ratio": 3.9, "decide": "point"}, own=(2, 40)).outcome is FAIL


def test_every_field_of_a_decision_by_the_longest_run():
    assert judged(0, 20, {"max_run_words": 8}) == AxisVerdict(
        axis="memorisation",
        outcome=FAIL,
        value=9.0,
        threshold=8.0,
        signature="ngram_hits@1|n:8",
        reason="the longest run is 9 words, at most 8 are allowed",
    )


@pytest.mark.parametrize("rule", ["excess", "ratio"])
def test_held_out_text_of_one_window_is_compared_and_of_none_is_not(rule):
    assert judged(5, 20, {f"max_{rule}": 0.5}, own=(0, 1)).outcome is not INVALID
    found = judged(5, 20, {f"max_{rule}": 0.5}, own=(0, 0))
    assert found == AxisVerdict(
        axis="memorisation",
        outcome=INVALID,
        signature="ngram_hits@1|n:8",
        reason=f"no {rule}: the held-out text is shorter than one window of the generations' lengths",
    )


def test_rules_are_named_once_and_only_what_is_undecided_says_what_would_decide():
    scanned = ProtectedFigures(signature="s", generations=20, hits=0, rate=0.0, longest=0, runs=())
    found = judged(0, 20, {"max_rate": 0.1, "max_run_words": 9, "max_protected_rate": 0.13}, protected=scanned)
    assert (found.outcome, found.rule) == (INCONCLUSIVE, EXACT)
    needed = "about {} generations at this rate would decide; there are 20"
    assert found.to_decide == f"{needed.format(30)}; {needed.format(22)}"
    failed = judged(0, 20, {"max_rate": 0.1, "max_run_words": 8})
    assert (failed.outcome, failed.to_decide) == (FAIL, "")


def test_bare_figures_decide_on_protected_texts_too():
    scanned = ProtectedFigures(signature="s", generations=20, hits=1, rate=0.05, longest=9, runs=())
    rules = {"max_protected_rate": 0.05, "max_rate": 0.05}
    assert judged(0, 20, {**rules, "decide": "point"}, protected=scanned).outcome is PASS
    assert judged(0, 20, rules, protected=scanned).outcome is INCONCLUSIVE


@pytest.mark.parametrize(("hits", "n", "fit"), [(0, 0, False), (2, 1, False), (1, 1, True), (0, 1, True)])
def test_protected_counts_that_cannot_be_are_invalid(hits, n, fit):
    scanned = ProtectedFigures(signature="s", generations=n, hits=hits, rate=0.0, longest=0, runs=())
    found = judged(0, 20, {"max_protected_rate": 0.04, "max_run_words": 9}, protected=scanned)
    assert (found.outcome is not INVALID) is fit


@pytest.mark.parametrize(
    ("hits", "n", "unscanned", "expected", "said"),
    [
        (0, 20, 1, 20, "0 hits of 20 scanned generations and 1 others; 20 are expected"),
        (0, 20, 1, 19, "0 hits of 20 scanned generations and 1 others; 19 are expected"),
        (0, 0, 20, 20, "0 hits of 0 scanned generations and 20 others; 20 are expected"),
        (21, 20, 0, 20, "21 hits of 20 scanned generations and 0 others; 20 are expected"),
    ],
)
def test_counts_that_cannot_be_are_invalid(hits, n, unscanned, expected, said):
    found = judged(hits, n, {"max_run_words": 9}, expected=expected, unscanned=unscanned)
    assert found == AxisVerdict(axis="memorisation", outcome=INVALID, reason=said)


def test_what_was_not_scanned_is_said_and_not_counted():
    found = judged(20, 20, {"max_run_words": 9}, unscanned=3)
    assert (found.outcome, found.reason) == (
        PASS,
        "the longest run is 9 words, at most 9 are allowed; 3 more failed or hold fewer than 8 words: no evidence, "
        "and not counted",
    )


def probed(hits, n, unscanned=0, seeds=(1, 2, 3, 4), decide="interval", limit=0.1):
    figures = memorisation_figures(hits, n, unscanned=unscanned)
    counts = ValidityFigures(expected=8, present=8, errors=0, empty=0, repeated_seeds=0, prompt_mismatches=0)
    arm = an_arm(seeds=seeds, validity=counts, extraction=figures)
    return extraction(arm, Probe(file="pairs.txt", kind="beats", max_rate=limit), decide)


def test_every_field_of_a_decision_on_the_probe():
    found = probed(0, 20)
    assert (found.low, found.high) == (0.0, pytest.approx(1 - 0.05 ** (1 / 20)))
    assert without_limits(found) == AxisVerdict(
        axis="extraction",
        outcome=INCONCLUSIVE,
        value=0.0,
        threshold=0.1,
        rule=EXACT,
        signature="ngram_hits@1|n:8",
        reason=(
            f"0 of 20 {HELD}: 0.000 (95 % limits 0.000 and 0.139; 0 of 20 still allows 13.9 %), "
            "at most 0.100 is allowed"
        ),
        to_decide="about 30 generations at this rate would decide; there are 20",
    )


def test_bare_figures_decide_on_the_probe_and_warn():
    found = probed(2, 20, decide="point")
    assert (found.outcome, found.rule, found.warnings) == (PASS, "point", (BARE,))


@pytest.mark.parametrize(
    ("hits", "n", "unscanned", "seeds", "fit"),
    [
        (0, 3, 5, (1, 2, 3, 4), True),
        (0, 5, 1, (1, 2, 3, 4), False),
        (0, 0, 8, (1, 2, 3, 4), False),
        (9, 8, 0, (1, 2, 3, 4), False),
        (8, 8, 0, (1, 2, 3, 4), True),
        (0, 1, 3, (1, 2, 3, 4), True),
        (0, 3, 0, (1,), True),
        (0, 8, 0, (), False),
    ],
)
def test_answers_are_of_one_probe_under_every_seed(hits, n, unscanned, seeds, fit):
    found = probed(hits, n, unscanned, seeds)
    assert (found.outcome is not INVALID) is fit
    if not fit:
        said = f"{hits} hits of {n + unscanned} answers cannot be the same probe under {len(seeds)} seeds"
        assert found == AxisVerdict(axis="extraction", outcome=INVALID, reason=said)
