"""Verdicts from numbers alone: what decides, and that nothing missing passes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

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


def odds(share):
    return share / (1 - share)


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


def judged(table, **rule):
    (found,) = judge_values(table, ValuesRule(**({"rule": "pairwise-range@1"} | rule))).candidates["a"].axes.values()
    return found


FEW = ("a floor of 3 seeds is a rough one: use 4 or more",)
RATES = {"threshold": 10.0, "rule": "max-ratio@1|level:0.95", "to_decide": "more texts"}


@pytest.mark.parametrize(
    ("table", "rule", "expected"),
    [
        (
            rows("voice", base=BASE, a=(0.80, 0.82, 0.84)),
            {},
            {"value": 0.1, "threshold": 0.04, "floor": 0.04, "times_floor": 2.5, "rule": "pairwise-range@1",
             "reason": "moved +0.100 toward the held-out author; more than 0.040 is required; 2.5× the floor",
             "warnings": FEW},
        ),
        (
            rows("voice", base=BASE, a=(0.80, 0.82, 0.84)),
            {"floor": 0.05, "ceiling": 0.72, "threshold": 1.5},
            {"value": 0.1, "threshold": 0.075, "floor": 0.05, "times_floor": 2.0,
             "rule": "recorded@1|floor:0.05|under:pairwise-range@1",
             "reason": "moved +0.100 toward the held-out author; more than 0.075 is required; 2.0× the floor; "
             "50.0 % of the span to the author's own text"},
        ),
        (
            rows("voice", base=(0.9, 0.9, 0.9), a=(0.8, 0.8, 0.8)),
            {},
            {"value": 0.1, "threshold": 0.0, "floor": 0.0, "rule": "pairwise-range@1", "warnings": FEW,
             "reason": "moved +0.100 toward the held-out author; more than 0.000 is required; "
             "the floor is 0: nothing can exceed it"},
        ),
        (
            rows("on_beat", base=(0.8, 0.8, 0.9), a=(0.6, 0.7, 0.8)),
            {},
            {"value": 2 / 15, "threshold": 0.2, "floor": 0.2, "times_floor": 2 / 3, "rule": "pairwise-range@1",
             "reason": "0.833 to 0.700: harm +0.133, floor 0.200", "warnings": FEW},
        ),
        (
            rows("ran_on", base=((1, 20), (0, 20)), a=((1, 20), (0, 20))),
            {"rule": "max-rate@1", "threshold": 0.1},
            {"value": 0.025, "threshold": 0.1, "low": 1 - 0.95 ** (1 / 40), "high": beta.ppf(0.95, 2, 39),
             "rule": "max-rate@1|level:0.95", "to_decide": "more texts",
             "reason": "1 of 40: 0.025 (95 % limits 0.001 and 0.113), at most 0.100 is allowed"},
        ),
        (
            rows("ran_on", base=((1, 20), (1, 20)), a=((4, 20), (2, 20))),
            {"rule": "max-ratio@1", "threshold": 10},
            # Of 8 hits 6 are its own: the limits of that share as odds.
            RATES | {"value": 3.0, "low": odds(beta.ppf(0.05, 6, 3)), "high": odds(beta.ppf(0.95, 7, 2)),
                     "reason": "6 of 40 against 2 of 40: 3.0× (95 % limits 0.7 and 20.6), at most 10.0× is allowed"},
        ),
        (
            rows("ran_on", base=((0, 20), (0, 20)), a=((4, 20), (2, 20))),
            {"rule": "max-ratio@1", "threshold": 10},
            RATES | {"low": odds(0.05 ** (1 / 6)), "reason": "6 of 40 against 0 of 40: no ratio (95 % limits 1.5 and "
                     "no upper limit), at most 10.0× is allowed"},
        ),
        (
            rows("ran_on", base=((0, 20), (0, 20)), a=((0, 20), (0, 20))),
            {"rule": "max-ratio@1", "threshold": 10},
            RATES | {"reason": "0 of 40 against 0 of 40: without any hit the ratio is undefined"},
        ),
        (
            rows("voice", base=BASE, a=(0.8, 0.82)),
            {"rule": "pairwise-calibrated@1"},
            {"reason": "seeds [1, 2] against [1, 2, 3] of the base: some are missing"},
        ),
    ],
)  # fmt: skip
def test_every_figure_of_an_axis(table, rule, expected):
    found = judged(table, **rule).as_json()
    figures = {"value", "threshold", "low", "high", "floor", "times_floor"}
    assert {name: found.get(name) for name in figures} == {
        name: None if expected.get(name) is None else pytest.approx(expected[name]) for name in figures
    }
    words = {"rule": "", "reason": "", "to_decide": ""} | {k: v for k, v in expected.items() if k not in figures}
    assert {name: found[name] for name in ("rule", "reason", "to_decide")} == {
        name: words[name] for name in ("rule", "reason", "to_decide")
    }
    assert tuple(found["warnings"]) == expected.get("warnings", ())
