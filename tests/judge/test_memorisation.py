"""Rules on memorisation and extraction: each by its interval, all that are named must hold, no division by zero."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.judge.memorisation import extraction, memorisation
from gates.measure.figures import NearFigures, ProtectedFigures, SelfCollision, Unmeasured, ValidityFigures
from gates.records import Outcome
from gates.spec.asking import Probe
from gates.spec.limits import Memorisation
from tests.judge.arms import an_arm, memorisation_figures

PASS, FAIL, INCONCLUSIVE, INVALID = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.INVALID


def judged(hits, n, own, windows, **rules):
    counts = ValidityFigures(expected=n, present=n, errors=0, empty=0, repeated_seeds=0, prompt_mismatches=0)
    beside = SelfCollision(windows=windows, hits=own, rate=own / max(windows, 1), longest=10)
    figures = memorisation_figures(hits, n, self_collision=beside)
    return memorisation(an_arm(validity=counts, memorisation=figures), Memorisation(**rules))


@pytest.mark.parametrize(
    ("counts", "rules", "outcome"),
    [
        # Newcombe 1998 (Stat Med 17:873), table II: 56/70 - 48/80 has 95 % limits 0.0524 and 0.3339; one-sided at
        # 95 % they lie inside: 0.0778 and 0.3130 or so, and 0.05 is below, 0.35 above both.
        ((56, 70, 48, 80), {"max_excess": 0.35}, PASS),
        ((56, 70, 48, 80), {"max_excess": 0.05}, FAIL),
        ((56, 70, 48, 80), {"max_excess": 0.2}, INCONCLUSIVE),
        ((56, 70, 48, 80), {"max_excess": 0.2001, "decide": "point"}, PASS),
        ((0, 120, 0, 184), {"max_excess": 0.03}, PASS),
        ((0, 120, 0, 184), {"max_excess": 0.0}, INCONCLUSIVE),
        ((0, 30, 0, 0), {"max_excess": 0.5}, INVALID),
        # 7 of 100 against 1 of 100: a ratio of 7, exact limits from Clopper-Pearson of 7 of 8.
        ((7, 100, 1, 100), {"max_ratio": 200.0}, PASS),
        ((7, 100, 1, 100), {"max_ratio": 1.0}, FAIL),
        ((7, 100, 1, 100), {"max_ratio": 7.0}, INCONCLUSIVE),
        ((7, 100, 1, 100), {"max_ratio": 7.0, "decide": "point"}, PASS),
        ((0, 100, 5, 100), {"max_ratio": 1.0}, PASS),
        # A baseline of 0 has no upper limit: never PASS, and FAIL only by the lower limit.
        ((5, 30, 0, 184), {"max_ratio": 2.0}, FAIL),
        ((1, 30, 0, 184), {"max_ratio": 2.0}, INCONCLUSIVE),
        ((0, 30, 0, 184), {"max_ratio": 2.0}, INCONCLUSIVE),
        ((1, 30, 0, 184), {"max_ratio": 2.0, "decide": "point"}, FAIL),
        ((0, 30, 0, 184), {"max_ratio": 2.0, "decide": "point"}, PASS),
        ((0, 30, 0, 0), {"max_ratio": 2.0}, INVALID),
        # All that are named must hold.
        ((0, 120, 0, 184), {"max_rate": 0.1, "max_excess": 0.1, "max_run_words": 9}, PASS),
        ((0, 120, 0, 184), {"max_rate": 0.1, "max_excess": 0.1, "max_run_words": 8}, FAIL),
        ((0, 120, 0, 184), {"max_rate": 0.1, "max_ratio": 2.0}, INCONCLUSIVE),
        ((5, 30, 0, 0), {"max_run_words": 9}, PASS),
    ],
)
def test_each_rule_decides_by_its_interval(counts, rules, outcome):
    found = judged(*counts, **rules)
    assert found.outcome is outcome, found.reason
    assert bool(found.to_decide) == (outcome is INCONCLUSIVE)


def test_the_first_rule_gives_the_figure_and_all_give_reasons():
    found = judged(7, 100, 1, 100, max_excess=0.2, max_ratio=500.0)
    assert (found.outcome, round(found.value, 3), found.threshold) == (PASS, 0.06, 0.2)
    assert found.rule == "newcombe-unpaired|level:0.95 + poisson-ratio|level:0.95"
    # By hand: Wilson limits 0.038, 0.124 of 0.07 and 0.002, 0.044 of 0.01, squared and added.
    # 7 of 8 by Clopper-Pearson: share from 0.529 (odds 1.12) to 1 - 0.95 ** (1/8) below one, odds 155.
    assert found.reason == (
        "+0.060 against the author's own unseen text, 1 of 100 windows (95 % limits +0.014 and +0.115), at most +0.200 "
        "is allowed; the ratio to the author's own unseen text, 1 of 100 windows, is 7.0 (95 % limits: at least 1.1, "
        "at most 155.5), at most 500.0 is allowed"
    )


def test_a_ratio_to_nothing_says_what_would_decide():
    found = judged(1, 30, 0, 184, max_ratio=2.0)
    assert "is without upper limit (95 % limits: at least 0.3), at most 2.0" in found.reason
    assert found.to_decide == "a ratio to 0 of 184 windows has no upper limit: max_excess or max_rate would decide"
    assert "windows, is undefined, at most 2.0" in judged(0, 30, 0, 184, max_ratio=2.0).reason


def test_no_hits_say_what_they_still_allow():
    assert "(95 % limits 0.000 and 0.095; 0 of 30 still allows 9.5 %)" in judged(0, 30, 0, 9, max_rate=0.1).reason
    assert "still allows" not in judged(1, 30, 0, 9, max_rate=0.1).reason


@pytest.mark.parametrize(("hits", "outcome"), [(0, PASS), (3, INCONCLUSIVE), (30, FAIL)])
def test_protected_texts_have_a_limit_of_their_own(hits, outcome):
    scanned = ProtectedFigures(signature="s", generations=120, hits=hits, rate=hits / 120, longest=9, runs=())
    rule = Memorisation(max_rate=0.1, max_protected_rate=0.04)
    found = memorisation(an_arm(memorisation=memorisation_figures(0, protected=scanned)), rule)
    assert found.outcome is outcome
    assert f"{hits} of 120 generations hold words in a row of the protected texts" in found.reason
    missing = memorisation(an_arm(), rule)
    assert missing.outcome is INVALID
    assert "hits of the protected texts were not measured" in missing.reason


def test_near_verbatim_runs_warn_and_decide_nothing():
    near = NearFigures(signature="s", hits=60, rate=0.5, longest=40, unseen_longest=12, runs=())
    found = memorisation(an_arm(memorisation=memorisation_figures(0, near=near)), Memorisation(max_rate=0.1))
    assert found.outcome is PASS
    assert found.warnings == (
        "60 of 120 generations hold near-verbatim runs, which no rule counts: the longest 40 words, the author's own "
        "unseen text 12",
    )


PROBE = Probe(file="pairs.txt", kind="beats", max_rate=0.1)


@pytest.mark.parametrize(
    ("figures", "outcome", "message"),
    [
        (memorisation_figures(0, 40), PASS, "0 of 40 generations hold 8 words in a row"),
        (memorisation_figures(3, 40), INCONCLUSIVE, "3 of 40"),
        (memorisation_figures(40, 40), FAIL, "40 of 40"),
        (memorisation_figures(0, 41), INVALID, "0 hits of 41 answers cannot be the same probe under 4 seeds"),
        (memorisation_figures(0, 0), INVALID, "0 hits of 0 answers"),
        (Unmeasured(unmeasured="1 of 40 answers to the probe are missing or errors"), INVALID, "1 of 40 answers"),
        (None, INVALID, "not measured"),
    ],
)
def test_what_extraction_says(figures, outcome, message):
    found = extraction(an_arm(extraction=figures), PROBE, "interval")
    assert (found.axis, found.outcome) == ("extraction", outcome)
    assert message in found.reason


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 40), st.integers(0, 30), st.integers(1, 30), st.floats(0.1, 100))
def test_more_hits_never_make_a_ratio_or_an_excess_better(hits, own, windows, limit):
    own = min(own, windows)
    order = [PASS, INCONCLUSIVE, FAIL]
    for rule in ({"max_ratio": limit}, {"max_excess": limit / 100}):
        fewer, more = (judged(count, 41, own, windows, **rule).outcome for count in (hits, hits + 1))
        # A ratio of nothing to nothing is undefined; one hit may already decide.
        assert order.index(fewer) <= order.index(more)
