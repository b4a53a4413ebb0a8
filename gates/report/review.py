"""A reading in the terminal: what is to be read, and each item with its context, all of it as plain text to rich."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gates.measure.memorisation import Excerpt
from gates.record.review import Mark
from gates.record.review_list import Item
from gates.report.wording import one_line
from gates.spec.source import printable

NAMED = 10
"""How much of an item's hash is shown as its name."""

AGAINST = {
    "train": "words of the train split",
    "train-near": "words of the train split, a few changed",
    "protected": "words of a protected text",
    "probe": "words of the train split, in an answer to the probe",
    "probe-near": "words of the train split, a few changed, in an answer to the probe",
    "probe-protected": "words of a protected text, in an answer to the probe",
}


def why(item: Item) -> str:
    """What put an item on the list."""
    if item.match is not None:
        return f"{item.match.length} {AGAINST[item.match.against]}"
    return ", ".join(item.why)


def place(item: Item) -> str:
    """Where an item stands; prompts are counted from 0, as in every record."""
    return f"{item.arm}, prompt {item.prompt}, seed {item.seed}"


def reading_table(items: Mapping[str, Item], marks: Mapping[str, Mark]) -> RenderableType:
    """One row an item: its name, where it stands, why it is to be read, and what the reader said of it."""
    table = Table(expand=False)
    for name in ("item", "text", "why", "mark", "note"):
        table.add_column(name, no_wrap=name == "item", overflow="fold")
    for name, item in items.items():
        mark = marks.get(name)
        told = "unread" if mark is None else " ".join(filter(None, (mark.mark, mark.label)))
        cells = (name[:NAMED], place(item), why(item), told, mark.note if mark else "")
        table.add_row(*(Text(one_line(cell)) for cell in cells))
    return table


def excerpt_text(words: Excerpt) -> Text:
    """A run in its context, marked by brackets and by style."""
    return Text.assemble(
        (f"… {printable(words.before)} ", "dim"),
        (f"[[{printable(words.run)}]]", "bold reverse"),
        (f" {printable(words.after)} …", "dim"),
    )


def several_lines(text: str) -> str:
    """Any text with its line breaks, every other control character made visible."""
    return "\n".join(map(printable, text.splitlines()))


def lines(parts: Iterable[str | Text]) -> RenderableType:
    """Paragraphs of plain text, one under another."""
    return Group(*(Text(part) if isinstance(part, str) else part for part in parts))
