"""No text becomes more than text: one corpus of injections through every place of a record, into everything shown."""

from __future__ import annotations

import csv
import json
import re
import shlex
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from markdown_it import MarkdownIt

import tests.finished
import tests.small
from gates.flow import this_world
from gates.flow.blind import BlindDesk, BlindReading
from gates.flow.desk import ReviewDesk
from gates.flow.frames import load_run
from gates.flow.review import open_reading
from gates.measure.figures import Leak, SeatFigures, SeatsFigures, Source, Unmeasured
from gates.record.review import Said
from gates.record.votes import Votes
from gates.report.card import card_body, updated
from gates.report.github import step_summary
from gates.report.html import html_index, html_report
from gates.report.html.model import Page
from gates.report.markdown import markdown
from tests.finished import TWO, finished_run, two_voices, world_of
from tests.flow.conftest import Ended, gates
from tests.injections import STRINGS, Poison, rotated
from tests.judge.arms import HASH
from tests.record.test_signing import make_key
from tests.report.pages import a_page, a_vote, some_lines
from tests.report.test_markdown import operating

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
    lost = Unmeasured(unmeasured="too short")
    run = page.measurements
    again = run.arms["again"].model_copy(update={"voice": lost, "memorisation": lost, "damage": {"ran_on": lost}})
    source = Source(file="t/x.txt", start=1)
    seat = SeatFigures(seat="one", texts={"a": 3}, errors={"a": 1}, unlike=("older",), lost=("gone",), closed=False)
    more = {
        "arms": {**run.arms, "again": again},
        "leaks": (Leak(train=source, heldout=source, length=21, sha256=HASH, changed=(3,)),),
        "seats": SeatsFigures(seats=(seat,), blocks=3, split=1),
    }
    found = fill(replace(page, measurements=run.model_copy(update=more)))
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
        assert name not in {"href", "xlink:href", "clip-path"} or re.match(r"#|url\(#|[\w./-]*report\.html$", value), (
            value
        )
    ids = [value for name, value in found.values if name == "id"]
    assert len(ids) == len(set(ids))
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


def test_markdown_reads_as_that_of_harmless_words() -> None:
    known = reports(calm)
    for name, found in reports(rotated).items():
        assert structure(found) == structure(known[name]), name
        assert harmless(found), name
        assert not [line for line in found.split("\n") if line.lstrip().startswith("::")], name


class Told(NamedTuple):
    """A workspace full of injections: run, read, signed off and re-scored; and what each command has printed."""

    run: Path
    cache: Path
    ended: dict[str, Ended]


LINES = [" ".join(tokens_of(said)) for said in STRINGS]
"""The injections as a text of one line may hold them, where control characters are refused on the way in."""


def full(arm: str, prompt: int, seed: int) -> str:
    own = two_voices(arm, prompt, seed)
    return f"{rotated(40 * seed)} {own} {rotated(seed)}" if prompt in (1, 3) else own


