"""Operating characteristics: what a gate of this size can prove, before anything is generated.

Simulated with a seeded generator and with the very functions that judge: the floor rule comes as an argument, the
limits of a change from `gates.stats`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from pydantic import Field

from gates.errors import UsageError
from gates.records import Record, signature
from gates.spec.schema import Damage, Gate
from gates.stats import Array, clopper_pearson, exceeds, paired_change

FloorOf = Callable[[Array, Array], Array]
"""From base (…, k) and candidate (…, k) to the floor (…); shifting an arm must not change it."""

LEVEL = 0.95
GATES = 100_000
MARGIN_GATES = 2_000
SEED_COUNTS = range(2, 11)
BASE_RATES = (0.05, 0.2, 0.5)

_RESAMPLES = 2_000
_LARGEST_N = 100_000
_MUCH = 0.05
_LITTLE = 0.8


class VoicePower(Record):
    """How a superiority rule behaves at k seeds, by simulation of independent, equal, normal arms.

    `false_pass`: rate of candidates without any shift that pass, in [0, 1], with its standard error.
    `shift_80`: the smallest shift, in units of the seeds' sd, that passes with probability 0.8.
    """

    k: int
    false_pass: float
    false_pass_error: float
    shift_80: float


class MarginPower(Record):
    """How often an unchanged candidate passes a non-inferiority margin, in [0, 1], with its standard error.

    Simulated with every text of both arms independent at the same `rate`: prompts that differ make it higher.
    """

    rate: float
    passes: float
    passes_error: float


class RatePower(Record):
    """What `n` generations can prove of a maximum rate.

    `most_hits` still pass (None: not even 0 hits do); `upper_at_zero` is the upper limit at 0 hits; `smallest_n`
    generations are the fewest that can prove the rate with 0 hits (None: no number can).
    """

    n: int
    max_rate: float
    most_hits: int | None
    upper_at_zero: float
    smallest_n: int | None


class OperatingCharacteristics(Record):
    """What the gate can prove at its size: the part of the seal that a reader checks before believing a PASS.

    `voice` is at the gate's own k, `voice_by_seeds` at 2 to 10 seeds, so that k can be chosen. `damage` holds each
    axis with a margin, at several rates of the base. `warnings` name what this size cannot prove.
    """

    signature: str
    voice: VoicePower
    voice_by_seeds: tuple[VoicePower, ...]
    memorisation: RatePower | None
    damage: dict[str, tuple[MarginPower, ...]]
    warnings: tuple[str, ...] = Field(default=())


def voice_power(
    floor: FloorOf,
    k: int,
    times: float,
    rng: np.random.Generator,
    gates: int = GATES,
    *,
    candidate_k: int | None = None,
) -> VoicePower:
    """Simulate `gates` gates of a base and a candidate with k standard normal seeds each (the candidate `candidate_k`).

    A gate passes when mean(base) - mean(candidate) > times x floor, strictly. A shift changes the difference and not
    the floor, so the shift that passes with probability 0.8 is the 0.8 quantile of what the difference lacks.
    Raises UsageError unless k >= 2 and gates >= 1.
    """
    if k < 2 or gates < 1:
        raise UsageError(f"{gates} gates of {k} seeds cannot be simulated", next_step="give k >= 2 and gates >= 1")
    base = rng.standard_normal((gates, k))
    candidate = rng.standard_normal((gates, candidate_k or k))
    lacking = times * floor(base, candidate) - (base.mean(axis=-1) - candidate.mean(axis=-1))
    rate = float(np.mean(exceeds(0.0, lacking)))
    return VoicePower(
        k=k,
        false_pass=rate,
        false_pass_error=_error(rate, gates),
        shift_80=float(np.quantile(lacking, 0.8)),
    )


def margin_power(
    n_prompts: int, n_seeds: int, margin: float, rate: float, rng: np.random.Generator, gates: int = MARGIN_GATES
) -> MarginPower:
    """P(pass | no change) of a margin at n_prompts x n_seeds texts an arm, each a hit with probability `rate`.

    Raises UsageError for no texts or a rate outside [0, 1].
    """
    if min(n_prompts, n_seeds, gates) < 1 or not 0 <= rate <= 1:
        raise UsageError(
            f"{n_prompts} prompts under {n_seeds} seeds at a rate of {rate} cannot be simulated",
            next_step="give at least one prompt and seed, and a rate in [0, 1]",
        )
    base, candidate = (rng.random((2, gates, n_prompts, n_seeds)) < rate).astype(np.float64)
    limits = paired_change(base, candidate, LEVEL, _RESAMPLES, rng)
    passes = float(np.mean(~exceeds(limits.high, margin)))
    return MarginPower(rate=rate, passes=passes, passes_error=_error(passes, gates))


def rate_power(n: int, max_rate: float) -> RatePower:
    """What n generations can prove of `max_rate` by one-sided Clopper-Pearson limits. Raises UsageError for n < 1."""

    def proves(hits: int, size: int) -> bool:
        return not exceeds(clopper_pearson(hits, size, LEVEL)[1], max_rate)

    short = _last(lambda size: not proves(0, size), 1, _LARGEST_N) or 0
    return RatePower(
        n=n,
        max_rate=max_rate,
        most_hits=_last(lambda hits: proves(hits, n), 0, n),
        upper_at_zero=clopper_pearson(0, n, LEVEL)[1],
        smallest_n=short + 1 if short < _LARGEST_N else None,
    )


def operating_characteristics(
    gate: Gate, prompts: int, floor: FloorOf, seed: int, gates: int = GATES
) -> OperatingCharacteristics:
    """The operating characteristics of `gate` over that many prompts, under its floor rule, from PCG64(seed)."""
    rng = np.random.Generator(np.random.PCG64(seed))
    k, times = len(gate.sampling.seeds), gate.voice.times_floor
    voice = {count: voice_power(floor, count, times, rng, gates) for count in sorted({*SEED_COUNTS, k})}
    margins = {name: axis.margin for name, axis in gate.damage.named().items() if axis.margin is not None}
    damage = {
        name: tuple(margin_power(prompts, k, margin, rate, rng) for rate in BASE_RATES)
        for name, margin in margins.items()
    }
    memorisation = rate_power(prompts * k, gate.memorisation.max_rate) if gate.memorisation else None
    return OperatingCharacteristics(
        signature=signature("operating@1", rule=gate.voice.floor, times=times, seed=seed, gates=gates),
        voice=voice[k],
        voice_by_seeds=tuple(voice[count] for count in SEED_COUNTS),
        memorisation=memorisation,
        damage=damage,
        warnings=(*_voice_warnings(voice[k]), *_rate_warnings(memorisation), *_damage_warnings(gate.damage, damage)),
    )


def _voice_warnings(voice: VoicePower) -> list[str]:
    if voice.false_pass <= _MUCH:
        return []
    rate = 100 * voice.false_pass
    return [
        f"voice: with {voice.k} seeds a candidate that moved nothing passes in {rate:.1f} % of gates: use more seeds"
    ]


def _rate_warnings(rates: RatePower | None) -> list[str]:
    if rates is None or rates.most_hits is not None:
        return []
    needs = f"at least {rates.smallest_n} generations are needed" if rates.smallest_n else "no number can prove it"
    return [
        f"memorisation: 0 hits of {rates.n} still allow a rate of {rates.upper_at_zero:.3f}, so nothing can prove "
        f"max_rate {rates.max_rate:.3f}: {needs}"
    ]


def _damage_warnings(axes: Damage, power: dict[str, tuple[MarginPower, ...]]) -> list[str]:
    floors = [
        f"{name}: `within: floor` lets more harm pass the noisier the measure is; a preset margin is recommended"
        for name, axis in axes.named().items()
        if axis.margin is None
    ]
    worst = {name: min(rows, key=lambda row: row.passes) for name, rows in power.items()}
    return floors + [
        f"{name}: an unchanged candidate passes this margin in only {100 * row.passes:.0f} % of gates when the base's "
        f"rate is {row.rate:.2f}: use more prompts or a wider margin"
        for name, row in worst.items()
        if row.passes < _LITTLE
    ]


def _last(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """The largest integer in [low, high] where `holds`, which turns false once and stays so; None without any."""
    if not holds(low):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def _error(rate: float, n: int) -> float:
    """Standard error of a simulated rate."""
    return float(np.sqrt(rate * (1 - rate) / n))
