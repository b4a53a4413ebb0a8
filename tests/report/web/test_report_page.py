"""The page of a run in a real browser: nothing said on the console, no script of a text run, no fault for a reader."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver

from gates.report.html import html_index, html_report
from tests.report.pages import HOSTILE, a_page, some_lines
from tests.report.web.browser import complaints, faults, offline, seen, shown_as, until

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    few = {prompt: f"Beat: {prompt} {HOSTILE}" for prompt in range(6)}
    path.write_text(html_report(a_page(prompts=few)), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(driver: WebDriver, report: str) -> WebDriver:
    """The browser without a network, on the page."""
    offline(driver)
    seen(driver, report)
    return driver


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("index") / "index.html"
    path.write_text(html_index(some_lines(HOSTILE), HOSTILE), encoding="utf-8")
    return path.as_uri()


def focused(driver: WebDriver, selector: str) -> WebDriver:
    driver.execute_script("document.querySelector(arguments[0]).focus()", selector)
    return driver.switch_to.active_element


def test_no_serious_fault_and_nothing_on_the_console(page: WebDriver) -> None:
    page.execute_script(
        "document.querySelectorAll('figure details, #answer details').forEach((box) => (box.open = true));"
        "document.querySelector('.beat').open = true"
    )
    assert faults(page) == []
    assert page.execute_script("return document.body.id") == ""
    assert complaints(page) == []


def test_the_index_has_no_serious_fault_and_nothing_on_the_console(driver: WebDriver, index: str) -> None:
    offline(driver)
    seen(driver, index)
    summary = driver.find_element(By.CSS_SELECTOR, "figure summary")
    table = driver.find_element(By.CSS_SELECTOR, "figure table")
    assert not table.is_displayed()
    summary.send_keys(Keys.ENTER)
    assert table.is_displayed()
    assert faults(driver) == []
    assert driver.execute_script("return document.body.id") == ""
    assert complaints(driver) == []


def test_texts_are_filtered_and_found_by_keyboard_alone(page: WebDriver) -> None:
    told = page.find_element(By.CSS_SELECTOR, ".filters output")
    assert told.text == "96 of 96 texts"
    focused(page, "select[name=arm]").send_keys("again")
    assert told.text == "24 of 96 texts"
    focused(page, "select[name=arm]").send_keys(Keys.ARROW_UP)
    focused(page, "select[name=flag]").send_keys("copied")
    assert told.text == "1 of 96 texts"
    assert page.execute_script("return document.querySelectorAll('.beat:not([hidden])').length") == 1
    focused(page, ".match a").send_keys(Keys.ENTER)
    until(page, "return document.activeElement.id === 't-2-3-2'")
    assert page.find_element(By.ID, "t-2-3-2").is_displayed()
    assert complaints(page) == []


def test_print_shows_the_numbers_and_leaves_the_texts_out(page: WebDriver) -> None:
    shown_as(page, media="print", scheme="dark")
    table = page.find_element(By.CSS_SELECTOR, "#seeds table")
    page.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert table.is_displayed()
    assert not page.find_element(By.ID, "texts").is_displayed()
    assert page.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.execute_script("dispatchEvent(new Event('afterprint'))")
    assert not table.is_displayed()
