"""Marks and notes of the people who read a run: RUN/review.jsonl, one chained line a mark, never rewritten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field, StringConstraints

from gates.errors import UsageError
from gates.record.ledger import Stamp
from gates.record.lines import Chained, Lines
from gates.records import Record, Sha256

Label = Literal["stock-phrase", "quotation", "proper-name", "coincidence", "protectable"]
"""What a matched run of words is, in the reader's judgement."""

LABELS: tuple[Label, ...] = get_args(Label)

Note = Annotated[str, StringConstraints(max_length=2000)]


class Said(Record):
    """What a reader says of an item."""

    mark: Literal["ok", "bad"]
    label: Label | None = None
    note: Note = ""


class Mark(Chained):
    """One reading of one item (`gates.mark/1`): whether it is fit to ship, by whom, when. The reader's last one counts.

    `item` is the hash of the item, `list_sha256` of the reading list that holds it.
    """

    schema_: Literal["gates.mark/1"] = Field(default="gates.mark/1", alias="schema")
    list_sha256: Sha256
    item: Sha256
    mark: Literal["ok", "bad"]
    label: Label | None = None
    note: Note = ""


class Review(Lines[Mark]):
    """The marks of the run in `folder`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "review.jsonl", Mark, "review")

    def mark(self, list_sha256: str, item: str, said: Said, stamp: Stamp) -> Mark:
        """Append a mark; it is on the disk when this returns. What counts already is not said twice."""

        def known(marks: tuple[Mark, ...]) -> Mark | None:
            counts = latest(marks, list_sha256, stamp.by).get(item)
            same = counts is not None and (counts.mark, counts.label, counts.note) == (said.mark, said.label, said.note)
            return counts if same else None

        return self.add(
            lambda previous: Mark(
                previous=previous,
                list_sha256=list_sha256,
                item=item,
                mark=said.mark,
                label=said.label,
                note=said.note,
                at=stamp.at,
                by=stamp.by,
            ),
            known,
        )


def latest(marks: Sequence[Mark], list_sha256: str, by: str | None = None) -> dict[str, Mark]:
    """What counts: the last mark of each item of this list, by the items' hashes; of one reader, or of anybody."""
    return {m.item: m for m in marks if m.list_sha256 == list_sha256 and by in (None, m.by)}


def named(items: Mapping[str, object], name: str) -> str:
    """The hash of the one item that `name` begins. Raises UsageError when it begins none or several."""
    found = [item for item in items if name and item.startswith(name.lower())]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{name!r} begins {len(found)} items", next_step="give more of the item's name")
    raise UsageError(
        f"{name!r} is no item of this reading list", next_step="`gates review RUN` lists the items with their names"
    )
