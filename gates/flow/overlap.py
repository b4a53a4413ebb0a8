"""`ngram_hits@1` of anybody's texts against sources of any size: the sources stream by, here or on a cluster.

The texts' n-grams are the sieve, the same for every worker; what is left of each part comes back and is joined in the
order of the sources, and the exact matcher sees it whole. So the result is the same however the work was parted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from gates.corpora.files import NUL, NamedText, unusable
from gates.corpora.streams.part import Part
from gates.corpora.streams.plan import plan
from gates.corpora.streams.read import Document, documents_of, text_of
from gates.measure.ngrams import Piece
from gates.measure.overlap import Overlap
from gates.measure.overlap import overlap as measure
from gates.measure.sieve import Sieve, Sifted, Stretch
from gates.spec.source import located, shown
from gates.text import flat_batch, flat_prose, prose_words_of

PART_BYTES = 256 << 20
"""A part takes a core some seconds: long beside what a task costs, short beside what is lost with a worker."""

_BATCH = 1 << 18
_JSON_TEXT = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:\[\s*)?\{(?:[^\n]{0,4096}?[{,])?\s*"text"\s*:')
"""How JSON with a field `text` begins: read as a text, its escapes would break words."""

_Shared = TypeVar("_Shared")
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Engine(Protocol):
    """Where the parts are read."""

    @property
    def part_bytes(self) -> int | None:
        """How large a part may be; None for whole files."""

    def run(
        self, make: Callable[[], _Shared], work: Callable[[_Shared, _Item], _Result], items: Sequence[_Item]
    ) -> Iterator[_Result]:
        """`work` of what `make` gives and each item, in the order of the items."""


class Here:
    """This process, one part after another; `progress` is told (parts done, all parts)."""

    part_bytes: int | None = PART_BYTES

    def __init__(self, progress: Callable[[int, int], None] = lambda *_: None) -> None:
        self._progress = progress

    def run(
        self, make: Callable[[], _Shared], work: Callable[[_Shared, _Item], _Result], items: Sequence[_Item]
    ) -> Iterator[_Result]:
        """`work` of what `make` gives and each item, in the order of the items."""
        shared = make()
        for done, item in enumerate(items, 1):
            yield work(shared, item)
            self._progress(done, len(items))


@dataclass(frozen=True)
class Left:
    """What is left of a part: of text, `text` joins those before and after; else documents by line, and n-grams."""

    lines: int = 0
    ngrams: int = 0
    documents: tuple[tuple[int, tuple[Stretch, ...]], ...] = ()
    text: Sifted | None = None


def overlap(
    sources: Sequence[str], texts: Sequence[NamedText], prompts: Sequence[str | None], n: int, engine: Engine
) -> Overlap:
    """Every maximal run of at least `n` words that the texts share with the sources: files, folders and URLs.

    `prompts` are as many as the texts, None where there is none. Raises InputError for sources that cannot be read,
    and UsageError as the measure does.
    """
    parts = plan(sources, engine.part_bytes)
    words = prose_words_of([text.text for text in texts])
    make = partial(Sieve, words, n)
    pieces: list[Piece] = []
    ngrams = 0
    own = make()
    for file, left in _by_file(zip(parts, engine.run(make, sift, parts), strict=True)):
        found, more = _of_text(own, file, left) if left[0].text else _of_documents(file, left)
        pieces += found
        ngrams += more
    return measure(pieces, ngrams, [(t.name, own) for t, own in zip(texts, words, strict=True)], prompts, n)


def sift(sieve: Sieve, part: Part) -> Left:
    """What is left of one part. Raises InputError where it cannot be read."""
    try:
        if part.kind == "text":
            return Left(text=sieve.joined(sieve.sift(flat_prose(_strict(part, data))) for data in text_of(part)))
        return _sift_documents(sieve, part)
    except UnicodeDecodeError as error:
        around = shown(error.object[max(0, error.start - 20) : error.start + 4])
        raise unusable(
            [located(part.file, 0, "bytes", around, "the file is not UTF-8 here", "save it as UTF-8")]
        ) from error


def _strict(part: Part, data: bytes) -> bytes:
    if b"\0" in data:
        raise unusable([located(part.file, 0, "byte", *NUL)])
    if _JSON_TEXT.match(data) and part.begin == 0:
        raise unusable(
            [located(part.file, 0, "file", "", "this is JSON, not text", "name it .jsonl: one object a line")]
        )
    if b"\xed" in data:  # may begin half a surrogate pair, which the words' own check lets pass
        data.decode("utf-8")
    return data


def _sift_documents(sieve: Sieve, part: Part) -> Left:
    lines = ngrams = 0
    documents: list[tuple[int, tuple[Stretch, ...]]] = []
    for batch in _batches(documents_of(part)):
        lines = batch[-1].line
        held = [(document.line, document.text) for document in batch if document.text is not None]
        counts, found = sieve.sift_batch(flat_batch(text for _, text in held)) if held else ([], [])
        ngrams += sum(max(0, count - sieve.n + 1) for count in counts)
        documents += [(held[number][0], stretches) for number, stretches in found]
    return Left(lines, ngrams, tuple(documents))


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    batch: list[Document] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += len(document.text or b"") + 1
        if size > _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _by_file(pairs: Iterable[tuple[Part, Left]]) -> Iterator[tuple[str, list[Left]]]:
    """What is left of each file's parts; a part that begins at 0 begins a file."""
    file, left = "", list[Left]()
    for part, more in pairs:
        if part.begin == 0 and left:
            yield file, left
            left = []
        file = part.file
        left.append(more)
    if left:
        yield file, left


def _of_text(sieve: Sieve, file: str, left: Sequence[Left]) -> tuple[list[Piece], int]:
    whole = sieve.joined(part.text for part in left if part.text is not None)
    return [Piece(file, words, start) for start, words in whole.stretches], max(0, whole.count - sieve.n + 1)


def _of_documents(file: str, left: Sequence[Left]) -> tuple[list[Piece], int]:
    pieces: list[Piece] = []
    before = 0
    for part in left:
        for line, stretches in part.documents:
            pieces += [Piece(f"{file}:{before + line}", words, start) for start, words in stretches]
        before += part.lines
    return pieces, sum(part.ngrams for part in left)
