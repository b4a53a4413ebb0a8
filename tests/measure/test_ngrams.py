"""The index against a slow, obvious matcher, and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gates.errors import UsageError
from gates.measure import ngrams
from gates.measure.figures import Source
from gates.measure.ngrams import Match, NgramIndex

FEW_WORDS = st.lists(st.sampled_from("abc"), max_size=24)


def slow_matches(documents, texts, prompts, n):
    """Every pair of places compared word by word, one diagonal step at a time."""
    runs = {}
    for number, text in enumerate(texts):
        prompt = prompts[number] if prompts else []
        barred = [prompt[k : k + n] for k in range(len(prompt) - n + 1)]
        for file, words in documents:

            def seed(i, j, text=text, words=words, barred=barred):
                if i < 0 or j < 0 or i + n > len(text) or j + n > len(words):
                    return False
                return text[i : i + n] == words[j : j + n] and text[i : i + n] not in barred

            for i in range(len(text)):
                for j in range(len(words)):
                    if seed(i, j) and not seed(i - 1, j - 1):
                        steps = 1
                        while seed(i + steps, j + steps):
                            steps += 1
                        runs.setdefault((number, i, n + steps - 1), []).append(Source(file=file, start=j))
    return [Match(*key, tuple(runs[key])) for key in sorted(runs)]


@st.composite
def cases(draw):
    documents = [(f"{k}.txt", words) for k, words in enumerate(draw(st.lists(FEW_WORDS, max_size=3)))]
    pairs = draw(st.lists(st.tuples(FEW_WORDS, st.lists(st.sampled_from("abcd"), max_size=8)), max_size=3))
    texts, prompts = [text for text, _ in pairs], [prompt for _, prompt in pairs]
    return documents, texts, draw(st.sampled_from([prompts, []])), draw(st.integers(1, 5))


@given(cases())
def test_agrees_with_the_slow_matcher(case):
    documents, texts, prompts, n = case
    assert NgramIndex(documents, n).matches(texts, prompts) == slow_matches(documents, texts, prompts, n)


@given(cases())
def test_no_hash_is_trusted_and_no_block_border_shows(case):
    documents, texts, prompts, n = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ngrams, "_hashes", lambda ids, n: np.zeros(max(0, ids.size - n + 1), dtype=np.uint64))
        patch.setattr(ngrams, "_PAIRS_AT_ONCE", 3)
        found = NgramIndex(documents, n).matches(texts, prompts)
    assert found == slow_matches(documents, texts, prompts, n)


def places(match):
    return [(source.file, source.start) for source in match.sources]


def test_a_chain_of_matches_from_two_sources_is_two_runs():
    index = NgramIndex([("one", list("xabcdy")), ("two", list("bcde"))], 3)
    first, second = index.matches([list("abcde")])
    assert (first.start, first.length, places(first)) == (0, 4, [("one", 1)])
    assert (second.start, second.length, places(second)) == (1, 4, [("two", 0)])


def test_two_places_of_one_source_are_one_run_with_two_sources_only_when_they_end_alike():
    index = NgramIndex([("one", list("abcd.abcd.abc"))], 3)
    longer, shorter = sorted(index.matches([list("abcd")]), key=lambda match: -match.length)
    assert (longer.length, places(longer)) == (4, [("one", 0), ("one", 5)])
    assert (shorter.length, places(shorter)) == (3, [("one", 10)])


def test_no_ngram_crosses_a_border_of_documents_or_texts():
    index = NgramIndex([("one", ["a", "b"]), ("empty", []), ("two", ["c", "d"])], 3)
    assert len(index) == 0
    assert index.matches([list("abcd")]) == []
    assert NgramIndex([("one", list("abcd"))], 3).matches([["a", "b"], [], ["c", "d"]]) == []


def test_a_word_no_source_holds_breaks_a_run():
    index = NgramIndex([("one", list("abcdef"))], 2)
    assert [(match.start, match.length) for match in index.matches([list("abxdef")])] == [(0, 2), (3, 3)]


def test_an_ngram_of_the_own_prompt_is_no_match_and_breaks_a_run():
    index = NgramIndex([("one", list("abcdefg"))], 3)
    text = list("abcdefg")
    own, other = index.matches([text, text], [["c", "d", "e"], []])[:2], index.matches([text], [["c", "d"]])
    assert [(match.start, match.length) for match in own] == [(0, 4), (3, 4)]
    assert [(match.start, match.length) for match in other] == [(0, 7)]


def test_the_prompt_of_another_text_changes_nothing():
    index = NgramIndex([("one", list("abcd"))], 3)
    found = index.matches([list("abcd"), list("abcd")], [list("abcd"), []])
    assert [(match.text, match.length) for match in found] == [(1, 4)]


def test_nothing_matches_nothing():
    assert NgramIndex([], 8).matches([]) == []
    assert NgramIndex([], 8).matches([["a"] * 9, []]) == []
    assert NgramIndex([("one", ["a"] * 9)], 8).matches([[], ["a"] * 7]) == []


def test_an_ngram_of_no_words_is_refused():
    with pytest.raises(UsageError, match="n = 0: an n-gram holds at least one word") as refused:
        NgramIndex([], 0)
    assert refused.value.next_step == "give n as 1 or more (8 is usual)"
