"""What is shipped: the core runs without extras, declares what it imports, and names no machine of its makers."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import click
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gates import __version__
from gates.cli import cli
from tests.small import small_workspace

EXTRAS = (
    "dask",
    "distributed",
    "fsspec",
    "gguf",
    "jinja2",
    "matplotlib",
    "peft",
    "pip",
    "pyarrow",
    "safetensors",
    "starlette",
    "torch",
    "transformers",
    "uvicorn",
    "xllamacpp",
)

# `python -c` with the extras blocked: their import fails as it does where they are not installed.
WITHOUT_EXTRAS = f"""
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
sys.argv[0] = "gates"
from gates.cli import main
main()
"""


@pytest.fixture(scope="module")
def project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]


def bare(folder: Path, root: Path, *arguments: str, **changes: Any) -> subprocess.CompletedProcess[str]:
    """Run a command without any extra, in a small workspace."""
    small_workspace(folder / "workspace", folder / "cache", **changes)
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, *arguments],
        env={"GATES_CACHE": str(folder / "cache"), "PYTHONPATH": str(root)},
        cwd=folder / "workspace",
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--help",), "Pre-registered gates"),
        (("schema",), '"title": "gate file, gates/1"'),
        (("check", "prereg/small.yaml"), "complete, 48 generations"),
        (("corpora", "show", "author"), "train: 1 texts of 1 books by 1 authors, 4,000 words"),
        (("seat", "serve", "--help"), "--adapter NAME=PATH"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_the_core_runs_without_extras(tmp_path: Path, root: Path, arguments: tuple[str, ...], said: str) -> None:
    ended = bare(tmp_path, root, *arguments)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert said in ended.stdout


@pytest.mark.parametrize(
    "arguments", [("seat", "serve", "--port", "0"), ("seal", "prereg/small.yaml", "--yes")], ids=str
)
def test_the_embedded_seat_says_which_extra_it_needs(tmp_path: Path, root: Path, arguments: tuple[str, ...]) -> None:
    ended = bare(tmp_path, root, *arguments, seat="embedded")
    assert ended.returncode == 2
    assert re.search(
        r"gates: the embedded seat needs the package \w+, which is not installed\n"
        r'  next: pip install "voice-gates\[embedded\]"\n$',
        ended.stderr,
    ), ended.stderr


def names(requirements: list[str]) -> list[str]:
    return [re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower() for requirement in requirements]


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.split(".")[0]


def test_everything_imported_is_declared(root: Path, project: dict[str, Any]) -> None:
    core = set(names(project["dependencies"]))
    extras = {name: set(names(project["optional-dependencies"][name])) for name in ("embedded", "report", "cluster")}
    # pydantic requires its own core at one exact version and documents it as part of its interface.
    owners = packages_distributions() | {"pydantic_core": ["pydantic"]}
    undeclared = []
    for path in sorted((root / "gates").rglob("*.py")):
        # A folder that has the name of an extra is what the extra is for.
        allowed = core.union(*(extras[part] for part in path.relative_to(root).parts if part in extras))
        for module in imported(path):
            if module in sys.stdlib_module_names or module == "gates":
                continue
            if not {owner.lower() for owner in owners.get(module, [])} & allowed:
                undeclared.append(f"{path.relative_to(root)}: {module}")
    assert undeclared == []


def test_the_version_is_one_and_the_command_is_installed(project: dict[str, Any]) -> None:
    assert project["dynamic"] == ["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|a\d+|b\d+|rc\d+)?", __version__)
    assert project["scripts"] == {"gates": "gates.cli:main"}


def test_the_changelog_knows_every_command(root: Path) -> None:
    changelog = (root / "CHANGELOG.md").read_text("utf-8")
    assert re.search(r"^## (Unreleased|\d+\.\d+\.\d+)", changelog, re.MULTILINE)
    commands = [name for name in cli.list_commands(click.Context(cli)) if f"gates {name}" not in changelog]
    assert commands == []


MACHINES = re.compile(r"/(?:home|Users|root|work)/[a-z]")
TEXT = {".py", ".md", ".toml", ".yaml", ".yml", ".json", ".jsonl", ".txt", ".cfg", ".ini", ".head", ""}
MADE = {"__pycache__", "build", "dist"}
BY_A_MODEL = "prereg/panel/generations.jsonl"  # recorded as a model wrote it, addresses that it made up included


def shipped(root: Path) -> Iterator[Path]:
    """Every text file that somebody wrote but this one, hidden folders (environments, caches) and built ones apart."""
    apart = (Path(__file__), root / BY_A_MODEL)
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        unwanted = any(part.startswith(".") or part in MADE for part in parts)
        if path.is_file() and path.suffix in TEXT and not unwanted and path not in apart:
            yield path


def test_no_file_names_a_machine(root: Path) -> None:
    files = list(shipped(root))
    assert len(files) > 100
    found = [
        f"{path.relative_to(root)}:{number}: {match[0]}"
        for path in files
        for number, line in enumerate(path.read_text("utf-8").split("\n"), 1)
        if (match := MACHINES.search(line))
    ]
    assert found == []


def test_the_lock_pins_everything_that_is_declared(root: Path, project: dict[str, Any]) -> None:
    lock = (root / "requirements.lock").read_text("utf-8")
    pinned = dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", lock, re.MULTILINE))
    assert "://" not in lock
    assert len(re.findall(r"^[a-z0-9]", lock, re.MULTILINE)) <= lock.count("--hash=sha256:")
    extras = (project["optional-dependencies"][name] for name in ("embedded", "report", "cluster"))
    declared = [Requirement(one) for one in (*project["dependencies"], *(one for extra in extras for one in extra))]
    unmet = [str(one) for one in declared if not one.specifier.contains(pinned.get(canonicalize_name(one.name), "0"))]
    assert unmet == []


def test_an_advisory_fails_the_audit_and_what_was_not_asked_is_said() -> None:
    from scripts.audit import told  # noqa: PLC0415 - a script, not a module of the package

    clean, skipped = {"name": "a", "version": "1", "vulns": []}, {"name": "b", "skip_reason": "unknown"}
    bad = {"name": "c", "version": "2", "vulns": [{"id": "CVE-1", "fix_versions": ["2.1"]}]}
    assert told({"dependencies": [clean, skipped]}) == (["1 of 2 packages audited, 0 advisories"], 0)
    assert told({"dependencies": [clean, bad]}) == (
        ["c 2: CVE-1, fixed in 2.1", "2 of 2 packages audited, 1 advisories"],
        1,
    )


def test_an_audit_that_could_not_be_made_fails_unless_nobody_answered() -> None:
    from scripts.audit import main, not_told  # noqa: PLC0415 - a script, not a module of the package

    gone = "Traceback\nrequests.exceptions.ProxyError: HTTPSConnectionPool(host='x'): Max retries exceeded"
    assert not_told(gone)[1] == 0
    assert not_told("ERROR:pip_audit._cli:Could not connect to PyPI's vulnerability feed")[1] == 0
    assert not_told("No module named pip_audit") == (["not audited: pip-audit failed (No module named pip_audit)"], 1)
    assert main("no-such.lock") == 1


def test_continuous_integration_audits_the_lock(root: Path) -> None:
    assert "make audit" in (root / ".ci" / "run").read_text("utf-8").splitlines()
    assert "scripts/audit.py" in (root / "Makefile").read_text("utf-8").split("audit: ")[1].split("\n\n")[0]
