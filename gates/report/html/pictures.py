"""The pictures of voice: seeds against the floor, the way to the author, imposters, prompts, and words that moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gates.judge.axes import AxisVerdict
from gates.judge.verdict import Verdict
from gates.measure.figures import Measurements, VoiceFigures
from gates.measure.movers import Mover
from gates.report.html.model import Page
from gates.report.html.svg import BAND, GRID, INK, MUTED, drawing, finish, series, short
from gates.report.wording import number

Rows = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Picture:
    """A drawing with one sentence that says what it shows, and the numbers behind it."""

    name: str
    title: str
    caption: str
    svg: Markup
    head: tuple[str, ...]
    rows: Rows


def voices(measurements: Measurements) -> dict[str, VoiceFigures]:
    """The arms whose voice was measured, candidates first."""
    order = sorted(measurements.arms.items(), key=lambda item: item[1].role)
    return {name: arm.voice for name, arm in order if isinstance(arm.voice, VoiceFigures)}


def looks(measurements: Measurements) -> dict[str, tuple[str, str]]:
    """The colour and the marker of every arm, the same in all pictures: the base, then candidates, then controls."""
    order = sorted(measurements.arms.items(), key=lambda item: item[1].role)
    others = (name for name, arm in order if arm.role != "base")
    return {"base": (MUTED, "o")} | {name: series(place) for place, name in enumerate(others)}


def voice_axis(verdict: Verdict, name: str) -> AxisVerdict | None:
    """What the gate says of an arm's voice."""
    judged = verdict.candidates.get(name) or verdict.controls.get(name)
    return judged.axes.get("voice") if judged else None


def pictures_of_voice(page: Page) -> list[Picture]:
    """Every picture that there are figures for."""
    found = voices(page.measurements)
    if not found:
        return []
    return [
        _seeds(page, found),
        _span(page, found),
        *([_imposters(found, looks(page.measurements))] if any(one.imposters for one in found.values()) else []),
        _influence(page, found),
        *(_movers(place, name, page) for place, name in enumerate(looks(page.measurements)) if name in page.movers),
    ]


def _seeds(page: Page, found: Mapping[str, VoiceFigures]) -> Picture:
    """Distances of every seed, the base on top, and the band that a candidate's mean must leave to the left."""
    base = next(iter(found.values())).base_distances
    middle = sum(base) / len(base)
    rows = [("base", str(seed), number(d), "", "") for seed, d in zip(_seeds_of(page, "base"), base, strict=False)]
    with drawing(0.9 + 0.42 * (1 + len(found))) as figure:
        axes = figure.add_subplot()
        axes.axvline(middle, color=MUTED, linewidth=0.8, linestyle=(0, (3, 3)))
        _dots(axes, len(found), base, MUTED, "o")
        for place, (name, figures) in enumerate(found.items()):
            height = len(found) - 1 - place
            judged = voice_axis(page.verdict, name)
            bound = judged.threshold if judged else None
            if bound is not None:
                axes.fill_betweenx([height - 0.36, height + 0.36], middle - bound, middle + bound, color=BAND, lw=0)
            _dots(axes, height, figures.distances, *looks(page.measurements)[name])
            rows += [
                (name, str(seed), number(d), number(bound), number(middle - bound if bound is not None else None))
                for seed, d in zip(_seeds_of(page, name), figures.distances, strict=False)
            ]
        _rows(axes, ["base", *found])
        axes.set_xlabel("distance to the held-out author (left is nearer)")
        svg = finish(figure, "seeds", f"Distances of {len(found) + 1} arms, seed by seed; the numbers are in the table")
    caption = (
        "Each dot is one seed, the upright stroke an arm's mean; a candidate moved beyond the floor when its stroke "
        "lies left of its grey band, which is what seeds alone produce around the base."
    )
    head = ("arm", "seed", "distance", "floor required", "mean must be below")
    return Picture("seeds", "Every seed against the floor", caption, svg, head, tuple(rows))


