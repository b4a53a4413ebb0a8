"""One browser for all tests of pages: starting Chromium costs more than what most of them ask of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver.remote.webdriver import WebDriver

from tests.report.web.browser import chromium, offline, shown_as


@pytest.fixture(scope="session")
def browser() -> Iterator[WebDriver]:
    with chromium() as found:
        yield found


@pytest.fixture
def driver(browser: WebDriver) -> WebDriver:
    """The browser as new: an empty page, a network, no cookie, nothing on the console."""
    browser.get("about:blank")
    offline(browser, False)
    shown_as(browser)
    browser.execute_cdp_cmd("Network.clearBrowserCookies", {})
    browser.get_log("browser")
    return browser
