"""The words of a text as flat bytes, one or more blanks between them: the definition's words at 200 MB/s and more.

ASCII letters are found by arithmetic; letters, quotes and dashes of two or three bytes by tables made from the
definition; a stretch that holds any other character (a combining mark, a ligature, an invisible sign) is cut by the
definition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

from gates.text.definition import LETTER, LETTERS, OTHER, QUOTE, WORD, Case, kind_of, normalise

BORDER = b"\x02"
"""Between two texts of a batch: no text holds it as a word."""

_BLANK, _APOSTROPHE, _A = ord(" "), ord("'"), ord("a")
_CASE = ord("a") ^ ord("A")
_NEWLINE, _RETURN, _HYPHEN, _UNDERSCORE = map(ord, "\n\r-_")
_LONGEST = 8  # bytes of two characters at most
_DROPPED = 1  # stands for bytes that are taken out at the end; as a character of the text it is a blank by then
_LETTERS_IN_ASCII = 26
_LONGER, _LEAD, _WIDEST = 0x80, 0xC0, 3  # bytes of characters of several, the first of them; and the widest quote's
_TWO_BYTES, _PUNCTUATION = 0x800, 0x2000  # code points below the first take two bytes; the second begins a block
_TABLED = _TWO_BYTES + 0x80

_HYPHENS = ("-", "\u00ad", "\u2010")
_LINE_END = re.compile(rb"\r?\n[ \t]*")
_SHORT = 64

_Bytes = npt.NDArray[np.uint8]
_Places = npt.NDArray[np.intp]


def unwrapped(prose: bytes) -> bytes:
    """UTF-8 prose with words broken by a hyphen at the end of a line joined, and _italics_ without their marks."""
    every = np.frombuffer(prose, dtype=np.uint8)
    lines = np.flatnonzero(every == _NEWLINE)
    begins, ends, broken = _breaks(prose, lines)
    if b"_" in prose:
        marks = _italics(np.flatnonzero(every == _UNDERSCORE), lines[~broken])
        begins, ends = np.concatenate([begins, marks]), np.concatenate([ends, marks + 1])
    if not begins.size:
        return prose
    order = np.argsort(begins)
    kept = zip([0, *ends[order].tolist()], [*begins[order].tolist(), len(prose)], strict=True)
    return b"".join([prose[begin:end] for begin, end in kept])


def flat(text: bytes, case: Case = "lower", kept: bytes = b"") -> bytes:
    """The words of UTF-8 text in order, with at least one blank between two of them; `kept` bytes stay as they are."""
    every = np.frombuffer(text, dtype=np.uint8)
    edged = np.full(every.size + 4, _BLANK, dtype=np.uint8)  # one blank before the text, three behind
    plain = edged[1:-3]
    _ascii_letters(every, case, plain)
    special = every >= _LONGER if not text.isascii() else np.zeros(every.size, dtype=np.bool_)
    for quote in _ascii_quotes():
        special |= every == quote
    at = np.flatnonzero(special)
    longer = every[at] >= _LONGER
    quotes, widths, others = at[~longer], np.ones(at.size - np.count_nonzero(longer), dtype=np.intp), at[:0]
    if longer.any():
        more, twos_and_threes, others = _tabled(text, plain, at[longer], case)
        quotes, widths = np.concatenate([quotes, more]), np.concatenate([widths, twos_and_threes])
    for byte in kept:
        plain[every == byte] = byte
    # Whatever is no letter is a blank by now: an apostrophe stands between two letters.
    inner = (edged[quotes] != _BLANK) & (edged[quotes + widths + 1] != _BLANK)
    quotes, widths = quotes[inner], widths[inner]
    plain[quotes] = _APOSTROPHE
    for k in range(1, _WIDEST):
        plain[quotes[widths > k] + k] = _DROPPED
    flattened = plain.tobytes()
    if others.size:
        flattened = _by_definition(text, flattened, (plain == _BLANK) & ~special, others, case)
    return flattened.translate(None, bytes([_DROPPED])) if (widths > 1).any() else flattened


def flat_batch(texts: Iterable[bytes]) -> bytes:
    """The words of many texts of printed prose, one after another with the one word BORDER between two texts."""
    joined = (b"\n" + BORDER + b"\n").join(text.replace(BORDER, b" ") for text in texts)
    return flat(unwrapped(joined), kept=BORDER)


def split(flattened: bytes) -> list[str]:
    """Flat bytes as words."""
    return flattened.decode("utf-8").split()


def _ascii_letters(every: _Bytes, case: Case, out: _Bytes) -> None:
    """Into `out`, the ASCII letters among the bytes, and blanks for all others."""
    np.bitwise_or(every, _CASE, out=out)
    letters = np.negative(((out - _A) < _LETTERS_IN_ASCII).view(np.uint8))  # all bits of a letter's byte
    if case == "keep":
        out[:] = every
    out ^= _BLANK
    out &= letters
    out ^= _BLANK


def _tabled(text: bytes, plain: _Bytes, at: _Places, case: Case) -> tuple[_Places, _Places, _Places]:
    """Write the letters among the characters whose bytes are `at`; where quotes and their widths are, and others."""
    every = np.frombuffer(text, dtype=np.uint8)
    size = at.size
    at = at[every[at] >= _LEAD]
    _check(text, at, size)
    lead, second = every[at].astype(np.intp), every[at + 1].astype(np.intp)
    two = lead < 0xE0
    row = np.where(two, (lead & 0x1F) << 6 | second & 0x3F, _TABLED)
    tabled = np.flatnonzero((lead == 0xE2) & (second < 0x82))
    row[tabled] = _TWO_BYTES + ((second[tabled] & 0x3F) << 6 | every[at[tabled] + 2] & 0x3F)
    kinds, first_byte, second_byte = _tables(case)
    kind = kinds[row]
    letter = kind == LETTER
    plain[at[letter]], plain[at[letter] + 1] = first_byte[row[letter]], second_byte[row[letter]]
    quote = kind == QUOTE
    return at[quote], np.where(two[quote], 2, 3), at[kind == OTHER]


def _check(text: bytes, at: _Places, longer: int) -> None:
    """Raise UnicodeDecodeError unless the `longer` bytes of longer characters are those of the ones that begin `at`.

    A sequence of the right length that is no character is left to the definition, which decodes it.
    """
    every = np.frombuffer(text, dtype=np.uint8)
    leads = every[at]
    lengths = 2 + (leads >= 0xE0) + (leads >= 0xF0)
    sound = not at.size or (int(at[-1] + lengths[-1]) <= every.size and bool(((leads > 0xC1) & (leads < 0xF5)).all()))
    if sound:
        inside = (every[at[lengths > k] + k] for k in range(1, 4))
        sound = all(bool(((following & 0xC0) == _LONGER).all()) for following in inside)
    if not sound or longer != lengths.sum():
        text.decode("utf-8")


def _by_definition(text: bytes, flattened: bytes, blank: npt.NDArray[np.bool_], others: _Places, case: Case) -> bytes:
    """`flattened` with each stretch between blanks that holds one of `others` cut into words by the definition."""
    blanks = blank.tobytes()
    pieces, done = [], 0
    for place in others.tolist():
        if place < done:
            continue
        begin, end = blanks.rfind(1, done, place) + 1, blanks.find(1, place)
        end = len(text) if end < 0 else end
        cut = _cut_short if end - begin <= _SHORT else _cut
        pieces += [flattened[done:begin], cut(text[begin:end], case)]
        done = end
    return b"".join([*pieces, flattened[done:]])


def _cut(stretch: bytes, case: Case) -> bytes:
    found = WORD.findall(normalise(stretch.decode("utf-8", "surrogatepass")))
    return " ".join(word.lower() if case == "lower" else word for word in found).encode("utf-8")


_cut_short = lru_cache(maxsize=1 << 15)(_cut)


def _breaks(prose: bytes, lines: _Places) -> tuple[_Places, _Places, npt.NDArray[np.bool_]]:
    """Where the hyphens, line ends and indents that break words begin and end; which of the line ends do."""
    every = np.frombuffer(prose, dtype=np.uint8)
    stops = lines - ((lines > 0) & (every[lines - 1] == _RETURN))
    maybe = np.flatnonzero((stops > 0) & _hyphen_ends()[every[stops - 1]])
    stops, after = stops[maybe], every[np.minimum(lines[maybe] + 1, every.size - 1)]
    # Between ASCII letters, and that is nearly always, nothing need be looked at twice.
    sure = (stops > 1) & (every[stops - 1] == _HYPHEN) & _is_ascii_letter(every[stops - 2]) & _is_ascii_letter(after)
    spans = np.stack([stops - 1, lines[maybe] + 1], axis=1)
    spans[~sure] = [_break(prose, stop) for stop in stops[~sure].tolist()] or spans[~sure]
    real = spans[:, 1] > 0
    broken = np.zeros(lines.size, dtype=np.bool_)
    broken[maybe[real]] = True
    return spans[real, 0], spans[real, 1], broken


def _break(prose: bytes, end: int) -> tuple[int, int]:
    """Where the break begins and ends whose line ends at `end`; two zeros where it breaks no word."""
    before = prose[max(0, end - _LONGEST) : end].decode("utf-8", "replace")
    if before[-1] in _HYPHENS and LETTERS.match(before[-2:-1]):
        indent = _LINE_END.match(prose, end)
        stop = indent.end() if indent else end
        if LETTERS.match(prose[stop : stop + _LONGEST].decode("utf-8", "replace")):
            return end - len(before[-1].encode()), stop
    return 0, 0


def _italics(marks: _Places, lines: _Places) -> _Places:
    """Which underscores belong to `_[^_\\n]+_`, found from the left, given where all of them and the line ends are."""
    pairs = (np.diff(marks) > 1) & (np.diff(np.searchsorted(lines, marks)) == 0)
    # Of pairs in a row, which share their marks, every other one counts.
    number = np.arange(pairs.size)
    row = np.maximum.accumulate(np.where(pairs, -1, number)) + 1
    opening = np.flatnonzero(pairs & ((number - row) % 2 == 0))
    return np.asarray(marks[np.concatenate([opening, opening + 1])])


def _is_ascii_letter(bytes_: _Bytes) -> npt.NDArray[np.bool_]:
    return np.asarray(((bytes_ | _CASE) - _A) < _LETTERS_IN_ASCII)


@cache
def _hyphen_ends() -> npt.NDArray[np.bool_]:
    """Which bytes are the last of a hyphen."""
    table = np.zeros(256, dtype=np.bool_)
    table[[hyphen.encode()[-1] for hyphen in _HYPHENS]] = True
    return table


@cache
def _ascii_quotes() -> list[int]:
    """The bytes that the definition makes an apostrophe."""
    return [code for code in range(_LONGER) if normalise(chr(code)) == "'"]


@cache
def _tables(case: Case) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Kind, first and second byte of the code points below 0x800 and of 0x2000 to 0x207F, one after another."""
    codes = [*range(_TWO_BYTES), *range(_PUNCTUATION, _PUNCTUATION + 0x80)]
    tables = np.zeros((3, _TABLED + 1), dtype=np.uint8)
    for row, char in enumerate(map(chr, codes)):
        tables[0, row] = kind_of(char)
        if tables[0, row] == LETTER:
            spelt = [one.encode("utf-8") for one in (char, char.lower())]
            if list(map(len, spelt)) == [2, 2]:
                tables[1:, row] = list(spelt[case == "lower"])
            else:
                tables[0, row] = OTHER
    return tables[0], tables[1], tables[2]
