"""Operating characteristics: what a gate can prove at its size, put together from `gates.spec.power`, with warnings."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from gates.records import Record, signature
from gates.spec.fields import ALPHA, CALIBRATED
from gates.spec.limits import Damage, Voice
from gates.spec.power import (
    GATES,
    FloorOf,
    MarginPower,
    NoisePower,
    RatePower,
    VoicePower,
    ZeroFloor,
    affordable,
    margin_power,
    noise_power,
    rate_power,
    voice_power,
    zero_floor,
)
from gates.spec.schema import Gate
from gates.spec.splits import BaseSeeds, EarlierPower, split_margin, split_power
from gates.spec.unchanged import MARGIN_RATES, RulePower, Size, unchanged

SEED_COUNTS = range(2, 11)
SD_RATIOS = (0.3, 0.5, 1.0, 2.0, 3.0)
RARE = 0.05
RARE_RATES = (0.01, RARE, 0.2)

_MUCH = 0.05
_LITTLE = 0.8
_FEW_SEEDS = 4


class OperatingCharacteristics(Record):
    """What the gate can prove at its size: the part of the seal that a reader checks before believing a PASS.

    `voice` is at the gate's own k, `voice_by_seeds` at 2 to 10 seeds, so that k can be chosen; `unequal_noise` at the
    gate's k when the arms vary unequally; `memorisation_by_seeds` at 2 to 10 seeds. `damage` holds each axis with a
    margin, at several rates of the base, `zero_floors` each axis that is judged by its floor. `earlier` is what random
    splits of an earlier run's base seeds say of the same rules; `splits` names that run, or says why there is none.
    `unchanged`: how often each rule but voice's passes a candidate that does no harm, by number of seeds.
    `warnings` name what this size cannot prove.
    """

    signature: str
    voice: VoicePower
    voice_by_seeds: tuple[VoicePower, ...]
    memorisation: RatePower | None
    damage: dict[str, tuple[MarginPower, ...]]
    unequal_noise: tuple[NoisePower, ...] = ()
    memorisation_by_seeds: tuple[RatePower, ...] = ()
    zero_floors: dict[str, tuple[ZeroFloor, ...]] = Field(default_factory=dict)
    earlier: EarlierPower | None = None
    splits: str = ""
    unchanged: dict[str, tuple[RulePower, ...]] = Field(default_factory=dict)
    warnings: tuple[str, ...] = Field(default=())


def operating_characteristics(
    gate: Gate, prompts: int, floor: FloorOf, seed: int, gates: int = GATES
) -> OperatingCharacteristics:
    """The operating characteristics of `gate` over that many prompts, under its floor rule, from PCG64(seed)."""
    rng = np.random.Generator(np.random.PCG64(seed))
    k, times = len(gate.sampling.seeds), gate.voice.times_floor
    voice = {count: voice_power(floor, count, times, rng, gates) for count in sorted({*SEED_COUNTS, k})}
    margins = {name: axis.margin for name, axis in gate.damage.named().items() if axis.margin is not None}
    damage = {
        name: tuple(margin_power(prompts, k, margin, rate, rng) for rate in MARGIN_RATES)
        for name, margin in margins.items()
    }
    max_rate = gate.memorisation.max_rate if gate.memorisation else None
    rates = {n: rate_power(prompts * n, max_rate) for n in voice} if max_rate is not None else {}
    memorisation = rates.get(k)
    zero_floors = {
        name: tuple(zero_floor(prompts, k, rate) for rate in RARE_RATES)
        for name, axis in gate.damage.named().items()
        if axis.margin is None
    }
    return OperatingCharacteristics(
        signature=signature("operating@1", **_rule(gate.voice), times=times, seed=seed, gates=affordable(gates, k)),
        voice=voice[k],
        voice_by_seeds=tuple(voice[count] for count in SEED_COUNTS),
        memorisation=memorisation,
        damage=damage,
        unequal_noise=tuple(noise_power(floor, k, times, ratio, rng) for ratio in SD_RATIOS),
        memorisation_by_seeds=tuple(rates[count] for count in SEED_COUNTS if rates),
        zero_floors=zero_floors,
        warnings=(
            *_voice_warnings(voice[k], gate.sampling.temperature),
            *_rate_warnings(memorisation),
            *_damage_warnings(gate.damage, damage),
            *_zero_warnings(zero_floors),
        ),
    )


def own_rules(found: OperatingCharacteristics) -> dict[str, RulePower]:
    """Of `unchanged` what holds at the gate's own number of seeds, margins aside."""
    rules = {name: [row for row in rows if row.k == found.voice.k] for name, rows in found.unchanged.items()}
    return {name: rows[0] for name, rows in rules.items() if rows and not name.startswith("damage.")}


