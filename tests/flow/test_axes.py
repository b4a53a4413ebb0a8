"""A plug-in's axis, from the gate file to the verdict; and what an axis may not be."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gates.errors import InputError, UsageError
from gates.flow.binding import signatures
from gates.flow.inputs import Inputs, load_inputs
from gates.flow.measuring import measure
from gates.judge.verdict import Verdict, judge
from gates.measure.figures import Measurements, Unmeasured
from gates.records import Generation, Outcome, Usage
from gates.spec.load import load_gate
from gates.spec.schema import Gate
from tests.flow.plugged import install as put
from tests.judge.arms import HASH
from tests.small import BEATS, prose, small_workspace

ALLOWED = "allowed here: ran_on, on_beat, empty, repetition, echo, template_leak, garble, name_leak, judged_on_beat"

CODE = '''
from gates.measure.damage import Axis, each, figures

def please(arm):
    """`polite@1`: share of the texts that say please; lower is worse."""
    return figures("polite@1|word:please", "lower", each(arm, lambda text, prompt: "please" in text.split()))

def broken(arm):
    raise RuntimeError("out of manners")

POLITE = Axis("polite@1|word:please", "lower", please)
BROKEN = Axis("polite@1", "lower", broken)
FLAT = Axis("polite@1", "lower", lambda arm: figures("polite@1", "lower", [[1.0] * len(arm.beats)]))
MANY = Axis("polite@1", "lower", please, fewest_beats=13)
RUDE = Axis("rude@1", "higher", please)
'''


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Install a distribution of one module that offers `NAME = polite_axes:OBJECT`."""

    def install(offers: str, name: str = "polite-axes") -> None:
        put(tmp_path / name, monkeypatch, f"[gates.axes]\n{offers}\n", ("polite_axes", CODE), "2.1")

    monkeypatch.delitem(sys.modules, "polite_axes", raising=False)
    return install


def gate_of(tmp_path: Path, **axes: dict) -> Path:
    damage = {"ran_on": {"margin": 0.5}, **(axes or {"polite": {"margin": 0.5}})}
    return small_workspace(tmp_path / "home", tmp_path / "cache", damage=damage)


def inputs_of(tmp_path: Path, **axes: dict) -> Inputs:
    return load_inputs(gate_of(tmp_path, **axes), tmp_path / "cache")


def generation(arm: str, prompt: int, seed: int, says: str) -> Generation:
    text = f"{says} {prose(100 * seed + prompt + len(arm), 40, 0.0 if arm == 'base' else 0.02)}"
    return Generation(
        seal=HASH, arm=arm, prompt=prompt, seed=seed, seat="none", request={}, text=text, finish_reason="stop",
        usage=Usage(prompt_tokens=9, completion_tokens=36), model=arm, fingerprint=None, prompt_sha256=None,
        started="t", latency_s=0.0, attempts=1, error=None,
    )  # fmt: skip


def run(inputs: Inputs, base: str, candidate: str) -> tuple[Measurements, Verdict]:
    says = {"base": base, "one": candidate}
    answers = [generation(arm, p, s, says[arm]) for arm in says for s in (1, 2) for p in range(len(BEATS))]
    measured = measure(inputs, HASH, answers, HASH)
    return measured, judge(inputs.gate, measured)


@pytest.mark.parametrize(
    ("base", "candidate", "outcome", "reason"),
    [
        ("please", "please", Outcome.PASS, "1.000 to 1.000 (+0.000, worse is lower)"),
        ("please", "now", Outcome.FAIL, "1.000 to 0.000 (-1.000, worse is lower)"),
        ("now", "please", Outcome.PASS, "0.000 to 1.000 (+1.000, worse is lower)"),
    ],
)
def test_a_plug_in_is_sealed_measured_and_judged(
    tmp_path: Path, plug_in, base: str, candidate: str, outcome: Outcome, reason: str
) -> None:
    plug_in("polite = polite_axes:POLITE")
    inputs = inputs_of(tmp_path)
    assert signatures(inputs.gate, inputs.axes)["polite"] == "polite@1|word:please|worse:lower"
    measured, verdict = run(inputs, base, candidate)
    figures = measured.arms["one"].damage["polite"]
    assert (figures.signature, figures.worse) == ("polite@1|word:please", "lower")
    axis = verdict.candidates["one"].axes["polite"]
    assert (axis.axis, axis.outcome, axis.signature) == ("polite", outcome, "polite@1|word:please")
    assert axis.reason.startswith(reason)


