"""`gates demo`: the demonstration gate from fetch to verdict, or the known-answer panel; is it what it must be?"""

from __future__ import annotations

import os
from pathlib import Path

import click

from gates import flow
from gates.cli.corpora import workspace_of
from gates.cli.gate import print_finished
from gates.cli.output import print_json, say, tell
from gates.cli.show import as_json, console, head_at_the_end, progress
from gates.corpora.cache import cache_dir
from gates.corpora.sources import fetch
from gates.corpora.texts import load_manifest
from gates.errors import ExitCode, RefusedError, UsageError
from gates.flow.panel import FILES, GATES, TEXTS, judge_panel, read_panel
from gates.judge.verdict import Verdict
from gates.records import Outcome
from gates.report.terminal import known_tables
from gates.spec.load import load_gate

EXPECTED = {"lv-bronte-e12": Outcome.PASS, "lv-bronte-ranon": Outcome.FAIL}


@click.command()
@click.option("--panel", is_flag=True, help="Judge recorded texts whose answers are known; generate and write nothing.")
@as_json
def demo(panel: bool, json_wanted: bool) -> int:
    """Fetch, seal, run and judge prereg/demo.yaml: lv-bronte-e12 must PASS, lv-bronte-ranon must FAIL on ran_on only.

    Run it in a clone of the repository; it needs the extra `embedded`. Exits 0 when the gate says what it must.

    \b
    gates demo            generate with a small language model, judge, record
    gates demo --panel    judge prereg/panel/: six arms whose right answers are known; needs no extra
    """
    workspace = workspace_of(None)
    if panel:
        return _panel(workspace, json_wanted)
    gate = workspace / "prereg" / "demo.yaml"
    if not gate.is_file():
        raise UsageError(f"{gate} is missing", next_step="run `gates demo` in a clone of the repository")
    head_at_the_end(gate)
    world = flow.this_world(say)
    _fetch(gate, workspace)
    try:
        sealed = flow.seal(gate, world)
    except RefusedError as changed:
        say(changed.message)
        sealed = flow.seal(gate, world, reason="gates demo: the demonstration, or gates itself, is another version")
    say(f"sealed {gate.name}: {sealed.sha256[:12]} (order, thresholds and every byte are fixed from here on)")
    with progress() as watch:
        finished = flow.run(gate, flow.this_world(say, watch))
    surprises = _surprises(finished.verdict)
    if json_wanted:
        print_json({**finished.verdict.as_json(), "run": str(finished.folder), "as_expected": not surprises})
    else:
        print_finished(finished)
        tell("\n".join(surprises) or "The gate says what it must: lv-bronte-e12 may ship, lv-bronte-ranon may not.")
    return ExitCode.FAIL if surprises else ExitCode.PASS


def _fetch(gate: Path, workspace: Path) -> None:
    corpora = load_gate(gate).corpora
    names = {ref.split("/")[0] for ref in (corpora.train, corpora.heldout, *corpora.reference, *corpora.imposters)}
    for name in sorted(names):
        report = fetch(load_manifest(workspace, name), cache_dir(os.environ), workspace=workspace)
        say(f"corpus {name}: {len(report.fetched)} texts fetched, {len(report.kept)} were there")


def _panel(workspace: Path, json_wanted: bool) -> int:
    """Judge the known-answer panel and say whether every answer is the known one."""
    folder = workspace / "prereg" / "panel"
    texts = read_panel(folder)
    _fetch(folder / "open.yaml", workspace)
    say(f"{len(texts)} recorded texts ({TEXTS} {FILES[TEXTS][:12]}), {len(GATES)} gates: about half a minute")
    answers = judge_panel(folder, cache_dir(os.environ), texts)
    wrong = [answer for answer in answers if answer.wrong]
    if json_wanted:
        rows = [{**answer.as_json(), "wrong": answer.wrong} for answer in answers]
        print_json({"as_expected": not wrong, "texts": len(texts), "files": FILES, "answers": rows})
    else:
        console().print(known_tables(answers))
        tell(f"{len(answers) - len(wrong)} of {len(answers)} answers are the known ones, figures and limits included.")
    return ExitCode.FAIL if wrong or not answers else ExitCode.PASS


def _surprises(verdict: Verdict) -> list[str]:
    """Whatever the demonstration gate says otherwise than it must."""
    found = [
        f"unexpected: {name} is {verdict.candidates[name].outcome}, expected {outcome}"
        for name, outcome in EXPECTED.items()
        if verdict.candidates[name].outcome is not outcome
    ]
    failed = {name: axis.outcome for name, axis in verdict.candidates["lv-bronte-ranon"].axes.items()}
    found += [
        f"unexpected: lv-bronte-ranon, {axis} is {failed[axis]}"
        for axis in ("voice",)
        if failed.get(axis) is not Outcome.PASS
    ]
    return found + (
        [] if failed.get("ran_on") is Outcome.FAIL else ["unexpected: lv-bronte-ranon does not fail ran_on"]
    )
