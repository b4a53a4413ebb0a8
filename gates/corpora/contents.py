"""Finding lists of contents and of illustrations in a book, without taking its first chapter for an entry."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gates.corpora.spans import Span, paragraphs

LEAST_ENTRIES = 3

_HEADING = re.compile(
    r"\W{0,6}(?:(?:table\s+of\s+)?contents(?:\s+of\s+[^\n]{1,60})?|list\s+of\s+(?:the\s+)?(?:illustrations|plates|maps))"
    r"\W{0,6}",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"[\s_*]*(?:(?:chapter|chap\.|book|part|volume|vol\.|section|canto|act|scene|letter|preface|introduction|prologue"
    r"|epilogue|conclusion|appendix|index|footnotes?|page)\b|(?:[ivxlc]+|\d{1,3})(?:[.):]|\s*$|\s{2,}|\s*[—–-]\s))",
    re.IGNORECASE,
)
_PAGE = re.compile(r"(?:\d{1,4}|[ivxlc]{1,7})$", re.IGNORECASE)
_COLUMN_HEADS = frozenset({"chap", "chapter", "chapters", "no", "page", "pages"})
_CLOSING = "\"'”’)]_"
_LAST_HEADINGS = 3
_WIDE_GAP = 3


def contents_lists(text: str) -> Iterator[Span]:
    """Spans of the lists: a heading of its own ("CONTENTS") and the entries below it, three at the least.

    A list ends before the first paragraph of prose and before its own first entry comes again as a chapter's heading.
    """
    found = list(paragraphs(text))
    number = 0
    while number < len(found):
        start, end = found[number]
        first_line, _, rest = text[start:end].partition("\n")
        if _HEADING.fullmatch(first_line.strip()) and not _is_prose(rest):
            taken = _entries(text, found, number, rest)
            if taken:
                yield start, found[taken][1]
                number = taken
        number += 1


def _entries(text: str, found: list[Span], heading: int, rest: str) -> int:
    """Number of the last paragraph of the list under a heading, or 0 when there is no list."""
    lines = [line for line in rest.splitlines() if not _is_column_head(line)]
    last = heading
    for number in range(heading + 1, len(found)):
        paragraph = text[slice(*found[number])]
        if _is_prose(paragraph) or _HEADING.fullmatch(paragraph.strip()) or (lines and _again(lines[0], paragraph)):
            break
        lines += [line for line in paragraph.splitlines() if not _is_column_head(line)]
        last = number
    else:
        if 2 * found[heading][0] < len(text):
            return 0  # nothing but entries from here to the end, and more than half of the text: no list
    last = _give_back(text, found, heading, last)
    entries = sum(len(text[slice(*found[number])].splitlines()) for number in range(heading + 1, last + 1))
    return last if entries + len(rest.splitlines()) >= LEAST_ENTRIES else 0


def _give_back(text: str, found: list[Span], heading: int, last: int) -> int:
    """Leave to the book the few headings that stand, after a wide gap, between the list and the first prose."""
    for number in range(last, max(heading, last - _LAST_HEADINGS), -1):
        gap = text[found[number - 1][1] : found[number][0]]
        if gap.count("\n") >= _WIDE_GAP:
            return number - 1
    return last


def _is_prose(paragraph: str) -> bool:
    lines = paragraph.strip().splitlines()
    if not lines or _NUMBERED.match(lines[0]) or _title(lines[0]) or _title(lines[-1]):
        return False
    tokens = [token for token in " ".join(lines).split() if token[0].isalpha() or token[0] in "\"'“‘_("]
    lower = sum(token.strip("\"'“‘_(")[:1].islower() for token in tokens)
    sentence = paragraph.rstrip().rstrip(_CLOSING).endswith((".", "!", "?", ":", ";", ",", "-", "—"))
    return lower >= 0.4 * len(tokens) and (len(lines) > 2 or sentence)


def _again(first: str, paragraph: str) -> bool:
    """Whether a paragraph begins as the list's first entry does: then it is the chapter itself."""
    entry, line = (_tokens(_title(text) or text) for text in (first, paragraph.strip().partition("\n")[0]))
    shorter = min(len(entry), len(line))
    return shorter > 0 and entry[:shorter] == line[:shorter]


def _title(line: str) -> str:
    """What stands before the page number of an entry (dots, a comma or wide space between), or nothing without one."""
    line = line.rstrip()
    page = _PAGE.search(line[-8:])
    before = line[: len(line) - len(page[0])] if page else ""
    return before if before.rstrip().endswith((".", ",")) or before.endswith(("  ", "\t")) else ""


def _is_column_head(line: str) -> bool:
    return _COLUMN_HEADS.issuperset(_tokens(line))


def _tokens(line: str) -> list[str]:
    return re.findall(r"\w+", line.casefold())
