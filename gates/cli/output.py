"""How commands print: one JSON document on stdout, or text for people; sentences on the side go to stderr.

Light to import, for `gates --help` needs it too.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import sys
from dataclasses import dataclass
from typing import TextIO

import click

from gates.spec.source import printable

_PLAIN = {"✔": "+", "✘": "x", "–": "-", "×": "x", "≤": "<="}
"""Signs of ours for a terminal without them: as `?`, PASS would look like INCONCLUSIVE."""


def open_streams() -> None:
    """Make standard streams that anything can be printed on: what is closed leads nowhere, what has no sign gets by.

    A closed stream is opened again, for otherwise the next file that is opened, a record, would take its number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - open until the end
    if isinstance(sys.stdout, io.TextIOWrapper):
        codecs.register_error("gates.plain", _plain)
        sys.stdout.reconfigure(errors="gates.plain")


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAIN.get(char, "?") for char in error.object[error.start : error.end]), error.end


def tell(text: str) -> None:
    """Text for a person, on stdout, its control characters made visible: some of it comes from manifests and seats."""
    # The stream is named, for where its encoding is ASCII click would write UTF-8 on it.
    click.echo(_harmless(text), file=sys.stdout)


@dataclass
class Manners:
    """How a command behaves beside its work: `quiet` says nothing on the side, `no_color` prints without colours."""

    quiet: bool = False
    no_color: bool = False


manners = Manners()


def set_manners(*, quiet: bool, no_color: bool) -> None:
    """Set the manners of this process, as the command line asks."""
    manners.quiet, manners.no_color = quiet, no_color


def command(line: str) -> None:
    """A command to the runner, on stdout; whoever makes it escapes the texts in it."""
    click.echo(line, file=sys.stdout)


def say(sentence: str, *, needed: bool = False) -> None:
    """One sentence for a person, on stderr, as harmless as in `tell`; under --quiet only what is `needed`."""
    if needed or not manners.quiet:
        click.echo(_harmless(sentence), err=True)


def print_json(document: object) -> None:
    """The one JSON document of a command; in ASCII, which every terminal and encoding carries."""
    text = json.dumps(document, indent=2, allow_nan=False)
    # Only within a string can these stand, and there an escape is the same sign.
    click.echo(text.replace("##", "#\\u0023") if on_runner() else text)


def on_runner() -> bool:
    """Whether this is a step of GitHub Actions, where a line of output may be a command to the runner."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


class Uncommanding:
    """A stream on which no line is a command to the runner; else as the stream itself."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write whole lines."""
        return self._stream.write(_uncommanding(text))


_COMMAND = re.compile(r"^(?=[^\S\n]*::)|(?<=#)(?=#\w*\[)", re.MULTILINE)
"""Where the runner sees a command begin: `::error::` after any blanks, and the older `##[error]` anywhere in a line."""


def _uncommanding(text: str) -> str:
    return _COMMAND.sub(r"\\", text)


def _harmless(text: str) -> str:
    shown = "\n".join(map(printable, text.split("\n")))
    return _uncommanding(shown) if on_runner() else shown
