"""A plug-in's floor rule, from the gate file to verdict and verification; and what a rule may not be."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from gates.errors import InputError, UsageError
from gates.flow.binding import signatures
from gates.flow.floors import rules_of
from gates.flow.inputs import load_inputs
from gates.judge.floors import FloorRule, plugged
from gates.judge.verdict import judge
from gates.measure.damage import AXES
from gates.records import Outcome
from gates.spec.load import load_gate
from gates.spec.schema import Gate
from tests.flow.conftest import gates
from tests.flow.plugged import install as put
from tests.flow.threaded import Seat, running
from tests.judge.arms import a_gate, an_arm, measured, voice_figures
from tests.small import GATE, small_workspace

CODE = """
import numpy as np
from gates.judge.floors import FloorRule, spread

def lord(base, candidate, others):
    return 0.5 * (spread(base) + spread(candidate)) + sum(float(np.max(other)) for other in others)

LORD = FloorRule("lord@1", lord, {"mean": 2})
STRICT = FloorRule("lord@1", lord, fixed_level=True)
NEWER = FloorRule("lord@2", lord)
BROKEN = FloorRule("lord@1", lambda base, candidate, others: 1 / 0)
NEGATIVE = FloorRule("lord@1", lambda base, candidate, others: lord(base, candidate, others) - 9)
NAN = FloorRule("lord@1", lambda base, candidate, others: lord(base, candidate, others) * np.nan)
FLAT = FloorRule("lord@1", lambda base, candidate, others: base)
PAIRWISE = FloorRule("pairwise-range@1", lord)
NUMBER = 3
"""
VOICE = {"mfw": 300, "words_per_seed": 500, "floor": "lord@1"}


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Install a distribution of one module that offers `NAME = lord_floors:OBJECT`."""

    def install(offers: str, name: str = "lord-floors", version: str = "2.1") -> None:
        put(tmp_path / name, monkeypatch, f"[gates.floors]\n{offers}\n", ("lord_floors", CODE), version)

    monkeypatch.delitem(sys.modules, "lord_floors", raising=False)
    return install


def rules(gate: Gate) -> dict[str, FloorRule]:
    return rules_of(gate)


def test_a_plug_in_judges_voice_and_damage_by_the_two_arms_alone(plug_in) -> None:
    plug_in("lord = lord_floors:LORD")
    gate = a_gate(("a", "b"), voice=VOICE, damage={"ran_on": {"within": "floor", "floor": "lord@1"}})
    arms = {"base": an_arm("base"), "a": an_arm(), "b": an_arm(voice=voice_figures((0.1, 0.5, 0.9, 1.9)))}
    found = judge(gate, measured(arms), rules(gate)).candidates["a"].axes
    # Spreads over seeds: base 0.06, candidate 0.03; of ran-on both 0.1.
    assert found["voice"].floor == pytest.approx(0.045)
    assert found["ran_on"].floor == pytest.approx(0.1)
    assert (found["voice"].rule, found["voice"].outcome) == ("lord@1|mean:2", Outcome.PASS)
    assert signatures(gate, AXES, rules(gate))["voice.floor"] == "lord@1|mean:2"


@pytest.mark.parametrize(
    ("offered", "reason"),
    [
        ("BROKEN", "lord@1 failed: ZeroDivisionError: division by zero"),
        ("NEGATIVE", "lord@1 gave a floor that is no finite number of at least 0"),
        ("NAN", "lord@1 gave a floor that is no finite number of at least 0"),
        ("FLAT", r"lord@1 gave floors of shape (4,) for arms of shape (4,)"),
    ],
)
def test_a_rule_that_gives_no_floor_makes_its_axes_invalid(plug_in, offered: str, reason: str) -> None:
    plug_in(f"lord = lord_floors:{offered}")
    gate = a_gate(voice=VOICE, damage={"ran_on": {"within": "floor", "floor": "lord@1"}, "on_beat": {"margin": 0.15}})
    found = judge(gate, measured(), rules(gate)).candidates["a"]
    assert (found.outcome, found.axes["on_beat"].outcome) == (Outcome.INVALID, Outcome.PASS)
    for axis in ("voice", "ran_on"):
        assert (found.axes[axis].outcome, found.axes[axis].reason) == (Outcome.INVALID, reason)


