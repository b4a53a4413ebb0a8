"""Manners of the command line: help that shows an example and the exit codes, quiet, colours, completion, a start."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from gates.cli import cli
from gates.cli.examples import EXAMPLES, EXITS
from gates.cli.output import manners
from gates.cli.show import console, progress
from gates.corpora.texts import load_manifest
from gates.seat.progress import Progress
from gates.spec.load import load_gate
from tests.flow.conftest import gates


def leaves() -> Iterator[tuple[str, click.Command, click.Context]]:
    def below(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command, click.Context]]:
        if not isinstance(command, click.Group):
            yield context.command_path, command, context
            return
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from below(found, click.Context(found, info_name=name, parent=context))

    yield from below(cli, click.Context(cli, info_name="gates", terminal_width=200))


COMMANDS = {path: (command, context) for path, command, context in leaves()}


@pytest.mark.parametrize("path", COMMANDS)
def test_help_shows_an_example_and_the_exit_codes(path: str) -> None:
    command, context = COMMANDS[path]
    usage, rest = command.get_help(context).split("\n", 1)
    assert usage.startswith("Usage: ")
    assert f" {path} " in " ".join(rest.split())
    assert "5 TAMPERED" in rest


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_examples_can_be_parsed(line: str) -> None:
    words = shlex.split(line.partition(" > ")[0])
    path = " ".join(words[:3]) if " ".join(words[:3]) in COMMANDS else " ".join(words[:2])
    command, context = COMMANDS[path]
    command.make_parser(context).parse_args(words[len(path.split()) :])


def test_every_example_is_of_a_command() -> None:
    assert set(EXAMPLES) <= set(COMMANDS)
    assert all(line.startswith(path) for path, lines in EXAMPLES.items() for line in lines)
    assert EXITS in cli.epilog


def test_quiet_says_only_what_is_needed(tmp_path: Path) -> None:
    loud = gates("init", tmp_path / "a")
    quiet = gates("init", tmp_path / "b", "--quiet")
    assert (loud.returncode, quiet.returncode) == (0, 0)
    assert quiet.stdout.replace(str(tmp_path / "b"), str(tmp_path / "a")) == loud.stdout
    failed = gates("check", tmp_path / "none.yaml", "--quiet")
    assert failed.returncode == 2
    assert "there is no such file" in failed.stderr


def test_quiet_generates_without_a_word(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manners, "quiet", True)
    with progress() as watch:
        watch(Progress(done=2, total=2, completion_tokens=8, retries=0, errors={}))
    assert capsys.readouterr() == ("", "")


def test_no_color_prints_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert console().no_color is False
    monkeypatch.setattr(manners, "no_color", True)
    assert console().no_color is True
    monkeypatch.setattr(manners, "no_color", False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert console().no_color is True


def test_a_flag_of_all_commands_may_stand_anywhere_but_behind_the_last_option(tmp_path: Path) -> None:
    assert gates("init", tmp_path / "x", "--no-color", "--quiet", "--json").returncode == 0
    assert gates("--quiet", "init", tmp_path / "y").returncode == 0
    ended = gates("check", "--", "--quiet")
    assert ended.returncode == 2
    assert "--quiet" in ended.stderr


@pytest.mark.parametrize(
    ("typed", "meant"), [("chek", "check"), ("reprot", "report"), ("verfy", "verify"), ("stauts", "status")]
)
def test_a_mistyped_command_is_told_what_was_meant(typed: str, meant: str) -> None:
    ended = gates(typed)
    assert ended.returncode == 2
    assert f"Did you mean '{meant}'?" in ended.stderr


def completed(line: str) -> list[str]:
    words = shlex.split(line) + ([""] if line.endswith(" ") else [])
    environ = os.environ | {
        "_GATES_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    code = "import sys; sys.argv[0] = 'gates'; from gates.cli import main; main()"
    ended = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False)
    return [found.split(",", 1)[1] for found in ended.stdout.splitlines()]


def test_the_shell_completes_commands_and_options() -> None:
    assert completed("gates re") == [name for name in cli.list_commands(click.Context(cli)) if name.startswith("re")]
    assert "--with-sources" in completed("gates report --w")
    assert {"load", "unload", "status"} <= set(completed("gates seat "))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_calls_the_command(shell: str) -> None:
    ended = gates("completion", shell)
    assert ended.returncode == 0
    assert f"_GATES_COMPLETE={shell}_complete" in ended.stdout


def test_help_starts_without_what_it_does_not_need(root: Path) -> None:
    code = (
        "import sys; sys.argv = ['gates', '--help']\n"
        "from gates.cli import main\n"
        "try: main()\n"
        "except SystemExit: print([n for n in ('numpy', 'pandas', 'pydantic', 'rich', 'openai') if n in sys.modules])"
    )
    environ = os.environ | {"PYTHONPATH": str(root)}
    ended = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    assert ended.stdout.endswith("[]\n")


def test_a_new_workspace_lacks_only_what_is_its_owners(tmp_path: Path) -> None:
    ended = gates("init", tmp_path / "voices", "--name", "lv-bronte")
    assert ended.returncode == 0
    home = tmp_path / "voices"
    gate = load_gate(home / "prereg" / "lv-bronte.yaml")
    assert (gate.name, gate.prompts.file) == ("lv-bronte", "lv-bronte/beats.txt")
    assert [load_manifest(home, name).name for name in ("my-author", "my-reference")] == ["my-author", "my-reference"]
    steps = yaml.safe_load((home / ".github/workflows/gates.yaml").read_text("utf-8"))["jobs"]["verdict"]["steps"]
    assert "gates ci reports/lv-bronte/001 --junit gates.xml" in [step.get("run") for step in steps]
    checked = gates("check", home / "prereg" / "lv-bronte.yaml")
    assert checked.returncode == 2
    missing = [line for line in checked.stdout.splitlines() if line.startswith("missing: ")]
    assert missing
    assert all("my-author" in line or "my-reference" in line for line in missing)


def test_a_workspace_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("mine", "utf-8")
    ended = gates("init", tmp_path)
    assert ended.returncode == 2
    assert "there already: " in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == [".gitignore"]
    assert gates("init", tmp_path / "x", "--name", "../y").returncode == 2
