"""The tokeniser: right words by hand, invariances under hypothesis, scripts that it must own up to losing."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.text import letters, letters_lost, normalise, prose_words, words
from gates.text.latin import is_latin

LATIN = st.text(st.sampled_from("abcdefgéßÆ"), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don't like mondays.", ["i", "don't", "like", "mondays"]),
        ("I don’t — I WON’T", ["i", "don't", "i", "won't"]),
        ("‘Tis ‘the boys’ house’", ["tis", "the", "boys", "house"]),
        ("well-known, word—word; 1840–42 ‑ no", ["well", "known", "word", "word", "no"]),
        ("O'Neill's rock 'n' roll''s", ["o'neill's", "rock", "n", "roll", "s"]),
        ("ﬁne ｗｉｄｅ Ⅻ", ["fine", "wide", "xii"]),
        ("beau\u00adtiful na\u2060me zero\u200bwidth \ufeffBOM", ["beautiful", "name", "zerowidth", "bom"]),
        ("cafe\u0301 CAFÉ", ["café", "café"]),
        ("snake_case x2 3rd ❶First ½ ²", ["snake", "case", "x", "rd", "first"]),
        ("Εὐρώπη приве́т שלום", ["εὐρώπη", "приве", "т", "שלום"]),
        ("", []),
        ("— ’ ' 12 _", []),
    ],
)
def test_words_by_hand(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize("pair", ["\u0316\u0300", "\u0316\uff9e", "\u0f73\u0f71"], ids=ascii)
def test_of_marks_in_a_row_thirty_count(pair: str) -> None:
    # UAX #15, section 13: no more than 30 marks follow a letter. In one order, their number is what is left.
    marks = unicodedata.normalize("NFKC", pair * 15)
    assert normalise("x" + pair * 60_000 + "y") == normalise("x" + pair * 15 + "y") == f"x{marks}y"
    assert words("x" + pair * 60_000 + " y'all")[0] == "x"
    assert words(("x" + pair * 15) * 3 + "y") == ["x", "x", "x", "y"]


def test_signs_in_a_row_are_no_marks() -> None:
    assert normalise("\u2026" * 40 + "\u3000" * 40 + "\U0001f600" * 40) == "..." * 40 + " " * 40 + "\U0001f600" * 40


def test_words_keep_their_case_when_asked() -> None:
    assert words("It’s Mr. Huntingdon", case="keep") == ["It's", "Mr", "Huntingdon"]


def test_letters_cut_as_pydelta_does() -> None:
    # pydelta's own test-suite pins these tokens for its pattern LETTERS (test/corpus_test.py).
    assert letters("I don't like mondays.") == ["I", "don", "t", "like", "mondays"]
    assert letters("I don’t", case="lower") == ["i", "don", "t"]
    assert letters("a½b ❶c") == ["a", "b", "c"]


def test_printed_prose_is_unwrapped_and_its_broken_lines_joined() -> None:
    text = "She ex-\nclaimed,\r\nun_usual_ly ex\u00ad\r\n  cited: _I_ am--\nthen gone"
    assert prose_words(text) == ["she", "exclaimed", "unusually", "excited", "i", "am", "then", "gone"]
    assert words(text)[:3] == ["she", "ex", "claimed"]


@settings(deadline=None)
@given(
    st.lists(st.tuples(LATIN, st.sampled_from(["'t ", "' ", " '", " - ", "-", " -- ", ", "])), max_size=20),
    st.data(),
)
def test_typographic_quotes_and_dashes_change_nothing(parts: list[tuple[str, str]], data: st.DataObject) -> None:
    plain = "".join(word + joint for word, joint in parts)
    quotes, dashes = st.sampled_from("'’‘‛ʼ′´`＇"), st.sampled_from("-–—―‐‑‒−")
    curly = "".join(data.draw(quotes if c == "'" else dashes) if c in "'-" else c for c in plain)
    assert words(curly) == words(plain)
    assert prose_words(curly) == prose_words(plain)


@settings(deadline=None)
@given(st.text())
def test_words_are_letters_with_inner_apostrophes(text: str) -> None:
    for word in words(text, case="keep"):
        pieces = word.split("'")
        assert all(pieces)
        assert all(unicodedata.category(char).startswith("L") for piece in pieces for char in piece)


@settings(deadline=None)
@given(st.text())
def test_case_changes_no_number_of_words(text: str) -> None:
    assert [word.lower() for word in words(text, case="keep")] == words(text)


@settings(deadline=None)
@given(st.text(), st.text())
def test_texts_joined_by_a_blank_give_the_words_of_both(left: str, right: str) -> None:
    assert words(left + "\n" + right) == words(left) + words(right)


@settings(deadline=None)
@given(st.text())
def test_composed_and_decomposed_text_give_the_same_words(text: str) -> None:
    assert words(unicodedata.normalize("NFC", text)) == words(unicodedata.normalize("NFD", text))


@settings(deadline=None)
@given(st.text() | st.text(st.sampled_from("aé〇❶ⅫЖ你กि\u0301'")))
def test_the_share_of_lost_letters_is_a_share(text: str) -> None:
    assert 0 <= letters_lost(text) <= 1


@pytest.mark.parametrize("text", ["Plain prose, café.", "Я иду домой", "Πάω σπίτι", "나는 학교에 갔다", "12 — 34", ""])
def test_readable_scripts_lose_nothing(text: str) -> None:
    assert letters_lost(text) == 0


@pytest.mark.parametrize("text", ["我去学校", "私はがっこうへいく", "ฉันไปโรงเรียน", "ཁྱོད་ག་པར་འགྲོ་གི་ཡིན།"])
def test_scripts_without_spaces_between_words_are_lost(text: str) -> None:
    assert letters_lost(text) == 1


def test_a_text_in_latin_letters_and_common_signs_loses_none() -> None:
    for char in filter(is_latin, map(chr, [*range(256), *range(0x2010, 0x2030)])):
        found = [one for one in normalise(char) if unicodedata.category(one)[0] in "LM"]
        assert letters_lost(f"{char} 你") == pytest.approx(1 / (1 + len(found)))


def test_the_loss_is_counted_by_letter_and_mark() -> None:
    # दिन: two letters are read (द, न), the vowel sign between them is a mark that no word holds.
    assert letters_lost("दिन") == pytest.approx(1 / 3)
    assert letters_lost("ab 你") == pytest.approx(1 / 3)
