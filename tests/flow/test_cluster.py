"""The same bytes from a cluster as from here, also when a worker is killed over its work; mistakes told as such."""

from __future__ import annotations

import importlib
import json
import logging
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

import dask
import numpy as np
import pytest
from distributed import Client, Future, LocalCluster

from gates.cli.engine import engine_at
from gates.corpora.files import NamedText
from gates.errors import GatesError, InputError, RecordError, UsageError
from gates.flow import overlap as module
from gates.flow.cluster import engine as engine_module
from gates.flow.cluster.engine import Cluster, connected
from gates.flow.finished import read_run
from gates.flow.inputs import load_inputs
from gates.flow.overlap import Here, Left, overlap, sift
from gates.flow.rescoring import Asked, rescore_all
from gates.flow.world import World
from gates.measure.sieve import Sieve
from gates.records import canonical
from tests.finished import AT, TWO, end_run, some_words
from tests.flow.conftest import gates
from tests.small import GATE, prose

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with (
        dask.config.set({"distributed.worker.daemon": False, "distributed.scheduler.allowed-failures": 3}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as started,
    ):
        yield started


def address(cluster: LocalCluster) -> str:
    return "dask://" + cluster.scheduler_address.removeprefix("tcp://")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("sources")
    random = np.random.default_rng(3)
    for number in range(3):
        words = prose(number, 30_000).split()
        breaks = random.choice([" ", "\n", " \u2014 "], len(words), p=[0.88, 0.1, 0.02])
        (folder / f"{number}.txt").write_text("".join(f"{w}{b}" for w, b in zip(words, breaks, strict=True)), "utf-8")
    lines = [json.dumps({"text": prose(100 + number, 40)}) for number in range(2000)]
    (folder / "lines.jsonl").write_text("\n".join(lines), "utf-8")
    return [str(folder)]


@pytest.fixture(scope="module")
def texts(sources: list[str]) -> list[NamedText]:
    folder = Path(sources[0])
    copies = [" ".join((folder / f"{n % 3}.txt").read_text("utf-8").split()[97 * n : 97 * n + 60]) for n in range(40)]
    return [NamedText(f"t{number}", copy, None) for number, copy in enumerate(copies)]


@pytest.mark.parametrize("part_bytes", [20_000, None])
def test_a_cluster_gives_the_bytes_of_one_process(
    cluster: LocalCluster, sources: list[str], texts: list[NamedText], part_bytes: int | None
) -> None:
    told: list[tuple[int, int]] = []
    with connected(address(cluster), lambda done, total: told.append((done, total))) as engine:
        engine.part_bytes = part_bytes
        far = overlap(sources, texts, [None] * len(texts), 8, engine)
    near = overlap(sources, texts, [None] * len(texts), 8, Here())
    assert canonical(far.as_json()) == canonical(near.as_json())
    assert near.hits == 40
    assert [done for done, _ in told] == list(range(1, told[0][1] + 1))


def slow_sift(sieve: Sieve, part: object) -> Left:
    time.sleep(0.2)
    return sift(sieve, part)  # type: ignore[arg-type]


def test_a_worker_killed_over_its_work_changes_nothing(
    cluster: LocalCluster, sources: list[str], texts: list[NamedText], monkeypatch: pytest.MonkeyPatch
) -> None:
    near = overlap(sources, texts, [None] * len(texts), 8, Here())
    monkeypatch.setattr(module, "sift", slow_sift)
    killed: list[int] = []

    def kill(done: int, total: int) -> None:
        if done == 3 and not killed:
            pids = cluster_pids(cluster)
            killed.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)

    with connected(address(cluster), kill) as engine:
        engine.part_bytes = 50_000
        far = overlap(sources, texts, [None] * len(texts), 8, engine)
    assert len(killed) == 1
    assert canonical(far.as_json()) == canonical(near.as_json())


def test_results_that_came_are_kept_when_their_workers_die_at_once(cluster: LocalCluster) -> None:
    with connected(address(cluster), lambda *_: None) as engine:
        states = engine._client.futures

        def kill(done: int, total: int) -> None:
            if done == 1:
                wait_until(lambda: all(state.status == "finished" for state in states.values()))
                time.sleep(0.2)  # in which the results come, too
                for pid in cluster_pids(cluster):
                    os.kill(pid, signal.SIGKILL)
                wait_until(lambda: any(state.status == "lost" for state in states.values()))

        engine._progress = kill
        assert list(engine.run(dict, number, [5, 6, 7, 8])) == [5, 6, 7, 8]


