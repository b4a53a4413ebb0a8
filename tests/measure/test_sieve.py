"""Whatever passes the sieve, in shards cut anywhere, matches exactly as the whole sources do."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gates.measure import sieve
from gates.measure.ngrams import NgramIndex, Piece
from gates.measure.sieve import Sieve, Sifted, Stretch
from gates.text import BORDER
from tests.measure.test_ngrams import slow_matches

# Long words alike in the eight bytes that a hash sees, short ones, and one of several bytes.
VOCABULARY = ["a", "b", "consideration", "considerable", "é", "it's"]
WORDS = st.lists(st.sampled_from(VOCABULARY), max_size=24)


def sifted(own: Sieve, words: list[str], cuts: list[int]) -> Sifted:
    edges = [0, *sorted(cut % (len(words) + 1) for cut in cuts), len(words)]
    shards = [" ".join(words[begin:end]).encode() for begin, end in pairwise(edges)]
    return own.joined(own.sift(b"  " + shard + b" ") for shard in shards)


@given(
    st.lists(WORDS, max_size=3),
    st.lists(WORDS, max_size=3),
    st.lists(st.integers(0, 24), max_size=5),
    st.integers(1, 9),
)
def test_matches_of_what_is_left_are_all_matches(
    documents: list[list[str]], texts: list[list[str]], cuts: list[int], n: int
) -> None:
    own = Sieve(texts, n)
    left = [sifted(own, words, cuts) for words in documents]
    pieces = [Piece(f"{k}", words, start) for k, part in enumerate(left) for start, words in part.stretches]
    whole = [(f"{k}", words) for k, words in enumerate(documents)]
    assert NgramIndex(pieces, n).matches(texts) == slow_matches(whole, texts, [], n)
    assert [part.count for part in left] == list(map(len, documents))


@given(WORDS, st.lists(WORDS, max_size=3), st.lists(st.integers(0, 24), max_size=5), st.integers(1, 9))
def test_how_a_document_is_cut_changes_nothing(
    words: list[str], texts: list[list[str]], cuts: list[int], n: int
) -> None:
    own = Sieve(texts, n)
    whole = own.sift(" ".join(words).encode())
    assert sifted(own, words, cuts) == whole
    assert (list(whole.head), list(whole.tail)) == (words[: n - 1], words[max(0, len(words) - n + 1) :])
    for start, left in whole.stretches:
        assert list(left) == words[start : start + len(left)]


@given(st.lists(WORDS, max_size=2), st.lists(WORDS, max_size=2), st.integers(1, 9))
def test_a_hash_that_is_always_equal_loses_nothing(documents: list[list[str]], texts: list[list[str]], n: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sieve, "_digit", lambda place: np.uint64(0))
        own = Sieve(texts, n)
        left = [sifted(own, words, [7]) for words in documents]
        batch = own.sift_batch(f" {BORDER.decode()} ".join(" ".join(words) for words in documents).encode())[1]
    whole = [(f"{k}", words) for k, words in enumerate(documents)]
    for found in (((k, part.stretches) for k, part in enumerate(left)), batch):
        pieces = [Piece(f"{k}", words, start) for k, stretches in found for start, words in stretches]
        assert NgramIndex(pieces, n).matches(texts) == slow_matches(whole, texts, [], n)


@given(st.lists(WORDS, min_size=1, max_size=5), st.lists(WORDS, max_size=3), st.integers(1, 9))
def test_a_batch_leaves_what_each_of_its_documents_leaves(
    documents: list[list[str]], texts: list[list[str]], n: int
) -> None:
    own = Sieve(texts, n)
    counts, found = own.sift_batch(f" {BORDER.decode()} ".join(" ".join(words) for words in documents).encode())
    alone = [own.sift(" ".join(words).encode()) for words in documents]
    assert counts == list(map(len, documents))
    assert found == [(number, part.stretches) for number, part in enumerate(alone) if part.stretches]


def test_almost_nothing_else_is_left() -> None:
    random = np.random.default_rng(7)
    words = ["".join(row) for row in random.choice(list("abcdefgh"), (10_000, 5))]
    texts = [words[100 * k : 100 * k + 60] for k in range(100)]
    noise = ["".join(row) for row in random.choice(list("abcdefgh"), (200_000, 5))]
    own = Sieve(texts, 8)
    assert own.sift(" ".join(noise).encode()).stretches == ()
    parts = [*noise[:1000], *texts[3], *noise[1000:2000], *texts[5][:7], *noise[2000:3000], *texts[8][:8]]
    found = own.sift(" ".join(parts).encode())
    assert [(stretch.start, stretch.end) for stretch in found.stretches] == [(1000, 1060), (3067, 3075)]


@pytest.mark.parametrize("cut", range(12))
def test_what_a_cut_goes_through_is_found_all_the_same(cut: int) -> None:
    words = ["a", "storm", "came", "and", "the", "old", "clock", "struck", "nine", "and", "stopped"]
    own = Sieve([["the", "old", "clock", "struck", "nine"]], 4)
    (stretch,) = sifted(own, words, [cut]).stretches
    assert (stretch.start, stretch.words) == (4, ("the", "old", "clock", "struck", "nine"))


def test_documents_of_a_batch_are_apart_however_their_hashes_fall() -> None:
    own = Sieve([["a", "b", "c", "d"]], 2)
    batch = f"a b {BORDER.decode()} c d {BORDER.decode()} b".encode()
    expected = [(0, (Stretch(0, ("a", "b")),)), (1, (Stretch(0, ("c", "d")),))]
    assert own.sift_batch(batch) == ([2, 2, 1], expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sieve, "_digit", lambda place: np.uint64(0))
        assert Sieve([["a", "b", "c", "d"]], 2).sift_batch(batch) == ([2, 2, 1], expected)


def test_a_hash_above_all_known_ones_is_none_of_them() -> None:
    known, asked = (np.array(values, dtype=np.uint64) for values in ([2, 5], [0, 2, 3, 5, 9]))
    assert sieve._among(asked, known).tolist() == [False, True, False, True, False]


def test_stretches_that_touch_at_a_cut_are_one() -> None:
    own = Sieve([["a", "b"], ["c", "d"]], 2)
    assert sifted(own, list("abcd"), [2]).stretches == (Stretch(0, tuple("abcd")),)
