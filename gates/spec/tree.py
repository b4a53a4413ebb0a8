"""Strict YAML: from text to plain values, each with its line, and nothing read as anything else than it says.

PyYAML scans and parses; what its events mean is decided here. Plain scalars follow the YAML 1.2 core schema, less its
octal and hexadecimal numbers: `1e-3` is a number; `no`, `on`, `010`, `0x1f`, `1_000`, `12:30:00` and dates are text.
Repeated keys, keys that are not text, anchors, aliases, tags and further documents are mistakes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from pydantic import JsonValue
from yaml import events

from gates.errors import Problem
from gates.spec.source import located, shown, unreadable

Loc = tuple[str | int, ...]
"""Keys and list positions that lead from the top of a document to a place in it."""

MAX_DEPTH = 40
MAX_VALUES = 50_000
MAX_EXACT = 2**53 - 1

NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_NO_TEXT = re.compile("[\0\ud800-\udfff]")

_DEEP = f"values nest deeper than {MAX_DEPTH} levels"

_SYNTAX = (
    (r"'\\t' that cannot start any token", "a tab cannot indent YAML", "use spaces"),
    ("mapping values are not allowed", "a second `: ` in one line", "put the text in quotes"),
    ("expected <block end>", "the indentation does not fit the lines above", "align it with its neighbours"),
    ("expected ',' or '[]}]'", "a bracket is not closed, or a comma is missing", ""),
    ("could not find expected ':'", "this is neither `key: value` nor `- item`", "is a colon or a space missing?"),
    ("unexpected end of stream", "a quotation mark is not closed", ""),
    ("cannot start any token", "a text may not start with this character", "put the text in quotes"),
    ("unknown escape character", "an unknown escape in a double-quoted text", "write \\\\ for a backslash"),
)


@dataclass
class Tree:
    """A document as read: its plain value, the line of every place, and what is wrong with it.

    `unread` are places that hold a mistake and therefore None: nothing can be said of their value.
    """

    path: Path
    value: JsonValue = None
    lines: dict[Loc, int] = field(default_factory=dict)
    problems: list[tuple[int, Problem]] = field(default_factory=list)
    unread: set[Loc] = field(default_factory=set)

    def line(self, loc: Loc) -> int:
        """The line of a place, or of the nearest place around it that the file holds."""
        while loc not in self.lines and loc:
            loc = loc[:-1]
        return self.lines.get(loc, 1)

    def add(self, line: int, loc: Loc, value: str, rule: str, suggestion: str = "") -> None:
        """Note a problem."""
        self.problems.append((line, located(self.path, line, dotted(loc), value, rule, suggestion)))


def dotted(loc: Loc) -> str:
    """A place as a person writes it: `sampling.seeds[2]`; `document` for the whole."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{_step(step)}" for step in loc)
    return "".join(steps).removeprefix(".") or "document"


def _step(key: str) -> str:
    return key if re.fullmatch(r"[\w-]{1,64}", key) else shown(key)


def read_tree(text: str, path: Path) -> Tree:
    """Read one YAML document.

    Raises InputError for a mistake behind which nothing can be read: broken syntax, too many levels, an empty file.
    """
    loader = _Shallow(text)
    tree = Tree(path)
    try:
        _Reader(tree, _events(loader)).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise unreadable(path, mark.line + 1 if mark else 1, "", *_syntax(error.problem or str(error))) from None
    except (ValueError, OverflowError):
        # chr() and int() inside the scanner, of an escape or a version number out of range
        raise unreadable(path, loader.get_mark().line + 1, "", "an escape or number out of range") from None
    finally:
        loader.dispose()
    return tree


class _Shallow(yaml.SafeLoader):
    """PyYAML with brackets within MAX_DEPTH, for its scanner looks at every open bracket for every token."""

    def fetch_flow_collection_start(self, token: type[yaml.Token]) -> None:
        """Open a bracket."""
        if self.flow_level > MAX_DEPTH:
            raise yaml.MarkedYAMLError(problem=_DEEP, problem_mark=self.get_mark())
        super().fetch_flow_collection_start(token)


def _events(loader: yaml.SafeLoader) -> Iterator[events.Event]:
    while loader.check_event():
        yield loader.get_event()  # type: ignore[no-untyped-call]  # the stubs leave it untyped


def _syntax(problem: str) -> tuple[str, str]:
    if problem == _DEEP:
        return _DEEP, ""
    for pattern, rule, suggestion in _SYNTAX:
        if re.search(pattern, problem):
            return f"not YAML: {rule}", suggestion
    return f"not YAML: {problem}", ""


