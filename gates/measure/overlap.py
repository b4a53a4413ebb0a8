"""`ngram_hits@1` of anybody's texts: which of them repeat a source word for word, where, and from where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import Field

from gates.errors import UsageError
from gates.measure.figures import Source
from gates.measure.memorisation import TOKENS
from gates.measure.ngrams import NgramIndex, Piece
from gates.records import Record, signature
from gates.text import prose_words_of


class OverlapRun(Record):
    """A maximal run: of text number `text` (from 0) called `name`, `length` words from word `start` (from 0).

    `words` are its words as compared, joined by single spaces; `sources` all places it comes from, `start` in words.
    """

    text: int = Field(ge=0)
    name: str
    start: int = Field(ge=0)
    length: int = Field(ge=1)
    words: str
    sources: tuple[Source, ...]


class Overlap(Record):
    """How many of `texts` hold an n-gram of the sources that their own prompt does not; `hit_rate` in [0, 1]."""

    signature: str
    n: int
    texts: int
    hits: int
    hit_rate: float
    runs: tuple[OverlapRun, ...]


def overlap(
    pieces: Iterable[Piece],
    ngrams: int,
    texts: Sequence[tuple[str, Sequence[str]]],
    prompts: Sequence[str | None],
    n: int = 8,
) -> Overlap:
    """Every maximal run of at least `n` words that the texts, (name, words) pairs, share with the sources.

    `pieces` are all that is left of the sources in the texts' sieve, and `ngrams` how many n-grams the sources had.
    `prompts` are as many as the texts, None where there is none. Raises UsageError for no texts, and for sources that
    held no n-gram, in which nothing could be found.
    """
    if not texts or not ngrams:
        what = "there is no text to look at" if not texts else f"the sources hold no run of {n} words"
        raise UsageError(what, next_step="name other files, or a smaller n")
    index = NgramIndex(pieces, n)
    words = [own for _, own in texts]
    subtracted = any(prompt is not None for prompt in prompts)
    found = index.matches(words, prose_words_of([prompt or "" for prompt in prompts]))
    hits = len({match.text for match in found})
    return Overlap(
        signature=signature("ngram_hits@1", n=n, tokens=TOKENS, prompt="subtracted" if subtracted else "none"),
        n=n,
        texts=len(texts),
        hits=hits,
        hit_rate=hits / len(texts),
        runs=tuple(
            OverlapRun(
                text=match.text,
                name=texts[match.text][0],
                start=match.start,
                length=match.length,
                words=" ".join(words[match.text][match.start : match.start + match.length]),
                sources=match.sources,
            )
            for match in found
        ),
    )
