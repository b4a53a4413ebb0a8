"""report.html: one file that asks for nothing, in which no text can do anything, with every number behind a picture."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from html.parser import HTMLParser

import pytest

from gates.errors import UsageError
from gates.judge.verdict import judge
from gates.measure.memorisation import Excerpt
from gates.report.html import html_report
from gates.report.html.model import Place
from gates.report.html.svg import series
from tests.judge.arms import a_gate
from tests.report.pages import RUN, SOURCE, a_generation, a_page


class Seen(HTMLParser):
    """What a reader of the document finds: tags with their attributes, text, the content of script and style."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.inside: dict[str, str] = {}
        self.tables: list[list[list[str]]] = []
        self.open: list[str] = []
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("script", "style"):
            self.inside[self.open[-1]] = self.inside.get(self.open[-1], "") + data
            return
        self.text += data
        if "td" in self.open or "th" in self.open:
            self.tables[-1][-1][-1] += data


@pytest.fixture(scope="module")
def document() -> str:
    return html_report(a_page("Does it move?"))


@pytest.fixture(scope="module")
def calm(document: str) -> Seen:
    return Seen(document)


def test_its_policy_allows_its_own_script_and_style_and_nothing_else(calm: Seen) -> None:
    policy = next(a["content"] for tag, a in calm.tags if a.get("http-equiv") == "Content-Security-Policy")
    hashes = {
        kind: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for kind, text in calm.inside.items()
    }
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashes['style']}'; script-src 'sha256-{hashes['script']}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert [sum(tag == kind for tag, _ in calm.tags) for kind in ("script", "style")] == [1, 1]


