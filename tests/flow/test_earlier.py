"""Which earlier run's base seeds are split: found in the ledger or named, recorded in the seal, refused when unlike."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gates.records import sha256
from tests.flow.conftest import gates, lines
from tests.flow.threaded import Seat, running
from tests.small import GATE, small_workspace

AGAIN = {
    "base": "base",
    "candidates": GATE["arms"]["candidates"],
    "controls": {"again": {"model": "base", "seeds": [7, 8]}},
}


CHANGES = {
    "arms": AGAIN,
    "sampling": GATE["sampling"] | {"max_tokens": 20},
    "voice": {"mfw": 50, "words_per_seed": 100},
    "damage": {"ran_on": {"margin": 0.5}, "empty": {"within": "floor"}},
}


class Once(NamedTuple):
    """A workspace with one finished run of four base seeds: two of the base, two of the base again; and its seat."""

    home: Path
    cache: Path
    seat: Seat


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Once]:
    with running(Seat) as seat, pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("earlier")
        home, cache = folder / "home", folder / "cache"
        patch.setenv("GATES_CACHE", str(cache))
        gate = small_workspace(home, cache, **CHANGES, seat={"base_url": seat.faulty.url, "concurrency": 4})
        assert gates("seal", gate, "--yes").returncode == 0
        assert gates("run", gate).returncode in (0, 1, 3)
        yield Once(home, cache, seat)


@pytest.fixture
def ran(once: Once, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that workspace."""
    monkeypatch.setenv("GATES_CACHE", str(once.cache))
    once.seat.fingerprint = "f-1"
    return Path(shutil.copytree(once.home, tmp_path / "home"))


def second(home: Path, **changes: Any) -> Path:
    """Another gate of the same workspace."""
    path = home / "prereg" / "second.yaml"
    path.write_text(
        json.dumps(json.loads((home / "prereg/small.yaml").read_text("utf-8")) | {"name": "second"} | changes)
    )
    return path


@pytest.mark.slow
def test_the_newest_run_that_will_do_is_split_and_named_in_the_seal(ran: Path) -> None:
    gate = second(ran, sampling=CHANGES["sampling"] | {"seeds": [3, 4]})
    told = gates("power", gate)
    assert told.returncode == 0, told.stderr
    assert "random splits of the base seeds of reports/small/001" in told.stdout
    assert "voice at 2 seeds (this gate): " in told.stdout
    assert "of the splits of 4 seeds of base, again pass" in told.stdout
    assert "ran_on at 2 seeds: 100% ± 0% pass the margin" in told.stdout
    assert "random splits of the base seeds of reports/small/001" in gates("check", gate).stdout

    sealed = gates("seal", gate, "--yes", "--json")
    seal = json.loads(Path(json.loads(sealed.stdout)["file"]).read_bytes())
    run = ran / "reports/small/001"
    found = seal["operating"]["earlier"]
    assert found["earlier"] == {
        "gate": "small",
        "run": 1,
        "seal": json.loads((run / "verdict.json").read_bytes())["seal"],
        "measurements_sha256": sha256((run / "measurements.json").read_bytes()),
        "arms": ["base", "again"],
        "seeds": 4,
    }
    # Four distances have 24 orders, so the share of passing splits can be counted by hand.
    figures = json.loads((run / "measurements.json").read_bytes())["arms"]["again"]["voice"]
    assert found["voice"][0]["false_pass"] == pytest.approx(
        by_hand([*figures["base_distances"], *figures["distances"]]), abs=0.03
    )
    assert 0 < found["voice"][0]["false_pass_error"] < 0.2

    assert gates("run", gate).returncode in (0, 1, 3)
    report = (ran / "reports/second/001/report.md").read_text("utf-8")
    assert "random splits of 4 base seeds of gate small, run 001" in report
    assert gates("verify", ran).returncode == 0


def by_hand(values: list[float]) -> float:
    pairs = [(a, b) for a in range(4) for b in range(4) if a < b]
    passing = 0
    for one, other in pairs:
        rest = [values[place] for place in range(4) if place not in (one, other)]
        base = [values[one], values[other]]
        floor = max(abs(base[0] - base[1]), abs(rest[0] - rest[1]))
        passing += sum(base) / 2 - sum(rest) / 2 > floor
    return passing / len(pairs)


UNLIKE = {
    "another sampling": {"sampling": CHANGES["sampling"] | {"temperature": 0.8}},
    "another base": {"arms": AGAIN | {"base": {"model": "base", "system": "Write well."}}},
    "another voice measure": {"voice": {"mfw": 60, "words_per_seed": 100}},
    "another held-out text": {"corpora": {"train": "author/heldout", "heldout": "author/train", "reference": "others"}},
    "its base was asked something else": {"prompts": {"file": "beats.txt", "template": "Scene: {beat}"}},
    "4 base seeds are measured, 6 are needed": {"sampling": CHANGES["sampling"] | {"seeds": [1, 2, 3]}},
}


@pytest.mark.parametrize(
    "why", [pytest.param(why, marks=[pytest.mark.slow] if place else []) for place, why in enumerate(UNLIKE)]
)
def test_an_unlike_run_is_not_split_and_a_named_one_is_refused(ran: Path, why: str) -> None:
    changes = UNLIKE[why]
    if "seeds" in why:
        changes = changes | {"arms": AGAIN | {"controls": {}}}
    gate = second(ran, **changes)
    told = gates("power", gate)
    assert (told.returncode, "no random splits: no earlier run here has" in told.stdout) == (0, True)
    assert f"reports/small/001: {why}" in told.stdout
    named = gates("power", gate, "--earlier", ran / "reports/small/001")
    assert named.returncode == 2
    assert f"reports/small/001: {why}" in named.stderr


def test_a_run_that_was_touched_is_no_measure_of_anything(ran: Path) -> None:
    figures = ran / "reports/small/001/measurements.json"
    figures.write_bytes(figures.read_bytes().replace(b'"again"', b'"agian"'))
    told = gates("power", second(ran))
    assert (told.returncode, "measurements.json: SHA-256 is" in told.stdout) == (0, True)
    named = gates("power", second(ran), "--earlier", figures.parent)
    assert named.returncode == 5


def test_a_run_of_another_workspace_is_split_when_it_is_named(ran: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(ran, other)
    shutil.rmtree(other / "reports")
    for record in ("ledger.jsonl", "ledger.head"):
        (other / "prereg" / record).unlink()
    gate = second(other)
    assert "no random splits" in gates("power", gate).stdout
    told = gates("power", gate, "--earlier", ran / "reports/small/001")
    assert "of the splits of 4 seeds of base, again pass" in told.stdout
    assert lines(ran / "prereg/ledger.jsonl")[-1]["kind"] == "verdict"


def test_a_seat_of_another_fingerprint_is_another_seat(ran: Path, once: Once) -> None:
    gate = second(ran)
    once.seat.fingerprint = "f-2"
    sealed = gates("seal", gate, "--yes", "--json")
    operating = json.loads(Path(json.loads(sealed.stdout)["file"]).read_bytes())["operating"]
    assert operating["earlier"] is None
    assert "reports/small/001: its seat, frame or held-out text are not those of this gate" in operating["splits"]
