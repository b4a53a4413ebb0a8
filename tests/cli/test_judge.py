"""The house cases, re-told by `gates judge` from the figures that are left of them, and its manners as a command."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.flow.conftest import gates

SHAPE = np.array([-0.5, -0.1, 0.0, 0.1, 0.5])
BASE = 0.900


def voice(**arms: tuple[float, float]) -> str:
    """A table of five seeds an arm, from each arm's delta_cb and its range over seeds."""
    lines = ["arm,seed,axis,value"]
    for arm, (delta, width) in arms.items():
        lines += [f"{arm},{seed},voice,{BASE - delta + width * at:.4f}" for seed, at in enumerate(SHAPE, 1)]
    return "\n".join(lines)


BRONTE = voice(base=(0.0, 0.060), ckpt475=(0.193, 0.091), ckpt925=(0.210, 0.251))
# The base's range is the floor that 0.413 exceeds 6.4 times: 0.0645; 1750 lies 0.072 nearer to the base.
HEMINGWAY = voice(base=(0.0, 0.0645), ckpt850=(0.413, 0.050), ckpt1750=(0.341, 0.113))


def judged(folder: Path, table: str, *options: object, code: int) -> dict:
    path = folder / "values.csv"
    path.write_text(table, "utf-8")
    ended = gates("judge", path, *options, "--json")
    assert (ended.returncode, ended.stderr) == (code, "")
    return json.loads(ended.stdout)


def said(document: dict, arm: str, axis: str = "voice") -> dict:
    return document["candidates"][arm]["axes"][axis]


def test_bronte_475_passes_at_twice_its_pairwise_floor_and_925_fails_on_its_own_spread(tmp_path):
    found = judged(tmp_path, BRONTE, "--rule", "pairwise-range@1", code=1)
    first, second = said(found, "ckpt475"), said(found, "ckpt925")
    assert (first["outcome"], round(first["value"], 3), round(first["floor"], 3)) == ("PASS", 0.193, 0.091)
    assert (second["outcome"], round(second["value"], 3), round(second["floor"], 3)) == ("FAIL", 0.210, 0.251)
    assert round(first["times_floor"], 1) == 2.1


def test_bronte_475_fails_under_the_retired_rule_for_what_925_did(tmp_path):
    found = judged(tmp_path, BRONTE, "--rule", "all-arms-range@1", code=1)
    for arm in ("ckpt475", "ckpt925"):
        assert (said(found, arm)["outcome"], round(said(found, arm)["floor"], 3)) == ("FAIL", 0.251)
    assert any("retired" in warning for warning in found["warnings"])
    alone = "\n".join(line for line in BRONTE.split("\n") if not line.startswith("ckpt925"))
    assert judged(tmp_path, alone, "--rule", "all-arms-range@1", code=0)["outcome"] == "PASS"


def test_hemingway_850_clears_both_floors_and_closes_its_share_of_the_span(tmp_path):
    # 73.8 % of the span: the author's own text lies 0.413 / 0.738 = 0.5596 below the base.
    ceiling = BASE - 0.413 / 0.738
    found = judged(tmp_path, HEMINGWAY, "--rule", "pairwise-range@1", "--ceiling", ceiling, code=0)
    own = said(found, "ckpt850")
    assert (own["outcome"], round(own["value"], 3), round(own["times_floor"], 1)) == ("PASS", 0.413, 6.4)
    assert round(100 * found["span_closed"]["ckpt850"], 1) == 73.8
    assert own["reason"].endswith("6.4× the floor; 73.8 % of the span to the author's own text")
    all_arms = said(judged(tmp_path, HEMINGWAY, "--rule", "all-arms-range@1", code=0), "ckpt850")
    assert (all_arms["outcome"], round(all_arms["floor"], 3)) == ("PASS", 0.113)


def test_hemingway_850_and_1750_lie_inside_the_floor_of_the_two(tmp_path):
    found = judged(tmp_path, HEMINGWAY, "--rule", "pairwise-range@1", "--base", "ckpt1750", code=1)
    own = said(found, "ckpt850")
    assert (own["outcome"], round(own["value"], 3), round(own["floor"], 3)) == ("FAIL", 0.072, 0.113)


