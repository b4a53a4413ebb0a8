"""The one tokeniser: from any text to words, the same words for every measure (`words@1`).

Words are runs of letters with inner apostrophes, after NFKC, with curly quotes made straight and dashes made spaces;
lower case unless the caller keeps it. Combining marks that NFKC leaves standing break words: `letters_lost` says how
many letters a text loses that way, so that a script this tokeniser cannot read is refused rather than mismeasured.
`letters` is not a measure's: it cuts as the published Delta tables do.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Literal

WORDS = "words@1"

Case = Literal["lower", "keep"]

_QUOTES = dict.fromkeys(map(ord, "\u2018\u2019\u201a\u201b\u02bc\u2032\u00b4\u0060"), "'")
_DASHES = dict.fromkeys(map(ord, "\u2010\u2012\u2013\u2014\u2015\u2212"), " ")
_SOFT = dict.fromkeys((0x00AD, 0x061C, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF))
_TABLE = _QUOTES | _DASHES | _SOFT
_LETTERS = re.compile(r"[^\W\d_]+")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
# Every mark that can follow a letter, among other signs: what no letter interrupts is the slow part of normalising.
_MARKED = re.compile(r"(?:[^\w\0-\u02ff]|[\uff9e\uff9f]){31,}")
_MOST_MARKS = 30
_BROKEN_LINE = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]\r?\n[ \t]*(?=[^\W\d_])")
_ITALICS = re.compile(r"_([^_\n]+)_")
_UNSEGMENTED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")


def normalise(text: str) -> str:
    """NFKC with straight quotes, dashes and circled or ancient numerals as spaces, and invisible signs removed.

    Of combining marks in a row the first 30 count and the rest is dropped, so that the time is linear in the length.
    Source: UAX #15, section 13 (Stream-Safe Text Format), which no natural language exceeds.
    """
    plain = unicodedata.normalize("NFKC", _MARKED.sub(_stream_safe, text.translate(_TABLE)))
    return plain.translate(_TABLE | _numerals(plain))


def words(text: str, *, case: Case = "lower") -> list[str]:
    """The words of `text` in order. The same text gives as many words in either case."""
    found = _WORD.findall(normalise(text))
    return [word.lower() for word in found] if case == "lower" else found


def letters(text: str, *, case: Case = "keep") -> list[str]:
    r"""The runs of letters of `text` as it stands, `\p{L}+`: "don't" gives "don" and "t".

    pydelta's default, and how Evert et al.'s table counts, case kept. No normalisation: curly and straight quotes both
    split, an accent written as a combining mark splits too.
    """
    found = _LETTERS.findall(text.translate(_numerals(text)))
    return [run.lower() for run in found] if case == "lower" else found


def prose_words(text: str, *, case: Case = "lower") -> list[str]:
    """The words of printed prose: as `words`, with line-break hyphens joined and `_italics_` unwrapped first."""
    return words(_ITALICS.sub(r"\1", _BROKEN_LINE.sub("", text)), case=case)


def letters_lost(text: str) -> float:
    """Share in [0, 1] of the text's letters and marks that no readable word holds; 0 for a text without letters.

    Letters of scripts written without spaces between words count as lost, because a run of them is no word.
    """
    plain = normalise(text)
    total = sum(count for char, count in Counter(plain).items() if unicodedata.category(char)[0] in "LM")
    kept = sum(count for char, count in Counter("".join(_WORD.findall(plain))).items() if _readable(char))
    return 1 - kept / total if total else 0.0


def _stream_safe(run: re.Match[str]) -> str:
    kept, marks = [], 0
    for char in run[0]:
        marks = marks + 1 if unicodedata.combining(unicodedata.normalize("NFKD", char)[0]) else 0
        if marks <= _MOST_MARKS:
            kept.append(char)
    return "".join(kept)


def _numerals(text: str) -> dict[int, str]:
    # Python's \w holds numerals that are neither digits nor letters, such as a circled 1.
    return {ord(char): " " for char in set(text) if char.isnumeric() and not char.isdecimal() and not char.isalpha()}


def _readable(char: str) -> bool:
    return char != "'" and not unicodedata.name(char, "").startswith(_UNSEGMENTED)
