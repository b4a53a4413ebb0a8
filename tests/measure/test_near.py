"""Near-verbatim runs against a slow, obvious matcher, and by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.measure import ngrams
from gates.measure.figures import Source
from gates.measure.near import NearIndex, NearMatch, near_windows

FEW = st.lists(st.sampled_from("aab"), max_size=40)


def near(one, other):
    return sum(a != b for a, b in zip(one, other, strict=True)) <= 1


def slow_matches(documents, texts, prompts, minimum):
    """Every window of eight at every offset of every document, then chains of windows, cut at differing words."""
    found = {}
    for number, text in enumerate(texts):
        prompt = prompts[number] if prompts else []
        given_away = [prompt[k : k + 8] for k in range(len(prompt) - 7)]
        for file, words in documents:
            for shift in range(-len(text), len(words) + 1):
                good = [
                    0 <= k + shift <= len(words) - 8
                    and near(text[k : k + 8], words[k + shift : k + shift + 8])
                    and not any(near(text[k : k + 8], window) for window in given_away)
                    for k in range(len(text) - 7)
                ]
                for first in range(len(good)):
                    if not good[first] or (first and good[first - 1]):
                        continue
                    last = first
                    while last + 1 < len(good) and good[last + 1]:
                        last += 1
                    places = [k for k in range(first, last + 8) if text[k] == words[k + shift]]
                    start, end = places[0], places[-1] + 1
                    changed = tuple(k - start for k in range(start, end) if text[k] != words[k + shift])
                    if end - start >= minimum and changed:
                        key = (number, start, end - start, changed)
                        found.setdefault(key, []).append(Source(file=file, start=start + shift))
    return [NearMatch(*key, tuple(found[key])) for key in sorted(found)]


def swapped(words, places):
    changed = list(words)
    for place in places:
        if changed:
            changed[place % len(words)] = "z" if place % 3 else "unheard"
    return changed


@st.composite
def cases(draw):
    documents = [(f"{k}.txt", words) for k, words in enumerate(draw(st.lists(FEW, max_size=2)))]
    # Half of the texts are documents with some words changed, which random ones would seldom be.
    copies = st.tuples(st.sampled_from([words for _, words in documents] or [[]]), st.lists(st.integers(0, 40))).map(
        lambda pair: swapped(*pair)
    )
    texts = draw(st.lists(st.one_of(FEW, copies), max_size=2))
    prompts = draw(st.one_of(st.just([]), st.lists(st.one_of(FEW, copies), min_size=len(texts), max_size=len(texts))))
    return documents, texts, prompts, draw(st.sampled_from([8, 8, 9, 12]))


@settings(max_examples=100, deadline=None)
@given(cases())
def test_agrees_with_the_slow_matcher(case):
    documents, texts, prompts, minimum = case
    assert NearIndex(documents, minimum).near_matches(texts, prompts) == slow_matches(*case)


@settings(max_examples=50, deadline=None)
@given(cases())
def test_no_block_border_shows(case):
    documents, texts, prompts, minimum = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ngrams, "_PAIRS_AT_ONCE", 2)
        found = NearIndex(documents, minimum).near_matches(texts, prompts)
    assert found == slow_matches(*case)


WORDS = [f"w{chr(97 + k // 26)}{chr(97 + k % 26)}" for k in range(60)]


def found_in(text, minimum=8, prompt=()):
    (index, prompts) = NearIndex([("one", WORDS)], minimum), [list(prompt)] if prompt else []
    return [(m.start, m.length, m.changed, m.sources[0].start) for m in index.near_matches([text], prompts)]


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([], []),
        ([20], [(0, 60, (20,), 0)]),
        ([20, 28], [(0, 60, (20, 28), 0)]),
        # Seven apart: no window may hold both, so each run ends before the other's change.
        ([20, 27], [(0, 27, (20,), 0), (21, 39, (6,), 21)]),
        # Two changes side by side end both runs; neither has a change inside.
        ([20, 21], []),
        ([0, 59], []),
        ([1], [(0, 60, (1,), 0)]),
        ([58], [(0, 60, (58,), 0)]),
        (range(3, 60, 8), [(0, 59, (3, 11, 19, 27, 35, 43, 51), 0)]),
    ],
)
def test_one_word_in_eight_may_be_changed_and_no_more(places, expected):
    text = [("other" if k in places else word) for k, word in enumerate(WORDS)]
    assert found_in(text) == expected


def test_a_run_may_not_cross_a_border_of_texts_or_documents():
    halves = NearIndex([("one", WORDS[:6]), ("two", WORDS[7:20])])
    assert halves.near_matches([[*WORDS[:6], "x", *WORDS[7:9]]]) == []
    assert NearIndex([("one", WORDS)]).near_matches([WORDS[:4], WORDS[5:9]]) == []


def test_the_minimum_counts_words_without_the_ends_that_differ():
    text = ["no", *WORDS[10:14], "other", *WORDS[15:18], "no"]
    assert found_in(text) == [(1, 8, (4,), 10)]
    assert found_in(text, minimum=9) == []
    assert found_in(text[:-2]) == []


def test_what_the_prompt_gave_away_is_no_near_run():
    text = [*WORDS[:10], "other", *WORDS[11:20]]
    assert found_in(text) == [(0, 20, (10,), 0)]
    assert found_in(text, prompt=WORDS[:20]) == []
    # Only the windows that the prompt nearly holds are taken out: those from word 0 to 3.
    assert found_in(text, prompt=[*WORDS[:10], "else"]) == [(4, 16, (6,), 4)]


@pytest.mark.parametrize(
    ("places", "prompt", "expected"),
    [
        # The windows left begin, or end, with a word that differs: it is none of the run.
        ([4, 12], range(11), [(5, 25, (7,), 5)]),
        ([17, 25], range(19, 30), [(0, 25, (17,), 0)]),
        # Four windows in the middle are taken out, and one: what is left on both sides are runs of their own.
        ([2, 27], range(11, 22), [(0, 18, (2,), 0), (15, 15, (12,), 15)]),
        ([2, 27], range(11, 19), [(0, 18, (2,), 0), (12, 18, (15,), 12)]),
    ],
)
def test_near_runs_end_where_the_prompt_begins(places, prompt, expected):
    text = [("other" if k in places else word) for k, word in enumerate(WORDS[:30])]
    assert found_in(text, prompt=[text[k] for k in prompt]) == expected


def test_a_word_unknown_to_both_sides_makes_no_window_near_the_prompt():
    assert near_windows(["q"] * 7 + ["r", "s"], ["t"] * 9).tolist() == [False, False]
    assert near_windows(list("abcdefgh"), list("abcdefgx")).tolist() == [True]
    assert near_windows(list("abcdefgh"), list("abcdefyx")).tolist() == [False]
    assert near_windows(list("abc"), list("abcdefgh")).tolist() == []
    assert near_windows(list("abcdefghi"), list("abc")).tolist() == [False, False]
