"""A fault of each kind, drawn at random from a fixed seed; scripts/faults.py draws many, scripts/faults.out.md is its
last output. Where strace may not follow a process or nothing may be mounted, the seam under the process stands in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pytest

from gates.cli import cli
from tests.faults.child import can_trace
from tests.faults.home import CASES, Home
from tests.faults.trials import KINDS, FickleSeat, Trials, can_mount
from tests.flow.threaded import running
from tests.kills import STARTED

SEED = 20
WRITE_NO_RECORD = {
    "card", "check", "ci", "compare", "completion", "corpora", "delta", "demo", "init", "judge", "list", "overlap",
    "power", "schema", "seat", "show", "status", "table", "verify",
}  # fmt: skip
"""The commands that enter nothing into a ledger and write nothing that one relies on."""
MET = {
    "killed": "run",
    "call killed": "import",
    "refused once": "signoff",
    "call refused": "rescore",
    "full disk": "run",
    "file limit": "import",
    "read-only folder": "signoff",
    "clock back": "rescore",
    "two at once": "signoff",
    "half errors": "run",
    "seat restarted": "run",
}
"""Each kind of fault, and the command that meets it here: few, for each costs a run that nothing disturbs."""


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    STARTED.set_forkserver_preload(["tests.faults.child"])
    with running(FickleSeat) as seat:
        home = Home(tmp_path_factory.mktemp("faults"), seat.faulty.url)
        yield Trials(home, seat, traces=can_trace(), mounts=can_mount(home.folder / "mounted"))


@pytest.mark.slow
@pytest.mark.xdist_group("faults")
@pytest.mark.parametrize("kind", MET)
def test_after_a_fault_the_same_command_comes_to_the_same_end(trials: Trials, kind: str) -> None:
    outcome = trials.meet(kind, np.random.default_rng([SEED, KINDS.index(kind)]), MET[kind])
    assert outcome.wrong == [], outcome


@pytest.mark.slow
@pytest.mark.xdist_group("faults")
@pytest.mark.parametrize("name", ["review", "signoff"])
def test_killed_at_any_step_a_command_comes_to_the_same_end(trials: Trials, name: str) -> None:
    """The two quickest; scripts/kills.py does it to every command."""
    outcomes = [*trials.killed_everywhere(next(case for case in CASES if case.name == name))]
    assert {outcome.ended for outcome in outcomes} == {"killed"}
    assert [str(outcome) for outcome in outcomes if outcome.wrong] == []


@pytest.mark.slow
@pytest.mark.xdist_group("faults")
def test_a_recheck_leaves_nothing_to_luck(trials: Trials) -> None:
    """As each command that a fault meets here: before it does, the steps that it makes undisturbed are gone through."""
    assert "replace" in {
        step.split()[0] for step in trials.whole(next(case for case in CASES if case.name == "recheck")).told.steps
    }


def test_every_command_was_killed_everywhere_and_all_held(root: Path) -> None:
    report = (root / "scripts" / "kills.out.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in report.splitlines() if line.startswith("| ")]
    assert {row[0] for row in rows[1:]} == {case.name for case in CASES}
    assert all(row[1] == row[2] != "0" and row[3] == row[4] != "0" for row in rows[1:])


def test_each_command_has_a_case_or_writes_no_record() -> None:
    words = {case.words[0] for case in CASES}
    assert words | WRITE_NO_RECORD == set(cli.list_commands(click.Context(cli)))
    assert not words & WRITE_NO_RECORD


def test_each_kind_is_met() -> None:
    assert tuple(MET) == KINDS


def test_the_last_output_that_is_kept_is_of_every_kind_and_all_held(root: Path) -> None:
    report = (root / "scripts" / "faults.out.md").read_text("utf-8")
    assert "WRONG" not in report
    assert all(f". {kind}: " in report for kind in KINDS)
