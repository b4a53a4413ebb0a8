"""`gates card`: the block between its markers and nothing else of the card, whatever texts it is made of."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt

from gates.errors import UsageError
from gates.judge.verdict import judge
from gates.report.card import card_body, card_index, updated
from tests.finished import TWO, finished_run, two_voices
from tests.flow.conftest import gates
from tests.judge.arms import HASH, a_gate, measured
from tests.report.test_markdown import HOSTILE, sealed

CARD = "---\nlicense: apache-2.0\n# a comment that stays\ntags: [lora]\n---\n# My adapter\n\nWords of mine.\n"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("card")
    return finished_run(home / "work", home / "cache", two_voices, **TWO)


def front(card: str) -> dict[str, object]:
    return yaml.safe_load(card.split("---\n")[1])


def test_a_card_is_updated_between_its_markers_alone(finished: Path, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(CARD, "utf-8")
    assert gates("card", finished, "--arm", "one", "--readme", readme).stdout == f"{readme}: updated\n"
    first = readme.read_text("utf-8")
    outside = re.sub(r"^(# |<!-- )gates:begin.*?gates:end small( -->)?\n", "", first, flags=re.DOTALL | re.MULTILINE)
    assert outside == CARD + "\n"
    assert gates("card", finished, "--arm", "one", "--readme", readme).stdout == f"{readme}: as it was\n"
    assert readme.read_text("utf-8") == first
    # Words after the block stay, and so does the other gate's block.
    readme.write_text(first.replace("| axis |", "| old |") + "\nMore words.\n", "utf-8")
    gates("card", finished, "--arm", "one", "--readme", readme)
    assert readme.read_text("utf-8") == first + "\nMore words.\n"


def test_the_card_says_what_the_record_says(finished: Path) -> None:
    text = json.loads(gates("card", finished, "--arm", "one", "--json").stdout)["card"]
    verdict = json.loads((finished / "verdict.json").read_bytes())
    judged = verdict["candidates"]["one"]
    (result,) = front(text)["model-index"][0]["results"]
    assert front(text)["model-index"][0]["name"] == "one"
    assert result["task"] == {"type": "text-generation"}
    told = {metric["name"].split(" ")[0]: metric["value"] for metric in result["metrics"]}
    assert told == {name: axis["value"] for name, axis in judged["axes"].items() if axis["value"] is not None}
    assert all(re.fullmatch(r"[a-z_]+@\d+", metric["type"]) for metric in result["metrics"])
    assert f"## Gate: ✘ {judged['outcome']}" in text or f" {judged['outcome']}\n" in text
    assert f"`{verdict['seal']}`" in text
    assert "Run 1 of 1 that this gate has had." in text


def test_a_new_card_is_a_card(finished: Path, tmp_path: Path) -> None:
    gates("card", finished, "--arm", "two", "--readme", tmp_path / "new.md")
    text = (tmp_path / "new.md").read_text("utf-8")
    assert list(front(text)) == ["model-index"]
    assert text.count("gates:begin small") == text.count("gates:end small") == 2
    assert gates("card", finished, "--arm", "three").returncode == 2
    unsaid = gates("card", finished)
    assert (unsaid.returncode, "choose one with --arm: one, two" in unsaid.stderr) == (2, True)


@pytest.mark.parametrize(
    ("card", "said"),
    [
        (f"{CARD}<!-- gates:begin demo -->\n", "holds 1 lines"),
        (f"{CARD}<!-- gates:end demo -->\n<!-- gates:begin demo -->\n", "before"),
        (CARD + 2 * "<!-- gates:begin demo -->\n<!-- gates:end demo -->\n", "holds 2 lines"),
        ("---\nmodel-index: []\n---\n", "a model-index of its own"),
    ],
    ids=["unended", "upside-down", "twice", "somebody-else's"],
)
def test_a_card_that_cannot_be_updated_is_left_alone(card: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        updated(card, "demo", "body", "model-index: [x]")


def test_no_text_ends_the_block_or_is_markup() -> None:
    gate = a_gate(question=f"{HOSTILE} <!-- gates:end demo -->\n<!-- gates:end demo -->\n---\n# gates:end demo")
    verdict = judge(gate, measured())
    made = sealed(gate=gate)
    body, index = card_body(made, (1, 1), verdict, "a"), card_index(made, 1, verdict, "a")
    card = updated(CARD, "demo", body, index)
    assert updated(card, "demo", body, index) == card
    assert front(card)["license"] == "apache-2.0"
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(card.split("---\n", 2)[2])
    found = [inner for token in tokens for inner in (token, *(token.children or ()))]
    blocks = [token.content.strip() for token in found if token.type in ("html_block", "html_inline")]
    assert blocks == ["<!-- gates:begin demo -->", "<!-- gates:end demo -->"]
    assert not [token for token in found if token.type in ("link_open", "image")]
    assert HASH in card
