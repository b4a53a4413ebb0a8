"""How commands print: one JSON document on stdout, or text for people; sentences on the side go to stderr.

Light to import, for `gates --help` needs it too.
"""

from __future__ import annotations

import json

import click

from gates.spec.source import printable


def tell(text: str) -> None:
    """Text for a person, on stdout, its control characters made visible: some of it comes from manifests and seats."""
    click.echo(_harmless(text))


def say(sentence: str) -> None:
    """One sentence for a person, on stderr, as harmless as in `tell`."""
    click.echo(_harmless(sentence), err=True)


def print_json(document: object) -> None:
    """The one JSON document of a command; in ASCII, which every terminal and encoding carries."""
    click.echo(json.dumps(document, indent=2, allow_nan=False))


def _harmless(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))
