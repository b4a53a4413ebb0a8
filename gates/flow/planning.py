"""What a gate of its size can prove, before anything is generated: under the very floor rule that will judge it."""

from __future__ import annotations

from pathlib import Path

from gates.errors import UsageError
from gates.judge.floors import rule_of
from gates.records import digest
from gates.spec.load import load_gate
from gates.spec.operating import OperatingCharacteristics, operating_characteristics
from gates.spec.prompts import read_beats
from gates.spec.schema import RETIRED, Gate
from gates.spec.workspace import find_workspace, resolve_inside
from gates.stats import Array


def power(path: Path) -> tuple[Gate, OperatingCharacteristics]:
    """A gate file and its operating characteristics; only the gate and its beats are read.

    Raises InputError when either has mistakes.
    """
    gate = load_gate(path)
    beats = read_beats(resolve_inside(find_workspace(path), path, gate.prompts.file, field="prompts.file"))
    return gate, operating_of(gate, len(beats))


def operating_of(gate: Gate, prompts: int) -> OperatingCharacteristics:
    """The operating characteristics of a gate over that many prompts."""
    rule = rule_of(gate.voice)

    def floor(base: Array, candidate: Array) -> Array:
        return rule.floor(base, candidate, ())

    return operating_characteristics(gate, prompts, floor, seed_of("operating", gate))


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
