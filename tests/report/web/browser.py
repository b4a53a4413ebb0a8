"""A real headless Chromium, and the page as the real command serves it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.support.wait import WebDriverWait

ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\?token=\S+")


@contextmanager
def chromium(width: int = 1280, height: int = 900) -> Iterator[WebDriver]:
    """Chromium without a window; everything it logs can be asked for."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert None not in (browser, driver), "a real browser is needed: apt-get install chromium chromium-driver"
    options = webdriver.ChromeOptions()
    options.binary_location = str(browser)
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", f"--window-size={width},{height}"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options, Service(driver))
    try:
        yield found
    finally:
        found.quit()


@contextmanager
def served(*arguments: object, cache: Path, root: Path) -> Iterator[str]:
    """The address that the command prints; it is stopped as a person stops it, with Ctrl-C."""
    environ = os.environ | {"GATES_CACHE": str(cache), "PYTHONPATH": str(root)}
    process = subprocess.Popen(
        [sys.executable, "-m", "gates", *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environ,
    )
    assert process.stderr is not None
    first = process.stderr.readline()
    found = ADDRESS.search(first)
    try:
        assert found, first
        yield found[0]
    finally:
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=60)[1]
    assert process.returncode in {0, 3}, rest
    assert "Traceback" not in rest


def opened(driver: WebDriver, address: str) -> None:
    """Open the page and wait until it is ready."""
    driver.get(address)
    until(driver, "return document.body.dataset.ready === 'yes'")


def seen(driver: WebDriver, address: str) -> None:
    """Open a file and wait until it is there."""
    driver.get(address)
    until(driver, "return document.readyState === 'complete' && document.querySelector('main') !== null")


def until(driver: WebDriver, script: str) -> None:
    WebDriverWait(driver, 60).until(lambda d: d.execute_script(script))


def press(driver: WebDriver, *keys: str) -> None:
    """Press keys where the focus is, as a person without a mouse does."""
    for key in keys:
        ActionChains(driver).send_keys(key).perform()


def shown_as(driver: WebDriver, *, media: str = "", scheme: str = "light", width: int = 1280) -> None:
    """Show the page in a theme, on a screen that wide, or printed."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def offline(driver: WebDriver, wanted: bool = True) -> None:
    """Take the network away, or give it back."""
    rates = {"latency": 0, "downloadThroughput": 0 if wanted else -1, "uploadThroughput": 0 if wanted else -1}
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": wanted, **rates})


def faults(driver: WebDriver) -> list[str]:
    """What axe calls serious or critical on the page in both themes, wide and on a phone, and what scrolls sideways."""
    driver.set_script_timeout(240)
    driver.execute_script(files("axe_core_python").joinpath("axe.min.js").read_text("utf-8"))
    found = []
    for scheme in ("light", "dark"):
        for width in (1280, 390):
            shown_as(driver, scheme=scheme, width=width)
            told = driver.execute_async_script("axe.run(document).then(arguments[0])")
            assert told["passes"], "axe has looked at nothing"
            found += [
                f"{scheme}, {width}: {fault['id']}: {node['target']}"
                for fault in told["violations"]
                if fault["impact"] in ("serious", "critical")
                for node in fault["nodes"][:3]
            ]
            if driver.execute_script("return document.documentElement.scrollWidth") > width:
                found.append(f"{scheme}, {width}: the page scrolls sideways")
    shown_as(driver)
    return found


def text(driver: WebDriver, name: str) -> str:
    return str(driver.execute_script("return document.getElementById(arguments[0]).textContent", name))


def complaints(driver: WebDriver) -> list[str]:
    """What the browser's console holds, and any script of a text that ran."""
    ran = driver.execute_script("return window.owned ? ['a script of a text ran'] : []")
    return [*(entry["message"] for entry in driver.get_log("browser")), *ran]


ESCAPE = Keys.ESCAPE
