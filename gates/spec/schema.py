"""What a gate file may say: the frozen models behind `schema: gates/1`.

Models carry types, ranges and rules between fields; reading YAML with line numbers is the loader's work.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from gates.records import Record, canonical
from gates.spec.axes import BUILT_IN, PATTERN, AxisName
from gates.spec.floors import FloorName

_NAME = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"

Name = Annotated[
    str,
    StringConstraints(pattern=f"^{_NAME}$"),
    Field(description="a name of letters, digits, dots, underscores and hyphens, at most 64"),
]
"""A name that is safe in a file name."""

CorpusRef = Annotated[
    str,
    StringConstraints(pattern=f"^{_NAME}(/{_NAME})?$"),
    Field(description="the name of a corpus manifest, MANIFEST or MANIFEST/SPLIT"),
]
"""MANIFEST or MANIFEST/SPLIT."""

References = Annotated[tuple[CorpusRef, ...], Field(min_length=1)]

Url = Annotated[
    str,
    StringConstraints(pattern=r"^https?://(\[[0-9A-Fa-f:.]+\]|[^\s@?#/:\[\]]+)(:[0-9]{1,5})?(/[^\s@?#]*)?$"),
    Field(description="an http or https address without user name, query or fragment"),
]

Variable = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$"),
    Field(description="the name of an environment variable (the key itself stays out of the file)"),
]

Text = Annotated[str, StringConstraints(min_length=1, max_length=10_000)]
Seed = Annotated[int, Field(ge=0, le=2**53 - 1)]
Share = Annotated[float, Field(ge=0, le=1)]
RETIRED = "all-arms-range@1"
"""Read, so that an old run can be judged again under it; refused for a gate that is to be sealed."""
Alpha = Annotated[float, Field(ge=1e-4, le=0.4)]
Decide = Literal["interval", "point"]
CALIBRATED = "pairwise-calibrated@1"
ALPHA = 0.025

RESERVED = frozenset(
    {
        "best_of",
        "cache_salt",
        "echo",
        "frequency_penalty",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "min_p",
        "model",
        "n",
        "presence_penalty",
        "prompt",
        "prompt_logprobs",
        "repetition_penalty",
        "return_token_ids",
        "seed",
        "stop",
        "stream",
        "stream_options",
        "suffix",
        "temperature",
        "top_k",
        "top_logprobs",
        "top_p",
        "use_beam_search",
    }
)
"""Request fields that the gate sets itself: `extra_body` may not carry them."""


class Seat(Record):
    """An OpenAI-compatible server that is already running."""

    base_url: Url
    api_key_env: Variable | None = None
    concurrency: int = Field(default=8, ge=1, le=1024)
    timeout_s: float = Field(default=300.0, gt=0, le=86_400)
    attempts: int = Field(default=5, ge=1, le=100)


class Base(Record):
    """The base language model's arm."""

    model: Text
    system: Text | None = None


class Candidate(Record):
    """An adapter that may ship: its served name, where its files are, and free notes."""

    model: Text
    adapter: Text
    notes: dict[Name, str | int | float | bool] = Field(default_factory=dict)


class Control(Record):
    """An arm that is measured but not judged: the base again under other seeds, or under its own system line."""

    model: Text
    adapter: Text | None = None
    system: Text | None = None
    seeds: tuple[Seed, ...] | None = None


