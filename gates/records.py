"""Frozen records with one canonical form: the base class, canonical JSON, hashes, signatures, and a generation."""

from __future__ import annotations

import hashlib
import json
import re
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

import rfc8785
from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, ValidationError

from gates.errors import ExitCode, RecordError

_PERHAPS_NO_NUMBER = re.compile(rb"\d(?<=[:,\[\s-]\d)(?:\d{15}|[\d.]*[eE]\+?\d{3})")
_NO_NUMBERS = (b"NaN", b"Infinity")
"""What every number looks like that a field of any JSON takes and canonical JSON has not: an integer past 2^53, NaN."""

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Record(BaseModel):
    """A record: frozen, strict, nothing unknown in it, no NaN or infinity."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        validate_by_alias=True,
        validate_by_name=True,
        serialize_by_alias=True,
    )

    def as_json(self) -> dict[str, JsonValue]:
        """The record as plain JSON values."""
        document: dict[str, JsonValue] = self.model_dump(mode="json")
        return document

    def digest(self) -> str:
        """SHA-256 of the record's canonical JSON, in hex."""
        return digest(self.as_json())

    @classmethod
    def parse(cls, data: bytes, *, where: str) -> Self:
        """Read a record from JSON bytes; `where` names the place in the error.

        Raises RecordError when the bytes are not this record or carry a schema this version does not know.
        """
        try:
            record = cls.model_validate_json(data)
            if _PERHAPS_NO_NUMBER.search(data) or any(sign in data for sign in _NO_NUMBERS):
                canonical(record.as_json())
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"]) or "document"
            raise _no_record(where, f"{place}: {first['msg']}") from None
        except ValueError as error:
            raise _no_record(where, f"it holds a number that canonical JSON has not: {str(error)[:80]}") from None
        return record


def _no_record(where: str, why: str) -> RecordError:
    return RecordError(
        f"{where}: not a record of this version: {why}",
        next_step="restore the file from its commit, or read it with the version of gates that wrote it",
    )


def canonical(value: Any) -> bytes:
    """The one canonical JSON of a value (RFC 8785). Raises ValueError for NaN, infinity and integers past 2^53."""
    try:
        encoded: str = _ENCODER.encode(_plain(value))
        return (_TINY.sub(_spelt, encoded) if "e-0" in encoded else encoded).encode()
    except (_RareError, UnicodeEncodeError):
        return rfc8785.dumps(value)


def is_canonical(data: bytes) -> bool:
    """Whether bytes are the canonical JSON of what they say: one meaning, whoever reads them."""
    try:
        return canonical(json.loads(data)) == data
    except (ValueError, RecursionError):
        return False


class _RareError(Exception):
    """A value that Python's own encoder may write otherwise than RFC 8785 does."""


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
_TINY = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|(-?)(\d)(?:\.(\d+))?e-0(\d)')
"""A string, or a number that Python writes with an exponent of -5 to -9."""

_PLAIN_DOWN_TO = 6  # the exponent of the smallest numbers that are written without one
_MOST = 2**53 - 1


def _plain(value: Any) -> Any:
    """The value, where Python's own faster encoder writes it as RFC 8785 does. Raises _RareError otherwise."""
    kind = type(value)
    if kind is dict:
        if not all(type(key) is str and key.isascii() for key in value):
            raise _RareError  # its keys stand in the order of UTF-16
        return {key: one if type(one) is str else _plain(one) for key, one in value.items()}
    if kind is list or kind is tuple:
        return [one if type(one) is str else _plain(one) for one in value]
    if kind is float:
        if not abs(value) < 1e15:
            raise _RareError  # its exponent is written another way
        return int(value) if value.is_integer() else value
    if kind is int and not -_MOST <= value <= _MOST:
        raise _RareError
    if kind is str or kind is int or kind is bool or value is None:
        return value
    raise _RareError


def _spelt(found: re.Match[str]) -> str:
    """A number as RFC 8785 spells it: no exponent down to 1e-6, and none filled up with a zero. Strings stay."""
    sign, first, more, exponent = found.groups("")
    if not exponent:
        return found[0]
    if int(exponent) <= _PLAIN_DOWN_TO:
        return f"{sign}0.{'0' * (int(exponent) - 1)}{first}{more}"
    return f"{sign}{first}{'.' * bool(more)}{more}e-{exponent}"


def sha256(data: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON of `value`, in hex."""
    return sha256(canonical(value))


def signature(name: str, **parameters: object) -> str:
    """How a number was made, as `name|parameter:value|...`; `name` carries the version (`delta_cb@1`).

    >>> signature("ngram_hits@1", n=8)
    'ngram_hits@1|n:8'
    """
    return "|".join([name, *(f"{key}:{value}" for key, value in parameters.items())])


class Outcome(StrEnum):
    """What a gate says of one axis or one candidate."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    INVALID = "INVALID"

    @property
    def exit_code(self) -> ExitCode:
        """The exit status that stands for this outcome."""
        return ExitCode[self.name]


_PRECEDENCE = (Outcome.INVALID, Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS)


def worst(outcomes: list[Outcome]) -> Outcome:
    """The outcome that prevails: INVALID over FAIL over INCONCLUSIVE over PASS. Nothing at all is INVALID."""
    return min(outcomes, key=_PRECEDENCE.index, default=Outcome.INVALID)


class Usage(Record):
    """Tokens of one answer as the seat counted them."""

    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)


class Generation(Record):
    """One answer of the seat, recorded as it came; one line of generations.jsonl.

    The key is (seal, arm, prompt, seed). `request` is the body as sent, without the run's cache salt and without
    secrets. `error` is None for an answer, else one sentence saying why there is none; `text` is then empty.
    `prompt_sha256` is the SHA-256 of the prompt's token ids (comma-joined decimal) where the seat tells them.
    `headers` are the answer's that tell of a proxy, a cache or a fallback; an answer from one is an `error`.
    """

    schema_: Literal["gates.generation/1"] = Field(default="gates.generation/1", alias="schema")
    seal: Sha256
    arm: str
    prompt: int = Field(ge=0)
    seed: int
    seat: str
    request: dict[str, JsonValue]
    text: str
    finish_reason: str | None
    usage: Usage | None
    model: str | None
    fingerprint: str | None
    prompt_sha256: Sha256 | None
    started: str
    latency_s: float = Field(ge=0)
    attempts: int = Field(ge=1)
    error: str | None
    headers: dict[str, str] = Field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int, int]:
        """(arm, prompt, seed): unique within a run."""
        return (self.arm, self.prompt, self.seed)