def written(number: int) -> str:
    """As much of the injections as a YAML file may hold in a text: all but NUL, and what is no text of any file."""
    return re.sub("[\0\ufffe\uffff]", "", rotated(number))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    home = tmp_path_factory.mktemp("injected")
    run, cache, out = home / "work" / "reports" / "small" / "001", home / "cache", home / "out"
    corpora = {
        name: {
            split: (f"{written(9)} {author}", f"{written(20)} {title}", words)
            for split, (author, title, words) in one.items()
        }
        for name, one in tests.small.CORPORA.items()
    }
    arms = {
        "base": {"model": written(1), "system": written(2)},
        "candidates": {
            name: {"model": f"{written(place)} {name}", "adapter": "one.gguf", "notes": {"about": written(place)}}
            for place, name in enumerate(TWO["arms"]["candidates"], 3)
        },
    }
    declared = dict.fromkeys(("data_seen", "stopping", "exclusions"), written(30))
    out.mkdir()
    (home / "keys").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GATES_CACHE", str(cache))
        patch.setenv("GITHUB_ACTIONS", "true")
        patch.setenv("GITHUB_STEP_SUMMARY", str(home / "summary.md"))
        patch.setattr(tests.small, "CORPORA", corpora)
        patch.setattr(tests.small, "BEATS", tuple(LINES[:20]))
        patch.setattr(
            tests.finished,
            "SEAT",
            {
                key: value if key.endswith("sha256") else Poison(rotated)({"x": value})["x"]
                for key, value in tests.finished.SEAT.items()
            },
        )
        finished_run(home / "work", cache, full, arms=arms, declarations=declared, question=written(0))
        reading = open_reading(run, cache)
        ann, key = this_world(print, by=written(12)).by, make_key(home / "keys")
        for place, name in enumerate(reading.needed(None)):
            reading.mark(name, Said(mark="bad", note=rotated(place)[:2000]), world_of(cache, ann))
        reading.enter(world_of(cache, ann))
        vote = a_vote(rotated(13), "author")
        trial = vote.trial.model_copy(update={"arm": "two", "author_file": rotated(15)})
        Votes(run).add(lambda previous: vote.model_copy(update={"previous": previous, "trial": trial}))
        why = rotated(14)[:2000]
        commands: dict[str, tuple[object, ...]] = {
            "signoff": (
                "signoff",
                run,
                "--arm",
                "two",
                "--decision",
                "waive",
                "--reason",
                why,
                "--key",
                key,
                "--by",
                ann,
            ),
            "rescore": ("rescore", run, "--rule", "pairwise-range@1", "--reason", why, "--by", ann),
            "list": ("list", "--workspace", home / "work", "--html"),
            "status": ("status", run),
            "show": ("show", "small"),
            "review": ("review", run, "--by", ann, "--list"),
            "read": ("read", run),
            "compare": ("compare", run, "one", "two"),
            "card": ("card", run, "--arm", "two"),
            "ci": ("ci", run, "--junit", out / "junit.xml"),
            "table": ("table", run, "--out", out / "table.csv"),
            "inspect": ("export", run, "--format", "inspect", "--to", out),
            "intoto": ("export", run, "--format", "intoto", "--to", out),
            "verify": ("verify", home / "work"),
            "ledger": ("ledger", "--workspace", home / "work"),
            "corpora list": ("corpora", "list", "--workspace", home / "work"),
            "corpora show": ("corpora", "show", "author", "--workspace", home / "work"),
            "check": ("check", home / "work" / "prereg" / "small.yaml"),
        }
        for name in (
            "signoff",
            "list",
            "status",
            "show",
            "review",
            "compare",
            "card",
            "ci",
            "verify",
            "ledger",
            "corpora show",
        ):
            commands[f"{name} --json"] = (*commands[name], "--json")
        refused = [("status", said) for said in LINES[::4]]
        refused += [("export", run, "--format", "intoto", "--arm", said) for said in STRINGS[::4]]
        commands |= {f"refused {place}": words for place, words in enumerate(refused)}
        patch.chdir(home / "work")
        yield Told(run, cache, {name: gates(*words) for name, words in commands.items()})


def test_every_command_came_to_its_end(told: Told) -> None:
    assert [name for name, ended in told.ended.items() if "internal error" in ended.stderr] == []
    assert [n for n, ended in told.ended.items() if (ended.returncode == 2) != n.startswith("refused")] == []
    assert "ships with a waiver" in told.ended["signoff"].stdout


def test_no_terminal_and_no_runner_is_commanded(told: Told) -> None:
    for name, ended in told.ended.items():
        for text in (ended.stdout, ended.stderr):
            assert harmless(text), name
            # What a runner takes for a command of its own: blanks before it are no hindrance.
            ours = r"::(notice|warning|error) file=prereg/small.yaml,title=[^:,]*::" if name == "ci" else "(?!)"
            lines = [line for line in text.split("\n") if line.lstrip().startswith("::")]
            assert [line for line in lines if not re.match(ours, line)] == [], name
            # In a line that is a command already the runner looks for no other.
            assert name == "ci" or not re.search(r"##\w*\[", text), name
    shown = " ".join(told.ended["show"].stdout.split())
    assert shown.count("owned") > 100


def test_json_holds_the_texts_as_they_are(told: Told) -> None:
    for name, ended in told.ended.items():
        if name.endswith("--json"):
            assert ended.stdout.isascii()
            json.loads(ended.stdout)
    assert json.loads(told.ended["show --json"].stdout)["gate"]["question"] == written(0)


