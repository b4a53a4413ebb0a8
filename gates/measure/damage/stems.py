"""English Snowball stems (Porter 2001), as nltk's `SnowballStemmer("english")` gives them, without a library to import.

A word is held with the lengths of its regions R1 and R2 at its end, and each step is a table of endings, the longest
first: what an ending becomes where R1 (or R2) holds it whole. nltk departs from the published algorithm in a few places
(it knows fewer exceptions, and of some replaced endings it keeps an `e` in R2); `on_beat@1` was defined with it, so its
stems are the ones given here, and a test compares the two.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

_VOWELS = "aeiouy"
_DOUBLES = ("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt")
_BEFORE_LI = "cdeghkmnrt"


def _table(pairs: str) -> dict[str, str]:
    """What each ending or word becomes, said as `ENDING=BY` one after another."""
    return dict(pair.split("=") for pair in pairs.split())


_EXCEPTIONS = _table(
    """
    andes=andes atlas=atlas bias=bias canning=canning cannings=canning cosmos=cosmos dying=die earring=earring
    earrings=earring early=earli exceed=exceed exceeded=exceed exceeding=exceed exceeds=exceed gently=gentl
    herring=herring herrings=herring howe=howe idly=idl inning=inning innings=inning lying=lie news=news only=onli
    outing=outing outings=outing proceed=proceed proceeded=proceed proceeding=proceed proceeds=proceed singly=singl
    skies=sky skis=ski sky=sky succeed=succeed succeeded=succeed succeeding=succeed succeeds=succeed tying=tie ugly=ugli
    """
)
_PREFIXES = ("gener", "arsen", "commun")
_STEP_2 = _table(
    """
    ization=ize ational=ate fulness=ful ousness=ous iveness=ive tional=tion biliti=ble lessli=less entli=ent ation=ate
    alism=al aliti=al ousli=ous iviti=ive fulli=ful enci=ence anci=ance abli=able izer=ize ator=ate alli=al bli=ble
    ogi=og li=
    """
)
_LEAVES_E = ("ational", "ation", "ator", "iveness", "iviti")
_STEP_3 = _table("ational=ate tional=tion alize=al icate=ic iciti=ic ative= ical=ic ness= ful=")
_STEP_4 = tuple("ement ance ence able ible ment ant ent ism ate iti ous ive ize ion al er ic".split())  # noqa: SIM905


class _Word(NamedTuple):
    """A word with the lengths of its regions, both of which lie at its end."""

    word: str
    one: int
    two: int

    def cut(self, letters: int) -> _Word:
        """Without its last letters."""
        return _Word(self.word[: len(self.word) - letters], max(0, self.one - letters), max(0, self.two - letters))

    def ends(self, region: int, ending: str) -> bool:
        """Whether a region, by its length, holds that ending whole."""
        return region >= len(ending) and self.word.endswith(ending)


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The stem of a word in lower case."""
    if len(word) <= 2:
        return word
    if word in _EXCEPTIONS:
        return _EXCEPTIONS[word]
    found = _regions(_consonant_y(word.removeprefix("'")))
    for step in (_possessive, _plural, _past, _final_y, _derived, _derived_again, _residual, _final_letter):
        found = step(found)
    return found.word.replace("Y", "y")


def _consonant_y(word: str) -> str:
    """Each y that is a consonant, at the beginning and after a vowel, as Y."""
    letters = list(word)
    for place, letter in enumerate(letters):
        if letter == "y" and (place == 0 or letters[place - 1] in _VOWELS):
            letters[place] = "Y"
    return "".join(letters)


def _regions(word: str) -> _Word:
    prefix = next((prefix for prefix in _PREFIXES if word.startswith(prefix)), None)
    one = _after(word, 0) if prefix is None else len(prefix)
    return _Word(word, len(word) - one, len(word) - _after(word, one))


def _after(word: str, begin: int) -> int:
    """The place after the first consonant that follows a vowel, both from `begin` on; the word's end without one."""
    for place in range(begin + 1, len(word)):
        if word[place] not in _VOWELS and word[place - 1] in _VOWELS:
            return place + 1
    return len(word)


