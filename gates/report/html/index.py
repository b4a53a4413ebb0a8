"""The index page of a workspace: every run over time, and for each author how far its candidates moved."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from gates.records import Outcome
from gates.report.html.counts import COLOURS
from gates.report.html.model import Line
from gates.report.html.page import content_hash, environment, part
from gates.report.html.pictures import Picture
from gates.report.html.svg import MUTED, drawing, finish, short
from gates.report.wording import number

MOST = 40
"""Candidates in one picture: the newest."""


def render_index(lines: Sequence[Line], name: str) -> str:
    """The page; links lead to the runs' own pages beside it."""
    css = part("page.css")
    authors = list(dict.fromkeys(line.author for line in lines if line.move is not None))
    return (
        environment()
        .from_string(part("shared.html") + part("index.html"))
        .render(
            name=name,
            lines=list(lines),
            pictures=[_trend(place, author, lines) for place, author in enumerate(authors)],
            number=number,
            css=Markup(css),  # noqa: S704 - our own file
            policy=f"default-src 'none'; style-src '{content_hash(css)}'; base-uri 'none'; form-action 'none'",
        )
    )


def _trend(place: int, author: str, lines: Sequence[Line]) -> Picture:
    shown = [line for line in lines if line.author == author and line.move is not None][-MOST:]
    rows = []
    with drawing(0.8 + 0.34 * len(shown)) as figure:
        axes = figure.add_subplot()
        axes.axvline(0, color=MUTED, linewidth=0.8)
        for height, line in zip(reversed(range(len(shown))), shown, strict=True):
            outcome = Outcome(line.outcome)
            axes.hlines(height, 0, line.move or 0.0, color=COLOURS[outcome], linewidth=2.2)
            marker = "o" if outcome is Outcome.PASS else "X"
            axes.plot(line.move or 0.0, height, marker, color=COLOURS[outcome], markersize=7)
            if line.required is not None:
                axes.plot(
                    [line.required] * 2, [height - 0.35, height + 0.35], color=MUTED, linewidth=1.4, linestyle=":"
                )
            named, moved = f"{line.place} {line.candidate}", number(line.move, signed=True)
            rows.append((named, line.begun, moved, number(line.required), line.outcome))
        axes.set_yticks(list(reversed(range(len(shown)))), [short(f"{n.place} {n.candidate}", 34) for n in shown])
        axes.set_ylim(-0.6, len(shown) - 0.4)
        axes.grid(axis="x", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_xlabel("move toward the held-out author")
        svg = finish(figure, f"trend-{place}", f"Moves of every candidate toward {author}, the oldest run on top")
    caption = (
        "Every candidate in the order of time, the newest last: how far it moved, what its floor required (dotted), "
        "and in colour and shape whether it passed the whole gate (a disc) or not (a cross)."
    )
    head = ("candidate", "begun", "move", "required", "verdict")
    return Picture(f"trend-{place}", f"{author} over time", caption, svg, head, tuple(rows))
