"""The page itself: one HTML document without any address in it, every text escaped, under a strict content policy."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from gates.judge.axes import AxisVerdict
from gates.judge.verdict import CandidateVerdict, ControlFigures
from gates.records import Generation, Outcome
from gates.report.blind import HEAD, readers_rows
from gates.report.html.counts import pictures_of_counts
from gates.report.html.model import Matched, Page
from gates.report.html.pictures import pictures_of_voice
from gates.report.html.texts import flags, own_flags, title, why
from gates.report.markdown import standing
from gates.report.seat import SEATS, matched_blocks, seat_rows
from gates.report.wording import ANSWERS, SYMBOLS, in_order, threshold_of, value_of
from gates.spec.source import printable


class Answer(NamedTuple):
    """One generation on the page: its anchor, arm, and what is notable of it."""

    anchor: str
    arm: str
    generation: Generation
    flags: tuple[str, ...]


class Beat(NamedTuple):
    """One prompt with its answers, seed by seed; `seeds` holds (label, answers of all arms)."""

    number: int
    prompt: str
    seeds: tuple[tuple[str, tuple[Answer, ...]], ...]
    flagged: int


def render(page: Page) -> str:
    """The page of a run."""
    css, js = part("page.css"), part("page.js")
    several = page.measurements.seats
    beats = _beats(page)
    answers = [answer for beat in beats for _, row in beat.seeds for answer in row]
    return (
        environment()
        .from_string(part("shared.html") + part("page.html"))
        .render(
            page=page,
            gate=page.sealed.seal.gate,
            seal=page.sealed.seal,
            verdict=page.verdict,
            candidates=_cards(page.verdict.candidates, page),
            controls=_cards(page.verdict.controls, page),
            ways=_ways(page),
            readers=readers_rows(page.measurements, page.readers),
            reader_head=HEAD,
            seats=seat_rows(page.sealed.seal, several) if several else (),
            seat_head=SEATS,
            blocks=matched_blocks(several) if several else "",
            axes=list(dict.fromkeys(axis.axis for axis in in_order(_axes(page)))),
            standing=standing(page.sealed, page.verdict),
            signed=any(event.startswith("sign-off") for event in page.events),
            warnings=_warnings(page),
            pictures=[*pictures_of_voice(page), *pictures_of_counts(page)],
            matched=[
                (match, anchor(page, match.arm, match.prompt, match.seed), marked(match)) for match in page.matched
            ],
            beats=beats,
            arms=list(page.measurements.arms),
            seeds=sorted({answer.generation.seed for answer in answers}),
            flags=sorted({flag for answer in answers for flag in answer.flags}),
            count=len(answers),
            css=Markup(css),  # noqa: S704 - our own file
            js=Markup(js),  # noqa: S704 - our own file
            policy=f"default-src 'none'; style-src '{content_hash(css)}'; script-src '{content_hash(js)}'; "
            "base-uri 'none'; form-action 'none'",
        )
    )


def anchor(page: Page, arm: str, prompt: int, seed: int) -> str:
    """The anchor of a generation: of numbers alone, whatever the arm is called."""
    return f"t-{list(page.measurements.arms).index(arm)}-{prompt}-{seed}"


def marked(match: Matched) -> Markup:
    """The words of a run, those that differ from the source marked apart."""
    words = match.answer.run.split(" ")
    parts = [
        Markup("<ins>{}</ins>").format(_shown(word)) if place in match.changed else Markup("{}").format(_shown(word))
        for place, word in enumerate(words)
    ]
    return Markup(" ").join(parts)


def _ways(page: Page) -> list[tuple[Outcome, list[str]]]:
    """The candidates by what the gate says of them, the best outcome first."""
    judged = page.verdict.candidates.items()
    found = {outcome: [name for name, one in judged if one.outcome is outcome] for outcome in Outcome}
    return [(outcome, names) for outcome, names in found.items() if names]


def _cards(judged: dict[str, CandidateVerdict] | dict[str, ControlFigures], page: Page) -> list[dict[str, object]]:
    return [
        {
            "name": name,
            "outcome": one.outcome,
            "answer": ANSWERS[one.outcome],
            "why": why(name, CandidateVerdict(outcome=one.outcome, axes=one.axes), page.measurements),
            "axes": {axis.axis: axis for axis in in_order(one.axes)},
        }
        for name, one in judged.items()
    ]


def _axes(page: Page) -> dict[str, AxisVerdict]:
    """One verdict of every axis, whichever arm has it."""
    judged: list[CandidateVerdict | ControlFigures] = [*page.verdict.candidates.values()]
    judged.extend(page.verdict.controls.values())
    return {name: axis for one in judged for name, axis in one.axes.items()}


def _warnings(page: Page) -> list[str]:
    own = [
        f"{name}, {axis.axis}: {warning}"
        for name, candidate in page.verdict.candidates.items()
        for axis in in_order(candidate.axes)
        for warning in axis.warnings
    ]
    return list(dict.fromkeys((*page.verdict.warnings, *own)))


def _beats(page: Page) -> list[Beat]:
    """Every generation by prompt and by the position of its seed, arms side by side."""
    notable = flags(page.measurements)
    found = {generation.key: generation for generation in page.generations}
    seeds = {name: arm.seeds for name, arm in page.measurements.arms.items()}
    beats = []
    for prompt in sorted(page.prompts):
        rows = []
        for position in range(max(map(len, seeds.values()), default=0)):
            keys = [(arm, prompt, own[position]) for arm, own in seeds.items() if position < len(own)]
            row = tuple(
                Answer(
                    anchor(page, *key),
                    key[0],
                    found[key],
                    tuple(dict.fromkeys((*own_flags(found[key]), *notable.get(key, ())))),
                )
                for key in keys
                if key in found
            )
            label = ", ".join(dict.fromkeys(f"seed {answer.generation.seed}" for answer in row))
            rows.append((label, row))
        flagged = sum(bool(answer.flags) for _, row in rows for answer in row)
        beats.append(Beat(prompt, page.prompts[prompt], tuple(rows), flagged))
    return beats


def _shown(value: object) -> object:
    """Any text with its control characters made visible; mark-up and numbers as they are."""
    if isinstance(value, str) and not isinstance(value, Markup | Outcome):
        return "\n".join(map(printable, value.split("\n")))
    return value


@cache
def environment() -> Environment:
    """Where templates are rendered: every text escaped, its control characters made visible."""
    made = Environment(
        autoescape=True, undefined=StrictUndefined, finalize=_shown, trim_blocks=True, lstrip_blocks=True
    )
    made.globals |= {
        "SYMBOLS": SYMBOLS,
        "ANSWERS": ANSWERS,
        "title": title,
        "value_of": value_of,
        "threshold_of": threshold_of,
    }
    return made


@cache
def part(name: str) -> str:
    """A file of this folder."""
    return files("gates.report.html").joinpath(name).read_text("utf-8")


def content_hash(text: str) -> str:
    """The source expression that allows this very script or style in a content policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
