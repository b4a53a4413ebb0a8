"""The documentation: links that lead somewhere, commands that exist, and pages whose commands do what they say."""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from gates.cli import cli
from tests.conftest import ROOT
from tests.docs.walk import Command, steps, walk

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
MADE = {ROOT / "docs" / "reference" / name for name in ("commands.md", "gate.md")}
"""Pages that scripts/reference.py makes when the site is built."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    links = [link.split("#")[0] for link in LINK.findall(text) if "://" not in link]
    lost = [link for link in links if link and (page.parent / link).resolve() not in MADE]
    assert [link for link in lost if not (page.parent / link).exists()] == []


READERS = {"yaml": yaml.safe_load, "json": json.loads, "python": ast.parse, "toml": tomllib.loads}
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_blocks_are_of_the_language_they_name(page: Path) -> None:
    for language, text in FENCE.findall(page.read_text("utf-8")):
        READERS.get(language, str)(text)


def test_every_page_stands_in_the_site(root: Path) -> None:
    site = (root / "mkdocs.yml").read_text("utf-8")
    pages = {path.relative_to(root / "docs").as_posix() for path in (root / "docs").rglob("*.md")}
    assert {page for page in pages if page not in site} == set()


def commands_of(page: Path) -> Iterator[tuple[int, list[str]]]:
    """Every `gates ...` that a page's console fences call, as words, with its line."""
    for step in steps(page.read_text("utf-8")):
        if isinstance(step, Command):
            for part in re.split(r"[;|&]|\$\(|\bdo\b", step.text.replace("\\\n", " ")):
                words = shlex.split(part.split(" #")[0], posix=False) if part.strip().startswith("gates ") else []
                if words:
                    yield step.line, words[1:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_their_options_exist(page: Path) -> None:
    wrong = [f"{page.name}:{line}: gates {' '.join(words)}" for line, words in commands_of(page) if unknown(words)]
    assert wrong == []


def unknown(words: list[str]) -> bool:
    """Whether a call names a command or an option that is not there."""
    command: click.Command = cli
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            return True
        command, words = found, words[1:]
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    return any(word.split("=")[0] not in known | {"--help", "-h"} for word in words if word.startswith("--"))


def test_the_readme_knows_every_command(root: Path) -> None:
    text = (root / "README.md").read_text("utf-8")
    unknown = [name for name in cli.list_commands(click.Context(cli)) if not re.search(rf"gates {name}\b", text)]
    assert unknown == []


def test_an_unknown_option_is_found() -> None:
    assert unknown(["run", "prereg/x.yaml", "--nonsense"])
    assert unknown(["seat", "nonsense"])
    assert not unknown(["seat", "status", "--json"])


def test_the_reference_is_made_of_every_command_and_key() -> None:
    from scripts.reference import commands, gate  # noqa: PLC0415 - the script needs mkdocs, these tests do not

    made = commands()
    for name in ("check", "seat compose", "corpora fetch", "verify"):
        assert f"## gates {name}\n" in made
    keys = gate()
    assert "| `words_per_seed` | integer ≥ 100, ≤ 1e+06 | required |" in keys
    assert "[Memorisation](#memorisation)" in keys


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_operate(root: Path, workspace: Path, cache: Path, port: str, tmp_path: Path) -> None:
    page = tmp_path / "operate.md"
    page.write_text((root / "docs" / "operate.md").read_text("utf-8").replace("8027", port), "utf-8")
    assert walk(page, workspace, GATES_CACHE=str(cache)) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_tutorials(root: Path, workspace: Path, cache: Path) -> None:
    """One after another in one workspace: a run is made in the first and signed off in the last."""
    for name in ("preregister", "signoff"):
        assert walk(root / "docs" / "tutorials" / f"{name}.md", workspace, GATES_CACHE=str(cache)) == []
