"""What a gate of its size can prove, in sentences."""

from __future__ import annotations

from gates.spec.operating import OperatingCharacteristics, own_rules


def operating_sentences(found: OperatingCharacteristics) -> list[str]:
    """One sentence for each thing that a gate's size decides."""
    voice = found.voice
    sentences = [
        f"voice at {voice.k} seeds: a candidate without any move passes in {voice.false_pass:.2%} of cases; "
        f"a move of {voice.shift_80:.1f} seed sd is caught with probability 0.8",
        *split_sentences(found),
        noise_sentence(found),
    ]
    if (rate := found.memorisation) is not None:
        most = "no count of hits can pass" if rate.most_hits is None else f"up to {rate.most_hits} hits pass"
        sentences.append(f"memorisation: 0 hits of {rate.n} leave an upper limit of {rate.upper_at_zero:.3f}; {most}")
    for name, row in own_rules(found).items():
        rates = ", ".join(f"{at.passes:.0%} at a rate of {at.rate:g}" for at in row.passes)
        sentences.append(f"{name}: a candidate that copies no more than chance passes in {rates}")
    for axis, powers in found.damage.items():
        rates = ", ".join(f"{power.passes:.0%} at a base rate of {power.rate:g}" for power in powers)
        sentences.append(f"{axis}: an unchanged candidate passes in {rates}")
    return sentences


def noise_sentence(found: OperatingCharacteristics) -> str:
    """The rule's true level when candidate and base vary unequally."""
    rates = ", ".join(f"{row.false_pass:.2%} at {row.sd_ratio:g}" for row in found.unequal_noise)
    return f"voice, false passes where the candidate's sd is not the base's but times: {rates}"


def split_sentences(found: OperatingCharacteristics) -> list[str]:
    """What random splits of an earlier run's base seeds say, and of which run; or why there are none."""
    sentences = [found.splits]
    if (real := found.earlier) is None:
        return sentences
    pooled = f"{real.earlier.seeds} seeds of {', '.join(real.earlier.arms)}"
    for row in real.voice:
        own = " (this gate)" if row.k == found.voice.k else ""
        passes = f"{row.false_pass:.2%} ± {row.false_pass_error:.2%}"
        sentences.append(
            f"  voice at {row.k} seeds{own}: {passes} of the splits of {pooled} pass; "
            f"a move of {row.shift_80:.3f} delta_cb is caught with probability 0.8"
        )
    return sentences + [
        f"  {axis} at {found.voice.k} seeds: {margin.passes:.0%} ± {margin.passes_error:.0%} pass the margin"
        for axis, margin in real.margins.items()
    ]