def test_ids_are_one_of_a_kind_and_every_link_leads_somewhere(calm: Seen) -> None:
    ids = [attributes["id"] for _, attributes in calm.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [a["href"][1:] for _, a in calm.tags if a.get("href")]
    targets += [a["clip-path"][5:-1] for _, a in calm.tags if a.get("clip-path")]
    assert set(targets) <= set(ids)


def test_the_first_screen_answers_in_words(calm: Seen) -> None:
    first = " ".join(calm.text[: calm.text.index("Pictures", calm.text.index("Axis by axis"))].split())
    for said in (
        "Gate demo, run 003 Does it move?",
        "✔ PASS a may ship, as far as this gate can say Every axis passes. Moved +0.215 toward the author; more than "
        "0.060 was asked.",
        "✘ FAIL b may not ship",
        "Copies the training text: 60 of 120 generations hold 8 words in a row",
        "Runs on to the token limit: 90% against the base's 15%; that is worse by 75 points, and seeds alone make 20.",
        "prospective: sealed before any generation of this gate. Attempts of this gate so far: 4; this is number 3.",
    ):
        assert said in first, said


def rows(seen: Seen, head: str) -> list[list[str]]:
    """The rows of the one table whose first heading is this and that stands behind a picture."""
    (table,) = [table for table in seen.tables if table and " | ".join(table[0]) == head]
    return table[1:]


# By hand from the made-up figures: base 0.90 to 0.96 (mean 0.93), a 0.70 to 0.73 (0.715), b 0.70 to 0.90 (0.79).
@pytest.mark.parametrize(
    ("head", "row"),
    [
        ("arm | seed | distance | floor required | mean must be below", ["base", "1", "0.900", "", ""]),
        ("arm | seed | distance | floor required | mean must be below", ["b", "1", "0.900", "0.200", "0.730"]),
        (
            "arm | move | 95 % over prompts | required | span to own text | span closed",
            ["a", "+0.215", "+0.100 to +0.300", "0.060", "0.430", "50.0%"],
        ),
        ("arm | the author | i | specificity", ["a", "+0.215", "+0.050", "+0.165"]),
        ("prompt | a | b | again", ["1: Beat: 0 Does it move?", "+0.000", "+0.000", "+0.000"]),
        (
            "word | base | arm | author | shift | range over seeds | nearer to the author",
            ["shall", "-1.000", "+2.000", "+1.500", "+3.000", "0.250", "yes"],
        ),
        (
            "texts | hits | of | rate | lower limit | upper limit | allowed",
            ["b", "60", "120", "0.500", "0.421", "0.579", "0.100"],
        ),
        (
            "texts | hits | of | rate | lower limit | upper limit | allowed",
            ["the author's own (beside b)", "1", "100", "0.010", "0.001", "0.047", "0.100"],
        ),
        ("words | b | the author's own unseen text", ["8", "0", "2"]),
        ("words | b | the author's own unseen text", ["11", "1", "0"]),
        (
            "candidate | axis | harm | lower limit | upper limit | allowed | verdict",
            ["b", "ran_on", "+0.750", "–", "–", "0.200 (floor)", "FAIL"],
        ),
        ("true move (seed sd) | gates that pass", ["2.0", "70.0%"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_numbers_behind_the_pictures(calm: Seen, head: str, row: list[str]) -> None:
    assert row in rows(calm, head)


def test_every_picture_has_one_sentence_and_its_numbers(document: str) -> None:
    figures = re.findall(r"<figure.*?</figure>", document, re.DOTALL)
    assert len(figures) == 9
    for figure in figures:
        caption = re.search(r"<figcaption>(.*?)</figcaption>", figure, re.DOTALL)
        assert caption
        assert re.fullmatch(r"[A-Z](?:[^.!?]|\.\d|\.(?=\w))*[.]", caption[1]), caption[1]
        assert figure.count("<svg") == figure.count("<table") == 1
        assert 'role="img" aria-label="' in figure


def test_no_word_of_a_source_without_asking(document: str) -> None:
    page = a_page("Does it move?")
    shown = Place(RUN.sources[0], Excerpt("before", SOURCE, "after"))
    with_words = [match.__class__(**{**vars(match), "places": (shown,)}) for match in page.matched]
    assert SOURCE in html_report(a_page(matched=tuple(with_words), sources_shown=True))
    assert SOURCE not in document
    assert "at word 77" in document
    assert "--with-sources" in document


def test_flags_and_errors_are_shown_with_their_texts() -> None:
    failed = a_generation("b", 3, 2, "", error="the seat said no")
    page = a_page("calm")
    generations = tuple(failed if g.key == failed.key else g for g in page.generations)
    document = html_report(a_page("calm", generations=generations))
    (article,) = re.findall(r'<article id="t-2-3-2".*?</article>', document, re.DOTALL)
    # Prompt 3 of seed 2 is among those that `damage_figures` makes hits of ran_on and no hits of on_beat.
    assert 'data-flags="error|ran_on|not on_beat|copied"' in article
    assert "the seat said no" in article


def test_an_arm_looks_the_same_in_every_picture(document: str) -> None:
    """Candidates come before controls, whatever their names; the base is grey."""
    for name in ("seeds", "span", "imposters", "influence", "memorisation"):
        (figure,) = re.findall(rf'<figure id="{name}".*?</svg>', document, re.DOTALL)
        labels = [label for label in re.findall(r">([^<>\n]+)</text>", figure) if label in ("a", "b", "again")]
        # matplotlib writes the ticks from below, a legend and titles from above.
        assert labels in (["a", "b", "again"], ["again", "b", "a"]), name
        colours = dict.fromkeys(re.findall(r"var\(--(series-\d)\)", figure))
        assert list(colours) == ["series-1", "series-2", "series-3"], name
    assert len({series(place) for place in range(36)}) == 36


def test_of_many_candidates_it_first_lists_who_may_ship() -> None:
    page = a_page("calm")
    c = page.measurements.arms["a"]
    run = page.measurements.model_copy(update={"arms": page.measurements.arms | {"c": c}})
    verdict = judge(a_gate(candidates=("a", "b", "c"), controls=("again",)), run)
    seen = Seen(html_report(a_page("calm", measurements=run, verdict=verdict)))
    told = " ".join(seen.text.split())
    assert "✔ PASS 2 of 3 may ship, as far as this gate can say: a, c ✘ FAIL 1 of 3 may not ship: b ✔ PASS a" in told
    assert ("table", {"class": "axes many"}) in seen.tags


def test_blind_votes_stand_beside_the_move(calm: Seen) -> None:
    (table,) = [table for table in calm.tables if table[0][2:4] == ["reader", "author known"]]
    share = "1 of 2 [0.01, 0.99]"  # exact: 1 - 0.975**(1/2) and 0.975**(1/2)
    assert table[1] == [
        "a",
        "+0.215",
        "Does it move?",
        share,
        "0 of 2 [0.00, 0.84]",
        share,
        "2 of 2 [0.16, 1.00]",
        *table[1][7:],
    ]
    assert "No verdict counts these votes" in " ".join(calm.text.split())
    voted = " ".join(Seen(html_report(a_page("calm", readers=(), events=("votes of 2026-01-02 by ann",)))).text.split())
    assert "Blind readers" not in voted
    # Votes are no sign-off.
    assert "Since the verdict votes of 2026-01-02 by ann" in voted
    assert "the ledger held none when this page was written" in voted


def test_a_thousand_texts_stay_under_three_megabytes() -> None:
    page = a_page("calm")
    long = "She could not have told why the rain had kept her, nor would she ask. " * 25  # 1,750 characters
    arms, prompts = list(page.measurements.arms), 63
    generations = tuple(
        a_generation(arm, prompt, seed, f"{arm} {long} {prompt}")
        for arm in arms
        for prompt in range(prompts)
        for seed in page.measurements.arms[arm].seeds
    )
    assert len(generations) >= 1000
    beats = {prompt: f"Beat: {prompt} " + "of some length, as beats are " * 3 for prompt in range(prompts)}
    document = html_report(a_page("calm", generations=generations, prompts=beats))
    assert document.count(f"{long} ".strip()) >= 1000
    assert len(document.encode()) < 3_000_000


def test_a_run_without_any_figure_still_has_a_page() -> None:
    page = a_page("calm")
    bare = {
        name: arm.model_copy(update={"voice": None, "memorisation": None})
        for name, arm in page.measurements.arms.items()
    }
    run = page.measurements.model_copy(update={"arms": bare})
    document = html_report(
        a_page("calm", measurements=run, movers={}, own_runs=None, matched=(), power=(), lacking="no texts here")
    )
    assert "No run of words" in document
    assert "no texts here" in document


def test_without_its_extra_it_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("gates.report.html.page")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(UsageError, match=r"report\.html needs the package jinja2") as refused:
        html_report(a_page())
    assert refused.value.next_step == 'pip install "voice-gates[report]"'
