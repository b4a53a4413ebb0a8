"""What a gate file may say: the frozen models behind `schema: gates/1`.

Models carry types, ranges and rules between fields; reading YAML with line numbers is the loader's work.
"""

from __future__ import annotations

from typing import Literal

from pydantic import (
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from gates.records import Record
from gates.spec.asking import Arms, Probe, Prompts, Sampling, Seat
from gates.spec.fields import CorpusRef, Name, References, Text
from gates.spec.limits import Damage, Judge, Memorisation, Validity, Voice


class Corpora(Record):
    """The texts a gate rests on, by the names of their manifests."""

    train: CorpusRef
    heldout: CorpusRef
    reference: References
    imposters: tuple[CorpusRef, ...] = ()
    protected: tuple[CorpusRef, ...] = Field(
        default=(), description="further texts that may not be copied; memorisation.max_protected_rate limits it"
    )

    @field_validator("reference", mode="before", json_schema_input_type=CorpusRef | References)
    @classmethod
    def _one_reference(cls, value: object) -> object:
        if isinstance(value, str):
            return (value,)
        return tuple(value) if isinstance(value, list) else value


NOT_DECLARED = "not declared"


class Declarations(Record):
    """What a pre-registration must say and a gate file cannot show: who saw data, when it stops, what is left out."""

    data_seen: Text = Field(
        default=NOT_DECLARED,
        description="what had been seen before sealing of texts by these arms, and by whom; none, where nobody had",
    )
    stopping: Text = Field(
        default="fixed number of generations", description="what decides how many texts are generated"
    )
    exclusions: Text = Field(default="none", description="which texts are left out of which figure, and why")
    missing: Literal["invalid"] = Field(
        default="invalid", description="what becomes of a candidate whose texts are missing: it is INVALID, always"
    )


class SignOffRule(Record):
    """What a release needs: signatures by `signers` different keys, each of a person who has read.

    `samples` generations of each arm are drawn for reading, beside the matched runs and what is flagged.
    """

    signers: int = Field(default=1, ge=1, le=10)
    samples: int = Field(default=5, ge=1, le=1000)


class Gate(Record):
    """A gate: question, seat, arms, texts, prompts, sampling, axes with thresholds, limits, tie-break, declarations."""

    schema_: Literal["gates/1"] = Field(alias="schema")
    name: Name
    question: Text
    seat: Literal["embedded"] | Seat | None = Field(default=None, description="the server that answers; or `seats`")
    seats: tuple[Seat, ...] | None = Field(
        default=None,
        min_length=2,
        max_length=64,
        validate_default=True,
        description="several servers of the same, in the place of `seat`: the requests are spread over them",
    )
    unlike_seats: Text | None = Field(
        default=None,
        description="why `seats` may differ in version, fingerprint, model cards or canary; without it they may not",
    )
    arms: Arms
    corpora: Corpora
    prompts: Prompts
    probe: Probe | None = None
    sampling: Sampling
    voice: Voice
    memorisation: Memorisation | None = None
    damage: Damage = Field(default_factory=Damage)
    validity: Validity = Field(default_factory=Validity)
    tie_break: tuple[Text, ...] = ()
    declarations: Declarations = Field(default_factory=Declarations)
    sign_off: SignOffRule | None = None
    judge: Judge | None = None

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """Without what is unset of `_LATER`, so that gates sealed before there was such a thing keep their hash."""
        document: dict[str, JsonValue] = handler(self)
        return {key: value for key, value in document.items() if key not in _LATER or value is not None}

    @field_validator("seats", mode="after")
    @classmethod
    def _one_or_several(cls, value: tuple[Seat, ...] | None, info: ValidationInfo) -> tuple[Seat, ...] | None:
        if "seat" in info.data and (value is None) == (info.data["seat"] is None):
            raise ValueError("seat or seats: name one of them, `seat: {base_url: ...}` or a list of such as `seats`")
        servers = [seat.server for seat in value or ()]
        twice = [seat.name for seat in value or () if servers.count(seat.server) > 1]
        if twice:
            raise ValueError(f"{', '.join(dict.fromkeys(twice))}: one seat twice; each needs an address of its own")
        return value

    @model_validator(mode="after")
    def _fields_agree(self, info: ValidationInfo) -> Gate:
        if self.seats is None and self.unlike_seats is not None:
            raise ValueError("unlike_seats belongs to seats: one seat differs from none")
        for name, control in self.arms.controls.items():
            own = control.seeds
            if own is not None and not len(set(own)) == len(own) == len(self.sampling.seeds):
                raise ValueError(f"arms.controls.{name}.seeds must be as many as sampling.seeds, all different")
        _check_tie_break(self, info.context is not None)
        _check_judge(self)
        if self.voice.min_specificity is not None and not self.corpora.imposters:
            raise ValueError("voice.min_specificity needs corpora.imposters to compare with")
        limit = self.memorisation.max_protected_rate if self.memorisation else None
        if (limit is not None) != bool(self.corpora.protected):
            raise ValueError("corpora.protected and memorisation.max_protected_rate belong together: name both or none")
        if self.probe is not None and (self.memorisation is None or self.probe.endpoint != self.prompts.endpoint):
            raise ValueError("probe needs memorisation, which says how it is measured, and the endpoint of prompts")
        return self

    def seeds(self, arm: str) -> tuple[int, ...]:
        """The generation seeds of an arm: the gate's, or a control's own."""
        control = self.arms.controls.get(arm)
        return control.seeds if control is not None and control.seeds is not None else self.sampling.seeds

    @property
    def embedded(self) -> bool:
        """Whether the gate's seat is the one that is started for it."""
        return self.seat == "embedded"

    @property
    def servers(self) -> tuple[Seat, ...]:
        """The running servers that answer, in the order of the file; none for an embedded seat."""
        return self.seats or ((self.seat,) if isinstance(self.seat, Seat) else ())


_LATER = frozenset({"sign_off", "judge", "seat", "seats", "unlike_seats"})
"""Keys of a gate that are not written where they are unset."""


def _check_judge(gate: Gate) -> None:
    """Raise ValueError for an axis without its judge, a judge without its axis, and a judge that is no arm's model."""
    if (gate.judge is None) != ("judged_on_beat" not in gate.damage.named()):
        raise ValueError("judge and damage.judged_on_beat belong together: name both or none")
    known = {gate.arms.base.model, *(control.model for control in gate.arms.controls.values())}
    known -= {candidate.model for candidate in gate.arms.candidates.values()}
    if gate.judge is not None and gate.judge.model is not None and gate.judge.model not in known:
        raise ValueError(
            "judge.model must be the base's or a control's, so that seal and canary hold it: "
            f"{', '.join(sorted(known))}"
        )


def _check_tie_break(gate: Gate, written: bool) -> None:
    """Raise ValueError for a place in the tie-break that this gate does not measure.

    Of a gate file that is `written` now, every candidate must have the notes that are named: a record that was sealed
    before this was asked is read as it is.
    """
    measured = {"voice", "seed_spread", *gate.damage.named()}
    measured |= {"memorisation"} if gate.memorisation else set()
    measured |= {"extraction"} if gate.probe else set()
    for axis in gate.tie_break:
        if not axis.startswith("notes."):
            if axis not in measured:
                raise ValueError(f"tie_break names {axis!r}, which this gate does not measure")
            continue
        key = axis.removeprefix("notes.")
        without = [name for name, candidate in gate.arms.candidates.items() if key not in candidate.notes]
        if written and without:
            raise ValueError(
                f"tie_break names {axis}, and {', '.join(without)} {'has' if len(without) == 1 else 'have'} no note "
                f"{key!r}: without it on every candidate it chooses nothing"
            )