def _dots(axes: Axes, height: float, values: tuple[float, ...], colour: str, marker: str) -> None:
    axes.plot(values, [height] * len(values), marker, color=colour, markersize=6, fillstyle="none", markeredgewidth=1.6)
    axes.plot([sum(values) / len(values)] * 2, [height - 0.3, height + 0.3], color=colour, linewidth=2.2)


def _span(page: Page, found: Mapping[str, VoiceFigures]) -> Picture:
    """From the base, at 0, to the author's own text: where the candidate stands, with its interval and its floor."""
    rows = []
    with drawing(0.95 + 0.5 * len(found)) as figure:
        axes = figure.add_subplot()
        axes.axvline(0, color=MUTED, linewidth=0.8, linestyle=(0, (3, 3)))
        for place, (name, figures) in enumerate(found.items()):
            height, (colour, marker) = len(found) - 1 - place, looks(page.measurements)[name]
            judged = voice_axis(page.verdict, name)
            bound = judged.threshold if judged else None
            if figures.span is not None:
                axes.barh(height, figures.span, height=0.5, color=BAND)
                axes.plot([figures.span] * 2, [height - 0.25, height + 0.25], color=INK, linewidth=2)
            if bound is not None:
                axes.plot([bound] * 2, [height - 0.32, height + 0.32], color=MUTED, linewidth=1.4, linestyle=":")
            axes.plot(figures.interval, [height] * 2, color=colour, linewidth=2.2)
            axes.plot(figures.delta, height, marker, color=colour, markersize=8)
            closed = "–" if figures.span_closed is None else f"{figures.span_closed:.1%}"
            interval = f"{figures.interval[0]:+.3f} to {figures.interval[1]:+.3f}"
            move, span = number(figures.delta, signed=True), number(figures.span)
            rows.append((name, move, interval, number(bound), span, closed))
        _rows(axes, list(found))
        axes.set_xlabel("move toward the held-out author (the base is at 0)")
        svg = finish(figure, "span", "How far each arm moved from the base toward the author's own text")
    caption = (
        "Each mark is an arm's move with its descriptive 95 % interval over prompts; the grey bar runs from the base "
        "to where the author's own unseen text stands (dark end), and the dotted stroke is what the floor requires."
    )
    head = ("arm", "move", "95 % over prompts", "required", "span to own text", "span closed")
    return Picture("span", "How far on the way to the author", caption, svg, head, tuple(rows))


def _imposters(found: Mapping[str, VoiceFigures], look: Mapping[str, tuple[str, str]]) -> Picture:
    goals = list(dict.fromkeys(who for figures in found.values() for who in figures.imposters))
    rows = []
    with drawing(0.95 + (0.32 + 0.16 * len(found)) * (1 + len(goals))) as figure:
        axes = figure.add_subplot()
        axes.axvline(0, color=MUTED, linewidth=0.8)
        thick = 0.7 / len(found)
        for place, (name, figures) in enumerate(found.items()):
            colour, marker = look[name]
            moves = [figures.delta, *(figures.imposters.get(who, float("nan")) for who in goals)]
            heights = [len(goals) - at + 0.35 - thick * (place + 0.5) for at in range(len(moves))]
            axes.hlines(heights, 0, moves, color=colour, linewidth=2.2)
            axes.plot(moves, heights, marker, color=colour, markersize=6, linestyle="none", label=short(name))
            moved = [number(move, signed=True) for move in moves]
            rows.append((name, *moved, number(figures.specificity, signed=True)))
        _rows(axes, ["the author", *goals], below=-0.6)
        _legend(figure, axes, len(found))
        axes.set_xlabel("move toward (right) or away from")
        svg = finish(figure, "imposters", "Moves toward the author and toward each imposter")
    caption = (
        "A voice that was learnt moves toward its author and not toward everybody of the time: the author's line "
        "should be far longer than the imposters'."
    )
    head = ("arm", "the author", *goals, "specificity")
    return Picture("imposters", "Toward this author, or toward anybody?", caption, svg, head, tuple(rows))