class Arms(Record):
    """Everything that generates."""

    base: Base
    candidates: dict[Name, Candidate] = Field(min_length=1)
    controls: dict[Name, Control] = Field(default_factory=dict)

    @field_validator("base", mode="before", json_schema_input_type=Text | Base)
    @classmethod
    def _base_by_name(cls, value: object) -> object:
        return {"model": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _names_differ(self) -> Arms:
        names = ["base", *self.candidates, *self.controls]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"arm names must differ (`base` is taken): {', '.join(twice)}")
        models = [self.base.model, *(candidate.model for candidate in self.candidates.values())]
        adapters: dict[str, str | None] = {self.base.model: None}
        adapters |= {candidate.model: candidate.adapter for candidate in self.candidates.values()}
        for name, control in self.controls.items():
            known = adapters.setdefault(control.model, control.adapter)
            if control.adapter is not None and control.adapter != known:
                raise ValueError(
                    f"control {name} has another adapter than the arm that model {control.model} belongs to: one name "
                    "cannot serve two adapters"
                )
        shared = sorted({model for model in models if models.count(model) > 1})
        if shared:
            raise ValueError(f"base and candidates must each have a model name of their own: {', '.join(shared)}")
        return self

    def all(self) -> dict[str, Base | Candidate | Control]:
        """Every arm by name: base first, then candidates, then controls, each in the order of the file."""
        return {"base": self.base, **self.candidates, **self.controls}


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


class Message(Record):
    """One chat message of the prompt template."""

    role: Literal["system", "user", "assistant"]
    content: Text


class Prompts(Record):
    """The beats, one a line, and the template that turns a beat into a prompt; `{beat}` stands for the beat."""

    file: Text
    template: Text | tuple[Message, ...] = "{beat}"
    endpoint: Literal["chat", "completions"] = "chat"

    @model_validator(mode="after")
    def _template_holds_the_beat(self) -> Prompts:
        if isinstance(self.template, str):
            parts = [self.template]
        else:
            parts = [message.content for message in self.template]
            if self.endpoint == "completions":
                raise ValueError("the completions endpoint takes a template string, not chat messages")
        if sum(part.count("{beat}") for part in parts) != 1:
            raise ValueError("the template must hold {beat} exactly once")
        if not isinstance(self.template, str) and any(
            message.role == "system" and "{beat}" in message.content for message in self.template
        ):
            raise ValueError("{beat} may not stand in a system message, which an arm's own system line replaces")
        return self


class Probe(Prompts):
    """An extraction probe: prompts that invite a candidate to recite, generated and judged apart from the open ones.

    `kind: beats` asks with beats of training pairs; `kind: first-words` with first words of training passages, where
    overlap counts only beyond them. More than `max_rate` of the answers with training text in them FAIL `extraction`.
    """

    kind: Literal["beats", "first-words"]
    max_rate: Share


class Sampling(Record):
    """Every sampling field, all of them sent with each request, so that nothing is left to the server's defaults."""

    seeds: tuple[Seed, ...] = Field(min_length=2)
    temperature: float = Field(ge=0, le=2)
    top_p: float = Field(gt=0, le=1)
    max_tokens: int = Field(ge=1, le=1_000_000)
    top_k: int = Field(default=0, ge=0)
    min_p: float = Field(default=0.0, ge=0, le=1)
    presence_penalty: float = Field(default=0.0, ge=-2, le=2)
    frequency_penalty: float = Field(default=0.0, ge=-2, le=2)
    repetition_penalty: float = Field(default=1.0, gt=0, le=2)
    stop: tuple[Annotated[str, StringConstraints(min_length=1)], ...] = Field(default=(), max_length=4)
    extra_body: dict[str, JsonValue] = Field(default_factory=dict)

    @field_validator("seeds", mode="after")
    @classmethod
    def _seeds_differ(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(value)) != len(value):
            raise ValueError("seeds must differ from each other")
        return value

    @field_validator("extra_body", mode="after")
    @classmethod
    def _nothing_reserved(cls, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        taken = sorted(RESERVED & value.keys())
        if taken:
            raise ValueError(f"extra_body may not carry fields that the gate sets itself: {', '.join(taken)}")
        try:
            canonical(value)
        except ValueError as error:
            raise ValueError(f"extra_body has no canonical JSON form: {error}") from None
        return value


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
    seat: Literal["embedded"] | Seat
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
        """Without an unset sign_off or judge, so that gates sealed before there was one keep their hash."""
        document: dict[str, JsonValue] = handler(self)
        return {key: value for key, value in document.items() if key not in _LATER or value is not None}

    @model_validator(mode="after")
    def _fields_agree(self, info: ValidationInfo) -> Gate:
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


_LATER = frozenset({"sign_off", "judge"})
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
