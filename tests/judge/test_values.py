"""Verdicts from numbers alone: what decides, and that nothing missing passes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.errors import UsageError
from gates.judge.values import RANGES, SeedValue, ValuesRule, judge_values
from gates.records import Outcome

PASS, FAIL, INCONCLUSIVE, INVALID = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.INVALID


def rows(axis: str, **arms) -> list[SeedValue]:
    """One row a seed, seeds from 1; a pair (hits, n) is a counted rate."""
    found = []
    for arm, values in arms.items():
        for seed, value in enumerate(values, 1):
            counted = isinstance(value, tuple)
            hits, n = value if counted else (None, None)
            shown = hits / n if counted else value
            found.append(SeedValue(arm=arm, seed=seed, axis=axis, value=shown, n=n, hits=hits))
    return found


def outcome(table, **rule):
    return judge_values(table, ValuesRule(**({"rule": "pairwise-range@1"} | rule))).outcome


BASE = (0.90, 0.92, 0.94)


@pytest.mark.parametrize(
    ("own", "rule", "expected"),
    [
        ((0.80, 0.82, 0.84), {}, PASS),  # 0.10 against a floor of 0.04
        ((0.80, 0.82, 0.84), {"threshold": 2.5}, FAIL),  # exactly 2.5 times: more is required
        ((0.80, 0.82, 0.84), {"threshold": 2.4}, PASS),
        ((0.80, 0.82, 0.84), {"floor": 0.1}, FAIL),
        ((0.80, 0.82, 0.84), {"floor": 0.09}, PASS),
        ((0.80, 0.82, 0.84), {"floor": 0.0}, INVALID),
        ((1.00, 1.02, 1.04), {}, FAIL),  # as far away from the author
        ((0.80, 0.82), {}, INVALID),  # a seed is missing
        ((0.85, 0.88, 0.87), {"rule": "pairwise-calibrated@1"}, PASS),  # g = 0.995: 0.053 against 0.0398
        ((0.88, 0.90, 0.92), {"rule": "pairwise-calibrated@1", "alpha": 0.3}, PASS),
        ((0.88, 0.90, 0.92), {"rule": "pairwise-calibrated@1"}, FAIL),
    ],
)
def test_voice_must_move_beyond_the_floor(own, rule, expected):
    assert outcome(rows("voice", base=BASE, a=own), **rule) is expected


@pytest.mark.parametrize(
    ("axis", "base", "own", "expected"),
    [
        ("ran_on", (0.1, 0.2, 0.3), (0.4, 0.4, 0.4), PASS),  # harm 0.2 on the floor of 0.2
        ("ran_on", (0.1, 0.2, 0.3), (0.5, 0.4, 0.4), FAIL),
        ("ran_on", (0.5, 0.5, 0.5), (0.0, 0.0, 0.0), PASS),
        ("ran_on", (0.2, 0.2, 0.2), (0.3, 0.3, 0.3), FAIL),
        ("on_beat", (0.8, 0.8, 0.9), (0.8, 0.7, 0.8), PASS),  # harm 0.067 within 0.1
        ("on_beat", (0.8, 0.8, 0.9), (0.5, 0.5, 0.5), FAIL),
        ("on_beat", (0.5, 0.5, 0.5), (0.9, 0.9, 0.9), PASS),
    ],
)
def test_other_axes_may_not_be_harmed_beyond_the_floor(axis, base, own, expected):
    assert outcome(rows(axis, base=base, a=own)) is expected


@pytest.mark.parametrize(
    ("hits", "n", "most", "expected"),
    [
        (0, 29, 0.10, PASS),  # 1 - 0.05 ** (1/29) = 0.0981
        (0, 28, 0.10, INCONCLUSIVE),  # 0.1015
        (7, 100, 0.03, FAIL),
        (7, 100, 0.10, INCONCLUSIVE),
    ],
)
def test_a_maximum_rate_is_proven_by_exact_limits(hits, n, most, expected):
    table = rows("memorisation", a=((hits, n),))
    assert outcome(table, rule="max-rate@1", threshold=most) is expected


@pytest.mark.parametrize(
    ("own", "base", "most", "expected"),
    [
        ((70, 1000), (70, 1000), 2, PASS),
        ((70, 1000), (10, 1000), 2, FAIL),
        ((7, 100), (1, 100), 10, INCONCLUSIVE),
        ((7, 100), (0, 100), 1, FAIL),  # only a lower limit: 0.05 ** (1/7) = 0.652, odds 1.87
        ((7, 100), (0, 100), 2, INCONCLUSIVE),
        ((0, 100), (0, 100), 10, INCONCLUSIVE),
    ],
)
def test_a_maximum_ratio_never_divides_by_zero(own, base, most, expected):
    table = rows("memorisation", base=(base,), a=(own,))
    assert outcome(table, rule="max-ratio@1", threshold=most) is expected


def test_only_the_retired_rule_asks_who_else_is_there_and_it_is_named_as_retired():
    table = rows("voice", base=BASE, a=(0.80, 0.82, 0.84), b=(0.5, 0.7, 0.9))
    pairwise = judge_values(table, ValuesRule(rule="pairwise-range@1"))
    retired = judge_values(table, ValuesRule(rule="all-arms-range@1"))
    assert (pairwise.candidates["a"].outcome, retired.candidates["a"].outcome) == (PASS, FAIL)
    assert retired.candidates["a"].axes["voice"].floor == pytest.approx(0.4)
    assert [warning.split(":")[0] for warning in retired.warnings] == [
        "judged from numbers alone",
        "all-arms-range@1 is retired",
    ]


def test_what_is_missing_is_invalid_and_prevails():
    table = [
        *rows("voice", base=BASE, a=(0.8, 0.8, 0.8), b=(0.8, 0.8, 0.8)),
        *rows("ran_on", base=(0, 0, 0), a=(0,) * 3),
    ]
    found = judge_values(table, ValuesRule(rule="pairwise-range@1"))
    assert (found.candidates["a"].outcome, found.candidates["b"].outcome, found.exit_code) == (PASS, INVALID, 4)
    assert found.candidates["b"].axes["ran_on"].reason == "the table holds no value of this arm"
    no_base = [*rows("voice", base=BASE, a=(0.8, 0.8, 0.8)), *rows("ran_on", a=(0, 0, 0))]
    reason = judge_values(no_base, ValuesRule(rule="pairwise-range@1")).candidates["a"].axes["ran_on"].reason
    assert reason == "base: the table holds no value of this arm"
    one = judge_values(rows("voice", base=(0.9,), a=(0.1,)), ValuesRule(rule="pairwise-range@1"))
    assert one.candidates["a"].axes["voice"].reason == "no floor: 1 seed(s) have no spread"


def test_other_seeds_of_the_same_number_are_a_control_and_a_few_of_them_are_missing_ones():
    own = [row.model_copy(update={"seed": row.seed + 10}) for row in rows("voice", a=(0.80, 0.82, 0.84))]
    mixed = [row.model_copy(update={"seed": row.seed + 1}) for row in rows("voice", a=(0.80, 0.82, 0.84))]
    assert outcome([*rows("voice", base=BASE), *own]) is PASS
    assert outcome([*rows("voice", base=BASE), *mixed]) is INVALID


@pytest.mark.parametrize(
    ("table", "rule", "message"),
    [
        (rows("voice", a=BASE), {}, "the table holds no arm 'base' to compare with; the table holds: a"),
        (rows("voice", base=BASE), {}, "the table holds nothing but 'base'"),
        (rows("ran_on", a=((1, 9),)), {"rule": "max-rate@1"}, "max-rate@1 needs a threshold"),
        (rows("ran_on", a=(0.1,)), {"rule": "max-rate@1", "threshold": 0.1}, "max-rate@1 needs n, the number of texts"),
        (rows("on_beat", a=((1, 9),)), {"rule": "max-rate@1", "threshold": 0.1}, "rates of which higher is worse"),
        (
            rows("ran_on", a=((1, 9),)),
            {"rule": "max-rate@1", "threshold": 0.1, "floor": 0.1},
            "max-rate@1 takes no floor",
        ),
        (
            [*rows("voice", base=BASE, a=BASE), *rows("ran_on", base=(0.1,), a=(0.1,))],
            {"floor": 0.2},
            "a recorded floor belongs to one unit",
        ),
        (rows("voice", base=BASE, a=BASE), {"alpha": 0.1}, "pairwise-range@1 has no alpha"),
        (
            rows("voice", base=BASE, a=BASE),
            {"rule": "pairwise-calibrated@1", "threshold": 2.0},
            "pairwise-calibrated@1 takes no threshold",
        ),
        (rows("ran_on", base=(0.1, 0.2), a=(0.1, 0.2)), {"ceiling": 0.5}, "a ceiling needs distances"),
    ],
)
def test_what_a_rule_cannot_judge_is_refused(table, rule, message):
    with pytest.raises(UsageError) as caught:
        outcome(table, **rule)
    assert message in str(caught.value)


def test_no_span_is_closed_where_the_base_is_as_near_as_the_author():
    table = rows("voice", base=BASE, a=(0.80, 0.82, 0.84))
    assert judge_values(table, ValuesRule(rule="pairwise-range@1", ceiling=0.92)).span_closed == {}
    closed = judge_values(table, ValuesRule(rule="pairwise-range@1", ceiling=0.42)).span_closed
    assert closed == {"a": pytest.approx(0.2)}


table_of = st.lists(
    st.tuples(
        st.sampled_from(["base", "a", "b"]),
        st.integers(1, 3),
        st.sampled_from(sorted(RANGES)),
        st.integers(0, 10),
    ),
    max_size=20,
    unique_by=lambda row: row[:3],
)


@settings(deadline=None, max_examples=200)
@given(
    table_of, st.sampled_from(["pairwise-range@1", "all-arms-range@1", "max-rate@1", "max-ratio@1"]), st.floats(0, 1)
)
def test_a_table_is_judged_or_refused_and_passes_only_whole(found, name, threshold):
    table = [
        SeedValue(arm=arm, seed=seed, axis=axis, value=hits / 10, n=10, hits=hits) for arm, seed, axis, hits in found
    ]
    try:
        verdict = judge_values(table, ValuesRule(rule=name, threshold=threshold))
    except UsageError:
        return
    for arm, candidate in verdict.candidates.items():
        assert candidate.axes.keys() == {row.axis for row in table}
        if candidate.outcome is PASS:
            assert {row.axis for row in table if row.arm == arm} == candidate.axes.keys()
    assert verdict.exit_code == verdict.outcome.exit_code