@pytest.mark.parametrize(
    ("offers", "message"),
    [
        ("", "lord@1: no such floor rule is installed"),
        ("lord = lord_floors:NUMBER", "lord-floors 2.1 offers a int, not a gates.judge.floors.FloorRule"),
        ("lord = lord_floors:NEWER", "lord-floors 2.1 offers 'lord@2', another rule or version"),
        ("lord = lord_floors:MISSING", "lord-floors 2.1 cannot be loaded: AttributeError"),
        ("lord = lord_floors:LORD\npairwise-range = lord_floors:PAIRWISE", "has the name of a built-in one"),
    ],
)
def test_what_a_plug_in_may_not_be(plug_in, offers: str, message: str) -> None:
    plug_in(offers)
    damage = {"ran_on": {"within": "floor"}}
    with pytest.raises(UsageError, match=r"gates\.floors") as refused:
        rules_of(a_gate(voice=VOICE, damage=damage))
    assert message in refused.value.message


def test_a_rule_with_an_error_rate_of_its_own_takes_no_times_floor(plug_in) -> None:
    plug_in("lord = lord_floors:STRICT")
    rules_of(a_gate(voice=VOICE))
    with pytest.raises(UsageError, match=r"lord@1: it states its own error rate and takes no voice\.times_floor"):
        rules_of(a_gate(voice=VOICE | {"times_floor": 2.0}))


def test_two_distributions_may_not_offer_the_same_rule(plug_in) -> None:
    plug_in("lord = lord_floors:LORD")
    plug_in("lord = lord_floors:LORD", "lady-floors")
    with pytest.raises(UsageError, match=r"several distributions offer it: .*floors 2\.1, .*floors 2\.1"):
        rules_of(a_gate(voice=VOICE))


def test_a_gate_file_names_installed_rules_only_and_a_record_any(tmp_path: Path, plug_in) -> None:
    path = small_workspace(tmp_path / "home", tmp_path / "cache", voice=GATE["voice"] | {"floor": "lard@1"})
    with pytest.raises(InputError) as refused:
        load_gate(path)
    assert "voice.floor = 'lard@1': must be `pairwise-range@1` or `pairwise-calibrated@1`" in str(refused.value)
    plug_in("lord = lord_floors:LORD")
    with pytest.raises(InputError, match="or `lord@VERSION`"):
        load_gate(path)
    path.write_text(path.read_text("utf-8").replace("lard", "lord"), "utf-8")
    assert load_gate(path).voice.floor == "lord@1"
    assert load_inputs(path, tmp_path / "cache").rules["lord@1"].signature == "lord@1|mean:2"
    assert Gate.model_validate_json(json.dumps(load_gate(path).as_json())).voice.floor == "lord@1"
    with pytest.raises(ValueError, match="a floor rule is named NAME@VERSION"):
        a_gate(voice=VOICE | {"floor": "Lord"})


def test_a_plug_ins_distribution_is_sealed_and_verify_says_what_is_missing(
    tmp_path: Path, plug_in, monkeypatch: pytest.MonkeyPatch
) -> None:
    plug_in("lord = lord_floors:LORD")
    home = tmp_path / "home"
    monkeypatch.setenv("GATES_CACHE", str(tmp_path / "cache"))
    with running(Seat) as seat:
        gate = small_workspace(
            home, tmp_path / "cache", seat={"base_url": seat.faulty.url}, voice=GATE["voice"] | {"floor": "lord@1"}
        )
        sealed = gates("seal", gate, "--yes", "--json")
        assert sealed.returncode == 0, sealed.stderr
        context = json.loads(Path(json.loads(sealed.stdout)["file"]).read_bytes())["context"]
        assert context["plug_ins"] == {"gates.floors:lord@1": "lord-floors 2.1"}
        shutil.move(tmp_path / "lord-floors/lord_floors-2.1.dist-info", tmp_path / "gone")
        refused = gates("run", gate)
        assert (refused.returncode, "must be `pairwise-range@1`" in refused.stderr) == (2, True)
        newer = tmp_path / "lord-floors/lord_floors-2.2.dist-info"
        shutil.copytree(tmp_path / "gone", newer)
        (newer / "METADATA").write_text("Metadata-Version: 2.1\nName: lord-floors\nVersion: 2.2\n", "utf-8")
        ran = gates("run", gate)
        assert 'plug_ins.gates.floors:lord@1: sealed "lord-floors 2.1", now "lord-floors 2.2"' in ran.stderr
        assert ran.returncode in (0, 1, 3)
    assert gates("verify", home).returncode == 0
    shutil.rmtree(newer)
    verified = gates("verify", home)
    assert verified.returncode == 3
    assert "lord@1: no such floor rule is installed" in verified.stdout
    assert "gates.floors:lord@1 was sealed with lord-floors 2.1, here is not installed" in verified.stdout


def test_a_guarded_rule_works_on_many_gates_at_once() -> None:
    rule = plugged(FloorRule("half@1", lambda base, candidate, others: np.ptp(base, axis=-1) / 2))
    base = np.arange(24.0).reshape(2, 3, 4)
    assert rule.floor(base, base, (base,)).tolist() == [[1.5] * 3] * 2
