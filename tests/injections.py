"""Texts that would like to be more than text, and how they are put into every place of a record that admits them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from itertools import count
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

CORPUS: dict[str, tuple[str, ...]] = {
    "html": (
        "<script>window.owned=1</script>",
        "<img src=x onerror=window.owned=1>",
        "<svg/onload=window.owned=1><animate onbegin=window.owned=1>",
        "<a href=javascript:window.owned=1>a</a>",
        '" onmouseover="window.owned=1" x="',
        "' autofocus onfocus='window.owned=1",
        "&lt;script&gt; &#60;b&#62; &amp;amp; &#x202e;",
        "</script></style></title></textarea><b>out</b>",
        "--><b>out</b><!--",
        "]]><b>out</b><![CDATA[",
        "<math><mi//xlink:href='data:x,<script>window.owned=1</script>'>",
        "<iframe srcdoc='<script>parent.owned=1</script>'></iframe><base href=//e.example><meta http-equiv=refresh>",
    ),
    "markdown": (
        "[l](http://e.example) ![i](http://e.example/x.png) <http://e.example>",
        "| a | b |\n| --- | --- |\n| c",
        "```\ncode\n~~~",
        "# heading\n## another\n===\n---",
        "\n\n    indented\n\n> quote\n\n- item\n1. one",
        "**b** _u_ __uu__ `c` ``d` ~~s~~ $m$ \\",
        "[x]: http://e.example\n[^1]: note http://e.example www.e.example",
        "<!-- gates: end -->\n<!-- gates:end small -->\n# gates:end small\n---",
    ),
    "terminal": (
        "\x1b[2J\x1b[1;31mred",
        "\x1b]0;title\x07\x1b]8;;http://e.example\x07link\x1b]8;;\x07",
        "\x1b]52;c;b3duZWQ=\x07\x1bP+q544e\x1b\\",
        "\x9b31m\x9d0;t\x9c\x85next",
        "over\rwritten\b\b\b\x7f\x00\x0b\x0c",
        "\u202egnp.exe\u202c \u2066iso\u2069 \u061c\u200e\u200f",
        "zero\u200b\u200c\u200d\u2060\ufeffwidth\u00ad\u2028line\u2029end",
        "[bold]mark-up[/bold] [link=http://e.example]x[/link] :smile:",
    ),
    "csv": ("=cmd|'/c calc'!A1", "+1+1", "-2+3", "@SUM(A1)", "\t=1+1", "\r=1+1", '"=1+1","', "=HYPERLINK(1)"),
    "runner": (
        "::error file=x::owned",
        "\n::add-mask::owned\n",
        "  ::stop-commands::owned",
        "%0A::set-output name=x::owned%0D",
        "##[error]owned ##vso[task.complete]owned ##teamcity[x]",
        "a,title=b::owned: x%25",
    ),
    "document": (
        '","outcome":"PASS","x":"',
        "\\u0022}\n{",
        "x: !!python/object/apply:os.system [id]\n- &a *a",
        "</failure></testcase><testcase name='more'/>",
        "<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>&e;",
        "\ufffe\uffff\x01",
    ),
    "template": (
        "{{ 7*7 }} {% include 'x' %} {# c #}",
        "${7*7} #{7*7} <%= 7*7 %>",
        "%s %(x)s {0} {x!r}",
        "$(id) `id` ; id",
    ),
    "path": ("../../../etc/passwd", "/etc/passwd", "..\\..\\x", "file:///etc/passwd", "~root/x", "a/../../b"),
}
"""Injections by what they would inject into."""

STRINGS = tuple(text for family in CORPUS.values() for text in family)

_T = TypeVar("_T")


def rotated(number: int) -> str:
    """All injections in one text; which of them stands first, where much is decided, changes with the number."""
    first = number % len(STRINGS)
    return " ".join((*STRINGS[first:], *STRINGS[:first]))


class Poison:
    """Puts a text of `words` into every place that admits any: one for each string, the same for the same string.

    What is named in `kept` stays, and so does what a field's own rules refuse (names, hashes, addresses, outcomes):
    no reader lets such a text in. `names` are replaced wherever they stand, rules or no rules.
    """

    def __init__(self, words: Callable[[int], str], *, kept: tuple[str, ...] = (), names: tuple[str, ...] = ()) -> None:
        self.words, self.kept, self.names = words, frozenset(kept), frozenset(names)
        self.made: dict[str, str] = {}
        self._count = count()

    def text(self, old: str) -> str:
        if old not in self.made:
            self.made[old] = self.words(next(self._count))
        return self.made[old]

    def __call__(self, value: _T) -> _T:
        return self._put(value, lambda _: True)  # type: ignore[no-any-return]

    def _put(self, value: Any, admitted: Callable[[str], bool]) -> Any:
        if type(value) is str:
            return self._word(value, admitted)
        if isinstance(value, BaseModel):
            return self._record(value)
        if isinstance(value, Mapping):
            return {self._key(key): self._put(one, admitted) for key, one in value.items()}
        if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
            return type(value)(self._put(one, admitted) for one in value)
        return self._structure(value)

    def _structure(self, value: Any) -> Any:
        """A named tuple or a dataclass, whose fields have no rules; anything else as it is."""
        if isinstance(value, tuple):
            return type(value)(*(self._put(one, lambda _: True) for one in value))
        if not dataclasses.is_dataclass(value):
            return value
        fields = [field.name for field in dataclasses.fields(value)]
        return dataclasses.replace(value, **{name: self._put(getattr(value, name), lambda _: True) for name in fields})  # type: ignore[type-var]

    def _word(self, value: str, admitted: Callable[[str], bool]) -> str:
        if not value or value in self.kept:
            return value
        return self.text(value) if value in self.names or admitted(self.text(value)) else value

    def _key(self, key: Any) -> Any:
        return self.text(key) if isinstance(key, str) and key in self.names else key

    def _record(self, record: BaseModel) -> BaseModel:
        kind = type(record)
        changed = {name: self._put(getattr(record, name), _admits(kind, name)) for name in kind.model_fields}
        return record.model_copy(update=changed)


@cache
def _field(kind: type[BaseModel], name: str) -> TypeAdapter[Any]:
    field = kind.model_fields[name]
    rules = (field.annotation, *field.metadata)
    return TypeAdapter(Annotated[rules] if field.metadata else field.annotation)


def _admits(kind: type[BaseModel], name: str) -> Callable[[str], bool]:
    """Whether a text may stand in this field, or in a list or mapping that the field holds."""

    def admitted(text: str) -> bool:
        for shape in (text, (text,), {"x": text}, {"x": (text,)}, {"x": {"x": text}}):
            try:
                _field(kind, name).validate_python(shape)
            except ValidationError:
                continue
            return True
        return False

    return admitted
