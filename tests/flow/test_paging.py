"""`gates report` on a real run: one file, the run's own figures and texts, words of the sources only when asked for."""

from __future__ import annotations

import json
import re
import shutil
from html import unescape
from pathlib import Path

import pytest

from gates.errors import CorpusError
from gates.flow.finished import read_run
from gates.flow.paging import page_of
from gates.measure.figures import MemorisationFigures, Run, Source
from gates.records import sha256
from gates.text import prose_words
from tests.flow.conftest import Ran, gates, lines

pytestmark = pytest.mark.xdist_group("ran")


def test_the_page_of_a_real_run(ran: Ran, tmp_path: Path) -> None:
    folder = ran.workspace / "reports" / "small" / "001"
    ended = gates("report", folder, "--out", tmp_path / "page.html", "--json")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout) == {"file": str(tmp_path / "page.html"), "with_sources": False, "lacking": ""}
    document = (tmp_path / "page.html").read_text("utf-8")
    assert "Does &lt;b&gt;e12&lt;/b&gt; | move toward Brontë?" in document
    verdict = json.loads((folder / "verdict.json").read_bytes())
    assert f"{verdict['candidates']['e12']['axes']['voice']['value']:+.3f}" in document
    texts = [unescape(text) for text in re.findall(r'<p class="text">(.*?)</p>', document, re.DOTALL)]
    assert sorted(texts) == sorted(line["text"] for line in lines(folder / "generations.jsonl"))
    assert "Which words make the voice of e12" in document


def test_the_page_lies_in_the_run_and_the_record_still_holds(ran: Ran) -> None:
    folder = ran.workspace / "reports" / "small" / "001"
    ended = gates("report", folder)
    assert ended.stdout.startswith(f"{folder}/report.html: ")
    first = (folder / "report.html").read_bytes()
    assert gates("report", folder).returncode == 0
    assert (folder / "report.html").read_bytes() == first
    assert gates("verify", ran.workspace, "--json").returncode == 0
    (folder / "report.html").unlink()


def test_without_the_texts_it_says_what_is_missing(ran: Ran, tmp_path: Path) -> None:
    run = read_run(ran.workspace / "reports" / "small" / "001")
    page = page_of(run, tmp_path)
    assert "not derived again" in page.lacking
    assert (page.movers, page.own_runs) == ({}, None)
    assert len(page.generations) == 48
    with pytest.raises(CorpusError, match="the sources cannot be shown: not derived again"):
        page_of(run, tmp_path, with_sources=True)


def test_sources_stand_beside_their_runs_only_when_asked_for(ran: Ran, cache: Path, tmp_path: Path) -> None:
    """A run that was planted into the figures, of words that really stand in the train split."""
    finished = read_run(ran.workspace / "reports" / "small" / "001")
    arm = finished.measurements.arms["e12"]
    assert isinstance(arm.memorisation, MemorisationFigures)
    source = next(iter(finished.seal.binding.texts["train"]))
    corpus, name = source.split("/", 1)
    told = prose_words((cache / "corpora" / corpus / name).read_text("utf-8"), case="keep")
    answers = {(g["arm"], g["prompt"], g["seed"]): g for g in lines(finished.store.generations_path)}
    words = prose_words(answers["e12", 0, 1]["text"], case="keep")
    planted = Run(
        prompt=0,
        seed=1,
        start=1,
        length=4,
        sources=(Source(file=source, start=100),),
        sha256=sha256(" ".join(words[1:5]).lower().encode()),
        capitalised=(),
    )
    copied = arm.memorisation.model_copy(update={"runs": (planted,)})
    changed = arm.model_copy(update={"memorisation": copied})
    arms = finished.measurements.arms | {"e12": changed}
    run = finished.__class__(
        **vars(finished) | {"measurements": finished.measurements.model_copy(update={"arms": arms})}
    )
    (match,) = page_of(run, cache).matched
    assert (match.arm, match.kind, match.answer.run) == ("e12", "word for word", " ".join(words[1:5]))
    assert match.places[0].text is None
    (match,) = page_of(run, cache, with_sources=True).matched
    assert match.places[0].text is not None
    assert match.places[0].text.run == " ".join(told[100:104])


def test_only_a_finished_run_has_a_page(ran: Ran, tmp_path: Path) -> None:
    shutil.copytree(ran.workspace, tmp_path / "copy")
    folder = tmp_path / "copy" / "reports" / "small" / "001"
    (folder / "verdict.json").write_text("{}", "utf-8")
    assert gates("report", folder).returncode == 5
    assert gates("report", tmp_path / "copy" / "reports" / "small" / "002").returncode == 2