@pytest.mark.parametrize(
    ("offered", "reason"),
    [
        ("BROKEN", "polite@1 failed: RuntimeError: out of manners"),
        ("FLAT", "polite@1 failed: it gave 12 values in rows of [12], for generations in rows of [12, 12]"),
    ],
)
def test_a_plug_in_that_fails_makes_the_run_invalid(tmp_path: Path, plug_in, offered: str, reason: str) -> None:
    plug_in(f"polite = polite_axes:{offered}")
    measured, verdict = run(inputs_of(tmp_path), "please", "please")
    assert measured.arms["one"].damage["polite"] == Unmeasured(unmeasured=reason)
    assert verdict.candidates["one"].outcome is Outcome.INVALID
    assert verdict.candidates["one"].axes["polite"].outcome is Outcome.INVALID
    assert verdict.exit_code == 4


def test_an_axis_that_is_not_installed_is_refused_with_its_line_and_a_suggestion(tmp_path: Path, plug_in) -> None:
    path = gate_of(tmp_path, polit={"margin": 0.5}, ranon={"margin": 0.5}, zzz={"margin": 0.5})
    with pytest.raises(InputError) as caught:
        load_gate(path)
    assert [(problem.path, problem.suggestion) for problem in caught.value.problems] == [
        ("damage.polit", ALLOWED),
        ("damage.ranon", "did you mean `ran_on`?"),
        ("damage.zzz", ALLOWED),
    ]
    plug_in("polite = polite_axes:POLITE")
    with pytest.raises(InputError) as caught:
        load_gate(path)
    assert caught.value.problems[0].suggestion == "did you mean `polite`?"


def test_a_record_of_an_axis_that_is_no_longer_installed_can_be_read(tmp_path: Path, plug_in) -> None:
    plug_in("polite = polite_axes:POLITE")
    gate = load_gate(gate_of(tmp_path))
    unknown = gate.as_json()
    unknown["damage"]["gone"] = unknown["damage"].pop("polite")
    read = Gate.model_validate(unknown, strict=False)
    assert list(read.damage.named()) == ["ran_on", "gone"]


@pytest.mark.parametrize(
    ("offers", "message"),
    [
        ("polite = no_such_module:POLITE", "polite-axes 2.1 cannot be loaded: ModuleNotFoundError: No module"),
        ("polite = polite_axes:NOTHING", "damage.polite: polite-axes 2.1 cannot be loaded: AttributeError: "),
        ("polite = polite_axes:please", "polite-axes 2.1 offers a function, not a gates.measure.damage.Axis"),
        ("polite = polite_axes:RUDE", "polite-axes 2.1 offers 'rude@1', worse 'higher'; the signature must"),
        ("polite = polite_axes:MANY", "damage.polite needs at least 13 beats, beats.txt has 12"),
        (
            "polite = polite_axes:POLITE\nran_on = polite_axes:RUDE",
            "damage.ran_on: polite-axes 2.1 offers an axis that has the name of a built-in one",
        ),
    ],
)
def test_what_a_plug_in_may_not_be(tmp_path: Path, plug_in, offers: str, message: str) -> None:
    plug_in(offers)
    with pytest.raises(UsageError) as caught:
        inputs_of(tmp_path)
    assert message in caught.value.message


def test_two_distributions_may_not_offer_the_same_axis(tmp_path: Path, plug_in) -> None:
    plug_in("polite = polite_axes:POLITE")
    plug_in("polite = polite_axes:POLITE", name="other-axes")
    with pytest.raises(UsageError, match=r"damage\.polite: several distributions offer it: \S+ 2\.1, \S+ 2\.1"):
        inputs_of(tmp_path)


@pytest.mark.parametrize("name", ["voice", "memorisation", "validity", "run", "Rude", "so-so"])
def test_an_axis_may_not_hide_something_else(tmp_path: Path, plug_in, name: str) -> None:
    plug_in(f"{name} = polite_axes:POLITE")
    with pytest.raises(InputError, match=f"damage.{name}: an axis needs a name of lower-case letters"):
        load_gate(gate_of(tmp_path, **{name: {"margin": 0.5}}))
