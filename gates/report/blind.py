"""What blind readers say, beside the voice figure and never in it: rows, and a table of them in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from gates.measure.figures import Measurements, VoiceFigures
from gates.record.votes import Share, Tally
from gates.report.wording import number, one_line

HEAD = (
    "candidate",
    "delta_cb",
    "reader",
    "author known",
    "candidate taken for the author",
    "base taken for the author",
    "best: candidate",
    "best: base",
    "best: author",
)


def readers_table(measurements: Measurements, tallies: Sequence[Tally]) -> RenderableType:
    """One section a candidate and reader, a line a figure, which fits 80 columns; shares with exact 95 % limits."""
    table = Table(expand=False)
    for name in (*HEAD[:3], "figure", "share"):
        table.add_column(name, overflow="fold")
    for whose, delta, reader, *shares in readers_rows(measurements, tallies):
        table.add_section()
        first = (whose, delta, reader)
        for name, cell in zip(HEAD[3:], shares, strict=True):
            table.add_row(*(Text(one_line(one)) for one in (*first, name, cell)))
            first = ("", "", "")
    return table


def readers_rows(measurements: Measurements, tallies: Sequence[Tally]) -> list[tuple[str, ...]]:
    """The cells under HEAD, one row a candidate and reader."""
    rows = []
    for tally in tallies:
        arm = measurements.arms.get(tally.arm)
        voice = arm.voice if arm else None
        delta = number(voice.delta, signed=True) if isinstance(voice, VoiceFigures) else "not measured"
        delta = delta if arm else "no arm of this run"
        shares = (*(tally.author[who] for who in ("author", "candidate", "base")),)
        best = (*(tally.best[who] for who in ("candidate", "base", "author")),)
        rows.append((tally.arm, delta, tally.by, *map(share, (*shares, *best))))
    return rows


def share(found: Share) -> str:
    """Hits of trials with the exact limits of their rate."""
    return f"{found.hits} of {found.n} [{found.low:.2f}, {found.high:.2f}]"
