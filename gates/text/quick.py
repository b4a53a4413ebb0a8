"""The words of a text as flat bytes, one or more blanks between them: the definition's words at 100 MB/s and more.

ASCII is mapped by one table; letters, quotes and dashes of two or three bytes by tables made from the definition; a
stretch that holds any other character (a combining mark, a ligature, an invisible sign) is cut by the definition.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from gates.text.definition import LETTERS, WORD, normalise

Case = Literal["lower", "keep"]

BORDER = b"\x02"
"""Between two texts of a batch: no text holds it as a word."""

_BLANK, _APOSTROPHE = ord(" "), ord("'")
_NEWLINE, _RETURN, _HYPHEN = ord("\n"), ord("\r"), ord("-")
_LONGEST = 8  # bytes of two characters at most
_DROPPED = 1  # stands for bytes that are taken out at the end; as a character of the text it is a blank by then
_OTHER, _LETTER, _BREAK, _QUOTE = range(4)
_TWO_BYTES, _PUNCTUATION = 0x800, 0x2000  # code points below the first take two bytes; the second begins a block
_TABLED = _TWO_BYTES + 0x80

_HYPHENS = ("-", "\u00ad", "\u2010")
_LINE_END = re.compile(rb"\r?\n[ \t]*")
_ITALICS = re.compile(rb"_([^_\n]+)_")
_SHORT = 64


def unwrapped(prose: bytes) -> bytes:
    """UTF-8 prose with words broken by a hyphen at the end of a line joined, and _italics_ without their marks."""
    pieces, done = [], 0
    for begin, end in _breaks(prose):
        pieces.append(prose[done:begin])
        done = end
    joined = b"".join([*pieces, prose[done:]]) if pieces else prose
    return _ITALICS.sub(rb"\1", joined) if b"_" in joined else joined


def flat(text: bytes, case: Case = "lower") -> bytes:
    """The words of UTF-8 text in order, with at least one blank between two of them."""
    return _flat(text, text.translate(_ascii(case)), case)


def flat_batch(texts: Iterable[bytes]) -> bytes:
    """The words of many texts of printed prose, one after another with the one word BORDER between two texts."""
    joined = unwrapped((b"\n" + BORDER + b"\n").join(text.replace(BORDER, b" ") for text in texts))
    return _flat(joined, joined.translate(_ascii("lower", BORDER)), "lower")


def _flat(text: bytes, mapped: bytes, case: Case) -> bytes:
    plain = np.frombuffer(mapped, dtype=np.uint8) if text.isascii() else _without_others(text, mapped, case)
    quotes = np.flatnonzero(plain == _APOSTROPHE)
    if not quotes.size:
        return plain.tobytes()
    edged = np.full(plain.size + 2, _BLANK, dtype=np.uint8)
    edged[1:-1] = plain
    before, after = edged[quotes], edged[quotes + 2]
    outer = (before == _BLANK) | (before == _APOSTROPHE) | (after == _BLANK) | (after == _APOSTROPHE)
    edged[quotes[outer] + 1] = _BLANK
    return edged[1:-1].tobytes()


def split(flattened: bytes) -> list[str]:
    """Flat bytes as words."""
    return flattened.decode("utf-8").split()


def _without_others(text: bytes, mapped: bytes, case: Case) -> npt.NDArray[np.uint8]:
    """The mapped text with every character of several bytes made a letter, a blank or an apostrophe."""
    plain = np.frombuffer(mapped, dtype=np.uint8).copy()
    at = np.flatnonzero(plain >= 0xC0)
    _check(text, plain, at)
    lead, second = plain[at].astype(np.intp), plain[at + 1].astype(np.intp)
    two = lead < 0xE0
    third = plain[np.where(two, at, at + 2)].astype(np.intp)
    row = np.full(at.size, _TABLED, dtype=np.intp)
    row[two] = (lead[two] & 0x1F) << 6 | second[two] & 0x3F
    tabled = (lead == 0xE2) & (second < 0x82)
    row[tabled] = _TWO_BYTES + ((second[tabled] & 0x3F) << 6 | third[tabled] & 0x3F)
    kinds, first_byte, second_byte = _tables(case)
    kind = kinds[row]
    gone = kind > _LETTER
    plain[at[gone]] = np.where(kind[gone] == _QUOTE, _APOSTROPHE, _BLANK)
    plain[at[gone] + 1] = _DROPPED
    plain[at[gone & ~two] + 2] = _DROPPED
    letter = kind == _LETTER
    plain[at[letter]], plain[at[letter] + 1] = first_byte[row[letter]], second_byte[row[letter]]
    others = at[kind == _OTHER]
    flattened = _by_definition(text, mapped, plain, others, case) if others.size else plain.tobytes()
    return np.frombuffer(flattened.translate(None, bytes([_DROPPED])), dtype=np.uint8)


def _check(text: bytes, plain: npt.NDArray[np.uint8], at: npt.NDArray[np.intp]) -> None:
    """Raise UnicodeDecodeError unless all bytes of longer characters are those of the ones that begin `at`.

    A sequence of the right length that is no character is left to the definition, which decodes it.
    """
    leads = plain[at]
    lengths = 2 + (leads >= 0xE0) + (leads >= 0xF0)
    sound = not at.size or (int(at[-1] + lengths[-1]) <= plain.size and bool(((leads > 0xC1) & (leads < 0xF5)).all()))
    if sound:
        inside = (plain[at[lengths > k] + k] for k in range(1, 4))
        sound = all(bool(((following & 0xC0) == 0x80).all()) for following in inside)
    if not sound or np.count_nonzero(plain >= 0x80) != lengths.sum():
        text.decode("utf-8")


def _by_definition(
    text: bytes, mapped: bytes, plain: npt.NDArray[np.uint8], others: npt.NDArray[np.intp], case: Case
) -> bytes:
    """`plain` with each stretch between blanks that holds one of `others` cut into words by the definition."""
    blanks = np.flatnonzero(np.frombuffer(mapped, dtype=np.uint8) == _BLANK)
    edges = np.concatenate([[-1], blanks, [len(mapped)]])
    stretches = np.unique(np.searchsorted(edges, others))
    pieces, done = [], 0
    flattened = plain.tobytes()
    for begin, end in zip((edges[stretches - 1] + 1).tolist(), edges[stretches].tolist(), strict=True):
        cut = _cut_short if end - begin <= _SHORT else _cut
        pieces += [flattened[done:begin], cut(text[begin:end], case)]
        done = end
    return b"".join([*pieces, flattened[done:]])


def _cut(stretch: bytes, case: Case) -> bytes:
    found = WORD.findall(normalise(stretch.decode("utf-8", "surrogatepass")))
    return " ".join(word.lower() if case == "lower" else word for word in found).encode("utf-8")


_cut_short = lru_cache(maxsize=1 << 15)(_cut)


def _breaks(prose: bytes) -> Iterator[tuple[int, int]]:
    """Begin and end of the hyphens, line ends and indents that break words."""
    every = np.frombuffer(prose, dtype=np.uint8)
    lines = np.flatnonzero(every == _NEWLINE)
    ends = lines - ((lines > 0) & (every[lines - 1] == _RETURN))
    broken = (ends > 0) & _hyphen_ends()[every[ends - 1]]
    lines, ends = lines[broken], ends[broken]
    # Between ASCII letters, and that is nearly always, nothing need be looked at twice.
    after = every[np.minimum(lines + 1, every.size - 1)]
    plain = (ends > 1) & (every[ends - 1] == _HYPHEN) & _ascii_letters()[every[ends - 2]] & _ascii_letters()[after]
    for end, line, sure in zip(ends.tolist(), lines.tolist(), plain.tolist(), strict=True):
        if sure:
            yield end - 1, line + 1
            continue
        before = prose[max(0, end - _LONGEST) : end].decode("utf-8", "replace")
        if before[-1] in _HYPHENS and LETTERS.match(before[-2:-1]):
            indent = _LINE_END.match(prose, end)
            stop = indent.end() if indent else end
            if LETTERS.match(prose[stop : stop + _LONGEST].decode("utf-8", "replace")):
                yield end - len(before[-1].encode()), stop


@cache
def _ascii_letters() -> npt.NDArray[np.bool_]:
    """Which bytes are an ASCII letter."""
    return np.array([byte < 128 and chr(byte).isalpha() for byte in range(256)])


@cache
def _hyphen_ends() -> npt.NDArray[np.bool_]:
    """Which bytes are the last of a hyphen."""
    table = np.zeros(256, dtype=np.bool_)
    table[[hyphen.encode()[-1] for hyphen in _HYPHENS]] = True
    return table


@cache
def _ascii(case: Case, kept: bytes = b"") -> bytes:
    """What each byte becomes: letters, apostrophes, what is kept and bytes of longer characters stay, others go."""
    table = bytearray([_BLANK] * 128) + bytes(range(128, 256))
    for char in map(chr, range(128)):
        if char.isalpha():
            table[ord(char)] = ord(char.lower() if case == "lower" else char)
        elif normalise(char) == "'":
            table[ord(char)] = _APOSTROPHE
    for byte in kept:
        table[byte] = byte
    return bytes(table)


@cache
def _tables(case: Case) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Kind, first and second byte of the code points below 0x800 and of 0x2000 to 0x207F, one after another."""
    codes = [*range(_TWO_BYTES), *range(_PUNCTUATION, _PUNCTUATION + 0x80)]
    tables = np.zeros((3, _TABLED + 1), dtype=np.uint8)
    for row, char in enumerate(map(chr, codes)):
        tables[0, row] = kind = _kind(char)
        if kind == _LETTER:
            tables[1:, row] = list((char.lower() if case == "lower" else char).encode("utf-8"))
    return tables[0], tables[1], tables[2]


def _kind(char: str) -> int:
    """What the definition makes of a character whatever stands beside it; _OTHER where that matters or may matter."""
    plain = normalise(char)
    if char == plain and LETTERS.fullmatch(char):
        # A capital sigma's lower case depends on its place in the word.
        return (
            _LETTER if len(char.lower().encode("utf-8")) == 2 == len(char.encode("utf-8")) and char != "Σ" else _OTHER
        )
    if plain == "'":
        return _QUOTE
    return _OTHER if not plain or "'" in plain or any(map(_joins, plain)) else _BREAK


def _joins(char: str) -> bool:
    return LETTERS.match(char) is not None or unicodedata.combining(char) != 0
