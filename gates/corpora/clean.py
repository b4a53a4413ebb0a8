"""Cutting what Project Gutenberg's volunteers put around and into a book, and nothing of the book (`gutenberg@1`).

Cut are the licence's header and footer in their variants since 1990, licence text between the parts of a collection,
"Produced by" credits, transcribers' notes, and lists of contents and of illustrations. One list of chapter numerals
left in two books of an author makes a longer "copied passage" than anything the author ever repeated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gates.corpora.contents import contents_lists
from gates.corpora.spans import Span, paragraphs, without
from gates.errors import CorpusError

GUTENBERG = "gutenberg@1"

LICENCE_MOST = 40_000
"""Characters: no licence header or footer is longer (the full licence has 19,000); what is longer holds some book."""

FOOTER_LINES = 2_000
"""Characters: markers of one header or footer stand closer together than this."""

LEAST_KEPT = 0.6
"""Share of the text between the licence's markers that must remain."""

# A marker may run over several lines up to its closing stars, never over a blank line.
_TO_STARS = r"(?:(?:[^\n]+\n){0,3}?[^\n]*\*\*\*[ \t]*$|[^\n]*$)"
_MARKER = re.compile(
    rf"^\W{{0,8}}(?:"
    rf"(?P<start>START OF TH(?:E|IS) PROJECT GUTENBERG{_TO_STARS}|END\W{{1,4}}THE SMALL PRINT[^\n]*$)"
    rf"|(?P<end>(?:THIS IS THE )?END OF (?:TH(?:E|IS) )?PROJECT GUTENBERG{_TO_STARS})"
    rf"|(?P<opening>START\W{{1,4}}THE SMALL PRINT|(?:THE )?PROJECT GUTENBERG(?:['’]S)? E-?(?:TEXT|BOOK) OF))",
    re.IGNORECASE | re.MULTILINE,
)
_LICENCE = re.compile(
    r"project\s+gutenberg|gutenberg\.(?:org|net|com)|pglaf\.org|pgdp\.net|distributed\s+proofread"
    r"|<<THIS ELECTRONIC VERSION OF|the small print!",
    re.IGNORECASE,
)
_CREDIT = re.compile(
    r"\W*(?:produced by|e-?text (?:was )?(?:prepared|produced|scanned)|th(?:is|e) (?:e-?text|e-?book) was "
    r"(?:prepared|produced|scanned|transcribed)|transcribed (?:from the|by)|digiti[sz]ed by|scanned (?:and|by)|"
    r"proofread(?:ing)? by|html version by)\b",
    re.IGNORECASE,
)
_NOTE = re.compile(r"\W{0,4}transcriber(?:['’]?s|s['’])?(?:['’])? (?:foot)?notes?\b", re.IGNORECASE)
_NOTE_ALONE = re.compile(r"\W{0,4}transcriber\S* (?:foot)?notes?\W*", re.IGNORECASE)
_BRACKETED_NOTE = re.compile(r"\[\s*transcriber\S* (?:foot)?notes?\b[^\]]{0,5000}\]", re.IGNORECASE)


def strip_gutenberg(text: str) -> str:
    """The book in `text` without Project Gutenberg's additions; a text without any comes back unchanged.

    Raises CorpusError when less than 60 % of what lies between the licence's markers would remain.
    """
    body = without(text, _licence_spans(text))
    book = body
    for spans in (_bracketed_notes, _loose_boilerplate, contents_lists):
        book = without(book, spans(book))
    if len(book.split()) < LEAST_KEPT * len(body.split()) or (text.split() and not book.split()):
        raise CorpusError(
            f"the cleaner {GUTENBERG} would keep {len(book.split()):,} of {len(body.split()):,} words",
            next_step="cut the text by hand and leave `clean` out of the manifest",
        )
    return book


def _licence_spans(text: str) -> Iterator[Span]:
    """Header, footer and what lies between an END and the next START; a span too long for a licence is left alone.

    Text before the first START is header from the top, or from the line that opens the header when some of the book
    stands above it. An END that more of the book follows counts for nothing.
    """
    outside: int | None = 0
    opened: int | None = None
    at_top = True
    for marker in _MARKER.finditer(text):
        if marker["opening"] is not None:
            opened = marker.start() if opened is None else opened
            continue
        if marker["end"] is not None:
            if outside is None or at_top or marker.start() - outside > FOOTER_LINES:
                outside = marker.start()
        else:
            late = opened is not None and (outside is None or (at_top and opened > FOOTER_LINES))
            begin = opened if late else outside
            if begin is not None and marker.end() - begin <= LICENCE_MOST:
                yield begin, marker.end()
            outside, opened = None, None
        at_top = False
    if outside and len(text) - outside <= LICENCE_MOST:
        yield outside, len(text)


def _bracketed_notes(text: str) -> Iterator[Span]:
    yield from (match.span() for match in _BRACKETED_NOTE.finditer(text))


def _loose_boilerplate(text: str) -> Iterator[Span]:
    """Paragraphs that name the project, credits and notes near either end, and notes that close the book."""
    found = list(paragraphs(text))
    for number, (start, end) in enumerate(found):
        paragraph = text[start:end]
        near_an_end = number < 30 or number >= len(found) - 10
        if _LICENCE.search(paragraph):
            yield from _licence_paragraph(text, start, end)
        elif near_an_end and len(paragraph) <= 800 and _CREDIT.match(paragraph):
            yield start, end
        elif _NOTE.match(paragraph) and start >= 0.9 * len(text) and number >= 3:
            yield start, len(text)
        elif near_an_end and _NOTE.match(paragraph):
            alone = _NOTE_ALONE.fullmatch(paragraph) and number + 1 < len(found)
            yield start, found[number + 1][1] if alone else end


def _licence_paragraph(text: str, start: int, end: int) -> Iterator[Span]:
    """A whole paragraph, or only its lines that name the project when it is too long to be a paragraph of a licence."""
    if end - start <= 3000:
        yield start, end
        return
    at = start
    for line in text[start:end].splitlines(keepends=True):
        if _LICENCE.search(line):
            yield at, at + len(line)
        at += len(line)