class _Reader:
    """Builds the tree from parser events, by recursive descent, within MAX_DEPTH and MAX_VALUES."""

    def __init__(self, tree: Tree, stream: Iterator[events.Event]) -> None:
        self.tree = tree
        self.stream = stream
        self.values = 0

    def document(self) -> None:
        """Read the one document of the stream."""
        next(self.stream)
        start = next(self.stream)
        first = None if isinstance(start, events.StreamEndEvent) else self.next()
        if first is None or (isinstance(first, events.ScalarEvent) and not first.value and first.implicit[0]):
            raise unreadable(self.tree.path, 1, "", "the file is empty", "write `key: value` lines")
        self.tree.lines[()] = _line(first)
        self.tree.value = self.node(first, ())
        next(self.stream)
        more = next(self.stream)
        if not isinstance(more, events.StreamEndEvent):
            self.tree.add(_line(more), (), "", "a second document starts here", "keep one document in a file")

    def next(self) -> events.Event:
        """The next event within the document, counted when it starts a value or a key."""
        event = next(self.stream)
        self.values += isinstance(event, events.NodeEvent)
        if self.values > MAX_VALUES:
            raise unreadable(self.tree.path, _line(event), "", f"the file holds more than {MAX_VALUES:,} values")
        return event

    def node(self, event: events.Event, loc: Loc) -> JsonValue:
        """The value that starts with `event`."""
        if isinstance(event, events.AliasEvent):
            self.refuse(event, loc, shown(f"*{event.anchor}"), "aliases are not read", "write the value out")
            return None
        if not isinstance(event, events.NodeEvent):
            raise TypeError(event)
        if event.anchor is not None:
            self.refuse(event, loc, shown(f"&{event.anchor}"), "anchors are not read", "leave the anchor out")
        tag = getattr(event, "tag", None)
        if tag is not None:
            self.refuse(event, loc, shown(tag), "tags are not read", "leave the tag out; quotes make a text")
        if isinstance(event, events.ScalarEvent):
            return self.scalar(event, loc)
        if len(loc) >= MAX_DEPTH:
            raise unreadable(self.tree.path, _line(event), "", _DEEP)
        return self.mapping(loc) if isinstance(event, events.MappingStartEvent) else self.sequence(loc)

    def sequence(self, loc: Loc) -> list[JsonValue]:
        """The items up to the end of the list."""
        items: list[JsonValue] = []
        while not isinstance(event := self.next(), events.SequenceEndEvent):
            here = (*loc, len(items))
            self.tree.lines[here] = _line(event)
            items.append(self.node(event, here))
        return items

    def mapping(self, loc: Loc) -> dict[str, JsonValue]:
        """The keys and values up to the end of the mapping; the first of a repeated key counts."""
        pairs: dict[str, JsonValue] = {}
        while not isinstance(event := self.next(), events.MappingEndEvent):
            line = _line(event)
            key = self.key(event, loc)
            if key is None or key in pairs:
                if key is not None:
                    first = self.tree.lines[(*loc, key)]
                    self.tree.add(line, (*loc, key), "", f"the key is repeated: it stands in line {first} already")
                self.skip(self.next())
                continue
            here = (*loc, key)
            self.tree.lines[here] = line
            pairs[key] = self.node(self.next(), here)
        return pairs

    def key(self, event: events.Event, loc: Loc) -> str | None:
        """The key that starts with `event`; None, and a problem, when it is not text."""
        if not isinstance(event, events.ScalarEvent):
            self.skip(event)
            self.tree.add(_line(event), loc, "", "a key must be text")
            return None
        held = len(self.tree.problems)
        value = self.node(event, loc)
        if len(self.tree.problems) > held:
            return None
        if not isinstance(value, str):
            self.tree.add(_line(event), loc, shown(event.value), "a key must be text", "put it in quotes")
            return None
        return value

    def skip(self, event: events.Event) -> None:
        """Pass over the value that starts with `event`."""
        depth = 0
        while True:
            depth += isinstance(event, events.CollectionStartEvent)
            depth -= isinstance(event, events.CollectionEndEvent)
            if not depth:
                return
            event = self.next()

    def scalar(self, event: events.ScalarEvent, loc: Loc) -> JsonValue:
        """The value of a scalar: a plain one by the core schema, a quoted one as text."""
        text = str(event.value)
        try:
            if bad := _NO_TEXT.search(text):
                raise ValueError(f"{shown(bad[0])} is not text")  # noqa: TRY301 - one place notes the refusals
            return plain(text) if event.implicit[0] else text
        except ValueError as error:
            self.refuse(event, loc, shown(text), str(error))
            return None

    def refuse(self, event: events.Event, loc: Loc, value: str, rule: str, suggestion: str = "") -> None:
        """Note a problem at a place whose value nobody knows."""
        self.tree.add(_line(event), loc, value, rule, suggestion)
        self.tree.unread.add(loc)


def plain(text: str) -> str | int | float | None:
    """What a scalar without quotes means. Raises ValueError, with the rule, for a number that a record cannot hold."""
    if text in _WORDS:
        return _WORDS[text]
    if not NUMBER.fullmatch(text):
        return text
    if _WHOLE.fullmatch(text):
        if len(text) > 17 or abs(int(text)) > MAX_EXACT:
            raise ValueError("a whole number past 2^53 cannot be recorded exactly")
        return int(text)
    number = float(text)
    if math.isinf(number) or (number == 0 and re.search("[1-9]", re.split("[eE]", text)[0])):
        raise ValueError("the number is out of the range of 64-bit floats")
    return number


def _line(event: events.Event) -> int:
    mark = event.start_mark
    return mark.line + 1 if mark else 1
