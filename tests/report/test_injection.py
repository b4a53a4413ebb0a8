"""No text becomes more than text: one corpus of injections through every place of a record, into everything shown."""

from __future__ import annotations

import asyncio
import json
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest
import yaml
from markdown_it import MarkdownIt

import tests.finished
import tests.small
from gates.flow.blind import BlindDesk, BlindReading
from gates.flow.desk import ReviewDesk
from gates.flow.frames import load_run
from gates.flow.review import open_reading
from gates.record.review import Said
from gates.record.votes import Votes
from gates.report.card import card_body, card_index, updated
from gates.report.github import step_summary, workflow_commands
from gates.report.html import html_index, html_report
from gates.report.html.model import Page
from gates.report.junit import junit
from gates.report.markdown import markdown
from gates.report.release import compose_line
from gates.report.web.app import application
from tests.finished import TWO, finished_run, two_voices, world_of
from tests.flow.conftest import Ended, gates
from tests.injections import STRINGS, Poison, rotated
from tests.record.test_signing import make_key
from tests.report.test_markdown import operating
from tests.report.pages import a_page, a_vote, some_lines

pytestmark = pytest.mark.xdist_group("injection")

Words = Callable[[int], str]
PAGES = tuple(line.page for line in some_lines(""))
KEPT = (*PAGES, "base", "voice", "validity", "memorisation", "extraction", "run", "finished", "running", "PASS", "FAIL")
KEPT = (*KEPT, "INVALID", "INCONCLUSIVE", "ran_on", "on_beat", "prospective", "higher", "lower")


def calm(number: int) -> str:
    return f"calm {number}"


def page_said(words: Words) -> Page:
    """A page, and everything that Markdown is made of, every place of it filled."""
    few = {prompt: f"Beat {prompt}" for prompt in range(3)}
    page = a_page("said", prompts=few, events=("sign-off by ann: hold",), lacking="no texts")
    fill = Poison(words, kept=KEPT, names=("a", "b", "again", "a.gguf", "i", "m-a", "m-b"))
    found = fill(page)
    powers = fill(operating(warnings=("narrow",), splits="none"))
    sealed = replace(found.sealed, seal=found.sealed.seal.model_copy(update={"operating": powers.as_json()}))
    return replace(found, sealed=sealed)


class Elements(HTMLParser):
    """What a document is made of: elements with the names of their attributes, those of drawings apart, and text."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, ...]] = []
        self.drawn: set[str] = set()
        self._drawing = False
        self.values: list[tuple[str, str]] = []
        self.text = ""
        self.feed(document)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._drawing = self._drawing or tag == "svg"
        # How many ticks a drawing has depends on how much room its texts leave.
        if self._drawing:
            self.drawn.add(tag)
        else:
            self.elements.append((tag, *(name for name, _ in attrs)))
        self.values.extend((name, value or "") for name, value in attrs)

    def handle_endtag(self, tag: str) -> None:
        if not self._drawing:
            self.elements.append((f"/{tag}",))
        self._drawing = self._drawing and tag != "svg"

    def handle_comment(self, data: str) -> None:
        self.elements.append(("comment", data))

    def unknown_decl(self, data: str) -> None:
        self.elements.append(("declaration", data))

    def handle_pi(self, data: str) -> None:
        self.elements.append(("instruction", data))

    def handle_data(self, data: str) -> None:
        self.text += data


def harmless(text: str) -> bool:
    """Whether nothing in a text commands a terminal: every character but a line's end is one that is seen."""
    return all(char.isprintable() for line in text.split("\n") for char in line)


@pytest.mark.parametrize(
    "document",
    [
        lambda words: html_report(page_said(words)),
        lambda words: html_index(Poison(words, kept=KEPT)(some_lines("said")), words(0)),
    ],
    ids=["report.html", "index.html"],
)
def test_a_page_has_the_elements_of_a_harmless_one(document: Callable[[Words], str]) -> None:
    found, known = Elements(document(rotated)), Elements(document(calm))
    assert found.elements == known.elements
    assert found.drawn == known.drawn <= {"svg", "defs", "clippath", "g", "path", "rect", "text", "use"}
    for name, value in found.values:
        assert not name.startswith("on"), name
        assert name not in {"src", "srcdoc", "style", "action", "formaction", "ping"}, name
        assert name not in {"href", "xlink:href", "clip-path"} or re.match(r"#|url\(#|[\w./-]*report\.html$", value), value
    assert harmless(found.text)
    assert harmless("".join(value for _, value in found.values))
    for said in STRINGS:
        assert " ".join(tokens_of(said)) in " ".join(found.text.split()), said


def tokens_of(text: str) -> list[str]:
    """A text as it is shown: control characters as escapes, white space of any kind as one blank."""
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text).split()


def structure(text: str) -> list[str]:
    """What a Markdown reader makes of a document beside its words."""
    reader = MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough")
    found = [inner for token in reader.parse(text) for inner in (token, *(token.children or ()))]
    return [f"{token.type} {token.tag} {token.info}" for token in found if token.type not in ("text", "text_special")]


def reports(words: Words) -> dict[str, str]:
    page = page_said(words)
    arm = next(iter(page.verdict.candidates))
    body = card_body(page.sealed, (3, 4), page.verdict, arm)
    return {
        "report.md": markdown(page.sealed, 3, page.measurements, page.verdict, deviations=("x",), seat=(words(9),)),
        "step summary": step_summary(page.sealed, 3, page.verdict, words(5)),
        "card": body,
    }


@pytest.mark.parametrize("name", ["report.md", "step summary", "card"])
def test_markdown_reads_as_that_of_harmless_words(name: str) -> None:
    found, known = reports(rotated)[name], reports(calm)[name]
    assert structure(found) == structure(known)
    assert harmless(found)
    assert not [line for line in found.split("\n") if line.lstrip().startswith("::")]
