"""Judging by a model: the fixed question in its two orders, its recorded answers, and texts whose answer is known."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue, SerializerFunctionWrapHandler, model_serializer

from gates.records import Record, Sha256, digest

Order = Literal["beat-first", "text-first"]
ORDERS: tuple[Order, Order] = ("beat-first", "text-first")

_BEAT = "The dog barks at a stranger."
_ON, _OFF = "A man came to the door, and the old dog growled and barked at him.", "She counted the coins twice."


def question(order: Order, beat: str, text: str) -> str:
    """What the judge is asked, word for word. The other order swaps beat and text, the examples, and yes and no."""
    one, other = ("yes", "no") if order == "beat-first" else ("no", "yes")
    examples = [(_BEAT, _ON, "yes"), (_BEAT, _OFF, "no")]
    shown = examples if order == "beat-first" else examples[::-1]
    cases = [f"{_case(order, *example[:2])}\nAnswer: {example[2]}" for example in shown]
    head = f"Does the text tell of what the scene says? Answer {one} or {other}."
    return "\n\n".join([head, *cases, f"{_case(order, beat, text)}\nAnswer:"])


def _case(order: Order, beat: str, text: str) -> str:
    # On one line each, so that no text can set up a case of its own.
    lines = [f"Scene: {' '.join(beat.split())}", f"Text: {' '.join(text.split())}"]
    return "\n".join(lines if order == "beat-first" else lines[::-1])


WORDING = digest([question(order, "{beat}", "{text}") for order in ORDERS])
"""SHA-256 of the fixed prompt in both orders."""


class Judgement(Record):
    """One answer of the judge (`gates.judgement/1`): one line of judgements.jsonl.

    Of a generation (arm, prompt, seed), or of a labelled text: arm None and `prompt` its number from 0. `request` is
    the body as sent, without the run's cache salt. `yes` and `no` are the log probabilities (nats) of a first token
    that says so; a word that the seat does not list is taken to be as likely as the last one listed, the most that it
    can be. `error` says why there is no answer; both are None then. `seat` says which of several seats answered.
    """

    schema_: Literal["gates.judgement/1"] = Field(default="gates.judgement/1", alias="schema")
    seal: Sha256
    arm: str | None
    prompt: int = Field(ge=0)
    seed: int
    order: Order
    request: dict[str, JsonValue]
    yes: float | None = Field(default=None, le=1e-3)
    no: float | None = Field(default=None, le=1e-3)
    model: str | None = None
    fingerprint: str | None = None
    error: str | None = None
    seat: str | None = None

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """Without a seat where there is but one, as before there could be several."""
        document: dict[str, JsonValue] = handler(self)
        return {key: value for key, value in document.items() if key != "seat" or value is not None}

    @property
    def key(self) -> tuple[str | None, int, int, Order]:
        """(arm, prompt, seed, order): unique within a run."""
        return (self.arm, self.prompt, self.seed, self.order)


class Labelled(Record):
    """A text with its beat, and whether it tells of it: one line of a labelled file."""

    beat: str = Field(min_length=1, max_length=10_000)
    text: str = Field(max_length=100_000)
    on_beat: bool
