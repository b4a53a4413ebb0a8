"""The page of a run in a real browser: nothing said on the console, no script of a text run, no fault for a reader."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver

from gates.report.html import html_report
from tests.report.pages import HOSTILE, a_page
from tests.report.web.browser import chromium, complaints, until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    few = {prompt: f"Beat: {prompt} {HOSTILE}" for prompt in range(6)}
    path.write_text(html_report(a_page(prompts=few)), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def driver(report: str) -> Iterator[WebDriver]:
    """A browser without a network, on the page."""
    with chromium() as found:
        found.execute_cdp_cmd("Network.enable", {})
        found.execute_cdp_cmd(
            "Network.emulateNetworkConditions",
            {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0},
        )
        found.get(report)
        yield found


def shown_as(driver: WebDriver, *, media: str = "", scheme: str = "light", width: int = 1280) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def faults(driver: WebDriver) -> list[str]:
    """What axe calls serious or critical on the page as it is."""
    driver.set_script_timeout(240)
    driver.execute_script(files("axe_core_python").joinpath("axe.min.js").read_text("utf-8"))
    found = driver.execute_async_script("axe.run(document).then(arguments[0])")
    return [
        f"{fault['id']}: {node['target']}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"][:3]
    ]


def focused(driver: WebDriver, selector: str) -> WebDriver:
    driver.execute_script("document.querySelector(arguments[0]).focus()", selector)
    return driver.switch_to.active_element


def test_no_serious_fault_and_nothing_on_the_console(driver: WebDriver) -> None:
    driver.execute_script(
        "document.querySelectorAll('figure details, #answer details').forEach((box) => (box.open = true));"
        "document.querySelector('.beat').open = true"
    )
    for scheme in ("light", "dark"):
        for width in (1280, 390):
            shown_as(driver, scheme=scheme, width=width)
            assert faults(driver) == [], (scheme, width)
            # Nothing but tables scrolls sideways.
            assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    assert driver.execute_script("return document.body.id") == ""
    assert complaints(driver) == []


def test_texts_are_filtered_and_found_by_keyboard_alone(driver: WebDriver) -> None:
    told = driver.find_element(By.CSS_SELECTOR, ".filters output")
    assert told.text == "96 of 96 texts"
    focused(driver, "select[name=arm]").send_keys("again")
    assert told.text == "24 of 96 texts"
    focused(driver, "select[name=arm]").send_keys(Keys.ARROW_UP)
    focused(driver, "select[name=flag]").send_keys("copied")
    assert told.text == "1 of 96 texts"
    assert driver.execute_script("return document.querySelectorAll('.beat:not([hidden])').length") == 1
    focused(driver, ".match a").send_keys(Keys.ENTER)
    until(driver, "return document.activeElement.id === 't-2-3-2'")
    assert driver.find_element(By.ID, "t-2-3-2").is_displayed()
    assert complaints(driver) == []


def test_print_shows_the_numbers_and_leaves_the_texts_out(driver: WebDriver) -> None:
    shown_as(driver, media="print", scheme="dark")
    table = driver.find_element(By.CSS_SELECTOR, "#seeds table")
    driver.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert table.is_displayed()
    assert not driver.find_element(By.ID, "texts").is_displayed()
    assert driver.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    driver.execute_script("dispatchEvent(new Event('afterprint'))")
    assert not table.is_displayed()
