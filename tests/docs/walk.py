"""Walking through a page of docs/: its files are written, its commands run in one shell, their output compared.

A page is written for people; three marks tell what a fence is:

- a fence after the comment `<!-- file: PATH -->` is written to that path of the workspace;
- a fence ```console holds commands after `$ ` (a backslash continues one) and, below each, the output to expect:
  `...` stands for anything, runs of blanks are one, and no output written down means that none is compared;
- a command that ends in `# exits N` must end with that exit code, every other one with 0.

Any other fence is only shown.
"""

from __future__ import annotations

import contextlib
import doctest
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(
    r"(?:<!-- file: (?P<file>\S+) -->\n)?^```(?P<kind>\S*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
_EXITS = re.compile(r"#.*\bexits (\d+)\b")
_END = "\x1eended "
_SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class File:
    """A file that the page shows and that its commands read."""

    path: str
    text: str


@dataclass(frozen=True)
class Command:
    """One command, the output the page shows below it, its exit code, and the page's line."""

    line: int
    text: str
    output: str
    exits: int


def steps(page: str) -> Iterator[File | Command]:
    """The files and commands of a page, in order."""
    for fence in _FENCE.finditer(page):
        if fence["file"]:
            yield File(fence["file"], fence["body"])
        elif fence["kind"] == "console":
            yield from _commands(fence["body"], page.count("\n", 0, fence.start("body")) + 1)


def _commands(body: str, first: int) -> Iterator[Command]:
    for part in re.finditer(r"^\$ (?P<text>(?:.*\\\n)*.*)\n(?P<output>(?:(?!\$ ).*\n)*)", body, re.MULTILINE):
        exits = _EXITS.search(part["text"])
        line = first + body.count("\n", 0, part.start())
        yield Command(line, part["text"], part["output"], int(exits[1]) if exits else 0)


def walk(page: Path, workspace: Path, **environment: str) -> list[str]:
    """Do what the page says, in `workspace`; returns what was otherwise than the page says. Stops at the first."""
    shell = subprocess.Popen(
        ["bash", "--noprofile", "--norc"],
        cwd=workspace,
        env={**os.environ, **_plain(), **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        for step in steps(page.read_text("utf-8")):
            if isinstance(step, File):
                path = workspace / step.path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(step.text, "utf-8")
            elif wrong := _run(shell, step):
                return [f"{page.name}:{step.line}: {wrong}"]
    finally:
        _close(shell)
    return []


def _plain() -> dict[str, str]:
    """What makes output the same everywhere: this Python's commands first, 120 columns, no colour."""
    folder = str(Path(sys.executable).parent)
    return {"PATH": folder + os.pathsep + os.environ["PATH"], "COLUMNS": "120", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}


def _run(shell: subprocess.Popen[str], command: Command) -> str:
    assert shell.stdin is not None
    assert shell.stdout is not None
    # What the shell would wait for the end of would never end.
    if subprocess.run(["bash", "-n", "-c", command.text], check=False, capture_output=True).returncode:
        return f"`{command.text}` is no whole command"
    shell.stdin.write(f"{command.text}\nprintf '\\n{_END}%s\\n' $?\n")
    shell.stdin.flush()
    output = []
    while (line := shell.stdout.readline()) and not line.startswith(_END):
        output.append(line)
    text, code = "".join(output).removesuffix("\n"), int(line.removeprefix(_END) or 255)
    if code != command.exits:
        return f"`{command.text}` exits {code}, not {command.exits}:\n{text}"
    checker = doctest.OutputChecker()
    if not command.output.strip() or checker.check_output(command.output.strip(), text.strip(), _SAME):
        return ""
    return f"`{command.text}` says\n{text}\nand not\n{command.output}"


def _close(shell: subprocess.Popen[str]) -> None:
    """End the shell and whatever it left running."""
    assert shell.stdin is not None
    shell.stdin.write("kill $(jobs -p) 2>/dev/null; wait; exit\n")
    shell.stdin.close()
    try:
        shell.wait(20)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
        assert shell.stdout is not None
        shell.stdout.close()
