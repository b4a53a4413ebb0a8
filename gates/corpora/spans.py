"""Stretches of a text, as (start, end) in characters: finding paragraphs and cutting stretches out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Span = tuple[int, int]


def paragraphs(text: str) -> Iterator[Span]:
    """Spans of the runs of lines that are not blank, line ends included."""
    at, start = 0, -1
    for line in text.splitlines(keepends=True):
        if line.strip():
            start = at if start < 0 else start
        elif start >= 0:
            yield start, at
            start = -1
        at += len(line)
    if start >= 0:
        yield start, at


def without(text: str, spans: Iterable[Span]) -> str:
    """The text less the spans, which may touch, overlap and come in any order."""
    kept, at = [], 0
    for start, end in sorted(spans):
        kept.append(text[at : max(start, at)])
        at = max(at, end)
    return "".join([*kept, text[at:]])
