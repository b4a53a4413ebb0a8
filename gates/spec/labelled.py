"""Reading the labelled texts that a judging model is tried on."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from gates.errors import Problem
from gates.spec.judging import Labelled
from gates.spec.source import listed, located, read_text, shown

FEWEST_LABELLED = 10
"""Of each answer: fewer labelled texts say next to nothing of a judge."""


def read_labelled(path: Path) -> tuple[Labelled, ...]:
    """The labelled texts of a JSONL file: `{"beat": ..., "text": ..., "on_beat": true}` a line.

    Raises InputError, with line numbers, for lines that are no such thing, for one that stands there twice, and for a
    file with fewer than FEWEST_LABELLED texts of either answer.
    """
    found: dict[tuple[str, str], Labelled] = {}
    problems: list[Problem] = []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            one = Labelled.model_validate_json(line)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"])) or "line"
            problems.append(located(path, number, place, shown(line), first["msg"]))
            continue
        if (one.beat, one.text) in found:
            problems.append(located(path, number, "text", shown(one.text), "the text stands there already"))
        found[one.beat, one.text] = one
    counts = {answer: sum(one.on_beat is answer for one in found.values()) for answer in (True, False)}
    if not problems and min(counts.values()) < FEWEST_LABELLED:
        rule = (
            f"{counts[True]} texts are on their beat and {counts[False]} are not; {FEWEST_LABELLED} of each are needed"
        )
        problems.append(located(path, 0, "document", "", rule))
    if problems:
        raise listed(path, problems)
    return tuple(found.values())
