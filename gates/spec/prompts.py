"""From beats and a template to the prompts that an arm is shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gates.errors import Problem
from gates.spec.asking import Message, Prompts
from gates.spec.schema import Gate
from gates.spec.source import listed, located, read_text, shown, unreadable

BEAT = "{beat}"
MAX_BEAT = 10_000

Rendered = tuple[Message, ...] | str
"""Chat messages, or the text for the completions endpoint."""


class Shown(NamedTuple):
    """A beat and the template that it is shown in."""

    beat: str
    prompts: Prompts


def all_shown(gate: Gate, beats: Sequence[str], probe: Sequence[str]) -> tuple[Shown, ...]:
    """Every prompt of a run by its number: the open beats first, then the probe's."""
    asked = [Shown(beat, gate.prompts) for beat in beats]
    return (*asked, *(Shown(beat, gate.probe) for beat in probe if gate.probe is not None))


def read_beats(path: Path) -> tuple[str, ...]:
    """The beats of a text file, one a line, in order; blank lines and space around a beat are passed over.

    Raises InputError, with line numbers, for a file that is not plain UTF-8 text, for a beat that stands there twice or
    has more than 10,000 characters, and for a file without beats.
    """
    first: dict[str, int] = {}
    problems: list[Problem] = []
    for line, text in enumerate(read_text(path).split("\n"), 1):
        beat = text.strip()
        if not beat:
            continue
        if beat in first:
            rule = f"the beat stands in line {first[beat]} already"
            problems.append(located(path, line, "beat", shown(beat), rule, "remove one of them"))
        elif len(beat) > MAX_BEAT:
            rule = f"a beat has at most {MAX_BEAT:,} characters, this has {len(beat):,}"
            problems.append(located(path, line, "beat", shown(beat), rule))
        first.setdefault(beat, line)
    if problems:
        raise listed(path, problems)
    if not first:
        raise unreadable(path, 1, "", "the file holds no beat", "write one beat a line")
    return tuple(first)


def render(prompts: Prompts, beat: str, system: str | None) -> Rendered:
    """The prompt for one beat: chat messages, or one text for the completions endpoint.

    `{beat}` in the template is replaced once; braces in the beat mean nothing. An arm's own `system` line replaces the
    template's system messages, or is put before the others; before a text it stands with a blank line between.
    """
    if isinstance(prompts.template, str) and prompts.endpoint == "completions":
        text = prompts.template.replace(BEAT, beat, 1)
        return text if system is None else f"{system}\n\n{text}"
    if isinstance(prompts.template, str):
        messages: tuple[Message, ...] = (Message(role="user", content=prompts.template),)
    else:
        messages = prompts.template
    filled = tuple(_fill(message, beat) for message in messages)
    if system is None:
        return filled
    return (Message(role="system", content=system), *(message for message in filled if message.role != "system"))


def _fill(message: Message, beat: str) -> Message:
    # a copy is not validated again: template and beat each keep their own limit of length
    return message.model_copy(update={"content": message.content.replace(BEAT, beat, 1)})


def prompt_text(rendered: Rendered) -> str:
    """Everything the model was shown, as one text, so that the prompt's own n-grams can be told from copied ones."""
    return rendered if isinstance(rendered, str) else "\n\n".join(message.content for message in rendered)
