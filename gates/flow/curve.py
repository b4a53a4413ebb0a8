"""The curve of a gate's voice rule: how often it passes a true move of any size, at the gate's own number of seeds."""

from __future__ import annotations

import numpy as np

from gates.flow.planning import seed_of
from gates.judge.floors import rule_of
from gates.spec.power import pass_curve
from gates.spec.schema import Gate


def power_curve(gate: Gate) -> tuple[tuple[float, float], ...]:
    """How often the gate's voice rule passes a true move, in units of the seeds' sd: (move, share), from 0 to 6."""
    rule = rule_of(gate.voice)
    return pass_curve(
        lambda base, candidate: rule.floor(base, candidate, ()),
        len(gate.sampling.seeds),
        gate.voice.times_floor,
        np.random.Generator(np.random.PCG64(seed_of("curve", gate))),
        np.linspace(0, 6, 61),
    )
