"""The review page in a real browser: by keyboard alone, marks kept at once, and no text can run in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.remote.webdriver import WebDriver

from gates.flow.review import open_reading
from gates.record.ledger import Ledger
from tests.finished import COPIED, TWO, finished_run, two_voices
from tests.flow.conftest import gates, lines
from tests.injections import CORPUS
from tests.report.web.browser import ESCAPE, complaints, faults, opened, press, served, text, until

EVIL = f"{' '.join(CORPUS['html'])} </p></main>"


def evil(arm: str, prompt: int, seed: int) -> str:
    return f"{EVIL} {two_voices(arm, prompt, seed)} {EVIL}"


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_a_run_is_read_by_keyboard_alone(
    tmp_path: Path, root: Path, driver: WebDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("GATES_CACHE", str(cache))
    folder = finished_run(tmp_path / "work", cache, evil, **TWO, question=f"Is {EVIL} good?")
    reading = open_reading(folder, cache)
    names = list(reading.needed())
    with served("review", folder, "--web", "--by", "ann", cache=cache, root=root) as address:
        opened(driver, address)
        assert driver.title == "Review of small 001, as ann"
        assert text(driver, "question") == f"Is {EVIL} good?"
        assert text(driver, "count") == f"0 of {len(names)} read"
        assert COPIED in text(driver, "here")
        assert COPIED in text(driver, "there")
        assert EVIL in text(driver, "text")
        assert driver.execute_script("return document.querySelectorAll('img, main b, main script').length") == 0

        press(driver, "1", "n", "a <i>hymn</i>", ESCAPE, "o")
        until(driver, f"return document.getElementById('count').textContent === '1 of {len(names)} read'")
        # Kept at once: on the disk while the page is open, and in the command's list.
        mark = lines(folder / "review.jsonl")[0]
        assert (mark["item"], mark["mark"], mark["label"], mark["note"], mark["by"]) == (
            names[0],
            "ok",
            "stock-phrase",
            "a <i>hymn</i>",
            "ann",
        )
        assert "ok stock-phrase" in gates("review", folder, "--by", "ann").stdout

        # The next unread item is there; bad keeps its place, and a note written then is kept with the mark.
        until(driver, f"return document.querySelector('[aria-current]').dataset.name === '{names[1]}'")
        press(driver, "b")
        until(driver, "return document.getElementById('state').textContent === 'kept: bad'")
        press(driver, "n", "copied", ESCAPE)
        until(driver, "return document.getElementById('state').textContent === 'kept: bad'")
        until(driver, f"return document.getElementById('count').textContent === '2 of {len(names)} read'")
        press(driver, "u")
        until(driver, f"return document.querySelector('[aria-current]').dataset.name === '{names[2]}'")
        press(driver, "k")
        until(driver, f"return document.querySelector('[aria-current]').dataset.name === '{names[1]}'")
        assert driver.execute_script("return document.getElementById('note').value") == "copied"
        assert complaints(driver) == []
        assert faults(driver) == []

        # A second browser with the same address is not let in; the first may load the page again.
        driver.refresh()
        until(driver, "return document.body.dataset.ready === 'yes'")
        assert text(driver, "count") == f"2 of {len(names)} read"
        driver.delete_all_cookies()
        driver.get(address)
        assert "this address has been used" in driver.page_source
    kept = open_reading(folder, cache).marks("ann")
    assert {name: (mark.mark, mark.note) for name, mark in kept.items()} == {
        names[0]: ("ok", "a <i>hymn</i>"),
        names[1]: ("bad", "copied"),
    }
    assert Ledger(folder.parents[2] / "prereg").entries()[-1].entry.kind == "review"
