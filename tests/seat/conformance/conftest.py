"""The seat under test: the one that `--seat-url` names, or the embedded seat; what was seen is printed at the end."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from gates.corpora.cache import cache_dir
from gates.seat.embedded.serve import EmbeddedSeat
from tests.conftest import ROOT
from tests.seat.conformance.facts import Seat

_SEATS: list[Seat] = []


@pytest.fixture(scope="session")
def embedded(request: pytest.FixtureRequest) -> bool:
    """Whether no other seat was named."""
    return request.config.getoption("--seat-url") is None


@pytest.fixture(scope="session")
def contract(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seat]:
    url, variable = request.config.getoption("--seat-url"), request.config.getoption("--seat-key-env")
    folder = tmp_path_factory.mktemp("conformance")
    if url is not None:
        seat = Seat(url.rstrip("/").removesuffix("/v1"), os.environ[variable] if variable else None, folder)
        _SEATS.append(seat)
        yield seat
        seat.http.close()
        return
    demo = ROOT / "prereg" / "demo" / "adapters"
    adapters = {name: demo / f"{name}.gguf" for name in ("lv-bronte-e12", "lv-bronte-ranon")}
    with EmbeddedSeat(
        cache_dir(os.environ), "voices-base", adapters, servers=1, runtime_lora=True, max_model_len=256
    ) as running:
        seat = Seat(running.base_url.removesuffix("/v1"), None, folder)
        _SEATS.append(seat)
        yield seat
        seat.http.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for seat in _SEATS:
        terminalreporter.section(f"what {seat.root} answered")
        for name, said in seat.seen.items():
            terminalreporter.line(f"{name}: {said}")
