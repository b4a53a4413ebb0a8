"""Blind reading in a real browser, by keyboard alone; what the page holds tells nobody which is which."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.remote.webdriver import WebDriver

from gates.record.votes import Votes
from tests.finished import finished_run
from tests.report.web.browser import ESCAPE, complaints, faults, opened, press, served, text, until
from tests.report.web.test_review_page import evil


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_a_reader_votes_by_keyboard_alone(tmp_path: Path, root: Path, driver: WebDriver) -> None:
    cache = tmp_path / "cache"
    folder = finished_run(tmp_path / "work", cache, evil)
    words = ("read", folder, "--blind", "--trials", "2", "--by", "ann")
    with served(*words, cache=cache, root=root) as address:
        opened(driver, address)
        assert text(driver, "place") == "Trial 1 of 2"
        assert driver.execute_script("return document.querySelectorAll('article').length") == 3
        assert driver.execute_script("return document.querySelectorAll('img, article b').length") == 0
        press(driver, "v")
        assert text(driver, "state") == "choose the author's passage, and the one that reads best"
        press(driver, "2", "e", "n", "too <b>new", ESCAPE, "v")
        until(driver, "return document.getElementById('place').textContent === 'Trial 2 of 2'")
        (vote,) = Votes(folder).read()
        assert (vote.author, vote.best) == (vote.trial.order[1], vote.trial.order[2])
        assert vote.note == "too <b>new"
        press(driver, "1", "q", "v")
        until(driver, "return document.getElementById('state').textContent === 'all trials have a vote: thank you'")
        page = driver.execute_script("return document.documentElement.outerHTML")
        assert [label for label in ("candidate", "base", "held", "one") if f">{label}<" in page] == []
        assert complaints(driver) == []
        assert faults(driver) == []
    assert len(Votes(folder).read()) == 2
