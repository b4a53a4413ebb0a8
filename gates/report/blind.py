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
    """One row a candidate and reader; shares with their exact 95 % limits."""
    table = Table(expand=False)
    for name in HEAD:
        table.add_column(name, overflow="fold")
    for cells in readers_rows(measurements, tallies):
        table.add_row(*(Text(one_line(cell)) for cell in cells))
    return table


def readers_rows(measurements: Measurements, tallies: Sequence[Tally]) -> list[tuple[str, ...]]:
    """The cells under HEAD, one row a candidate and reader."""
    rows = []
    for tally in tallies:
        voice = measurements.arms[tally.arm].voice
        delta = number(voice.delta, signed=True) if isinstance(voice, VoiceFigures) else "not measured"
        shares = (*(tally.author[who] for who in ("author", "candidate", "base")),)
        best = (*(tally.best[who] for who in ("candidate", "base", "author")),)
        rows.append((tally.arm, delta, tally.by, *map(share, (*shares, *best))))
    return rows


def share(found: Share) -> str:
    """Hits of trials with the exact limits of their rate."""
    return f"{found.hits} of {found.n} [{found.low:.2f}, {found.high:.2f}]"
