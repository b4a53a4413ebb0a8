"""What every test shares: the repository's folder, and the rule that a skipped test is a failure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("quick", max_examples=60, deadline=None)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

ROOT = Path(__file__).parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seat-url", help="with -m seat: the address of the seat to test, else the embedded one")
    parser.addoption("--seat-key-env", help="with --seat-url: the variable that holds the seat's API key")


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped: a skipped test is a failure here ({report.longrepr})"
    return report
