"""What a gate lets generate: the seat, the arms, the prompts, and every sampling field."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import (
    Field,
    JsonValue,
    StringConstraints,
    field_validator,
    model_validator,
)

from gates.records import Record, canonical
from gates.spec.fields import Name, Seed, Share, Text, Url, Variable

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


_PARTS = re.compile(r"(?P<scheme>https?)://(?P<host>\[[^\]]*\]|[^:/]+)(:(?P<port>\d+))?(?P<path>.*)")
_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Seat(Record):
    """An OpenAI-compatible server that is already running."""

    base_url: Url
    api_key_env: Variable | None = None
    concurrency: int = Field(default=8, ge=1, le=1024)
    timeout_s: float = Field(default=300.0, gt=0, le=86_400)
    attempts: int = Field(default=5, ge=1, le=100)

    @property
    def name(self) -> str:
        """What this seat is called among several: its address, without a stroke at its end."""
        return self.base_url.rstrip("/")

    @property
    def server(self) -> str:
        """The address as every way of writing it comes out: host in lower case, this machine by one name, port told."""
        parts = _PARTS.fullmatch(self.name)
        if parts is None:
            return self.name
        host = parts["host"].lower().rstrip(".")
        port = int(parts["port"] or {"http": 80, "https": 443}[parts["scheme"]])
        return f"{parts['scheme']}://{'localhost' if host in _THIS_MACHINE else host}:{port}{parts['path']}"


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
