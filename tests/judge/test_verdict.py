"""The verdict: what makes a candidate pass, and that nothing missing ever does."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.errors import ExitCode, RecordError
from gates.judge.verdict import Judged, Verdict, judge
from gates.measure.figures import Leak, Measurements, Source, Unmeasured, ValidityFigures
from gates.records import Outcome, canonical
from tests.judge.arms import (
    BASE_DISTANCES,
    SEEDS,
    a_gate,
    an_arm,
    damage_figures,
    measured,
    memorisation_figures,
    voice_figures,
)

PASS, FAIL, INCONCLUSIVE, INVALID = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.INVALID


def counts(**changes) -> ValidityFigures:
    full = {"expected": 120, "present": 120, "errors": 0, "empty": 0, "repeated_seeds": 0, "prompt_mismatches": 0}
    return ValidityFigures(**(full | changes))


def test_a_sound_candidate_passes_on_every_axis():
    run = measured()
    verdict = judge(a_gate(), run)
    assert (verdict.outcome, verdict.exit_code, verdict.undecided, verdict.warnings) == (PASS, 0, (), ())
    assert {name: axis.outcome for name, axis in verdict.candidates["a"].axes.items()} == dict.fromkeys(
        ("validity", "voice", "memorisation", "ran_on", "on_beat"), PASS
    )
    assert (verdict.seal, verdict.measurements_sha256) == (run.seal, run.digest())


def test_a_verdict_is_a_record_that_reads_back_and_comes_out_the_same_again():
    verdict = judge(a_gate(), measured())
    assert Verdict.parse(canonical(verdict.as_json()), where="verdict.json") == verdict
    assert judge(a_gate(), measured()).digest() == verdict.digest()
    assert verdict.as_json()["schema"] == "gates.verdict/1"


EARLIER = {
    "the same": {},
    "another voice": {"voice": {"mfw": 300, "words_per_seed": 500, "times_floor": 9.0}},
    "another margin": {"damage": {"ran_on": {"within": "floor"}, "on_beat": {"margin": 0.01}}},
    "another decision": {"damage": {"ran_on": {"within": "floor"}, "on_beat": {"margin": 0.15, "decide": "point"}}},
    "a floor": {"damage": {"ran_on": {"margin": 0.15}, "on_beat": {"within": "floor"}}},
    "fewer axes": {"damage": {"ran_on": {"within": "floor"}}},
    "other candidates": {"candidates": ("b",)},
    "other roles": {"candidates": ("b",), "controls": ("a",)},
    "other seeds": {"sampling": {"seeds": [11, 12, 13, 14], "temperature": 0.9, "top_p": 0.95, "max_tokens": 300}},
}


@pytest.mark.parametrize("other", EARLIER.values(), ids=EARLIER)
def test_what_another_gate_said_before_changes_no_word_of_a_verdict(other):
    worse = {"ran_on": damage_figures((0.2, 0.3, 0.2, 0.3)), "on_beat": damage_figures((0.7,) * 4, "lower")}
    run = measured({"base": an_arm("base"), "a": an_arm(damage=worse), "c": an_arm("control", seeds=(11, 12, 13, 14))})
    gate, before = a_gate(controls=("c",)), a_gate(**({"controls": ("c",)} | other))
    earlier = Judged(before, judge(before, run))
    assert judge(gate, run, earlier=earlier) == judge(gate, run)


def test_a_floor_is_judged_again():
    gate, run = a_gate(), measured()
    verdict = judge(gate, run)
    said = verdict.candidates["a"].axes["ran_on"].model_copy(update={"reason": "by a rule of the same name"})
    other = verdict.candidates["a"].model_copy(update={"axes": {**verdict.candidates["a"].axes, "ran_on": said}})
    assert judge(gate, run, earlier=Judged(gate, verdict.model_copy(update={"candidates": {"a": other}}))) == verdict


def test_a_margin_that_another_gate_has_judged_is_not_judged_again(monkeypatch):
    gate = a_gate(controls=("c",), damage={"ran_on": {"margin": 0.15}, "on_beat": {"margin": 0.15}})
    run = measured({"base": an_arm("base"), "a": an_arm(), "c": an_arm("control", seeds=(11, 12, 13, 14))})
    earlier = Judged(gate, judge(gate, run))
    monkeypatch.setattr("gates.judge.verdict.damage", None)
    assert judge(gate, run, earlier=earlier) == earlier.verdict


@pytest.mark.parametrize(
    ("change", "outcome", "axis"),
    [
        ({"voice": voice_figures((0.93, 0.94, 0.95, 0.96))}, FAIL, "voice"),
        ({"memorisation": memorisation_figures(60)}, FAIL, "memorisation"),
        ({"memorisation": memorisation_figures(10)}, INCONCLUSIVE, "memorisation"),
        ({"memorisation": memorisation_figures(2, longest=13)}, FAIL, "memorisation"),
        ({"memorisation": memorisation_figures(2, heldout_hits=9)}, INVALID, "voice"),
        ({"validity": counts(present=119)}, INVALID, "validity"),
        ({"validity": counts(prompt_mismatches=1)}, INVALID, "validity"),
        ({"seeds": (1, 2, 3, 5)}, INVALID, "validity"),
        ({"role": "control"}, INVALID, "validity"),
    ],
)
def test_the_worst_axis_decides_the_candidate_and_the_exit_code(change, outcome, axis):
    verdict = judge(a_gate(), measured({"base": an_arm("base"), "a": an_arm(**change)}))
    found = verdict.candidates["a"]
    assert (verdict.outcome, found.outcome, found.axes[axis].outcome) == (outcome, outcome, outcome)
    assert verdict.exit_code == ExitCode[outcome.name]
    assert [name for name, other in found.axes.items() if other.outcome is not PASS] == [axis]


def test_an_open_axis_says_what_would_decide_it():
    verdict = judge(a_gate(), measured({"base": an_arm("base"), "a": an_arm(memorisation=memorisation_figures(10))}))
    (sentence,) = verdict.undecided
    assert sentence.startswith(
        "a, memorisation: 10 of 120 generations hold 8 words in a row of the training text: 0.083"
    )
    assert sentence.endswith("generations at this rate would decide; there are 120")


def test_the_worst_candidate_decides_the_run():
    arms = {"base": an_arm("base"), "a": an_arm(), "b": an_arm(memorisation=memorisation_figures(60))}
    verdict = judge(a_gate(("a", "b")), measured(arms))
    assert (verdict.candidates["a"].outcome, verdict.candidates["b"].outcome) == (PASS, FAIL)
    assert (verdict.outcome, verdict.exit_code) == (FAIL, 1)


def test_a_control_is_shown_and_decides_nothing():
    again = an_arm("control", seeds=(11, 12, 13, 14), voice=voice_figures((0.91, 0.92, 0.93, 0.95), specificity=0.0))
    verdict = judge(a_gate(controls=("again",)), measured({"base": an_arm("base"), "a": an_arm(), "again": again}))
    assert verdict.outcome is PASS
    assert verdict.candidates.keys() == {"a"}
    shown = verdict.controls["again"]
    assert (shown.judged, shown.outcome, shown.axes["voice"].outcome) == (False, FAIL, FAIL)


LEAK = Leak(train=Source(file="t.txt", start=5), heldout=Source(file="h.txt", start=9), length=25, sha256="cd" * 32)


@pytest.mark.parametrize(
    ("arms", "leaks", "message"),
    [
        ({"a": an_arm()}, (), "base: no measurements of this arm"),
        (
            {"base": an_arm("base", validity=counts(present=119)), "a": an_arm()},
            (),
            "base: 1 of 120 generations missing",
        ),
        (
            {"base": an_arm("base", validity=counts(repeated_seeds=90)), "a": an_arm()},
            (),
            "base: 90 of 90 texts repeat",
        ),
        ({"base": an_arm("base", seeds=(1, 2, 3, 9)), "a": an_arm()}, (), "base: measured with seeds [1, 2, 3, 9]"),
        ({"base": an_arm("base", memorisation=None), "a": an_arm()}, (), "base: memorisation was not measured"),
        ({"base": an_arm("base", damage={}), "a": an_arm()}, (), "base: ran_on was not measured; base: on_beat was"),
        ({"base": an_arm(), "a": an_arm()}, (), "base: measured as candidate, the gate names it a base"),
        ({"base": an_arm("base"), "a": an_arm(), "z": an_arm()}, (), "z: measured, but no arm of this gate"),
        (
            {"base": an_arm("base"), "a": an_arm()},
            (LEAK,),
            "25 words of t.txt (word 5) stand in held-out h.txt (word 9)",
        ),
    ],
)
def test_trouble_with_base_texts_or_arms_makes_every_candidate_invalid(arms, leaks, message):
    if "b" not in arms:
        arms = arms | {"b": an_arm()}
    verdict = judge(a_gate(("a", "b")), measured(arms, leaks))
    assert (verdict.outcome, verdict.exit_code) == (INVALID, 4)
    for name in ("a", "b"):
        assert verdict.candidates[name].outcome is INVALID
        assert message in verdict.candidates[name].axes["run"].reason
    assert any(message in sentence for sentence in verdict.undecided)


def test_a_missing_control_makes_every_candidate_invalid():
    verdict = judge(a_gate(controls=("again",)), measured())
    assert verdict.candidates["a"].axes["run"].reason == "control again: no measurements"
    assert verdict.outcome is INVALID


def test_an_accepted_leak_is_a_warning():
    gate = a_gate(validity={"accept_leaks": [LEAK.sha256]})
    verdict = judge(gate, measured(leaks=(LEAK,)))
    assert verdict.outcome is PASS
    assert verdict.warnings == ("1 runs of words shared by train and held-out text, accepted by the gate",)


def test_imperfections_of_the_base_within_limits_are_told():
    base = an_arm("base", validity=counts(empty=1))
    verdict = judge(a_gate(validity={"max_empty": 0.05}), measured({"base": base, "a": an_arm()}))
    assert verdict.outcome is PASS
    assert verdict.warnings == ("base: 1 of 120 generations are empty, within the gate's limit",)


@pytest.mark.parametrize("gone", [None, Unmeasured(unmeasured="the measure failed")])
@pytest.mark.parametrize("axis", ["voice", "memorisation", "ran_on", "on_beat"])
def test_an_axis_that_was_not_measured_is_invalid(axis, gone):
    arm = an_arm()
    if axis in ("voice", "memorisation"):
        arm = arm.model_copy(update={axis: gone})
    else:
        rest = {name: figures for name, figures in arm.damage.items() if name != axis}
        arm = arm.model_copy(update={"damage": rest | ({axis: gone} if gone else {})})
    verdict = judge(a_gate(), measured({"base": an_arm("base"), "a": arm}))
    assert verdict.candidates["a"].axes[axis].outcome is INVALID
    assert verdict.outcome is INVALID


def test_a_candidate_that_is_missing_is_invalid_alone():
    verdict = judge(a_gate(("a", "b")), measured())
    assert (verdict.candidates["a"].outcome, verdict.candidates["b"].outcome) == (PASS, INVALID)
    assert verdict.candidates["b"].axes["validity"].reason == "no measurements of this arm"
    assert verdict.outcome is INVALID


DESCRIPTIVE = {"schema", "notes", "imposters", "i", "influence", "leaks"}
"""Parts that no decision rests on: defaults of the schema, and the moves per imposter or prompt that only inform."""


def places(document, path=()):
    """The path of every key and list item of a JSON document."""
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def without(document, path):
    smaller = copy.deepcopy(document)
    holder = smaller
    for key in path[:-1]:
        holder = holder[key]
    del holder[path[-1]]
    return smaller


def test_no_measurement_with_a_part_deleted_passes():
    """Each key and each list item in turn: the document no longer reads, or the verdict is not PASS."""
    document = measured().as_json()
    read = 0
    for path in places(document):
        if DESCRIPTIVE & set(path) or (path[-1] not in (0, 1) and isinstance(path[-1], int)):
            continue
        try:
            smaller = Measurements.parse(canonical(without(document, path)), where="measurements.json")
        except RecordError:
            continue
        read += 1
        assert judge(a_gate(), smaller).outcome is INVALID, path
    assert read > 40


distances = st.lists(st.integers(60, 100).map(lambda d: d / 100), min_size=len(SEEDS), max_size=len(SEEDS))
candidate = st.builds(
    lambda d, hits, ran, spec: an_arm(
        voice=voice_figures(tuple(d), BASE_DISTANCES, specificity=spec),
        memorisation=memorisation_figures(hits),
        damage={
            "ran_on": damage_figures((ran, 0.2, 0.1, 0.3)),
            "on_beat": damage_figures((0.8, 0.7, 0.9, ran), "lower", name="on_beat@1"),
        },
        validity=counts(empty=hits // 12),
    ),
    distances,
    st.integers(0, 24),
    st.sampled_from([0.0, 0.2, 0.5]),
    st.sampled_from([0.0, 0.1, None]),
)


@settings(deadline=None, max_examples=12)
@given(candidate, st.dictionaries(st.sampled_from(["b", "c", "zz", "A"]), candidate, max_size=2), st.booleans())
def test_a_candidate_is_judged_alike_whoever_else_is_there(mine, others, first):
    base = an_arm("base")
    alone = judge(a_gate(("a",)), measured({"base": base, "a": mine})).candidates["a"]
    names = ("a", *others) if first else (*others, "a")
    among = judge(a_gate(names), measured({"base": base, **others, "a": mine})).candidates["a"]
    renamed = judge(a_gate(("other-name",)), measured({"base": base, "other-name": mine})).candidates["other-name"]
    missing = judge(a_gate((*names, "gone")), measured({"base": base, **others, "a": mine})).candidates["a"]
    assert alone == among == renamed == missing