def wait_until(true: Callable[[], bool]) -> None:
    while not true():
        time.sleep(0.01)


def cluster_pids(cluster: LocalCluster) -> list[int]:
    return [worker.process.pid for worker in cluster.workers.values() if worker.process is not None]


def test_a_mistake_in_a_source_comes_back_whole(cluster: LocalCluster, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": 1}\n', "utf-8")
    with connected(address(cluster), lambda *_: None) as engine, pytest.raises(InputError) as raised:
        overlap([str(tmp_path)], [NamedText("t", "some words", None)], [None], 2, engine)
    assert [problem.rule for problem in raised.value.problems] == ["must be there, and a string"]


def test_the_command_on_a_cluster(cluster: LocalCluster, tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("one two three four five six", "utf-8")
    (tmp_path / "t.txt").write_text("two three four five", "utf-8")
    command = ("overlap", "--source", str(tmp_path / "s.txt"), "--texts", str(tmp_path / "t.txt"), "--n", "3", "--json")
    far, near = gates(*command, "--engine", address(cluster)), gates(*command)
    assert (far.returncode, far.stdout) == (0, near.stdout)
    assert far.stderr == "1 of 1 parts of the sources read\n"


def test_engines_that_are_none_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="--engine spark://a:9: no such engine"), connected("spark://a:9", print):
        pass
    for address_ in ("dask://", "dask://host", "dask://host:http", "dask://:8786", "dask://host:65536"):
        with pytest.raises(UsageError, match="no such engine"), connected(address_, print):
            pass
    monkeypatch.setattr(engine_module, "connected", partial(connected, timeout_s=1))
    (tmp_path / "a.txt").write_text("words to be read nowhere", "utf-8")
    nowhere = ("--engine", "dask://127.0.0.1:9")
    for command in (
        ("overlap", "--source", tmp_path / "a.txt", "--texts", tmp_path / "a.txt", "--n", 2),
        ("rescore", tmp_path, "--rule", "pairwise-range@1", "--reason", "why"),
    ):
        ended = gates(*command, *nowhere)
        assert (ended.returncode, ended.stdout) == (2, ""), "never here in its place"
        assert ended.stderr.startswith("gates: no dask scheduler answers at 127.0.0.1:9: ")
    with LocalCluster(n_workers=0, dashboard_address=":0") as empty:
        idle = connected(address(empty), print, timeout_s=1)
        with pytest.raises(UsageError, match="has no worker"), idle:
            pass


def number(_: object, item: int) -> int:
    return item


def test_a_cluster_without_workers_is_waited_for_and_one_that_drops_the_work_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_module, "_LOOK_S", 0.1)
    told: list[str] = []
    with LocalCluster(n_workers=0, threads_per_worker=2, processes=False, dashboard_address=":0") as empty:

        def bring(note: str) -> None:
            told.append(note)
            empty.scale(1)

        with Client(empty, set_as_default=False) as client:
            assert list(Cluster(client, lambda *_: None, bring).run(dict, number, [3, 1])) == [3, 1]
            gone = Cluster(client, lambda *_: client.cancel([Future(key, client) for key in [*client.futures]]))
            with pytest.raises(GatesError, match="the cluster dropped the work, 1 of 2 parts done"):
                gone.run(dict, hold, [False, True])  # as a client does whose scheduler is gone
            RELEASED.set()
    assert told == ["the cluster has no worker left; waiting for one: dask worker HOST:PORT"]


