"""Stems and TF-IDF as `on_beat@1` was defined with them: those of nltk and scikit-learn, word for word, hit for hit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.stem.snowball import SnowballStemmer
from sklearn.feature_extraction.text import TfidfVectorizer

from gates.measure.damage.prompted import Vectors, on_beat
from gates.measure.damage.stems import stem
from gates.measure.damage.stop_words import STOP_WORDS
from gates.measure.figures import DamageFigures
from gates.text import words

NLTK = SnowballStemmer("english").stem
ENDINGS = """
    abli able al alism aliti alize alli ance anci ant ate ation ational ative ator biliti bli e ed edly eed eedly ement
    ence enci ent entli er fulli fulness ful ible ic ical icate iciti ied ies ing ingly ion ism iti iveness ive iviti
    ize ization izer l less lessli li ll ly ment ness ogi ous ousli ousness s ses sses tional us y ys 's s'
""".split()  # noqa: SIM905
BEGINNINGS = ("", "gener", "commun", "arsen", "y", "say", "hop", "hopp", "fl", "at", "re", "beaut", "ap", "s")
MADE = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(BEGINNINGS),
        st.text("aeiouybcdglmnrstwx", max_size=5),
        st.lists(st.sampled_from(ENDINGS)).map("".join),
    ),
).filter(bool)


@pytest.fixture(autouse=True, scope="module")
def anew() -> None:
    """No stem that another test asked for answers here."""
    stem.cache_clear()


def test_the_words_of_english_pages_have_the_stems_of_nltk(root: Path) -> None:
    pages = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("prereg/**/*.txt")]
    found = {word for page in pages for word in words(page.read_text("utf-8"))}
    assert len(found) > 2000
    assert {word: stem(word) for word in found} == {word: NLTK(word) for word in found}


@settings(max_examples=1500, deadline=None)
@given(MADE)
def test_made_up_words_have_the_stems_of_nltk(word: str) -> None:
    assert stem(word) == NLTK(word)


def test_its_exceptions_are_those_of_nltk() -> None:
    for word in SnowballStemmer("english").stemmer._EnglishStemmer__special_words:
        assert stem(word) == NLTK(word), word


def test_every_ending_after_every_kind_of_stem_is_cut_as_nltk_cuts_it() -> None:
    middles = ("", "at", "bl", "iz", "tt", "on", "ee", "ow", "bet", "rabil")
    made = [f"{begin}{middle}{ending}" for begin in BEGINNINGS for middle in middles for ending in ENDINGS]
    assert [(word, stem(word)) for word in made] == [(word, NLTK(word)) for word in made]


WORDS = """
    realized generalizing comfortabled living giving splated by's dication dicational hurried replied tied skies
    agreed feedly hopped falling hoping controlled rate's
""".split()  # noqa: SIM905


@pytest.mark.parametrize("word", WORDS)
def test_words_that_several_steps_change_have_the_stems_of_nltk(word: str) -> None:
    assert stem(word) == NLTK(word)


def test_the_nearest_beat_is_scikit_learns(root: Path) -> None:
    beats = tuple((root / "prereg" / "demo" / "beats.txt").read_text("utf-8").splitlines())
    said = [word for beat in beats for word in beat.split()]
    random = np.random.default_rng(5)
    texts = [
        tuple(
            " ".join([*random.permutation(beat.split())[:3], *random.choice(said, 4), "once", "once"]) for beat in beats
        )
        for _ in range(40)
    ]
    vectoriser = TfidfVectorizer(
        analyzer=lambda text: [NLTK(word) for word in words(text) if word not in STOP_WORDS], sublinear_tf=True
    )
    known = vectoriser.fit_transform(beats)
    found = on_beat(texts, beats)
    assert isinstance(found, DamageFigures)
    for row, values in zip(texts, found.values, strict=True):
        similarity = (vectoriser.transform(row) @ known.T).toarray()
        others = similarity - np.diag(np.diagonal(similarity))
        assert list(values) == (np.diagonal(similarity) > others.max(axis=1) + 1e-9).astype(float).tolist()
    assert 0 < found.rate < 1


def test_vectors_are_scikit_learns() -> None:
    beats = ("The old farmer sells a farm.", "A farmer waits.", "Two sisters waited for the old letter.", "A doe runs.")
    texts = ("The farmers waited, waited and waited.", "Letters! Letters to old sisters.", "It does so.", "")
    vectoriser = TfidfVectorizer(
        analyzer=lambda text: [NLTK(word) for word in words(text) if word not in STOP_WORDS], sublinear_tf=True
    )
    vectoriser.fit(beats)
    for asked in (beats, texts):
        assert Vectors(beats).of(asked) == pytest.approx(vectoriser.transform(asked).toarray(), abs=1e-12)