def with_unchanged(found: OperatingCharacteristics, gate: Gate, size: Size, seed: int) -> OperatingCharacteristics:
    """The same with P(pass | no change) of every rule but voice's, from PCG64(seed), and what to make of it."""
    counts = sorted({*SEED_COUNTS, found.voice.k})
    found = found.model_copy(
        update={"unchanged": unchanged(gate, size, counts, np.random.Generator(np.random.PCG64(seed)))}
    )
    hardly = [
        f"{name}: a candidate that copies no more than chance passes in {100 * most:.0f} % of gates at best, with "
        f"{row.n} texts{'' if row.windows is None else f' against {row.windows} windows of the author'}: it may well "
        "stay undecided"
        for name, row in own_rules(found).items()
        if name != "memorisation.max_rate"  # warned of already
        and (most := max(at.passes for at in row.passes)) < _LITTLE
    ]
    asked = gate.memorisation
    if size.windows is None and asked is not None and (asked.max_excess is not None or asked.max_ratio is not None):
        hardly.append("memorisation: the held-out text is not here, so nothing is said of max_excess and max_ratio")
    return found.model_copy(update={"warnings": (*found.warnings, *hardly)})


def with_splits(
    found: OperatingCharacteristics, gate: Gate, floor: FloorOf, base: BaseSeeds | None, why: str
) -> OperatingCharacteristics:
    """The same with what random splits of an earlier run's base seeds say; `why` says of which, or why of none.

    Drawn from PCG64 of the earlier run's figures alone, so that anybody can draw them again.
    """
    if base is None:
        return found.model_copy(update={"splits": why})
    rng = np.random.Generator(np.random.PCG64(int(base.earlier.digest()[:16], 16)))
    k, n = len(gate.sampling.seeds), base.earlier.seeds
    counts = [count for count in sorted({*SEED_COUNTS, k}) if 2 * count <= n]
    margins = {name: axis.margin for name, axis in gate.damage.named().items() if name in base.damage}
    earlier = EarlierPower(
        earlier=base.earlier,
        voice=tuple(split_power(floor, base.distances, count, gate.voice.times_floor, rng) for count in counts),
        margins={
            name: split_margin(base.damage[name], k, margin, rng)
            for name, margin in margins.items()
            if margin is not None
        },
    )
    return found.model_copy(update={"splits": why, "earlier": earlier})


def _rule(voice: Voice) -> dict[str, object]:
    """The floor rule as parameters of a signature."""
    return {"rule": voice.floor, **({"alpha": voice.alpha or ALPHA} if voice.floor == CALIBRATED else {})}


def _voice_warnings(voice: VoicePower, temperature: float) -> list[str]:
    found = []
    if voice.false_pass > _MUCH:
        rate = 100 * voice.false_pass
        found.append(
            f"voice: with {voice.k} seeds a candidate that moved nothing passes in {rate:.1f} % of gates: "
            "use more seeds"
        )
    if voice.k < _FEW_SEEDS:
        found.append(f"voice: a floor of {voice.k} seeds is a rough one: use {_FEW_SEEDS} or more")
    if temperature == 0:
        found.append(
            "voice: at temperature 0 seeds change next to nothing: a floor of 0 is likely, and makes voice INVALID"
        )
    return found


def _zero_warnings(axes: dict[str, tuple[ZeroFloor, ...]]) -> list[str]:
    return [
        f"{name}: where the rate is {row.rate:.2f}, the counts are so small that the floor is 0 in "
        f"{100 * row.chance:.0f} % of gates, and any harm at all then fails: use more prompts or a margin"
        for name, rows in axes.items()
        for row in rows
        if row.rate == RARE and row.chance > _MUCH
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
