"""A small workspace with a real gate: two adapters, twelve beats, real texts, and the real embedded seat."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest

from gates.cli import main
from gates.corpora.cache import cache_dir
from gates.corpora.sources import fetch
from gates.corpora.texts import load_manifest
from gates.flow import this_world
from gates.flow.review import Reading, open_reading
from gates.record.files import held
from gates.record.review import Said
from tests.finished import TWO, finished_run, two_voices
from tests.flow.threaded import Seat, running
from tests.record.test_signing import make_key
from tests.small import small_workspace

CORPORA = ("bronte", "hawthorne", "irving")

GATE = """\
schema: gates/1
name: small
question: Does <b>e12</b> | move toward Brontë?
seat: {seat}
arms:
  base: voices-base
  candidates:
    e12: {{model: lv-bronte-e12, adapter: demo/adapters/lv-bronte-e12.gguf}}
corpora: {{train: bronte/train, heldout: bronte/heldout, reference: [hawthorne, irving]}}
prompts: {{file: demo/beats.txt, template: "Beat: {{beat}}"}}
sampling: {{seeds: [1, 2], temperature: 0.9, top_p: 0.95, max_tokens: 16}}
voice: {{mfw: 100, words_per_seed: 100}}
memorisation: {{max_rate: 0.2}}
damage:
  ran_on: {{within: floor}}
  on_beat: {{margin: 0.4}}
validity: {{max_empty: 0.5}}
"""


@pytest.fixture(scope="session")
def cache(root: Path) -> Path:
    """The user's cache with the texts that these gates rest on."""
    cache = cache_dir(os.environ)
    for name in CORPORA:
        fetch(load_manifest(root, name), cache, workspace=root)
    return cache


@pytest.fixture
def workspace(tmp_path: Path, root: Path, cache: Path) -> Path:
    """A workspace of its own with manifests, beats and adapters."""
    return new_workspace(tmp_path, root)


def new_workspace(folder: Path, root: Path) -> Path:
    (folder / "corpora").mkdir()
    for name in CORPORA:
        shutil.copy(root / "corpora" / f"{name}.yaml", folder / "corpora")
    shutil.copytree(root / "prereg" / "demo", folder / "prereg" / "demo")
    return folder


def write_gate(workspace: Path, seat: str = "embedded") -> Path:
    path = workspace / "prereg" / "small.yaml"
    path.write_text(GATE.format(seat=seat), encoding="utf-8")
    return path


class Ended(NamedTuple):
    """What a command left: exit code, stdout, stderr."""

    returncode: int
    stdout: str
    stderr: str


def gates(*arguments: object) -> Ended:
    """Run the real command in this process, which spares each call the second that Python takes to start."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["gates", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return Ended(int(ended.value.code or 0), out.getvalue(), err.getvalue())


def under_lock(monkeypatch: pytest.MonkeyPatch, what: str, lock: Path) -> list[bool]:
    """Watch a function: for each call whether somebody held the lock then."""
    module, name = what.rsplit(".", 1)
    real, seen = getattr(importlib.import_module(module), name), []

    def watched(*about: object) -> object:
        seen.append(held(lock))
        return real(*about)

    monkeypatch.setattr(what, watched)
    return seen


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


class Ran(NamedTuple):
    """A workspace whose gate was checked, sealed and run on the embedded seat, and what each command left."""

    workspace: Path
    gate: Path
    unsealed: Ended
    checked: Ended
    sealed: Ended
    run: Ended


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory, root: Path, cache: Path) -> Ran:
    workspace = new_workspace(tmp_path_factory.mktemp("ran"), root)
    gate = write_gate(workspace)
    unsealed = gates("run", gate)
    checked = gates("check", gate, "--json")
    sealed = gates("seal", gate, "--yes", "--by", "tester", "--json")
    return Ran(workspace, gate, unsealed, checked, sealed, gates("run", gate, "--json"))


@pytest.fixture(scope="session")
def served(root: Path) -> Iterator[str]:
    """The embedded seat as a server of its own, as `gates seat serve` starts it; its API address."""
    adapter = root / "prereg" / "demo" / "adapters" / "lv-bronte-e12.gguf"
    process = subprocess.Popen(
        [sys.executable, "-m", "gates", "seat", "serve", "--port", "0", "--adapter", f"lv-bronte-e12={adapter}"],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    first = process.stderr.readline()
    assert " at http://127.0.0.1:" in first, first
    yield first.split(" at ")[1].split(";")[0]
    process.terminate()
    process.wait(20)
    process.stderr.close()


@pytest.fixture(scope="session")
def made_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the made-up texts."""
    return tmp_path_factory.mktemp("made")


@pytest.fixture(scope="session")
def made_run(tmp_path_factory: pytest.TempPathFactory, made_cache: Path) -> Path:
    """A workspace with a finished run of two made-up candidates: `one` is INVALID, `two` passes."""
    return finished_run(tmp_path_factory.mktemp("done") / "work", made_cache, two_voices, **TWO).parents[2]


@pytest.fixture
def reading(tmp_path: Path, made_run: Path, made_cache: Path) -> Reading:
    """A copy of that run, to be read."""
    return open_reading(shutil.copytree(made_run, tmp_path / "work") / "reports" / "small" / "001", made_cache)


@pytest.fixture(scope="session")
def signed_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A workspace and its cache: sealed, run, read and signed off, every record signed."""
    home = tmp_path_factory.mktemp("signed")
    key, cache, workspace = make_key(home), home / "cache", home / "workspace"
    with running(Seat) as seat, mock.patch.dict(os.environ, GATES_CACHE=str(cache), GATES_SIGNING_KEY=str(key)):
        gate = small_workspace(workspace, cache, seat={"base_url": seat.faulty.url})
        # A check comes first and has notes on so small a gate: none of it is said.
        sealed = gates("seal", gate, "--yes", "--quiet")
        assert (sealed.returncode, len(sealed.stdout.splitlines()), sealed.stderr) == (0, 2, ""), sealed
        gates("run", gate)
        run = workspace / "reports" / "small" / "001"
        reading, world = open_reading(run, cache), this_world(print, by="ann", key=key)
        for name in reading.needed(None):
            reading.mark(name, Said(mark="ok"), world)
        reading.enter(world)
        words = ("--arm", "one", "--decision", "hold", "--reason", "made-up words")
        held = gates("signoff", run, "--by", "ann", *words)
        assert (held.returncode, "ledger head " in held.stderr) == (3, True), held
    return workspace, cache
