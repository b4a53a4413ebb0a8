"""The words of a text in Latin letters by one table, which most texts are; any other text is left to `quick`.

Curly quotes, dashes and dots apart, such a text holds characters of Latin-1 alone, each of which the definition makes
a letter, an apostrophe or a break whatever stands beside it.
"""

from __future__ import annotations

import re
from functools import cache

from gates.text.definition import BREAK, LETTER, OTHER, QUOTE, Case, kind_of

_AS_LATIN = {"\u2018": "'", "\u2019": "'", **dict.fromkeys("\u201c\u201d\u2013\u2014\u2026", " ")}
_OTHER = b"\x01"  # as a character of the text it is a break, and no break is written so
_APOSTROPHES = re.compile(r"'(?:(?![^\W\d_])|(?<![^\W\d_]'))")  # those that do not stand between two letters


def latin_words(text: str, case: Case) -> list[str] | None:
    """The words of `text` in order, or None where it holds anything but Latin letters and common signs."""
    tabled = _tabled(text, case)
    if tabled is None:
        return None
    found = tabled.decode("latin-1")
    return (_APOSTROPHES.sub(" ", found) if "'" in found else found).split()


def is_latin(text: str) -> bool:
    """Whether `text` holds nothing but Latin letters and common signs: every letter of it stands in a word."""
    return _tabled(text, "keep") is not None


def _tabled(text: str, case: Case) -> bytes | None:
    if not text.isascii():
        for sign, plain in _AS_LATIN.items():
            text = text.replace(sign, plain)
    try:
        tabled = text.encode("latin-1").translate(_table(case))
    except UnicodeEncodeError:
        return None
    return None if _OTHER in tabled else tabled


@cache
def _table(case: Case) -> bytes:
    """What each character of Latin-1 becomes: its letter, an apostrophe, a blank, or _OTHER."""
    return b"".join(map(_entry, map(chr, range(256)), [case] * 256))


def _entry(char: str, case: Case) -> bytes:
    what = kind_of(char)
    if what == LETTER:
        return (char.lower() if case == "lower" else char).encode("latin-1")
    return {BREAK: b" ", QUOTE: b"'", OTHER: _OTHER}[what]