def _ending(word: str, endings: tuple[str, ...] | dict[str, str]) -> str:
    """The first of the endings that the word has, or nothing."""
    return next((ending for ending in endings if word.endswith(ending)), "")


def _possessive(found: _Word) -> _Word:
    return found.cut(len(_ending(found.word, ("'s'", "'s", "'"))))


def _plural(found: _Word) -> _Word:
    ending = _ending(found.word, ("sses", "ied", "ies", "us", "ss", "s"))
    if ending == "sses":
        return found.cut(2)
    if ending in ("ied", "ies"):
        return found.cut(2 if len(found.word) > 4 else 1)
    if ending == "s" and _has_vowel(found.word[:-2]):
        return found.cut(1)
    return found


def _past(found: _Word) -> _Word:
    ending = _ending(found.word, ("eedly", "ingly", "edly", "eed", "ing", "ed"))
    if ending in ("eed", "eedly"):
        return _replaced(found, ending, "ee") if found.ends(found.one, ending) else found
    if not ending or not _has_vowel(found.word[: -len(ending)]):
        return found
    word, one, two = cut = found.cut(len(ending))
    if word.endswith(("at", "bl", "iz")):
        return _Word(f"{word}e", one + 1, two + (len(word) > 4 or one >= 2))
    if word.endswith(_DOUBLES):
        return cut.cut(1)
    return _Word(f"{word}e", one, two) if one == 0 and _short(word) else cut


def _short(word: str) -> bool:
    """Whether the word ends in a short syllable."""
    if len(word) == 2:
        return word[0] in _VOWELS and word[1] not in _VOWELS
    return len(word) > 2 and word[-1] not in f"{_VOWELS}wxY" and word[-2] in _VOWELS and word[-3] not in _VOWELS


def _final_y(found: _Word) -> _Word:
    word, one, two = found
    return _Word(f"{word[:-1]}i", one, two) if len(word) > 2 and word[-1] in "yY" and word[-2] not in _VOWELS else found


def _derived(found: _Word) -> _Word:
    ending = _ending(found.word, _STEP_2)
    if not ending or not found.ends(found.one, ending):
        return found
    if (ending == "ogi" and found.word[-4] != "l") or (ending == "li" and found.word[-3] not in _BEFORE_LI):
        return found
    return _replaced(found, ending, _STEP_2[ending], left=int(ending in _LEAVES_E))


def _derived_again(found: _Word) -> _Word:
    ending = _ending(found.word, _STEP_3)
    region = found.two if ending == "ative" else found.one
    return _replaced(found, ending, _STEP_3[ending]) if ending and found.ends(region, ending) else found


def _residual(found: _Word) -> _Word:
    ending = _ending(found.word, _STEP_4)
    held = bool(ending) and found.ends(found.two, ending) and (ending != "ion" or found.word[-4] in "st")
    return found.cut(len(ending)) if held else found


def _final_letter(found: _Word) -> _Word:
    word, one, two = found
    if word.endswith("ll") and two:
        return found.cut(1)
    if not word.endswith("e"):
        return found
    long = len(word) >= 4 and (word[-2] in f"{_VOWELS}wxY" or word[-3] not in _VOWELS or word[-4] in _VOWELS)
    return found.cut(1) if two or (one and long) else found


def _replaced(found: _Word, ending: str, by: str, left: int = 0) -> _Word:
    """Another ending. Where a region does not hold the old one whole, R2 is left with as many letters as said."""
    word, one, two = found
    if by and ending.startswith(by) and ending != "izer":
        return found.cut(len(ending) - len(by))
    change = len(by) - len(ending)
    return _Word(
        word[: len(word) - len(ending)] + by,
        one + change if one >= len(ending) else 0,
        two + change if two >= len(ending) else left,
    )


def _has_vowel(word: str) -> bool:
    return any(letter in _VOWELS for letter in word)
