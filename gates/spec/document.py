"""From a YAML file to a validated record, or to the list of all its mistakes: line, place, value, rule, suggestion."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from gates.records import Record
from gates.spec.explain import WRONG_KINDS, did_you_mean, explain, similar
from gates.spec.shape import choices, forms, keys, meaning
from gates.spec.source import MAX_PROBLEMS, listed, read_text, shown
from gates.spec.tree import Loc, Tree, read_tree

R = TypeVar("R", bound=Record)

_SECRET = re.compile("(?i)key|secret|passw|(^|_)token$")
"""Values at places of such names are not repeated: people write a key where its variable's name belongs."""


def read_document(path: Path, model: type[R], context: Mapping[str, Any] | None = None) -> R:
    """The record that a YAML file holds.

    Values are taken as the file says them, without coercion; `context` is what the model's validators may ask for.
    Raises InputError with every mistake in the order of the file: what is wrong with the YAML, and what `model`
    refuses in it.
    """
    tree = read_tree(read_text(path), path)
    record: R | None = None
    try:
        text = json.dumps(tree.value)
        record = model.model_validate_json(text, strict=True, context=context, by_alias=True, by_name=False)
    except ValidationError as error:
        _report(tree, model, [_Finding.of(tree, each) for each in error.errors(include_url=False)])
    if record is None or tree.problems:
        raise listed(path, [problem for _, problem in sorted(tree.problems, key=lambda each: each[0])])
    return record


@dataclass(frozen=True)
class _Finding:
    """One of pydantic's errors, brought to the place in the file that it speaks of.

    `forks` are the places on the way where pydantic tried several forms. `value` is what stands at `path`, or a key
    that is refused itself.
    """

    path: Loc
    forks: tuple[Loc, ...]
    kind: str
    context: Mapping[str, Any]
    value: Any

    @classmethod
    def of(cls, tree: Tree, error: Mapping[str, Any]) -> _Finding:
        """Walk pydantic's location through the document; steps the document does not hold name a form, not a place."""
        value: Any = tree.value
        path: Loc = ()
        forks: list[Loc] = []
        for step in error["loc"]:
            if _holds(value, step):
                value, path = value[step], (*path, step)
            else:
                forks.append(path)
        if error["type"] == "missing":
            forks.pop()
            path, value = (*path, error["loc"][-1]), None
        elif forks and error["loc"][-1] == "[key]":
            forks.pop()
            value = path[-1]
        return cls(path, tuple(forks), error["type"], error.get("ctx", {}), value)

    def reach(self, fork: Loc) -> int:
        """How far the form that this error speaks for came at `fork`: 0 another kind of value, 1 refused, 2 inside."""
        if len(self.path) > len(fork):
            return 2
        fits = self.kind not in WRONG_KINDS or (self.kind == "literal_error" and isinstance(self.value, str))
        return int(fits)


def _holds(value: Any, step: str | int) -> bool:
    if isinstance(step, int):
        return isinstance(value, list) and step < len(value)
    return isinstance(value, dict) and step in value


def _report(tree: Tree, model: type[Record], findings: list[_Finding]) -> None:
    settled = sorted(_settle(_unexplained(tree, findings)), key=lambda each: tree.line(each.path))
    meant = _meant(settled)
    stand_for = set(meant.values())
    apart = [each for each in settled if each.path not in stand_for]
    for each in apart[:MAX_PROBLEMS]:
        _describe(tree, model, each, meant)
    if more := apart[MAX_PROBLEMS:]:
        # Counted, never shown: the hundred before them stand further up in the file.
        tree.add(tree.line(more[0].path), (), "", "not valid")
        tree.problems += tree.problems[-1:] * (len(more) - 1)


def _unexplained(tree: Tree, findings: list[_Finding]) -> list[_Finding]:
    """The findings that no other problem explains: an unreadable value, a refused key, a list with a bad entry."""
    refused = {each.path for each in findings if each.kind == "extra_forbidden"}
    around = {unread[:end] for unread in tree.unread for end in range(len(unread) + 1)}

    def explained(each: _Finding) -> bool:
        closed = tree.unread if each.kind == "extra_forbidden" else tree.unread | refused
        if any(each.path[:end] in closed for end in range(len(each.path) + 1)):
            return True
        if each.kind == "too_short" and isinstance(each.value, list | dict):
            return len(each.value) >= int(each.context["min_length"])
        return each.kind == "value_error" and each.path in around

    return [each for each in findings if not explained(each)]


def _settle(findings: list[_Finding]) -> list[_Finding]:
    """One voice for each place where pydantic tried several forms: the form that came furthest speaks."""
    best: dict[Loc, int] = {}
    for each in findings:
        for fork in each.forks:
            best[fork] = max(best.get(fork, 0), each.reach(fork))
    furthest = [each for each in findings if all(each.reach(fork) == best[fork] for fork in each.forks)]
    once = {(each.path, each.path in each.forks or number): each for number, each in reversed([*enumerate(furthest)])}
    return list(reversed(once.values()))


def _meant(findings: list[_Finding]) -> dict[Loc, Loc]:
    """Which unknown key stands for which missing one at the same place: one mistake, so one message."""
    unknown: dict[Loc, list[str]] = {}
    for each in findings:
        if each.kind == "extra_forbidden":
            unknown.setdefault(each.path[:-1], []).append(str(each.path[-1]))
    meant: dict[Loc, Loc] = {}
    for each in findings:
        if each.kind == "missing":
            parent = each.path[:-1]
            free = [key for key in unknown.get(parent, [])[:MAX_PROBLEMS] if (*parent, key) not in meant]
            match = similar(str(each.path[-1]), free)
            if match is not None:
                meant[*parent, match] = each.path
    return meant


def _describe(tree: Tree, model: type[Record], finding: _Finding, meant: dict[Loc, Loc]) -> None:
    path, value, place = finding.path, finding.value, finding.path
    hidden = isinstance(value, dict) or (isinstance(value, str) and path and _SECRET.search(str(path[-1])))
    text = "" if hidden else shown(value)
    if finding.kind == "missing":
        only = choices(forms(model, path))
        wanted = only[0] if len(only) == 1 else "..."
        text, rule, suggestion = "", "a required key is missing", f"add `{path[-1]}: {wanted}`"
    elif finding.kind == "extra_forbidden":
        allowed = finding.context.get("allowed") or keys(forms(model, path[:-1]))
        rule, suggestion = "unknown key", _hint(path, allowed, meant)
    elif finding.kind == "string_pattern_mismatch":
        rule, suggestion = f"must be {meaning(model, finding.context['pattern'])}", ""
    else:
        rule, suggestion = explain(finding.kind, finding.context, value, forms(model, path))
        place = path or _named_first(tree, rule)
    tree.add(tree.line(place), place, text, rule, suggestion)


def _hint(path: Loc, allowed: list[str], meant: dict[Loc, Loc]) -> str:
    if path in meant:
        return f"did you mean `{meant[path][-1]}`, which is missing?"
    return did_you_mean(str(path[-1]), allowed) or f"allowed here: {', '.join(allowed)}"


def _named_first(tree: Tree, rule: str) -> Loc:
    """The place that a rule about the whole document names in its first word, so that its line can be shown."""
    first = re.match(r"[\w.-]*", rule)
    steps = tuple(first[0].split(".")) if first else ()
    return steps if steps in tree.lines else ()
