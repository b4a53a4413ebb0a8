"""What a damage axis is: a name with a version, the direction that is harm, and how it measures one arm's answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gates.measure.damage.library import Library
from gates.measure.figures import DamageFigures, Unmeasured
from gates.measure.tokens import Tokens
from gates.records import Generation

Worse = Literal["higher", "lower"]
Measured = DamageFigures | Unmeasured


@dataclass(frozen=True)
class Answers:
    """One arm's generations (S, P) with what they were asked for, and the texts that they may be compared with.

    `beats` (P,) are the gate's, `prompts` (P,) all that the arm was shown for them, system lines and template
    included; `max_tokens` is the token limit. `judged` (S, P) are a judging model's log-odds that each text is on its
    beat, None where it gave no answer; None as a whole where no judge was asked. `tokens` are the words of any text,
    cut once for all axes: `answers.tokens[text]`.
    """

    generations: tuple[tuple[Generation, ...], ...]
    beats: tuple[str, ...]
    max_tokens: int
    prompts: tuple[str, ...] = ()
    library: Library = field(default_factory=Library)
    judged: tuple[tuple[float | None, ...], ...] | None = None
    tokens: Tokens = field(default_factory=Tokens)

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The generated texts (S, P)."""
        return tuple(tuple(generation.text for generation in row) for row in self.generations)


@dataclass(frozen=True)
class Axis:
    """One damage axis, as a plug-in offers it under the entry point group `gates.axes`.

    `signature` is `NAME@VERSION`, further `|key:value` parts as wanted; NAME is what gates call the axis, and whatever
    changes a value changes VERSION. `worse` is the direction of harm. `measure` gives `figures(...)` of an arm's
    answers or says why there are none; their signature is the axis's own, with further parts where they depend on the
    gate. `fewest_beats` is what the axis needs of a gate.
    """

    signature: str
    worse: Worse
    measure: Callable[[Answers], Measured]
    fewest_beats: int = 1

    @property
    def name(self) -> str:
        """What gates call the axis."""
        return self.signature.split("@", 1)[0]


def figures(signature: str, worse: Worse, values: Sequence[Sequence[float]]) -> Measured:
    """The figures of values (S, P) in [0, 1], one for each generation; Unmeasured where there are no generations."""
    if not any(len(row) for row in values):
        return Unmeasured(unmeasured="there are no generations")
    rows = tuple(tuple(float(value) for value in row) for row in values)
    return DamageFigures(
        signature=signature,
        worse=worse,
        values=rows,
        per_seed=tuple(math.fsum(row) / len(row) for row in rows),
        rate=math.fsum(map(math.fsum, rows)) / sum(map(len, rows)),
    )


def each(answers: Answers, value: Callable[[str, int], float]) -> list[list[float]]:
    """`value` of each text and its prompt's number, (S, P); a generation that failed counts as harm: 1."""
    return [
        [1.0 if given.error is not None else float(value(given.text, prompt)) for prompt, given in enumerate(row)]
        for row in answers.generations
    ]


def measure_axis(axis: Axis, answers: Answers, *, failed_harm: bool = True) -> Measured:
    """What `axis` measures on an arm. An axis that raises, or returns anything but its own figures, is Unmeasured.

    A generation that failed counts as full harm whatever the axis says of it, or as none with `failed_harm` False, as
    the base is measured: the harm that a candidate does is the change from the base, and a base that failed at a
    prompt must not make it look smaller.
    """
    try:
        found = axis.measure(answers)
        if isinstance(found, Unmeasured):
            return found
        wrong = _wrong(axis, answers, found)
        if wrong:
            return _failed(axis, wrong)
        failed = float((axis.worse == "higher") == failed_harm)
        values = [
            [failed if given.error is not None else value for value, given in zip(*pair, strict=True)]
            for pair in zip(found.values, answers.generations, strict=True)
        ]
        # Rates are counted again: an axis is believed its values alone.
        return figures(found.signature, found.worse, values)
    except Exception as error:  # noqa: BLE001 - a plug-in may raise anything, and none of it may look like a result
        return _failed(axis, f"{type(error).__name__}: {str(error)[:200]}")


def _failed(axis: Axis, reason: str) -> Unmeasured:
    return Unmeasured(unmeasured=f"{axis.signature} failed: {reason}")


def _wrong(axis: Axis, answers: Answers, found: object) -> str:
    """Why these are not the axis's figures of `answers`, or nothing."""
    if not isinstance(found, DamageFigures):
        return f"it gave a {type(found).__name__}, not DamageFigures"
    if found.worse != axis.worse or not f"{found.signature}|".startswith(f"{axis.signature}|"):
        return f"it gave figures of {found.signature}, worse {found.worse}; its own are worse {axis.worse}"
    given, wanted = [len(row) for row in found.values], [len(row) for row in answers.generations]
    if given != wanted:
        return f"it gave {sum(given)} values in rows of {given}, for generations in rows of {wanted}"
    strange = [value for row in found.values for value in row if not 0 <= value <= 1]
    return f"it gave {strange[0]}, which is no share in [0, 1]" if strange else ""
