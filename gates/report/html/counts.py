"""The pictures of memorisation, damage, and what the rule can prove."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from gates.judge.axes import AxisVerdict
from gates.judge.verdict import Verdict
from gates.measure.figures import MemorisationFigures, NearRun, Run
from gates.records import Outcome
from gates.report.html.model import Page
from gates.report.html.pictures import Picture, looks
from gates.report.html.svg import BAND, FAIL, INK, INVALID, MUTED, PASS, UNSURE, drawing, finish, series, short
from gates.report.html.texts import title
from gates.report.wording import FIRST, number
from gates.stats import clopper_pearson

COLOURS = {Outcome.PASS: PASS, Outcome.FAIL: FAIL, Outcome.INCONCLUSIVE: UNSURE, Outcome.INVALID: INVALID}


def pictures_of_counts(page: Page) -> list[Picture]:
    """Every picture that there are figures for."""
    arms = {
        name: arm.memorisation
        for name, arm in page.measurements.arms.items()
        if isinstance(arm.memorisation, MemorisationFigures)
    }
    harms = _harms(page.verdict)
    return [
        *([_rates(page, arms)] if arms else []),
        *([_lengths(page, arms)] if any(figures.runs or figures.near.runs for figures in arms.values()) else []),
        *([_damage(harms)] if harms else []),
        *([_power(page)] if page.power else []),
    ]


def _rates(page: Page, arms: Mapping[str, MemorisationFigures]) -> Picture:
    """Hit-rates with exact limits, each arm's author's own rate below it."""
    asked = page.sealed.seal.gate.memorisation
    limit = asked.max_rate if asked else None
    rows, look = [], looks(page.measurements)
    order = [name for name in look if name in arms]
    with drawing(0.95 + 0.46 * len(arms)) as figure:
        axes = figure.add_subplot()
        if limit is not None:
            axes.axvline(limit, color=INK, linewidth=1.4, linestyle=":")
        for height, name in zip(reversed(range(len(order))), order, strict=True):
            found, own, (colour, marker) = arms[name], arms[name].self_collision, look[name]
            for hits, n, said, ink, sign, at in (
                (found.hits, found.generations, name, colour, marker, height + 0.13),
                (own.hits, own.windows, f"the author's own (beside {name})", MUTED, "x", height - 0.19),
            ):
                if n < 1:
                    continue
                low, high = clopper_pearson(hits, n)
                axes.plot([low, high], [at] * 2, color=ink, linewidth=2.2)
                axes.plot(hits / n, at, sign, color=ink, markersize=7)
                rows.append((said, str(hits), str(n), *map(number, (hits / n, low, high, limit))))
        axes.set_yticks(list(reversed(range(len(order)))), [short(name) for name in order])
        axes.grid(axis="x", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_xlim(left=-0.005)
        axes.set_ylim(-0.6, len(arms) - 0.5)
        axes.set_xlabel("share of texts that hold a run of the training text")
        svg = finish(figure, "memorisation", "Share of texts with copied words, by arm, beside the author's own rate")
    caption = (
        "How many texts repeat the training text word for word, with exact one-sided 95 % limits, and below each, "
        "with a cross, how often the author's own unseen text does"
        + ("; the dotted line is the most that the gate allows." if limit is not None else ".")
    )
    head = ("texts", "hits", "of", "rate", "lower limit", "upper limit", "allowed")
    return Picture("memorisation", "Copied words, against the author's own habit", caption, svg, head, tuple(rows))


def _lengths(page: Page, arms: Mapping[str, MemorisationFigures]) -> Picture:
    """How long copied runs are; the longest that the author's own unseen text shares is a line."""
    counted = {name: Counter(run.length for run in _runs(figures)) for name, figures in arms.items()}
    own = Counter(page.own_runs or ())
    unseen = max(figures.self_collision.longest for figures in arms.values())
    shortest = min(figures.n for figures in arms.values())
    longest = max([shortest + 4, unseen, *(length for found in (*counted.values(), own) for length in found)])
    shown = {name: counted[name] for name in looks(page.measurements) if counted.get(name)}
    if page.own_runs is not None:
        shown["the author's own unseen text"] = own
    with drawing(0.8 + 0.95 * len(shown)) as figure:
        panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
        look = looks(page.measurements)
        for axes, (name, found) in zip(panels, shown.items(), strict=True):
            colour = look[name][0] if name in look else MUTED
            if not found:
                axes.text(0.5, 0.5, "none", transform=axes.transAxes, color=MUTED, ha="center", va="center")
            axes.bar(list(found), list(found.values()), width=0.7, color=colour)
            axes.set_title(short(name, 60))
            axes.set_xlim(shortest - 0.7, longest + 0.7)
            axes.set_ylim(0, max([1, *found.values()]) * 1.15)
            axes.yaxis.get_major_locator().set_params(integer=True, nbins=3)
            axes.xaxis.get_major_locator().set_params(integer=True)
            if unseen:
                axes.axvline(unseen + 0.5, color=INK, linewidth=1.2, linestyle=":")
        panels[-1].set_xlabel("words in a run")
        svg = finish(figure, "lengths", "How many runs of each length were copied")
    caption = "How long the copied runs are, near-verbatim ones included" + (
        "; the dotted line ends what the author's own unseen text shares by coincidence."
        if unseen
        else "; the author's own unseen text shares none."
    )
    lengths = sorted({length for found in shown.values() for length in found})
    rows = tuple((str(length), *(str(found[length]) for found in shown.values())) for length in lengths)
    return Picture("lengths", "How long are the copied runs?", caption, svg, ("words", *shown), rows)


