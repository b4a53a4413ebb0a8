"""The examples are written for this test after the shapes that Project Gutenberg's files have had since 1990."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gates.corpora.clean import strip_gutenberg
from gates.errors import CorpusError

PARAGRAPH = (
    "It was late in the year when we came down to the harbour, and the rain, which had\n"
    "followed us from the hills, lay upon the roofs of the town like a grey cloth.\n"
)
BOOK = "CHAPTER I\n\nTHE HARBOUR\n\n" + "\n".join([PARAGRAPH] * 12) + "\nCHAPTER II\n\n" + "\n".join([PARAGRAPH] * 12)

HEADERS = {
    "modern": "The Project Gutenberg eBook of The Harbour\n\nThis ebook is for the use of anyone anywhere.\n\n"
    "Title: The Harbour\n\nAuthor: A. Writer\n\n*** START OF THE PROJECT GUTENBERG EBOOK THE HARBOUR ***\n\n\n",
    "2005": "Project Gutenberg's The Harbour, by A. Writer\n\nThis eBook is for the use of anyone anywhere\n\n"
    "*** START OF THIS PROJECT GUTENBERG EBOOK THE HARBOUR ***\n\n\nProduced by A. Volunteer and the Online\n"
    "Distributed Proofreading Team at http://www.pgdp.net\n\n\n",
    "no spaces": "Title: The Harbour\n\n***START OF THE PROJECT GUTENBERG EBOOK THE HARBOUR***\n\n\n"
    "E-text prepared by A. Volunteer\n\n\n",
    "two lines": "Title: The Harbour\n\n*** START OF THIS PROJECT GUTENBERG EBOOK THE HARBOUR, BEING AN\nACCOUNT OF A "
    "TOWN ***\n\n\nTranscribed from the 1893 edition by A. Volunteer, email a@example.org\n\n\n",
    "small print": "The Project Gutenberg Etext of The Harbour, by A. Writer\n\nCopyright laws are changing.\n\n"
    "***START**THE SMALL PRINT!**FOR PUBLIC DOMAIN ETEXTS**START***\nWhy is this here? You know: lawyers.\n\n"
    "*END*THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.04.29.93*END*\n\n\n"
    "This etext was prepared by A. Volunteer, Somewhere\n\n\n",
    "html note": "Produced by A. Volunteer\n\n\nNote: Project Gutenberg also has an HTML version of this\n"
    "      file which includes the original illustrations.\n\n\n",
}
FOOTERS = {
    "modern": "\n\n*** END OF THE PROJECT GUTENBERG EBOOK THE HARBOUR ***\n\nUpdated editions replace this one.\n"
    "\nSection 1. General Terms of Use.\n" + "You may copy it, give it away or re-use it under the terms.\n" * 250,
    "2005": "\n\nEnd of the Project Gutenberg EBook of The Harbour, by A. Writer\n\n"
    "*** END OF THIS PROJECT GUTENBERG EBOOK THE HARBOUR ***\n\n***** This file should be named 1.txt *****\n",
    "etext": "\n\nEnd of Project Gutenberg's The Harbour, by A. Writer\n",
    "etext note": "\n\nEND OF THE PROJECT GUTENBERG ETEXT OF THE HARBOUR\n\nI made these changes:\n25 10 hole bole\n",
    "none": "\n",
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
@pytest.mark.parametrize("footer", FOOTERS.values(), ids=FOOTERS)
def test_headers_and_footers_are_cut_in_every_variant(header: str, footer: str) -> None:
    assert strip_gutenberg(header + BOOK + footer).strip() == BOOK.strip()


@given(
    st.lists(st.sampled_from([PARAGRAPH, "CHAPTER II\n", "I.\n", "“Who is there?” said he.\n", "* * *\n"]), max_size=12)
)
def test_a_book_without_boilerplate_comes_back_unchanged(parts: list[str]) -> None:
    text = "\n".join(parts)
    assert strip_gutenberg(text) == text


def test_words_that_only_look_like_boilerplate_stay() -> None:
    text = (
        "The contents of the letter were these:\n\nProduced by the wind, the sound came nearer, and all of us in the\n"
        "room, from the eldest down to the child in the window, listened to it; nobody\n"
        + "spoke a word.\n"
        * 70
        + "\n"
        "Gutenberg was a printer, and the end of the project was near.\n\n" + PARAGRAPH
    )
    assert strip_gutenberg(text) == text


def test_licence_text_between_the_parts_of_a_collection_is_cut_and_every_part_stays() -> None:
    licence = (
        "<<THIS ELECTRONIC VERSION OF THE COMPLETE HARBOURS IS COPYRIGHT 1993 BY A LIBRARY, INC., AND IS\n"
        "PROVIDED BY PROJECT GUTENBERG ETEXT WITH PERMISSION.>>\n"
    )
    first, second, third = (
        PARAGRAPH.replace("year", word) + PARAGRAPH * 700 for word in ("spring", "summer", "autumn")
    )
    inside = "\n\n".join([first, licence, second, licence, third])
    assert strip_gutenberg(inside).split() == (first + second + third).split()
    stray = "\n\nEnd of Project Gutenberg's The First Harbour\n\n"
    whole = HEADERS["modern"] + first + stray + second + stray + third + FOOTERS["modern"]
    assert strip_gutenberg(whole).split() == (first + second + third).split()
    pairs = "".join(HEADERS["modern"] + part + FOOTERS["modern"] for part in (first, second, third))
    assert strip_gutenberg(pairs).split() == (first + second + third).split()


def test_a_header_in_the_middle_does_not_take_the_prologue_with_it() -> None:
    prologue = "PROLOGUE\n\n" + PARAGRAPH * 20 + "\n"
    assert strip_gutenberg(prologue + HEADERS["small print"] + BOOK).split() == (prologue + BOOK).split()


@pytest.mark.parametrize(
    "note",
    [
        "[Transcriber's Note: the spelling of the 1850 edition\nis kept.\n\nSo are its commas.]\n",
        "[Transcriber’s note: a page is missing here.]\n",
        "Transcriber's Note:\n\nThe spelling of the first edition is kept.\n",
        "Transcribers' notes: the spelling of the first edition is kept.\n",
    ],
)
def test_transcribers_notes_are_cut(note: str) -> None:
    assert strip_gutenberg(note + "\n" + BOOK).strip() == BOOK.strip()


def test_a_transcribers_note_that_closes_the_book_is_cut_to_the_end() -> None:
    note = "\n\nTranscriber's Notes\n\nPage 3: hole changed to bole.\n\nPage 9: but changed to hut.\n"
    assert strip_gutenberg(BOOK * 4 + note).strip() == (BOOK * 4).strip()


CONTENTS = {
    "numbered": "CONTENTS\n\nCHAPTER I. The Harbour\nCHAPTER II. The Town\nCHAPTER III. The Hills\n",
    "page numbers": "CONTENTS.\n\n           PAGE\n\nI.   THE HARBOUR      1\n\nII.  THE TOWN        28\n\n"
    "III. THE HILLS  103\n",
    "dots": "Contents\n\nThe Harbour ........ 1\nThe Town at the foot of the hills ..... 28\nThe Hills .... 103\n",
    "titles alone": "TABLE OF CONTENTS\n\n  THE HARBOUR\n  THE TOWN\n  THE HILLS\n",
    "descriptions": "Contents\n\n   I. Our arrival--The rain and the roofs--What the landlord\n      said of the tide\n"
    "  II. A stranger--His letter\n III. We leave for the hills\n",
    "parts": "CONTENTS\n\nBOOK I\n\nChapter I. The Harbour\nChapter II. The Town\n\nBOOK II\n\nChapter I. The Hills\n",
    "two lists": "CONTENTS\n\nI. The Harbour\nII. The Town\nIII. The Hills\n\n\nLIST OF ILLUSTRATIONS\n\nThe quay  9\n"
    "The mayor  44\nThe pass  90\n",
}


@pytest.mark.parametrize("contents", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("gap", ["\n", "\n\n\n\n"], ids=["narrow", "wide"])
def test_contents_lists_are_cut_and_the_first_chapter_stays(contents: str, gap: str) -> None:
    title = "THE HARBOUR: A TALE OF A TOWN\n\nBY A. WRITER\n\n\n"
    cleaned = strip_gutenberg(title + contents + gap + BOOK)
    assert cleaned.startswith(title)
    kept = cleaned.removeprefix(title)
    # The headings right above the first prose may go with a list that no wide gap closes; not one sentence may.
    assert kept.count(PARAGRAPH) == 24
    assert "Hills" not in kept
    assert "HILLS" not in kept
    if len(gap) > 1:
        assert kept.strip() == BOOK.strip()


def test_a_heading_over_too_short_a_list_stays() -> None:
    text = "CONTENTS\n\nOne thing\n\n" + PARAGRAPH + BOOK
    assert strip_gutenberg(text) == text


def test_a_cut_that_leaves_too_little_is_refused() -> None:
    with pytest.raises(CorpusError, match=r"gutenberg@1 would keep 0 of \d+ words") as caught:
        strip_gutenberg("Produced by A. Volunteer\n\nNote: Project Gutenberg has this book as well.\n\n")
    assert "by hand" in caught.value.next_step
    note = "Note: Project Gutenberg has an HTML version of this.\n\n"
    with pytest.raises(CorpusError, match="would keep"):
        strip_gutenberg(note * 20 + PARAGRAPH)


@given(st.text(st.sampled_from("aA \n*[]<>.,'IVX1"), max_size=300))
def test_any_text_is_cleaned_or_refused_and_only_ever_cut(text: str) -> None:
    try:
        cleaned = strip_gutenberg(text)
    except CorpusError:
        return
    rest = iter(text)
    assert all(char in rest for char in cleaned)
