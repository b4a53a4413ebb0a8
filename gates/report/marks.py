"""Markdown that hostile text cannot bend: lines, code, tables, bullets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from gates.report.wording import one_line

# What Markdown reads as mark-up anywhere, bare addresses that some readers link, and what starts a list or heading.
# An underscore inside a word means nothing.
_SPECIAL = re.compile(
    r"[\\`*\[\]|~$]|_(?![^\W_])|(?<![^\W_])_|:(?=//)|(?<=www)\.|^[-+#=]|^\d+[.)](?= |$)", re.IGNORECASE
)


def plain(text: object) -> str:
    """Any text as one line that Markdown and HTML show as it is."""
    return _SPECIAL.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", escape(one_line(text), quote=False))


def code(text: str) -> str:
    """A machine's word (hash, signature, name) in code style; back quotes and line breaks taken out."""
    return f"`{one_line(text.replace('`', ' ').replace('|', '¦')) or '–'}`"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """A Markdown table."""
    names = list(head)
    return [
        f"| {' | '.join(names)} |",
        f"|{'|'.join(' --- ' for _ in names)}|",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]


def bullets(title: str, sentences: Iterable[str], none: str) -> list[str]:
    """A section of sentences; `none` stands there when there are none."""
    listed = [f"- {plain(sentence)}" for sentence in sentences]
    return [f"## {title}", "", *(listed or [none]), ""]
