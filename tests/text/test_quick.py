"""The fast words against the definition: the same list for any text, wherever its rare characters stand."""

from __future__ import annotations

import re
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gates.text import count_prose, count_words, flat_batch, flat_prose, prose_words, prose_words_of, split, words
from gates.text.definition import WORD, normalise

BROKEN_LINE = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]\r?\n[ \t]*(?=[^\W\d_])")
ITALICS = re.compile(r"_([^_\n]+)_")

# What meets a rule or an edge of a table, mixed densely: marks, sigmas, ligatures, dotted capitals, jamo, numerals.
EDGES = "aBzé É'’`´ʼ″ -—‐\u00ad_\n\r\t1½²❶Ⅻ ﬁ"
EDGES += "İi\u0307\u0301\u0345ΣσςAΣ KÅµſªº¨¯\u200b\u200d\ufeff…“”«»ᄀ\u1161ˈʰ〇漢\x01\x00\x85\u2028"
LATIN = "".join(map(chr, range(256))) + "‘’“”–—…"
TEXTS = (
    st.text(st.sampled_from(LATIN + "''’’--\n__"))
    | st.text()
    | st.text(st.sampled_from(EDGES))
    | st.text(st.sampled_from("ab-_\n '’"))
)


def slow_words(text: str, *, case: str = "lower") -> list[str]:
    found = WORD.findall(normalise(text))
    return [word.lower() for word in found] if case == "lower" else found


def slow_prose_words(text: str) -> list[str]:
    return slow_words(ITALICS.sub(r"\1", BROKEN_LINE.sub("", text)))


@given(TEXTS, st.sampled_from(["lower", "keep"]))
def test_words_are_the_definitions(text: str, case: str) -> None:
    assert words(text, case=case) == slow_words(text, case=case)


@given(TEXTS | st.text("ab é.", max_size=200) | st.lists(st.text("ab", max_size=30)).map(" ".join))
def test_words_are_counted_as_the_definition_cuts_them(text: str) -> None:
    assert count_words(text) == Counter(slow_words(text))
    assert count_words(text, case="keep") == Counter(slow_words(text, case="keep"))


@given(TEXTS)
def test_prose_words_are_the_definitions(text: str) -> None:
    assert prose_words(text) == slow_prose_words(text)
    assert count_prose(text) == Counter(slow_prose_words(text))


@given(
    st.binary() | st.lists(st.sampled_from([b"a", b"\xc3", b"\xa9", b"\xe2", b"\x80", b"\xf0", b"\xc0"])).map(b"".join)
)
def test_bytes_that_are_no_utf8_are_refused(data: bytes) -> None:
    try:
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        with pytest.raises(UnicodeDecodeError):
            flat_prose(data)
    else:
        assert split(flat_prose(data)) == slow_prose_words(text)


@pytest.mark.parametrize("first", [*range(0, 0x3100, 0x700), 0xD700, 0xF900, 0xFE00, 0x1D400, 0x1F100, 0x10FF00])
def test_every_character_in_every_place(first: int) -> None:
    frame = "a{}b {} don{}t a\u0301{} {}\u0301b a-\n{} _{}_ x"
    text = " . ".join(frame.replace("{}", chr(code)) for code in range(first, min(first + 0x700, sys.maxunicode)))
    assert prose_words(text) == slow_prose_words(text)


@pytest.mark.parametrize("case", ["lower", "keep"])
def test_every_character_of_latin_texts_beside_letters_apostrophes_and_itself(case: str) -> None:
    for char in LATIN:
        text = f"{char}a {char} b{char} c{char}d '{char}' e'{char} {char}'f G{char}H{char}{char} {char}'s"
        assert words(text, case=case) == slow_words(text, case=case)


def test_every_ascii_character_beside_every_other() -> None:
    text = "\n.\n".join(f"x{chr(a)}{chr(b)}y'{chr(a)}{chr(b)}" for a in range(128) for b in range(128))
    assert prose_words(text) == slow_prose_words(text)


@given(st.lists(TEXTS | st.text("a\x02-\n_'"), max_size=5))
def test_a_batch_holds_the_words_of_each_text(texts: list[str]) -> None:
    batch = " ".join(split(flat_batch(text.encode("utf-8", "surrogatepass") for text in texts)))
    assert [part.split() for part in batch.split("\x02")] == [slow_prose_words(text) for text in texts or [""]]
    assert prose_words_of(texts) == [slow_prose_words(text) for text in texts]


def test_a_long_stretch_without_blanks_is_cut_alike() -> None:
    text = "漢字かな" * 1000 + " don’t " + "é\u0301" * 1000
    assert prose_words(text) == slow_prose_words(text)
