"""`gates ci`: a verdict as JUnit, annotations and summary; only PASS is green, and no text commands the runner."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml
from markdown_it import MarkdownIt

from gates.judge.axes import AxisVerdict
from gates.judge.verdict import CandidateVerdict, Verdict
from gates.records import Outcome
from gates.report.github import step_summary, workflow_commands
from gates.report.junit import junit
from tests.finished import TWO, finished_run, two_voices
from tests.flow.conftest import gates
from tests.judge.arms import HASH
from tests.report.test_markdown import sealed

HOSTILE = "a%b\r\n::error::owned\n]]> <x> & \x1b[31m, file=x: \x00 | `c` <script>"


def a_verdict(text: str = "because") -> Verdict:
    def axis(name: str, outcome: Outcome) -> AxisVerdict:
        return AxisVerdict(axis=name, outcome=outcome, value=0.5, threshold=0.25, reason=text, to_decide="more texts")

    good = {"voice": axis("voice", Outcome.PASS), "ran_on": axis("ran_on", Outcome.PASS)}
    bad = {
        "voice": axis("voice", Outcome.INVALID),
        "memorisation": axis("memorisation", Outcome.INCONCLUSIVE),
        "ran_on": axis("ran_on", Outcome.FAIL),
    }
    return Verdict(
        seal=HASH,
        measurements_sha256=HASH,
        outcome=Outcome.INVALID,
        exit_code=4,
        candidates={
            "good": CandidateVerdict(outcome=Outcome.PASS, axes=good),
            text if text != "because" else "bad": CandidateVerdict(outcome=Outcome.INVALID, axes=bad),
        },
        controls={},
        undecided=(),
        warnings=(),
    )


def test_junit_has_a_case_per_candidate_and_axis_and_only_pass_is_green() -> None:
    suites = ET.fromstring(junit("demo", 3, a_verdict(), seconds=61.5))
    assert suites.attrib == {"name": "demo 003", "time": "61.500", "tests": "5", "failures": "2", "errors": "1"}
    assert [suite.attrib for suite in suites] == [
        {"name": "demo 003 good", "tests": "2", "failures": "0", "errors": "0"},
        {"name": "demo 003 bad", "tests": "3", "failures": "2", "errors": "1"},
    ]
    found = {
        (case.get("classname"), case.get("name")): [(part.tag, part.get("type")) for part in case]
        for case in suites.iter("testcase")
    }
    out = ("system-out", None)
    assert found == {
        ("demo.good", "voice"): [out],
        ("demo.good", "ran_on"): [out],
        ("demo.bad", "voice"): [("error", "INVALID"), out],
        ("demo.bad", "memorisation"): [("failure", "INCONCLUSIVE"), out],
        ("demo.bad", "ran_on"): [("failure", "FAIL"), out],
    }
    assert [part.text for part in suites.iter("failure")] == ["because; more texts"] * 2


def test_hostile_text_is_text_in_every_form() -> None:
    verdict = a_verdict(HOSTILE)
    suites = ET.fromstring(junit(HOSTILE, 1, verdict))
    assert len(list(suites.iter())) == len(list(ET.fromstring(junit("demo", 1, a_verdict())).iter()))
    lines = list(workflow_commands(HOSTILE, verdict, file=HOSTILE))
    assert len(lines) == 4
    for line in lines:
        assert re.fullmatch(r"::(notice|warning|error) file=[^:,]*,title=[^:,]*::[^\r\n]*", line), line
        assert line.isprintable()
    text = step_summary(sealed(), 1, verdict, HOSTILE)
    tokens = [
        inner
        for token in MarkdownIt("commonmark").enable("table").parse(text)
        for inner in (token, *(token.children or ()))
    ]
    assert not [token.type for token in tokens if token.type in ("html_block", "html_inline", "link_open", "image")]
    assert not [line for line in text.split("\n") if line.startswith("::")]


def test_a_sign_that_the_runner_decodes_comes_out_as_it_was() -> None:
    said = "50%0A::error::x, 5%25 of: a"
    for line in workflow_commands(said, a_verdict(said), file=said):
        assert unquote(line).count(said) >= 2
        assert set(re.findall("%..", line)) <= {"%25", "%3A", "%2C"}


def test_annotations_name_what_does_not_pass() -> None:
    assert list(workflow_commands("demo", a_verdict(), file="prereg/demo.yaml")) == [
        "::notice file=prereg/demo.yaml,title=demo%3A good::good may ship, as far as this gate can say",
        "::error file=prereg/demo.yaml,title=demo%3A bad%2C voice INVALID::because",
        "::warning file=prereg/demo.yaml,title=demo%3A bad%2C memorisation INCONCLUSIVE::because",
        "::error file=prereg/demo.yaml,title=demo%3A bad%2C ran_on FAIL::because",
    ]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("ci")
    return finished_run(home / "work", home / "cache", two_voices, **TWO)


def test_a_real_run_exits_with_its_verdict(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = json.loads((finished / "verdict.json").read_bytes())
    summary = tmp_path / "summary.md"
    summary.write_text("# before\n", "utf-8")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    ended = gates("ci", finished, "--junit", tmp_path / "gates.xml")
    assert ended.returncode == verdict["exit_code"] != 0
    assert all(line.startswith("::") for line in ended.stdout.splitlines())
    assert summary.read_text("utf-8").startswith("# before\n## ")
    suites = ET.parse(tmp_path / "gates.xml").getroot()
    axes = [name for candidate in verdict["candidates"].values() for name in candidate["axes"]]
    assert sorted(case.get("name") or "" for case in suites.iter("testcase")) == sorted(axes)
    monkeypatch.delenv("GITHUB_ACTIONS")
    assert gates("ci", finished).stdout == f"small 001: {verdict['outcome']}\n"
    two = gates("ci", finished, "--arm", "two", "--json")
    outcome = verdict["candidates"]["two"]["outcome"]
    told = {"outcome": outcome, "standing": "prospective", "exit_code": two.returncode, "junit": None}
    assert json.loads(two.stdout) == told
    assert gates("ci", finished, "--arm", "three").returncode == 2


def test_a_changed_record_is_tampered_with(finished: Path, tmp_path: Path) -> None:
    path = finished / "verdict.json"
    kept = path.read_bytes()
    try:
        path.write_bytes(kept.replace(b"FAIL", b"PASS"))
        assert gates("ci", finished, "--junit", tmp_path / "x.xml").returncode == 5
    finally:
        path.write_bytes(kept)
    assert not (tmp_path / "x.xml").exists()


def test_the_example_workflow_is_yaml_and_its_commands_exist(root: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", (root / "docs" / "ci.md").read_text("utf-8"), re.DOTALL)
    steps = yaml.safe_load(text)["jobs"]["verdict"]["steps"]
    commands = [step["run"].split()[1] for step in steps if step.get("run", "").startswith("gates ")]
    assert commands == ["verify", "ci", "report"]
    for command in commands:
        assert gates(command, "--help").returncode == 0
