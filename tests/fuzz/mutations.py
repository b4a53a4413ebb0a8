"""What a hostile hand does to a file: bytes, splinters of syntax, lines, and values of the JSON in it.

Everything hangs on the generator that is passed in, so that a seed names an example.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

Mutation = Callable[[bytes, random.Random], bytes]

YAML = (b"{", b"}", b"[", b"]", b": ", b"- ", b"#", b"&a ", b"*a", b"!!x ", b"|\n", b">\n", b"---\n", b"...\n", b"%")
TEXT = (
    b"\t",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\r",
    b"'",
    b'"',
    b"\\",
    b"\\ud800",
    b"? ",
    b"<<: ",
    b"~",
    b"true",
    b"@",
)
NUMBERS = (b".nan", b"-.inf", b"1e999", b"010", b"9" * 5000, b"-1", b"null", b"5", b"1_0", b"0x1f", b"2026-13-45")
DEEP = (b"[" * 200, b"[" * 100_000, b'{"a":' * 3000, b"\xe2\x80\xa8", b'"\\U00110000"', b"\xed\xa0\x80", b"\n\n\n")
SPLINTERS = (*YAML, *TEXT, *NUMBERS, *DEEP)

VALUES = (
    *(
        b"null",
        b"true",
        b"0",
        b"-1",
        b"1.5",
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b"1e999",
        b"9007199254740993",
        b"1e400",
    ),
    *(b"9" * 400, b"9" * 5000, b'""', b'"\\ud800"', b'"\\u0000"', b'"\xed\xa0\x80"', b'"../../x"', b'"/etc/passwd"'),
    *(b'"' + b"a" * 5000 + b'"', b"[]", b"{}", b'[[[["x"]]]]', b"[" * 150 + b"]" * 150, b"[" * 5000 + b"]" * 5000),
    *(b'{"a":1,"a":2}', b'"\\u202e<script>"', b'"2026-13-45"', b"-0", b"-0.0", b'"NaN"', b"[null]", b'{"":null}'),
)
_MARK = "\x01mark\x01"
_QUOTED = json.dumps(_MARK).encode()


def some_bytes(data: bytes, rng: random.Random) -> bytes:
    """One byte changed, put in or taken out."""
    at = rng.randrange(len(data) + 1)
    return data[:at] + bytes([rng.randrange(256)]) + data[at + rng.randrange(3) :]


def a_splinter(data: bytes, rng: random.Random) -> bytes:
    """A piece of syntax where none belongs."""
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(SPLINTERS) + data[at:]


def some_lines(data: bytes, rng: random.Random) -> bytes:
    """A line deleted, doubled, moved or indented."""
    lines = data.splitlines(keepends=True) or [b""]
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    change = rng.choice(("delete", "double", "swap", "indent"))
    if change == "delete":
        del lines[at]
    elif change == "double":
        lines.insert(other, lines[at])
    elif change == "swap":
        lines[at], lines[other] = lines[other], lines[at]
    else:
        lines[at] = b"  " + lines[at]
    return b"".join(lines)


def a_yaml_value(data: bytes, rng: random.Random) -> bytes:
    """The value behind a `key: ` replaced."""
    line, *rest = rng.choice([part for part in data.split(b"\n") if b": " in part] or [b"a: b"]).split(b": ", 1)
    return data.replace(b": ".join([line, *rest]), line + b": " + rng.choice(SPLINTERS), 1)


def cut(data: bytes, rng: random.Random) -> bytes:
    """The file as a torn write leaves it."""
    return data[: rng.randrange(len(data) + 1)]


def a_block(data: bytes, rng: random.Random) -> bytes:
    """Eight bytes of extremes over what a header may hold: counts, offsets, sizes."""
    at = rng.randrange(max(1, min(len(data), 4096)))
    number = rng.choice((0, 1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1, len(data), rng.randrange(2**64)))
    block = number.to_bytes(8, "little")[: rng.choice((4, 8))]
    return data[:at] + block + data[at + len(block) :]


def a_json_value(data: bytes, rng: random.Random) -> bytes:
    """One value somewhere in the JSON (one document, or one a line) replaced by one that nobody expects."""
    lines = data.split(b"\n")
    found = [number for number, line in enumerate(lines) if line.strip()]
    try:
        number, document = None, json.loads(data)
    except (ValueError, RecursionError):
        try:
            number = rng.choice(found)
            document = json.loads(lines[number])
        except (IndexError, ValueError, RecursionError):
            return a_splinter(data, rng)
    document = replaced(document, rng)
    made = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    made = made.replace(_QUOTED, rng.choice(VALUES))
    if number is None:
        return made
    lines[number] = made
    return b"\n".join(lines)


def replaced(document: Any, rng: random.Random) -> Any:
    """The document with a mark in one place, or with a key of its own taken away or put in."""
    places = list(_places(document))
    if not places:
        return _MARK
    holder, key = rng.choice(places)
    if isinstance(holder, dict) and rng.random() < 0.2:
        value = holder.pop(key)
        if rng.random() < 0.5:
            holder[rng.choice((f"{key}x", "", "\u202e", "schema"))] = value
    else:
        holder[key] = _MARK
    return document


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(pairs):
        yield value, key
        yield from _places(inner)


KINDS: dict[str, tuple[Mutation, ...]] = {
    "yaml": (some_bytes, a_splinter, some_lines, a_yaml_value),
    "json": (some_bytes, a_splinter, some_lines, cut, a_json_value, a_json_value, a_json_value, a_json_value),
    "text": (some_bytes, a_splinter, some_lines, cut),
    "binary": (some_bytes, a_block, a_block, cut),
}


def mutated(data: bytes, kind: str, seed: int, count: int) -> bytes:
    """`data` after `count` changes of its kind."""
    rng = random.Random(seed)
    for _ in range(count):
        data = rng.choice(KINDS[kind])(data, rng)
    return data
