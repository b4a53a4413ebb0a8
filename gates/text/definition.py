"""What a word is (`words@1`), said slowly: NFKC, straight quotes, dashes as spaces, runs of letters by one pattern.

`gates.text.quick` gives the same words faster; a text's rare characters come here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from typing import Literal

Case = Literal["lower", "keep"]

_QUOTES = dict.fromkeys(map(ord, "\u2018\u2019\u201a\u201b\u02bc\u2032\u00b4\u0060"), "'")
_DASHES = dict.fromkeys(map(ord, "\u2010\u2012\u2013\u2014\u2015\u2212"), " ")
_SOFT = dict.fromkeys((0x00AD, 0x061C, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF))
_TABLE = _QUOTES | _DASHES | _SOFT
LETTERS = re.compile(r"[^\W\d_]+")
WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
# Every mark that can follow a letter, among other signs: what no letter interrupts is the slow part of normalising.
_MARKED = re.compile(r"(?:[^\w\0-\u02ff]|[\uff9e\uff9f]){31,}")
_HIGH = re.compile(r"[^\0-\u02ff]{31}")  # without it there is no such run, and it is found out faster
_MOST_MARKS = 30

OTHER, LETTER, BREAK, QUOTE = range(4)
"""What a character is by itself: a letter, a break between words, an apostrophe; OTHER where its neighbours matter."""


def normalise(text: str) -> str:
    """NFKC with straight quotes, dashes and circled or ancient numerals as spaces, and invisible signs removed.

    Of combining marks in a row the first 30 count and the rest is dropped, so that the time is linear in the length.
    Source: UAX #15, section 13 (Stream-Safe Text Format), which no natural language exceeds.
    """
    straight = _replaced(text, _TABLE)
    marked = _MARKED.sub(_stream_safe, straight) if _HIGH.search(straight) else straight
    plain = unicodedata.normalize("NFKC", marked)
    return _replaced(plain, _TABLE | numerals(plain))


def _replaced(text: str, table: Mapping[int, str | None]) -> str:
    """As `text.translate(table)`, which looks every character up; no replacement holds a character of the table."""
    if len(text) < len(table):
        return text.translate(table)
    for code, by in table.items():
        text = text.replace(chr(code), by or "")
    return text


def _stream_safe(run: re.Match[str]) -> str:
    kept, marks = [], 0
    for char in run[0]:
        marks = marks + 1 if unicodedata.combining(unicodedata.normalize("NFKD", char)[0]) else 0
        if marks <= _MOST_MARKS:
            kept.append(char)
    return "".join(kept)


def numerals(text: str) -> dict[int, str]:
    r"""Numerals that are neither digits nor letters, such as a circled 1, as blanks: Python's \w holds them."""
    if text.isascii():
        return {}
    return {ord(char): " " for char in set(text) if char.isnumeric() and not char.isdecimal() and not char.isalpha()}


@cache
def kind_of(char: str) -> int:
    """What the definition makes of a character whatever stands beside it; OTHER where that matters or may matter."""
    if char.isalpha() and ord(char) not in _TABLE and unicodedata.is_normalized("NFKC", char):
        # A capital sigma's lower case depends on its place in the word.
        return LETTER if len(char.lower()) == 1 and char != "Σ" else OTHER
    plain = normalise(char)
    if plain == "'":
        return QUOTE
    return OTHER if not plain or "'" in plain or any(map(_joins, plain)) else BREAK


def _joins(char: str) -> bool:
    return LETTERS.match(char) is not None or unicodedata.combining(char) != 0
