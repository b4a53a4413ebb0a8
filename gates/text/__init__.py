"""The one tokeniser: from any text to words, the same words for every measure (`words@1`).

Words are runs of letters with inner apostrophes, after NFKC, with curly quotes made straight and dashes made spaces;
lower case unless the caller keeps it. Combining marks that NFKC leaves standing break words: `letters_lost` says how
many letters a text loses that way, so that a script this tokeniser cannot read is refused rather than mismeasured.
`letters` is not a measure's: it cuts as the published Delta tables do.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np

from gates.text.definition import LETTERS, Case, normalise, numerals
from gates.text.latin import is_latin, latin_words
from gates.text.packed import count_flat, prefixes
from gates.text.quick import BORDER, flat, flat_batch, split, unwrapped

__all__ = [
    "BORDER",
    "WORDS",
    "Case",
    "count_prose",
    "count_words",
    "flat_batch",
    "flat_prose",
    "is_wrapped",
    "letters",
    "letters_lost",
    "normalise",
    "prefixes",
    "prose_words",
    "prose_words_of",
    "split",
    "words",
]

WORDS = "words@1"

_UNWRAPPED = ("_", "-\n", "-\r", "\u00ad", "\u2010")
"""One of these stands wherever printed prose is unwrapped: italics, and hyphens before the end of a line."""

_UNSEGMENTED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")


def words(text: str, *, case: Case = "lower") -> list[str]:
    """The words of `text` in order. The same text gives as many words in either case."""
    found = latin_words(text, case)
    return split(flat(_bytes(text), case)) if found is None else found


def count_words(text: str, *, case: Case = "lower") -> Counter[str]:
    """How often each of the words of `text` occurs, faster than counting `words`."""
    return count_flat(flat(_bytes(text), case))


def count_prose(text: str, *, case: Case = "lower") -> Counter[str]:
    """How often each of the words of printed prose occurs, faster than counting `prose_words`."""
    return count_flat(flat(unwrapped(_bytes(text)), case))


def letters(text: str, *, case: Case = "keep") -> list[str]:
    r"""The runs of letters of `text` as it stands, `\p{L}+`: "don't" gives "don" and "t".

    pydelta's default, and how Evert et al.'s table counts, case kept. No normalisation: curly and straight quotes both
    split, an accent written as a combining mark splits too.
    """
    found = LETTERS.findall(text.translate(numerals(text)))
    return [run.lower() for run in found] if case == "lower" else found


def prose_words(text: str, *, case: Case = "lower") -> list[str]:
    """The words of printed prose: as `words`, with line-break hyphens joined and `_italics_` unwrapped first."""
    if is_wrapped(text):
        text = unwrapped(_bytes(text)).decode("utf-8", "surrogatepass")
    return words(text, case=case)


def is_wrapped(text: str) -> bool:
    """Whether `text` may hold what `prose_words` unwraps; else its words are those of `words`."""
    return any(sign in text for sign in _UNWRAPPED)


def prose_words_of(texts: Sequence[str]) -> list[list[str]]:
    """`prose_words` of each of many texts, faster than one by one."""
    return [split(own) for own in flat_batch(map(_bytes, texts)).split(BORDER)] if texts else []


def flat_prose(text: bytes) -> bytes:
    """The words of `prose_words` of UTF-8 text, as bytes with at least one blank between two of them."""
    return flat(unwrapped(text))


def letters_lost(text: str) -> float:
    """Share in [0, 1] of the text's letters and marks that no readable word holds; 0 for a text without letters.

    Letters of scripts written without spaces between words count as lost, because a run of them is no word.
    """
    if is_latin(text):
        return 0.0
    counts = np.bincount(np.frombuffer(normalise(text).encode("utf-32-le", "surrogatepass"), dtype="<u4"))
    found = {chr(code): int(counts[code]) for code in np.flatnonzero(counts).tolist()}
    total = sum(count for char, count in found.items() if unicodedata.category(char)[0] in "LM")
    # Every letter stands in some word: words are runs of letters, and of any length.
    kept = sum(count for char, count in found.items() if LETTERS.match(char) and _readable(char))
    return 1 - kept / total if total else 0.0


def _readable(letter: str) -> bool:
    return not unicodedata.name(letter, "").startswith(_UNSEGMENTED)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
