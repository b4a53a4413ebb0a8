"""What a voice adapter may break: each axis a share of an arm's generations, seed by prompt.

Shapes: S generation seeds, P prompts; rows are seeds, columns are prompts in the order of the gate's beats.
"""

from __future__ import annotations

from gates.measure.damage.axis import Answers, Axis, Measured, each, figures, measure_axis
from gates.measure.damage.judged import judged_on_beat
from gates.measure.damage.leaks import template_leak
from gates.measure.damage.length import empty, ran_on, repetition
from gates.measure.damage.lexis import garble, name_leak
from gates.measure.damage.library import Library
from gates.measure.damage.prompted import MINIMUM_BEATS, echo, on_beat

__all__ = ["AXES", "Answers", "Axis", "Library", "Measured", "each", "figures", "measure_axis"]

AXES: dict[str, Axis] = {
    axis.name: axis
    for axis in (
        Axis("ran_on@1", "higher", lambda arm: ran_on(arm.generations, arm.max_tokens)),
        Axis("on_beat@1", "lower", lambda arm: on_beat(arm.texts, arm.beats, arm.tokens), fewest_beats=MINIMUM_BEATS),
        Axis("empty@1", "higher", empty),
        Axis("repetition@1", "higher", repetition),
        Axis("echo@1", "higher", echo),
        Axis("template_leak@1", "higher", template_leak),
        Axis("garble@1", "higher", garble),
        Axis("name_leak@1", "higher", name_leak),
        Axis("judged_on_beat@1", "lower", judged_on_beat),
    )
}
"""Every built-in damage axis by the name that gates call it."""