def test_hemingway_damage_lies_inside_the_recorded_floor(tmp_path):
    table = (
        "arm,seed,axis,value\nbase,1,ran_on,0.00\nckpt850,1,ran_on,0.08\nbase,1,on_beat,0.80\nckpt850,1,on_beat,0.66\n"
    )
    found = judged(tmp_path, table, "--rule", "pairwise-range@1", "--floor", 0.217, code=0)
    for axis, harm in (("ran_on", 0.08), ("on_beat", 0.14)):
        own = said(found, "ckpt850", axis)
        assert (own["outcome"], round(own["value"], 9), own["floor"]) == ("PASS", harm, 0.217)
        assert own["rule"] == "recorded@1|floor:0.217|under:pairwise-range@1"
    assert judged(tmp_path, table, "--rule", "pairwise-range@1", "--floor", 0.13, code=1)["outcome"] == "FAIL"


HITS = """\
arm,seed,axis,value,n
ckpt850,1,memorisation,0.07,100
base,1,memorisation,0.00,100
self-collision,1,memorisation,0.01,100
"""


def test_hemingway_memorises_seven_times_as_much_as_the_author_collides(tmp_path):
    rule = ("--rule", "max-ratio@1", "--threshold", 10)
    own = said(judged(tmp_path, HITS, *rule, "--base", "self-collision", code=3), "ckpt850", "memorisation")
    assert (round(own["value"], 9), own["outcome"]) == (7.0, "INCONCLUSIVE")
    assert own["low"] < 7 < own["high"]
    against_base = said(judged(tmp_path, HITS, *rule, code=3), "ckpt850", "memorisation")
    assert (against_base["value"], against_base["high"]) == (None, None)
    assert against_base["reason"].startswith("7 of 100 against 0 of 100: no ratio (95 % limits")
    rate = said(judged(tmp_path, HITS, "--rule", "max-rate@1", "--threshold", 0.15, code=0), "ckpt850", "memorisation")
    assert (rate["value"], rate["outcome"]) == (0.07, "PASS")


def test_yarros_memorises_more_than_its_control_but_seeds_could_do_that(tmp_path):
    table = "arm,seed,axis,value,n\nlv-yarros,1,memorisation,0.10,100\ncontrol,1,memorisation,0.07,100\n"
    found = judged(tmp_path, table, "--rule", "max-ratio@1", "--threshold", 2, "--base", "control", code=3)
    own = said(found, "lv-yarros", "memorisation")
    assert round(own["value"], 2) == 1.43
    assert own["low"] < 1 < own["high"]


def test_the_terminal_shows_verdicts_reasons_and_that_only_numbers_were_judged(tmp_path):
    path = tmp_path / "bronte.csv"
    path.write_text(BRONTE, "utf-8")
    ended = gates("judge", path, "--rule", "pairwise-range@1")
    assert (ended.returncode, ended.stderr) == (1, "")
    assert "bronte.csv under pairwise-range@1" in ended.stdout
    assert "✔ PASS" in ended.stdout
    assert "✘ FAIL" in ended.stdout
    assert "judged from numbers alone: no seal and no generations stand behind them" in ended.stdout
    assert "ckpt475, voice: moved +0.193 toward the held-out author; more than 0.091 is required" in ended.stdout


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ("arm,seed,axis,value\na,1,voise,0.9\n", (), "values.csv:2: axis = 'voise': must be one of: voice, "),
        ("arm,seed,axis,value\na,1,voice,0.9\n", (), "the table holds no arm 'base' to compare with"),
        (BRONTE, ("--floor", "nan"), "Invalid value for '--floor': a number is needed"),
        (BRONTE, ("--ceiling", "3"), "Invalid value for '--ceiling'"),
        (BRONTE, ("--rule", "mean@1"), "Invalid value for '--rule'"),
    ],
)
def test_mistakes_end_in_one_message_and_exit_code_2(tmp_path, table, options, message):
    path = tmp_path / "values.csv"
    path.write_text(table, "utf-8")
    ended = gates("judge", path, "--rule", "pairwise-range@1", *options, "--json")
    assert ended.returncode == 2
    assert message in ended.stderr
    assert message in json.loads(ended.stdout)["error"] or "Invalid value" in message
    assert "Traceback" not in ended.stderr
