"""What a person must read of a finished run, derived from its records alone, so that anybody gets the same list.

Every matched run of words, every flagged generation, and samples of each arm whose draw the seal fixes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from gates.measure.figures import (
    ArmMeasurements,
    DamageFigures,
    Measurements,
    MemorisationFigures,
    NearRun,
    Run,
)
from gates.records import Generation, Record, Sha256, digest, sha256
from gates.spec.schema import Gate

FLAGGED = 0.5
"""A generation is flagged by a damage axis that sees at least this share of harm in it (0 or 1 on most axes)."""

DRAW = "review-draw@1"

Role = Literal["base", "candidate", "control"]
Against = Literal["train", "train-near", "protected", "probe", "probe-near", "probe-protected"]
"""What a run of words matches: the train split, exactly or nearly, or a protected text; in answers to the probe too."""


class Match(Record):
    """A matched run of words: where it begins in its generation and how long it is, in words, and what it matches."""

    against: Against
    start: int = Field(ge=0)
    length: int = Field(ge=1)
    sha256: Sha256


class Item(Record):
    """One thing to read: a matched run in its generation, or (`match` None) a whole generation.

    `why` names what put it on the list: `match`, `sample`, `error`, `empty`, or the damage axis that flags it.
    """

    arm: str
    role: Role
    prompt: int = Field(ge=0)
    seed: int
    text_sha256: Sha256
    why: tuple[str, ...]
    match: Match | None = None

    @property
    def key(self) -> tuple[str, int, int]:
        """The generation's key: (arm, prompt, seed)."""
        return (self.arm, self.prompt, self.seed)


class ReadingList(Record):
    """Everything to read of one run (`gates.reading-list/1`): matched runs first, then generations, arm by arm."""

    schema_: Literal["gates.reading-list/1"] = Field(default="gates.reading-list/1", alias="schema")
    seal: Sha256
    generations_sha256: Sha256
    samples: int
    every_run: bool
    items: tuple[Item, ...]

    def required(self, arm: str) -> dict[str, Item]:
        """What signing off `arm` needs read, by the items' hashes.

        The matched runs and samples of the arm itself, of the base and of the controls, and what is flagged of the arm
        itself. Other candidates do not count, as in a verdict.
        """
        return {name: item for name, item in self.by_hash().items() if self._needed(item, arm)}

    def by_hash(self) -> dict[str, Item]:
        """Every item by its hash, which is its name."""
        return {item.digest(): item for item in self.items}

    def _needed(self, item: Item, arm: str) -> bool:
        if item.arm != arm and item.role == "candidate":
            return False
        if item.match is not None:
            return self.every_run
        return item.arm == arm or "sample" in item.why


def reading_list(
    gate: Gate, measurements: Measurements, generations: Iterable[Generation], *, samples: int
) -> ReadingList:
    """The reading list of a run; `samples` generations of each arm are drawn, from the seal alone."""
    texts = {generation.key: generation for generation in generations}
    items: list[Item] = []
    for arm, measured in measurements.arms.items():
        mine = {key: generation for key, generation in texts.items() if key[0] == arm}
        items.extend(_matches(arm, measured, mine))
        why = _flags(measured, mine)
        for key in _drawn(measurements.seal, arm, [key for key, g in mine.items() if g.text.strip()])[:samples]:
            why.setdefault(key, []).insert(0, "sample")
        items.extend(_item(measured.role, mine[key], tuple(why[key])) for key in sorted(why, key=lambda k: k[1:]))
    memorisation = gate.memorisation
    return ReadingList(
        seal=measurements.seal,
        generations_sha256=measurements.generations_sha256,
        samples=samples,
        every_run=memorisation is None or memorisation.read_every_run,
        items=(*(i for i in items if i.match is not None), *(i for i in items if i.match is None)),
    )


Key = tuple[str, int, int]


def _item(role: Role, generation: Generation, why: tuple[str, ...], match: Match | None = None) -> Item:
    arm, prompt, seed = generation.key
    text = sha256(generation.text.encode())
    return Item(arm=arm, role=role, prompt=prompt, seed=seed, text_sha256=text, why=why, match=match)


def _matches(arm: str, measured: ArmMeasurements, texts: Mapping[Key, Generation]) -> Iterator[Item]:
    for against, runs in matched(measured):
        for run in runs:
            match = Match(against=against, start=run.start, length=run.length, sha256=run.sha256)
            yield _item(measured.role, texts[arm, run.prompt, run.seed], ("match",), match)


def matched(measured: ArmMeasurements) -> Iterator[tuple[Against, Sequence[Run | NearRun]]]:
    """The matched runs of one arm, by what they match."""
    if isinstance(found := measured.memorisation, MemorisationFigures):
        yield "train", found.runs
        yield "train-near", found.near.runs
        yield "protected", found.protected.runs if found.protected else ()
    if isinstance(found := measured.extraction, MemorisationFigures):
        yield "probe", found.runs
        yield "probe-near", found.near.runs
        yield "probe-protected", found.protected.runs if found.protected else ()


def _flags(measured: ArmMeasurements, texts: Mapping[Key, Generation]) -> dict[Key, list[str]]:
    """Why each flagged generation is flagged."""
    why: dict[Key, list[str]] = {}
    for key, generation in texts.items():
        if generation.error is not None:
            why[key] = ["error"]
        elif not generation.text.strip():
            why[key] = ["empty"]
    arm = next(iter(texts), ("", 0, 0))[0]
    for axis, figures in measured.damage.items():
        if not isinstance(figures, DamageFigures):
            continue
        for seed, row in zip(measured.seeds, figures.values, strict=True):
            for prompt, value in enumerate(row):
                harm = value if figures.worse == "higher" else 1 - value
                if harm >= FLAGGED and axis not in why.setdefault((arm, prompt, seed), []):
                    why[arm, prompt, seed].append(axis)
    return {key: reasons for key, reasons in why.items() if reasons}


def _drawn(seal: str, arm: str, keys: Sequence[Key]) -> list[Key]:
    """The keys in an order drawn from the seal: the raw output of PCG64, which numpy keeps over its versions."""
    raw = np.random.PCG64(int(digest([DRAW, seal, arm])[:13], 16)).random_raw(len(keys))
    return [key for _, key in sorted(zip(raw.tolist() if keys else [], sorted(keys), strict=True))]