def test_a_worker_of_another_version_that_comes_later_is_refused(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(address(cluster), lambda *_: None) as engine:
        monkeypatch.setattr(engine_module, "__version__", "0.0.9")
        with pytest.raises(UsageError, match=r"workers without gates 0\.0\.9: one of them has"):
            engine.run(dict, number, [1])
    with pytest.raises(UsageError, match=r"workers without gates 0\.0\.9: tcp://"):
        connected(address(cluster), lambda *_: None).__enter__()


def test_a_worker_without_this_package_is_refused(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "only_here.py").write_text("def version():\n    return ''\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(engine_module, "version", importlib.import_module("only_here").version)
    with pytest.raises(UsageError, match=r"workers without gates .*: tcp://.*No module named 'only_here'"):
        connected(address(cluster), lambda *_: None).__enter__()


def made_by() -> tuple[int, str]:
    return os.getpid(), secrets.token_hex()


def shared_by(shared: tuple[int, str], _: int) -> tuple[int, str]:
    return shared


def test_what_is_shared_is_made_once_by_a_worker(cluster: LocalCluster) -> None:
    with connected(address(cluster), lambda *_: None) as engine:
        ((pid, _),) = set(engine.run(made_by, shared_by, [0] * 8))
    assert pid in cluster_pids(cluster)


RELEASED = threading.Event()


def hold(_: object, held: bool) -> bool:
    return held and RELEASED.wait()


@pytest.mark.parametrize("otherwise", [False, True], ids=["another rule", "measured again"])
def test_runs_judged_again_on_a_cluster_leave_the_same_bytes(
    cluster: LocalCluster, made_run: Path, made_cache: Path, tmp_path: Path, otherwise: bool
) -> None:
    two_runs = shutil.copytree(made_run, tmp_path / "both")
    sealed = read_run(two_runs / "reports" / "small" / "001").sealed
    end_run(load_inputs(two_runs / "prereg" / "small.yaml", made_cache), sealed, some_words)
    world = World(cache=made_cache, by="tester", environ={}, now=lambda: datetime.fromisoformat(AT))
    left: dict[str, dict[str, bytes]] = {}
    told: list[tuple[int, int]] = []
    for place in ("far", "near"):
        home = shutil.copytree(two_runs, tmp_path / place)
        gate = home / "prereg" / "other.yaml"
        gate.write_text(json.dumps(GATE | TWO | {"voice": {"mfw": 50, "words_per_seed": 100}}), "utf-8")
        asked = Asked("why", gate=gate) if otherwise else Asked("why", rule="pairwise-calibrated@1")
        runs = [home / "reports" / "small" / number for number in ("001", "003", "002")]
        if place == "far":
            with connected(address(cluster), lambda done, total: told.append((done, total))) as engine:
                found = list(rescore_all(runs, world, asked, engine))
        else:
            found = list(rescore_all(runs, world, asked))
        assert [isinstance(one, RecordError) for one in found] == [False, True, False]
        assert list(rescore_all(runs[:1], world, asked)) == found[:1]  # as after an interruption
        files = [file for file in home.rglob("*") if file.is_file()]
        left[place] = {str(file.relative_to(home)): file.read_bytes() for file in files}
    assert left["far"] == left["near"]
    assert told == [(1, 3), (2, 3), (3, 3)]
    measured = re.compile(r"reports/small/002/rescores/001-[0-9a-f]{12}/measurements\.json")
    assert any(map(measured.fullmatch, left["far"])) is otherwise


def die(_: object, __: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_work_that_kills_every_worker_ends_with_a_sentence(cluster: LocalCluster) -> None:
    with (
        connected(address(cluster), lambda *_: None) as engine,
        pytest.raises(GatesError, match="workers of the cluster died again and again"),
    ):
        list(engine.run(dict, die, [1]))


ALONE = """\
from distributed import LocalCluster
cluster = LocalCluster(n_workers=1, processes=False, protocol="tcp://", dashboard_address=":0")
print(cluster.scheduler_address, flush=True)
input()
"""


def test_a_scheduler_that_dies_is_told_in_one_sentence(
    root: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = logging.getLogger("distributed.client")
    monkeypatch.setattr(client, "handlers", [caplog.handler])
    with subprocess.Popen([sys.executable, "-c", ALONE], cwd=root, stdin=-1, stdout=-1, text=True) as alone:
        assert alone.stdout is not None
        place = alone.stdout.readline().strip().replace("tcp:", "dask:")
        with (
            pytest.raises(GatesError, match="the cluster dropped the work, 0 of 1 parts done"),
            engine_at(place, "parts") as engine,
        ):
            engine.run(dict, die, [1])
    assert alone.returncode == -signal.SIGKILL
    assert [record for record in caplog.records if record.name == client.name] == [], "a traceback before the sentence"
