"""The whole path on the real embedded seat, through the real command."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import random
import sys
import time
from pathlib import Path

import pytest

from gates.cli import main
from gates.records import sha256
from tests.flow.conftest import Ran, gates, lines, write_gate

# One process for both files: they share a finished run, which takes half a minute to make.
pytestmark = pytest.mark.xdist_group("ran")


def test_from_seal_to_verdict_and_back(ran: Ran) -> None:
    workspace, gate = ran.workspace, ran.gate
    assert ran.unsealed.returncode == 2
    assert "has no seal" in ran.unsealed.stderr
    assert "gates seal" in ran.unsealed.stderr

    assert ran.checked.returncode == 0, ran.checked.stderr
    assert json.loads(ran.checked.stdout)["requests"] == 48
    assert json.loads(ran.checked.stdout)["missing"] == []
    assert "damage.ran_on: few texts end within sampling.max_tokens = 16; " in ran.checked.stdout

    assert ran.sealed.returncode == 0, ran.sealed.stderr
    seal = json.loads(Path(json.loads(ran.sealed.stdout)["file"]).read_bytes())
    assert seal["sealed_by"] == "tester"
    assert seal["binding"]["seat"]["version"]
    assert set(seal["binding"]["adapters"]["e12"]["files"]) == {"lv-bronte-e12.gguf"}
    assert seal["operating"]["voice"]["false_pass"] == pytest.approx(0.108, abs=0.005)  # two seeds, one direction

    verdict = json.loads(ran.run.stdout)
    assert ran.run.returncode == verdict["exit_code"], ran.run.stderr
    assert set(verdict["candidates"]["e12"]["axes"]) == {"validity", "voice", "memorisation", "ran_on", "on_beat"}

    folder = workspace / "reports" / "small" / "001"
    generations = lines(folder / "generations.jsonl")
    assert len({(g["arm"], g["prompt"], g["seed"]) for g in generations}) == len(generations) == 48
    assert {g["model"] for g in generations} == {"voices-base", "lv-bronte-e12"}
    assert all(g["prompt_sha256"] and g["usage"]["completion_tokens"] <= 16 for g in generations)
    assert {g["request"]["top_k"] for g in generations} == {0}
    assert all("cache_salt" not in g["request"] for g in generations)
    # The arms take turns: whatever the order within a block of two, no arm has more than two requests in a row.
    arms = [g["arm"] for g in sorted(generations, key=lambda g: g["started"])]
    assert max(len(list(group)) for _, group in itertools.groupby(arms)) <= 4

    ledger = lines(workspace / "prereg" / "ledger.jsonl")
    assert [record["kind"] for record in ledger] == ["seal", "run", "session", "session", "verdict"]
    assert ledger[-1]["body"]["verdict_sha256"] == sha256((folder / "verdict.json").read_bytes())
    # Each command that has entered something ends with the head, and no other does.
    hashes = [sha256(line) for line in (workspace / "prereg" / "ledger.jsonl").read_bytes().splitlines()]
    assert ran.sealed.stderr.endswith(f"ledger head {hashes[0]} (1 record)\n")
    assert ran.run.stderr.endswith(f"ledger head {hashes[-1]} (5 records)\n")
    assert "ledger head" not in ran.unsealed.stderr + ran.checked.stderr
    assert ledger[-1]["body"]["generations_sha256"] == sha256((folder / "generations.jsonl").read_bytes())

    report = (folder / "report.md").read_text("utf-8")
    assert report.startswith(
        f"# {'✔' if verdict['outcome'] == 'PASS' else report[2]} {verdict['outcome']}: small, run 001"
    )
    assert "<b>" not in report
    assert "&lt;b&gt;e12" in report

    again = gates("run", gate, "--json")
    assert json.loads(again.stdout)["attempts"] == 1
    assert len(lines(workspace / "prereg" / "ledger.jsonl")) == 5


STARTED = multiprocessing.get_context("forkserver")
"""Processes that begin with everything imported, which spares each the seconds that Python takes to start."""


def run_alone(gate: str) -> None:
    """`gates run` in a process of its own, silent."""
    sys.argv = ["gates", "run", gate]
    with Path(os.devnull).open("w") as nowhere:
        sys.stdout = sys.stderr = nowhere
        main()


@pytest.mark.long  # tests/flow/test_killed.py kills at every write of a run, on a seat that answers at once
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kills", [1, 10])
def test_kills_lose_nothing_and_double_nothing(workspace: Path, served: str, ran: Ran, kills: int) -> None:
    gate = write_gate(workspace, f'{{base_url: "{served}", concurrency: 2}}')
    assert gates("seal", gate, "--yes").returncode == 0
    path = workspace / "reports" / "small" / "001" / "generations.jsonl"
    rng = random.Random(20)
    STARTED.set_forkserver_preload(["gates.cli.gate"])
    killed = 0
    while killed < kills:
        process = STARTED.Process(target=run_alone, args=(str(gate),))
        process.start()
        before = path.stat().st_size if path.exists() else 0
        # Wait for generation to go on, so that kills fall into it and not only into the start-up.
        while process.exitcode is None and (path.stat().st_size if path.exists() else 0) == before:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.3))
        assert process.exitcode is None, "the run ended before the last kill: give the test more generations"
        process.kill()
        process.join()
        killed += 1
    finished = gates("run", gate, "--json")
    generations = lines(path)
    assert len({(g["arm"], g["prompt"], g["seed"]) for g in generations}) == len(generations) == 48
    sessions = lines(workspace / "reports" / "small" / "001" / "sessions.jsonl")
    assert [session["phase"] for session in sessions] == ["start"] * (kills + 1) + ["end"]

    # The undisturbed run is of the same seat, started in process instead of served.
    assert _texts(generations) == _texts(lines(ran.workspace / "reports" / "small" / "001" / "generations.jsonl"))
    assert _what_counts(json.loads(finished.stdout)) == _what_counts(json.loads(ran.run.stdout))


def _texts(generations: list[dict]) -> dict[tuple[str, int, int], str]:
    return {(g["arm"], g["prompt"], g["seed"]): g["text"] for g in generations}


def _what_counts(verdict: dict) -> dict:
    # Latency and order of arrival are part of the generations' hash, and the seat's address is part of the seal's.
    changing = {"measurements_sha256", "run", "attempts", "seal"}
    return {key: value for key, value in verdict.items() if key not in changing}


def test_a_seat_that_is_down_is_said_so(workspace: Path) -> None:
    gate = write_gate(workspace, '{base_url: "http://127.0.0.1:9/v1"}')
    down = gates("seal", gate, "--yes")
    assert down.returncode == 4
    assert "127.0.0.1:9" in down.stderr
    assert "Traceback" not in down.stderr


def test_a_seat_without_the_gates_base_is_refused(workspace: Path, served: str) -> None:
    gate = write_gate(workspace, f'{{base_url: "{served}"}}')
    gate.write_text(gate.read_text("utf-8").replace("base: voices-base", "base: qwen"), "utf-8")
    wrong = gates("seal", gate, "--yes")
    assert wrong.returncode == 4
    assert "does not serve the gate's base 'qwen'; it serves: voices-base, lv-bronte-e12" in wrong.stderr


def test_a_key_that_is_not_set_is_named(workspace: Path, served: str) -> None:
    gate = write_gate(workspace, f'{{base_url: "{served}", api_key_env: GATES_TEST_NO_SUCH_KEY}}')
    unset = gates("seal", gate, "--yes")
    assert unset.returncode == 2
    assert "GATES_TEST_NO_SUCH_KEY" in unset.stderr
