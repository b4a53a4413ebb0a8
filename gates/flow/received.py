"""A file of texts that are older than this record, read strictly: which text is the answer to what."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from gates.errors import Problem
from gates.flow.inputs import Inputs
from gates.records import Generation, Sha256, Usage
from gates.spec.prompts import prompt_text
from gates.spec.source import listed, located, shown, unreadable

NEEDED = ("arm", "seed", "prompt", "text")
OPTIONAL = ("finish_reason", "error", "prompt_tokens", "completion_tokens")
FIELDS = (*NEEDED, *OPTIONAL)
_SURROGATE = re.compile("[\ud800-\udfff]")
UNKNOWN = "unknown: imported"
"""What stands in a generation where the file tells nothing: its seat, when it started."""


@dataclass(frozen=True)
class Reader:
    """Turns lines into generations under a gate; `names` gives a field's name in the file where it is another.

    A name may lead inside: `usage.completion_tokens`.
    """

    inputs: Inputs
    seal: Sha256
    names: Mapping[str, str]
    path: Path

    def generations(self, data: bytes) -> list[Generation]:
        """Every line as a generation, in the order of the file. Raises InputError listing every mistake."""
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            place = data.count(b"\n", 0, error.start) + 1
            raise unreadable(self.path, place, "", "the file is not UTF-8 here", "save it as UTF-8") from None
        self._refuse_missing(text)
        found: dict[tuple[str, int, int], int] = {}
        generations: list[Generation] = []
        problems: list[Problem] = []
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            row = _row(line)
            wrong = [("line", line, row, "")] if isinstance(row, str) else list(self._mistakes(row))
            problems += [
                located(self.path, number, place, shown(value), rule, hint) for place, value, rule, hint in wrong
            ]
            if wrong or isinstance(row, str):
                continue
            made = self._generation(row)
            if made.key in found:
                rule = f"arm, seed and prompt are those of line {found[made.key]}"
                problems.append(located(self.path, number, "line", "", rule, "keep one of them"))
            found.setdefault(made.key, number)
            generations.append(made)
        if not problems and not generations:
            raise unreadable(self.path, 1, "", "the file holds no text", "write one JSON object a line")
        if problems:
            raise listed(self.path, problems)
        return generations

    def _refuse_missing(self, text: str) -> None:
        """Say once, not in every line, that the file calls a field otherwise."""
        first = _row(next((line for line in text.split("\n") if line.strip()), ""))
        if isinstance(first, str):
            return
        missing = [field for field in NEEDED if self._of(first, field) is None]
        if missing and not (missing == ["text"] and self._of(first, "error")):
            hint = ", ".join(f"--map {field}=NAME" for field in missing)
            rule = f"there is no {', '.join(missing)}; the fields are called: {', '.join(map(shown, list(first)[:20]))}"
            raise unreadable(self.path, 1, "", rule, f"name them: {hint}")

    def _mistakes(self, row: Mapping[str, Any]) -> Iterator[tuple[str, object, str, str]]:
        """(field, value, rule, suggestion) for everything wrong in a line."""
        kinds = {"text": (str,), "finish_reason": (str, type(None)), "error": (str, type(None))}
        for field in ("text", "finish_reason", "error"):
            value = self._of(row, field)
            if type(value) not in kinds[field] and not (field == "text" and self._of(row, "error")):
                yield field, value, "a text is needed", self._hint(field)
            elif isinstance(value, str) and _broken(value):
                yield field, "", "half of a surrogate pair is no text", "write the whole character"
        arm = self._arm(row)
        if arm is None:
            known = ", ".join(self.inputs.gate.arms.all())
            yield "arm", self._of(row, "arm"), f"must be an arm of the gate or its model: {known}", self._hint("arm")
            return
        seed = self._of(row, "seed")
        if type(seed) is not int or seed not in self.inputs.gate.seeds(arm):
            seeds = ", ".join(map(str, self.inputs.gate.seeds(arm)))
            yield "seed", seed, f"must be a seed of this arm: {seeds}", self._hint("seed")
        if self._prompt(row, arm) is None:
            rule = f"must be a prompt of the gate: its number, 0 to {len(self.inputs.shown) - 1}, its beat or its text"
            yield "prompt", self._of(row, "prompt"), rule, self._hint("prompt")
        for field in ("prompt_tokens", "completion_tokens"):
            count = self._of(row, field)
            if count is not None and (type(count) is not int or not 0 <= count <= 2**53 - 1):
                yield field, count, "a whole number of at least 0 is needed", self._hint(field)

    def _hint(self, field: str) -> str:
        name = self.names.get(field, field)
        return f"read from {name!r}; --map {field}=NAME reads it from another"

    def _of(self, row: Mapping[str, Any], field: str) -> Any:
        name = self.names.get(field, field)
        if name in row:
            return row[name]
        value: Any = row
        for step in name.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        return value

    def _arm(self, row: Mapping[str, Any]) -> str | None:
        value = self._of(row, "arm")
        arms = self.inputs.gate.arms.all()
        if isinstance(value, str) and value in arms:
            return value
        served = [name for name, arm in arms.items() if arm.model == value]
        return served[0] if len(served) == 1 else None

    def _prompt(self, row: Mapping[str, Any], arm: str) -> int | None:
        value, shown_ = self._of(row, "prompt"), self.inputs.shown
        if type(value) is int:
            return value if 0 <= value < len(shown_) else None
        if not isinstance(value, str):
            return None
        found = [
            number
            for number, (beat, _) in enumerate(shown_)
            if value.strip() in (beat, prompt_text(self.inputs.prompt(arm, number)).strip())
        ]
        return found[0] if len(found) == 1 else None

    def _generation(self, row: Mapping[str, Any]) -> Generation:
        arm = self._arm(row) or ""
        error = self._of(row, "error")
        tokens = [self._of(row, field) for field in ("prompt_tokens", "completion_tokens")]
        return Generation(
            seal=self.seal,
            arm=arm,
            prompt=self._prompt(row, arm) or 0,
            seed=self._of(row, "seed"),
            seat=UNKNOWN,
            request={},
            text="" if error else self._of(row, "text"),
            finish_reason=self._of(row, "finish_reason"),
            usage=None if tokens[1] is None else Usage(prompt_tokens=tokens[0] or 0, completion_tokens=tokens[1]),
            model=None,
            fingerprint=None,
            prompt_sha256=None,
            started=UNKNOWN,
            latency_s=0.0,
            attempts=1,
            error=error or None,
        )


def _row(line: str) -> dict[str, JsonValue] | str:
    """A line's object, or why it is none."""
    try:
        found = json.loads(line, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return f"a JSON object is needed: {error}"
    return found if isinstance(found, dict) else "a JSON object is needed"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands there twice")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _broken(text: str) -> bool:
    return _SURROGATE.search(text) is not None