def _influence(page: Page, found: Mapping[str, VoiceFigures]) -> Picture:
    prompts = max(len(figures.influence) for figures in found.values())
    rows = [
        (f"{prompt + 1}: {page.prompts.get(prompt, '')}", *(_at(figures, prompt) for figures in found.values()))
        for prompt in range(prompts)
    ]
    with drawing(0.7 + (1.15 if len(found) < 3 else 0.85) * len(found)) as figure:
        panels = figure.subplots(len(found), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        look = looks(page.measurements)
        for axes, (name, figures) in zip(panels, found.items(), strict=True):
            axes.axhline(0, color=MUTED, linewidth=0.8)
            axes.bar(range(1, len(figures.influence) + 1), figures.influence, width=0.7, color=look[name][0])
            axes.set_title(short(name, 60))
            axes.grid(axis="y", linewidth=0.6)
            axes.set_axisbelow(True)
            axes.margins(x=0.02)
        panels[-1].set_xlabel("prompt")
        panels[-1].xaxis.get_major_locator().set_params(integer=True)
        svg = finish(figure, "influence", "How much the move would change without each prompt")
    caption = (
        "How much the move would change if one prompt were left out: no bar should come near the length of the move "
        "itself."
    )
    return Picture("influence", "Does one prompt carry it?", caption, svg, ("prompt", *found), tuple(rows))


def _at(figures: VoiceFigures, prompt: int) -> str:
    return number(figures.influence[prompt] if prompt < len(figures.influence) else None, signed=True)


def _movers(place: int, name: str, page: Page) -> Picture:
    """For each word three marks on one line: base, arm, author."""
    movers, (colour, marker) = page.movers[name], looks(page.measurements)[name]
    moved = (*movers.up, *reversed(movers.down))
    with drawing(1.1 + 0.24 * len(moved)) as figure:
        axes = figure.add_subplot()
        axes.axvline(0, color=GRID, linewidth=0.8)
        heights = list(reversed(range(len(moved))))
        for height, mover in zip(heights, moved, strict=True):
            axes.plot([mover.base, mover.arm], [height] * 2, color=colour, linewidth=1.6)
        for values, sign, ink, who in (
            ([mover.base for mover in moved], "o", MUTED, "base"),
            ([mover.arm for mover in moved], marker, colour, short(name)),
            ([mover.author for mover in moved], "|", INK, "the author"),
        ):
            axes.plot(values, heights, sign, color=ink, linestyle="none", label=who, markersize=7, markeredgewidth=1.6)
        _rows(axes, [mover.word for mover in moved])
        axes.set_xlabel("how often a word is used, in sd of the reference (0 = as there)")
        _legend(figure, axes, 3)
        svg = finish(figure, f"movers-{place}", f"The words that {name} uses more and less often than the base")
    caption = (
        f"The frequent words whose use changed most from the base to {name}, more often above, less often below; "
        f"on {movers.toward:.0%} of all words of the frame it came nearer to the author."
    )
    head = ("word", "base", "arm", "author", "shift", "range over seeds", "nearer to the author")
    rows = tuple(_mover(mover) for mover in moved)
    return Picture(f"movers-{place}", f"Which words make the voice of {name}", caption, svg, head, rows)


def _mover(mover: Mover) -> tuple[str, ...]:
    figures = (mover.base, mover.arm, mover.author, mover.shift)
    shown = (number(figure, signed=True) for figure in figures)
    return (mover.word, *shown, number(mover.spread), "yes" if mover.toward else "no")


def _seeds_of(page: Page, arm: str) -> tuple[int, ...]:
    return page.measurements.arms[arm].seeds


def _rows(axes: Axes, names: list[str], below: float = -0.5) -> None:
    """One named row each, the first on top, with light lines between them."""
    axes.set_yticks(list(reversed(range(len(names)))), [short(name) for name in names])
    axes.set_ylim(below, len(names) - 0.5)
    axes.grid(axis="x", linewidth=0.6)
    axes.set_axisbelow(True)


def _legend(figure: Figure, axes: Axes, entries: int) -> None:
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=min(entries, 3))