def _runs(figures: MemorisationFigures) -> tuple[Run | NearRun, ...]:
    return (*figures.runs, *figures.near.runs)


def _harms(verdict: Verdict) -> list[tuple[str, AxisVerdict]]:
    """Every judged change of a candidate on a damage axis, axis by axis."""
    found = [
        (name, axis)
        for name, candidate in verdict.candidates.items()
        for axis in candidate.axes.values()
        if axis.axis not in FIRST and axis.value is not None and axis.threshold is not None
    ]
    return sorted(found, key=lambda item: item[1].axis)


def _damage(harms: list[tuple[str, AxisVerdict]]) -> Picture:
    rows, labels = [], []
    with drawing(1.0 + 0.44 * len(harms)) as figure:
        axes = figure.add_subplot()
        axes.axvline(0, color=MUTED, linewidth=0.8)
        for height, (name, axis) in zip(reversed(range(len(harms))), harms, strict=True):
            value, bound = axis.value or 0.0, axis.threshold or 0.0
            colour, marker = COLOURS[axis.outcome], "o" if axis.outcome is Outcome.PASS else "X"
            axes.barh(height, bound, height=0.6, color=BAND)
            axes.plot([bound] * 2, [height - 0.3, height + 0.3], color=INK, linewidth=1.4, linestyle=":")
            if axis.low is not None and axis.high is not None:
                axes.plot([axis.low, axis.high], [height] * 2, color=colour, linewidth=2.2)
            axes.plot(value, height, marker, color=colour, markersize=8)
            labels.append(f"{short(name, 20)}\n{short(axis.axis, 20)}")
            limits = [number(limit, signed=True) for limit in (axis.low, axis.high)]
            kind = "floor" if axis.floor is not None else "margin"
            figures = (number(value, signed=True), *limits, f"{number(bound)} ({kind})", axis.outcome.value)
            rows.append((name, axis.axis, *figures))
        axes.set_yticks(list(reversed(range(len(harms)))), labels, linespacing=1.1)
        axes.tick_params(axis="y", labelsize=9)
        axes.set_ylim(-0.6, len(harms) - 0.4)
        axes.grid(axis="x", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_xlabel("harm against the base (left of 0 is an improvement)")
        svg = finish(figure, "damage", "Harm of each candidate on each damage axis against what the gate allows")
    named = ", ".join(f"{axis}: {title(axis).lower()}" for axis in dict.fromkeys(axis.axis for _, axis in harms))
    caption = (
        "What each candidate does worse than the base, with one-sided 95 % limits where they decide; it passes when "
        f"the whole line ends before the dotted stroke, a cross did not ({named})."
    )
    head = ("candidate", "axis", "harm", "lower limit", "upper limit", "allowed", "verdict")
    return Picture("damage", "What did it break?", caption, svg, head, tuple(rows))


def _power(page: Page) -> Picture:
    """The share of gates that pass by the true shift: the operating characteristic of the rule at this size."""
    gate = page.sealed.seal.gate
    shifts, shares = zip(*page.power, strict=True)
    reach = next((shift for shift, share in page.power if share >= 0.8), None)
    with drawing(2.3) as figure:
        axes = figure.add_subplot()
        axes.axhline(0.8, color=MUTED, linewidth=0.8, linestyle=":")
        axes.plot(shifts, shares, color=series(0)[0], linewidth=2.2)
        axes.plot(shifts[0], shares[0], "o", color=INK, markersize=6)
        if reach is not None:
            axes.plot([reach] * 2, [0, 0.8], color=MUTED, linewidth=0.8, linestyle=":")
        axes.grid(linewidth=0.6)
        axes.set_ylim(0, 1.03)
        axes.set_xlim(0, shifts[-1])
        axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        axes.set_xlabel("true move, in sd of the seeds")
        axes.set_ylabel("gates that pass")
        svg = finish(figure, "power", "How often the voice rule passes, by the size of the true move")
    seeds = len(gate.sampling.seeds)
    caption = (
        f"How often {gate.voice.floor} passes with {seeds} seeds: a candidate that moved nothing passes in "
        f"{shares[0]:.1%} of gates"
        + (f", and a move of {reach:.1f} sd of the seeds in four of five." if reach is not None else ".")
    )
    rows = tuple((f"{shift:.1f}", f"{share:.1%}") for shift, share in page.power if round(shift * 2, 6) % 1 == 0)
    return Picture("power", "What this gate can see", caption, svg, ("true move (seed sd)", "gates that pass"), rows)
