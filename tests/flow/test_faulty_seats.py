"""Every way in which a seat is known to deceive or to fail, one by one: `gates run` says which, and never passes.

docs/trust.md lists the same rows.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gates import flow
from gates.record.store import RunStore
from tests.flow.conftest import gates, lines
from tests.flow.threaded import Seat, running
from tests.seat.faulty import Request, Wire, answer, changed, drip, hang, reply, reset_mid_body, status, truncated
from tests.small import small_workspace

WAIT_UNTIL = "Fri, 01 Jan 2100 00:00:00 GMT"


def base_weights(seat: Seat) -> None:
    seat.weights = "base"


def knows_all(seat: Seat) -> None:
    seat.knows_all = True


def swapped(seat: Seat) -> None:
    seat.at[30] = lambda: setattr(seat, "weights", "other")


def hybrid(seat: Seat) -> None:
    seat.caches = True
    swapped(seat)


def faulty(handler: Callable[..., object]) -> Callable[[Seat], None]:
    return lambda seat: setattr(seat, "fault", handler)


async def clamped(request: Request, wire: Wire) -> None:
    document = answer(request.body, usage={"prompt_tokens": 500, "completion_tokens": 12})
    document["choices"][0]["finish_reason"] = "length"
    await wire.send(document | {"system_fingerprint": "f-1"})


async def from_a_cache(request: Request, wire: Wire) -> None:
    await wire.send(answer(request.body, system_fingerprint="f-1"), x_litellm_cache_key="k-1")


ROWS: dict[str, tuple[Callable[[Seat], None], str]] = {
    "adapter ignored": (base_weights, "'voice-one' answers as the base does"),
    "adapter swapped mid-run": (swapped, "other weights answer than when this run began: 'voice-one'"),
    "stale cache hybrid": (hybrid, "other weights answer than when this run began: 'voice-one'"),
    "base answering for every name": (knows_all, "answered for 'gates-canary-no-such-model', which does not exist"),
    "silent context clamp": (faulty(clamped), "the seat ended the answer at 12 tokens, 40 are sealed"),
    "truncated stream": (faulty(truncated), "the answer breaks the contract: body: Invalid JSON"),
    "200 with an error body": (
        faulty(reply({"error": {"message": "CUDA out of memory"}})),
        "the seat answered 200 with an error: {'message': 'CUDA out of memory'}",
    ),
    "wrong response model": (
        faulty(changed(model="other", system_fingerprint="f-1")),
        "asked for model 'voice-one' and 'other' answered",
    ),
    "slow drip": (faulty(drip), "no complete answer within 2 s"),
    "hang": (faulty(hang), "no complete answer within 2 s"),
    "connection reset": (faulty(reset_mid_body), "the request got no complete answer: RemoteProtocolError"),
    "429, Retry-After in seconds": (
        faulty(status(429, "slow down", Retry_After="7")),
        "the seat answered 429 (Retry-After: 7)",
    ),
    "429, Retry-After as a date": (
        faulty(status(429, "slow down", Retry_After=WAIT_UNTIL)),
        f"the seat answered 429 (Retry-After: {WAIT_UNTIL})",
    ),
    "a proxy's cache": (faulty(from_a_cache), "answered from a proxy's cache (x-litellm-cache-key: k-1)"),
}
CLOCK = "clock jump"


@pytest.fixture(scope="module")
def seat() -> Iterator[Seat]:
    with running(Seat) as made:
        yield made


@pytest.fixture(scope="module")
def sealed(seat: Seat, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with cache and workspace, its gate sealed on the seat while it behaves."""
    home = tmp_path_factory.mktemp("faulty")
    told = {"base_url": seat.faulty.url, "concurrency": 1, "attempts": 1, "timeout_s": 2.0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GATES_CACHE", str(home / "cache"))
        made = small_workspace(home / "workspace", home / "cache", seat=told)
        assert gates("seal", made, "--yes").returncode == 0
        yield home / "workspace"


@pytest.fixture
def gate(seat: Seat, sealed: Path, tmp_path: Path) -> Path:
    """The sealed gate in a copy of its own."""
    seat.mend()
    shutil.copytree(sealed, tmp_path / "workspace")
    return tmp_path / "workspace" / "prereg" / "small.yaml"


@pytest.mark.parametrize("row", ROWS)
def test_a_faulty_seat_is_named_and_never_passes(row: str, gate: Path, seat: Seat) -> None:
    spoil, message = ROWS[row]
    spoil(seat)
    ended = gates("run", gate)
    assert ended.returncode == 4, ended
    assert message in ended.stderr


def test_a_clock_that_jumps_is_said_and_moves_no_latency(gate: Path, seat: Seat) -> None:
    jump = timedelta()

    def now() -> datetime:
        return datetime.now(UTC) + jump

    def forward() -> None:
        nonlocal jump
        jump = timedelta(hours=-1)

    seat.at[20] = forward
    said: list[str] = []
    cache = Path(os.environ["GATES_CACHE"])
    world = flow.World(cache=cache, by="tester", environ={}, now=now, say=said.append)
    finished = flow.run(gate, world)
    assert any(sentence.startswith("note: this machine's clock moved -3600 s against its counter") for sentence in said)
    report = (finished.folder / "report.md").read_text("utf-8")
    assert "this machine's clock moved -3600 s against its counter while generating" in report
    assert all(0 <= line["latency_s"] < 60 for line in lines(finished.folder / "generations.jsonl"))


def test_a_good_seat_is_reported_as_repeatable(gate: Path, seat: Seat) -> None:
    ended = gates("run", gate, "--json")
    folder = Path(json.loads(ended.stdout)["run"])
    assert "the seat is repeatable: 3 of 3 requests made twice alone gave one text, 3 of 3" in ended.stderr
    report = (folder / "report.md").read_text("utf-8")
    assert "## The seat" in report
    assert "- repeatable: 3 of 3 requests made twice alone gave one text" in report
    start, end = RunStore(folder.parents[1], "small", 1).sessions()
    assert start.determinism is None
    assert end.determinism is not None
    assert start.cache_salt != end.cache_salt
    assert gates("verify", gate.parents[1]).returncode == 0


@pytest.mark.slow
def test_new_bytes_under_an_old_name_are_warned_of(gate: Path, seat: Seat) -> None:
    (gate.parent / "one.gguf").write_bytes(b"trained again")
    warning = "note: 'voice-one' was sealed with other bytes on"
    ended = gates("amend", gate, "--reason", "trained again", "--yes")
    assert warning in ended.stderr
    assert "load the new bytes under a new name or from a new path" in ended.stderr
    assert warning in gates("run", gate).stderr

    (gate.parent / "one.gguf").write_bytes(b"trained a third time")
    seat.root = "/models/voice-one-third"
    again = gates("amend", gate, "--reason", "trained a third time", "--yes")
    assert again.returncode == 0
    assert warning not in again.stderr


def test_the_page_on_trust_lists_every_row(root: Path) -> None:
    page = (root / "docs" / "trust.md").read_text("utf-8")
    table = page.split("## Faulty seats\n")[1].split("\n## ")[0]
    listed = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")][2:]
    assert sorted(listed) == sorted([*ROWS, CLOCK])
