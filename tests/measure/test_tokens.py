"""Words that are cut once are the words that are cut each time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gates.measure.tokens import Tokens
from gates.text import prose_words, words

TEXTS = st.text(alphabet=st.sampled_from("aBé'’-\u00ad_ \n.1\u2010")) | st.text()


@given(st.lists(TEXTS, max_size=6))
def test_each_text_has_its_own_words(texts: list[str]) -> None:
    tokens = Tokens()
    for text in [*texts, *texts]:
        assert tokens[text] == words(text)
        assert tokens.prose(text) == prose_words(text)


def test_a_text_is_cut_once_and_equal_words_are_one_object() -> None:
    tokens = Tokens()
    assert tokens["the sea"] is tokens["the sea"]
    assert tokens["the sea"][0] is tokens["by the shore"][1]