def test_markdown_of_a_real_run_holds_no_element_of_a_text(told: Told) -> None:
    card = told.ended["card"].stdout
    files = {str(path): path.read_text("utf-8") for path in told.run.rglob("*.md")}
    release = json.loads(told.ended["signoff --json"].stdout)["readme"]
    files |= {
        "card": card.split("---\n", 2)[2],
        "release": release,
        "summary": (told.run.parents[3] / "summary.md").read_text("utf-8"),
    }
    assert len(files) == 5
    for name, text in files.items():
        assert "owned" in text, name
        assert harmless(text), name
        ours = [line for line in text.split("\n") if not re.match(r"<!-- gates: ?(begin|end)", line)]
        kinds = {line.split()[0] for line in structure("\n".join(ours))}
        assert not kinds & {"html_block", "html_inline", "link_open", "image", "s_open", "fence", "code_block"}, name
        assert name == "card" or "em_open" not in kinds, name
    front = yaml.safe_load(card.split("---\n")[1])
    assert [one["name"] for one in front["model-index"]] == ["two"]
    again = updated(card, "small", "body", "index: 1")
    assert updated(again, "small", "body", "index: 1") == again
    assert "owned" not in again


def test_documents_for_other_tools_keep_their_shape(told: Told) -> None:
    out = told.run.parents[3] / "out"
    cases = list(ET.parse(out / "junit.xml").getroot().iter("testcase"))
    verdict = json.loads((told.run / "verdict.json").read_bytes())
    assert len(cases) == sum(len(one["axes"]) for one in verdict["candidates"].values())
    with (out / "table.csv").open(encoding="utf-8", newline="") as file:
        assert not [cell for row in csv.reader(file) for cell in row if formula(cell)]
    logs = [json.loads(path.read_bytes()) for path in out.glob("*.json")]
    assert len(logs) == 5
    assert {path.parent for path in told.run.parents[3].rglob("*owned*")} == set()
    released = json.loads(told.ended["signoff --json"].stdout)
    flag, module, *rest = shlex.split(released["compose"])
    assert (flag, module.endswith("=/adapters/one.gguf"), rest) == ("--lora-modules", True, [])
    assert "$" not in module.replace("$$", "")
    (entry,) = yaml.safe_load(released["alias"])
    assert sorted(entry) == ["litellm_params", "model_name"]


def formula(cell: str) -> bool:
    """Whether a spreadsheet takes a cell for a formula: a sign in front of what is no number."""
    return cell.startswith(("=", "+", "-", "@", "\t", "\r")) and not re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", cell)


def test_a_text_is_no_formula_of_a_matrix(told: Told, tmp_path: Path) -> None:
    for name in ("=1+1", "-2", "+x", "@y", "plain"):
        (tmp_path / f"{name}.txt").write_text(f"a word and {name} {'more ' * len(name)}words\n", "utf-8")
    ended = gates("delta", tmp_path, "--mfw", 10)
    table = list(csv.reader(ended.stdout.splitlines()))
    assert table[0][1:] == [row[0] for row in table[1:]] == ["'+x", "'-2", "'=1+1", "'@y", "plain"]


def test_a_notebook_shows_text(told: Told) -> None:
    frames = load_run(told.run)
    found = Elements(frames._repr_html_())
    known = {"p", "strong", "table", "thead", "tbody", "tr", "th", "td"}
    assert {element[0].lstrip("/") for element in found.elements} == known
    assert harmless(found.text)
    assert harmless(repr(frames))


def test_the_desks_send_text_as_json_and_the_pages_take_it_for_text(told: Told) -> None:
    reading, world = open_reading(told.run, told.cache), world_of(told.cache, "bob")
    blind = BlindReading(reading, "two", "bob")
    for desk, name in (
        (ReviewDesk(reading, world), next(iter(reading.items))),
        (BlindDesk(blind, world, tuple(islice(blind.trials(), 1))), "1"),
    ):
        shown = json.dumps([desk.overview(), desk.item(name)])
        assert "owned" in shown
    for path in files("gates.report.web").iterdir():
        if path.name.endswith(".js"):
            script = path.read_text("utf-8")
            assert not re.search(
                r"(inner|outer)HTML|insertAdjacent|document\.write|\beval\b|Function\(|srcdoc|\.href", script
            )
