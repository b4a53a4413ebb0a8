"""Which floor rules a new gate may name, and how they are bound."""

import pytest

from gates.errors import UsageError
from gates.flow.axes import axes_of
from gates.flow.binding import signatures
from gates.flow.earlier import Asked
from gates.flow.planning import operating_of, refuse_retired
from tests.judge.arms import a_gate
from tests.small import BEATS

VOICE = {"mfw": 300, "words_per_seed": 500}


def test_rules_are_bound_with_their_parameters():
    damage = {"ran_on": {"within": "floor", "floor": "pairwise-calibrated@1", "alpha": 0.1}}
    gate = a_gate(voice={**VOICE, "floor": "pairwise-calibrated@1"}, damage=damage)
    bound = signatures(gate, axes_of(gate))
    assert bound["voice.floor"] == "pairwise-calibrated@1|alpha:0.025"
    assert bound["ran_on.floor"] == "pairwise-calibrated@1|alpha:0.1"
    assert signatures(a_gate(), axes_of(a_gate()))["voice.floor"] == "pairwise-range@1"


def test_an_alpha_that_is_not_given_is_not_written_so_that_older_gates_keep_their_hash():
    assert "alpha" not in a_gate(voice=VOICE).as_json()["voice"]
    given = {**VOICE, "floor": "pairwise-calibrated@1", "alpha": 0.05}
    assert a_gate(voice=given).as_json()["voice"]["alpha"] == 0.05
    assert a_gate(voice=given).digest() != a_gate(voice={**given, "alpha": 0.06}).digest()


def test_a_retired_rule_is_refused_with_every_place_that_names_it():
    refuse_retired(a_gate())
    damage = {"ran_on": {"within": "floor", "floor": "all-arms-range@1"}}
    with pytest.raises(UsageError, match=r"voice\.floor, damage\.ran_on\.floor: all-arms-range@1 is retired"):
        refuse_retired(a_gate(voice={**VOICE, "floor": "all-arms-range@1"}, damage=damage))


def test_power_is_of_the_gates_own_rule(tmp_path):
    gate = a_gate(voice={**VOICE, "floor": "pairwise-calibrated@1", "alpha": 0.2})
    calibrated = operating_of(Asked(gate, BEATS, tmp_path))
    assert calibrated.voice.false_pass == pytest.approx(0.2, abs=4 * calibrated.voice.false_pass_error)
    assert operating_of(Asked(a_gate(), BEATS, tmp_path)).voice.false_pass < 0.01
