"""What a gate demands of what was generated: each axis with its rule and thresholds, and what is fit to judge."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from gates.records import Record
from gates.spec.axes import BUILT_IN, PATTERN, AxisName
from gates.spec.fields import CALIBRATED, Alpha, Decide, Share, Text
from gates.spec.floors import FloorName


class Floored(Record):
    """An axis with a floor rule. `alpha` is the error rate of `pairwise-calibrated@1`, ALPHA unless it is given."""

    floor: FloorName = "pairwise-range@1"
    alpha: Alpha | None = None

    @model_validator(mode="after")
    def _alpha_where_it_counts(self) -> Self:
        if self.alpha is not None and self.floor != CALIBRATED:
            raise ValueError(f"alpha is the error rate of `floor: {CALIBRATED}`; {self.floor} has none to set")
        return self

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """Without an unset alpha, so that gates sealed before there was one keep their hash."""
        document: dict[str, JsonValue] = handler(self)
        return {key: value for key, value in document.items() if key != "alpha" or value is not None}


class Voice(Floored):
    """The voice axis: how far the move toward the held-out author must exceed the floor that seeds alone produce."""

    measure: Literal["delta_cb@1"] = "delta_cb@1"
    mfw: int = Field(ge=10, le=5000)
    words_per_seed: int = Field(ge=100, le=1_000_000)
    times_floor: float = Field(default=1.0, ge=1, le=100)
    min_specificity: float | None = Field(default=None, ge=-2, le=2)

    @model_validator(mode="after")
    def _one_error_rate(self) -> Voice:
        if self.floor == CALIBRATED and self.times_floor != 1.0:
            raise ValueError(f"{CALIBRATED} takes no times_floor: its alpha says how strict it is")
        return self


class Memorisation(Record):
    """The memorisation axis: how many generations may hold an n-gram of the train split, and how long a run may be.

    At least one rule, and all that are named must hold: `max_rate` of the generations, `max_excess` of that rate over
    the rate at which the author's own unseen text does (self-collision), `max_ratio` of the two, `max_run_words`.
    `max_heldout_rate` always holds: above it voice is INVALID, for a text that recites its yardstick proves nothing.
    """

    measure: Literal["ngram_hits@1"] = "ngram_hits@1"
    n: int = Field(default=8, ge=3, le=50)
    max_rate: Share | None = None
    max_excess: Share | None = None
    max_ratio: float | None = Field(default=None, gt=0, le=1000)
    max_run_words: int | None = Field(default=None, ge=1)
    max_protected_rate: Share | None = None
    max_heldout_rate: Share = 0.10
    decide: Decide = "interval"
    read_every_run: bool = True

    @model_validator(mode="after")
    def _some_rule(self) -> Memorisation:
        if all(rule is None for rule in (self.max_rate, self.max_excess, self.max_ratio, self.max_run_words)):
            raise ValueError("name at least one rule: `max_rate` (recommended), max_excess, max_ratio, max_run_words")
        return self


class DamageAxis(Floored):
    """How much worse than the base a candidate may be on one damage axis."""

    within: Literal["floor"] | None = None
    margin: Share | None = None
    decide: Decide = "interval"

    @model_validator(mode="after")
    def _one_rule(self) -> DamageAxis:
        if (self.within is None) == (self.margin is None):
            raise ValueError("name exactly one rule: `margin: NUMBER` (recommended) or `within: floor`")
        if self.within is None and self.alpha is not None:
            raise ValueError("alpha belongs to `within: floor`; a margin is judged by 95 % limits")
        return self


def _name_built_in(schema: dict[str, Any]) -> None:
    """Let editors complete the built-in axes; others are as free as the names that plug-ins may have."""
    axis = schema["additionalProperties"]
    schema["properties"] = {name: {**axis, "description": meaning} for name, meaning in BUILT_IN.items()}
    schema["propertyNames"] = {"pattern": PATTERN}


class Damage(Record):
    """The damage axes a gate judges, built in or plugged in, each by its name; one that is not named is not judged."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_name_built_in)
    __pydantic_extra__: dict[AxisName, DamageAxis]

    def named(self) -> dict[str, DamageAxis]:
        """The axes this gate judges, by name: the built-in ones in their order, then others by the alphabet."""
        axes = self.__pydantic_extra__
        return {name: axes[name] for name in (*BUILT_IN, *sorted(axes.keys() - BUILT_IN.keys())) if name in axes}


class Judge(Record):
    """A model that is asked of every text whether it tells of its beat, for the axis `judged_on_beat`.

    `labelled` is a JSONL file of texts whose right answer is known (`{"beat", "text", "on_beat"}` a line, at least 10
    of each answer): the judge answers them, too, and its error rate stands beside what it says. The axis is INVALID
    unless the upper 95 % limit of that rate is at most `max_error`. `model` is the base's unless another is named,
    which must be a control's: no candidate judges.
    """

    labelled: Text
    model: Text | None = None
    max_error: Annotated[float, Field(gt=0, le=1)] = 0.25


class Validity(Record):
    """What an arm may show and still be fit to judge, as shares of its generations."""

    max_empty: Share = 0.0
    max_errors: Share = 0.0
    accept_leaks: tuple[Text, ...] = ()
