"""What a gate of its size can prove, before anything is generated: under the very floor rule that will judge it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from gates.corpora.texts import load_split
from gates.errors import GatesError, TamperedError, UsageError
from gates.flow.earlier import Asked, earlier_seeds
from gates.flow.floors import rules_of
from gates.judge.floors import rule_of
from gates.record.seal import Seal
from gates.records import digest
from gates.spec.fields import RETIRED
from gates.spec.load import load_gate
from gates.spec.operating import OperatingCharacteristics, operating_characteristics, with_splits, with_unchanged
from gates.spec.power import affordable, voice_power
from gates.spec.prompts import read_beats
from gates.spec.schema import Gate
from gates.spec.unchanged import Size
from gates.spec.workspace import find_workspace, resolve_inside
from gates.stats import Array
from gates.text import prose_words

_AGAIN, _SIGMAS = 20_000, 8
"""Gates that are simulated to check a sealed rate, and the standard errors by which it may differ."""

WORDS_A_TOKEN = 0.75
"""English prose has about so many words a token; a model that stops early writes fewer."""


def power(path: Path, cache: Path, earlier: Path | None = None) -> tuple[Gate, OperatingCharacteristics]:
    """A gate file and its operating characteristics; of the texts only the held-out one is read, where it is at hand.

    `earlier` names the folder of the run whose base seeds are split. Raises InputError when gate or beats have
    mistakes, UsageError for a named run that will not do.
    """
    gate, workspace = load_gate(path), find_workspace(path)

    def read(file: str, field: str) -> tuple[str, ...]:
        return read_beats(resolve_inside(workspace, path, file, field=field))

    beats = read(gate.prompts.file, "prompts.file")
    probe = read(gate.probe.file, "probe.file") if gate.probe is not None else ()
    return gate, operating_of(Asked(gate, beats, workspace, probe, _heldout(gate, workspace, cache)), earlier)


def operating_of(asked: Asked, earlier: Path | None = None) -> OperatingCharacteristics:
    """The operating characteristics of a gate: simulated, and by splits of an earlier run's base seeds."""
    rule = rule_of(asked.gate.voice, rules_of(asked.gate))

    def floor(base: Array, candidate: Array) -> Array:
        return rule.floor(base, candidate, ())

    seed = seed_of("operating", asked.gate)
    found = operating_characteristics(asked.gate, len(asked.beats), floor, seed)
    found = with_unchanged(found, asked.gate, _size(asked), seed)
    return with_splits(found, asked.gate, floor, *earlier_seeds(asked, earlier))


def _heldout(gate: Gate, workspace: Path, cache: Path) -> tuple[str, ...] | None:
    try:
        return tuple(document.text for document in load_split(workspace, cache, gate.corpora.heldout))
    except GatesError:  # what is missing is told by `gates check`; here the rules that need it are left out
        return None


def _size(asked: Asked) -> Size:
    """How much the gate generates and compares, if its texts are as long as their token limit lets them be."""
    if asked.heldout is None:
        return Size(len(asked.beats), len(asked.probe))
    longest = max(1, int(WORDS_A_TOKEN * asked.gate.sampling.max_tokens))
    return Size(len(asked.beats), len(asked.probe), sum(len(prose_words(text)) for text in asked.heldout) // longest)


def check_planned(seal: Seal, place: Path) -> None:
    """Check what a seal derives from its gate: the order's seed, and how often a candidate that moved nothing passes.

    That rate stands in what is said of attempts; it is simulated again, with fewer gates, and may differ by what chance
    makes of both. Raises TamperedError where either is another, UsageError for a floor rule that is not here.
    """
    gate = seal.gate
    if seal.order_seed != seed_of("order", gate):
        raise TamperedError(f"{place}: the order of its requests is not the one that the gate gives")
    voice = seal.operating.get("voice")
    told = voice.get("false_pass") if isinstance(voice, dict) else None
    rule = rule_of(gate.voice, rules_of(gate))
    k, times, rng = len(gate.sampling.seeds), gate.voice.times_floor, np.random.Generator(np.random.PCG64(1))
    again = voice_power(lambda base, candidate: rule.floor(base, candidate, ()), k, times, rng, _AGAIN)
    room = _SIGMAS * math.sqrt(max(again.false_pass, 1 / _AGAIN) / affordable(_AGAIN, k))
    if not isinstance(told, int | float) or abs(told - again.false_pass) > room:
        raise TamperedError(f"{place}: it says that {told} of unmoved candidates pass voice, and {again.false_pass} do")


def seed_of(purpose: str, gate: Gate) -> int:
    """A seed that anybody can derive again from the gate alone: 52 bits of SHA-256 of purpose and gate."""
    return int(digest([purpose, gate.digest()])[:13], 16)


def refuse_retired(gate: Gate) -> None:
    """Raise UsageError for a gate under a retired floor rule: it may judge an old run again, not seal a new one."""
    axes = {"voice": gate.voice, **{f"damage.{name}": axis for name, axis in gate.damage.named().items()}}
    retired = [f"{name}.floor" for name, axis in axes.items() if axis.floor == RETIRED]
    if retired:
        raise UsageError(
            f"{', '.join(retired)}: {RETIRED} is retired: a candidate's verdict must not hang on which other arms "
            "exist; it is kept for judging an old run again",
            next_step="name pairwise-range@1 or pairwise-calibrated@1",
        )
