"""Several seats behind one gate: dealt by the sealed order, one killed in the middle, alike or by leave of the gate."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gates import flow
from gates.errors import RefusedError, TamperedError
from gates.flow.generating import check_recorded
from gates.flow.inputs import load_inputs
from gates.record.seal import latest_seal
from gates.record.store import RunStore
from gates.records import canonical
from gates.seat.generate import plan
from gates.spec.load import load_gate
from tests.flow.conftest import Ended, gates, lines
from tests.flow.test_judging import JUDGED, LABELLED, Judge
from tests.flow.test_killed import command
from tests.flow.threaded import Seat, running
from tests.kills import STARTED, killed_at
from tests.seat.faulty import Request, Wire, card
from tests.small import BEATS, small_workspace

TEXTS = 2 * 2 * len(BEATS)


@pytest.fixture(scope="module")
def manned() -> Iterator[tuple[Seat, Seat]]:
    with ExitStack() as stack:
        yield stack.enter_context(running(Seat)), stack.enter_context(running(Seat))


@pytest.fixture
def seats(manned: tuple[Seat, Seat]) -> Iterator[tuple[Seat, Seat]]:
    """Two seats that behave well, and do so again after the test."""
    yield manned
    for seat in manned:
        seat.mend()
        seat.die()
        seat.revive()


def world(said: list[str]) -> flow.World:
    return flow.this_world(said.append, by="tester")


def listed(*seats: Seat, concurrency: int = 2) -> list[dict[str, object]]:
    return [
        {"base_url": seat.faulty.url, "concurrency": concurrency, "attempts": 1, "timeout_s": 5.0} for seat in seats
    ]


def write(home: Path, seats: list[dict[str, object]], **changes: object) -> Path:
    """A gate with these seats in a workspace of its own, and its cache."""
    gate = small_workspace(home / "workspace", home / "cache", seats=seats, **changes)
    gate.write_text(json.dumps({key: v for key, v in json.loads(gate.read_text("utf-8")).items() if key != "seat"}))
    return gate


@pytest.fixture(scope="module")
def home(manned: tuple[Seat, Seat], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the cache, and a workspace whose gate is sealed on both seats."""
    home = tmp_path_factory.mktemp("seats")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GATES_CACHE", str(home / "cache"))
        flow.seal(write(home, listed(*manned)), world([]))
        yield home


@pytest.fixture(scope="module")
def done(home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """The gate of a finished run, and what the command left."""
    gate = Path(shutil.copytree(home / "workspace", tmp_path_factory.mktemp("done") / "workspace"), "prereg/small.yaml")
    return gate, gates("run", gate)


@pytest.fixture
def gate(home: Path, tmp_path: Path) -> Path:
    """The sealed gate in a copy of its own."""
    shutil.copytree(home / "workspace", tmp_path / "workspace")
    return tmp_path / "workspace" / "prereg" / "small.yaml"


def folder(gate: Path) -> Path:
    return gate.parents[1] / "reports" / "small" / "001"


def phases(gate: Path, *seats: Seat) -> list[tuple[str, int]]:
    """Every session of the run as (phase, number of its seat)."""
    urls = [seat.faulty.url for seat in seats]
    return [(each["phase"], urls.index(each["seat"]["base_url"])) for each in lines(folder(gate) / "sessions.jsonl")]


def complete(gate: Path, ended: Ended) -> list[dict]:
    """The generations of a run that came to a verdict: every one is there, once, and none is an error."""
    assert ended.returncode in {0, 1, 3}, ended.stderr
    found = lines(folder(gate) / "generations.jsonl")
    assert len({(g["arm"], g["prompt"], g["seed"]) for g in found}) == len(found) == TEXTS
    assert {g["error"] for g in found} == {None}
    return found


def warnings(gate: Path) -> str:
    return "\n".join(json.loads((folder(gate) / "verdict.json").read_bytes())["warnings"])


def test_requests_are_dealt_in_whole_blocks_by_the_sealed_order(
    done: tuple[Path, Ended], seats: tuple[Seat, Seat]
) -> None:
    gate = done[0]
    found = complete(*done)
    sealed = latest_seal(gate.parent, "small")
    assert sealed is not None
    # Equal seats take turns, block by block: what this says is written with nothing but the plan.
    tasks = plan(sealed.seal.gate, len(BEATS), sealed.seal.order_seed)
    urls = [seat.faulty.url for seat in seats]
    home = {tuple(task): urls[number // 2 % 2] for number, task in enumerate(tasks)}
    assert {(g["arm"], g["prompt"], g["seed"]): g["seat"] for g in found} == home
    assert set(Counter((g["arm"], g["seat"]) for g in found).values()) == {len(BEATS)}
    for url in urls:  # the arms take turns at each seat, too
        arms = [g["arm"] for g in found if g["seat"] == url]
        assert all(abs(arms[:n].count("base") - arms[:n].count("one")) <= 3 for n in range(len(arms)))
    assert phases(gate, *seats) == [("start", 0), ("start", 1), ("end", 0), ("end", 1)]
    salts = {each["cache_salt"] for each in lines(folder(gate) / "sessions.jsonl")}
    assert len(salts) == 4

    held = sealed.seal.binding.seat
    assert list(held) == sorted(urls)
    assert all(part["fingerprint"] == "f-1" and part["adapters"]["voice-one"]["root"] for part in held.values())
    assert set(sealed.seal.context["seat"]) == set(urls)

    report = (folder(gate) / "report.md").read_text("utf-8")
    assert (
        f"| `{urls[1]}` | `0.33.0` | `f-1` | base {len(BEATS)}, one {len(BEATS)} | 0 | the same | 0 | yes |" in report
    )
    page = (folder(gate) / "report.html").read_text("utf-8") if gates("report", folder(gate)).returncode == 0 else ""
    assert f'<tr><th scope="row">{urls[1]}</th><td>0.33.0</td><td>f-1</td><td>base {len(BEATS)}, one' in page
    assert f"{len(BEATS) * 2} of {len(BEATS) * 2} prompts and seeds had all their arms answered by one seat." in report
    assert f"| seat | `{urls[1]}` `0.33.0 f-1` |" in report
    assert report.count(": repeatable: 3 of 3 requests made twice alone gave one text") == 2
    assert warnings(gate) == ""
    assert gates("verify", gate.parents[1]).returncode == 0


def test_a_seat_killed_in_the_middle_is_survived(gate: Path, seats: tuple[Seat, Seat]) -> None:
    second = seats[1]
    second.at[9] = second.faulty.die
    ended = gates("run", gate)
    found = complete(gate, ended)
    given = Counter(g["seat"] for g in found)
    assert 6 <= given[second.faulty.url] <= 9
    assert given.total() == TEXTS
    assert phases(gate, *seats) == [("start", 0), ("start", 1), ("lost", 1), ("end", 0)]
    lost = lines(folder(gate) / "sessions.jsonl")[2]["warnings"][0]
    assert lost.startswith(f"lost {second.faulty.url}: at arm ")
    left = TEXTS // 2 - given[second.faulty.url]
    assert f"{left} of its requests go to the other seats" in lost
    assert lost in ended.stderr.replace("\n", " ") or "note: lost" in ended.stderr
    kinds = [record["kind"] for record in lines(gate.parent / "ledger.jsonl")]
    assert kinds == ["seal", "run", "session", "session", "session", "session", "verdict"]

    told = warnings(gate)
    assert lost in told
    assert f"{second.faulty.url} gave {given[second.faulty.url]} texts and was not looked at again" in told
    report = (folder(gate) / "report.md").read_text("utf-8")
    assert "| 1 | no |" in report
    # Every block but those in flight when it died had one seat.
    figures = json.loads((folder(gate) / "measurements.json").read_bytes())["seats"]
    assert figures["split"] <= 2
    assert gates("verify", gate.parents[1]).returncode == 0
    assert gates("run", gate).returncode == ended.returncode
    # What the lost seat left may be another's, but only one's that the gate names.
    store = RunStore(gate.parents[1] / "reports", "small", 1)
    refuse_moved(gate, store, "http://elsewhere/v1", seat=second.faulty.url)


def refuse_moved(gate: Path, store: RunStore, to: str, *, seat: str) -> None:
    """Say of the first generation at a seat that another answered it, which is found."""
    moved = lines(store.generations_path)
    next(each for each in moved if each["seat"] == seat)["seat"] = to
    store.generations_path.write_bytes(b"".join(canonical(each) + b"\n" for each in moved))
    sealed = latest_seal(gate.parent, "small")
    assert sealed is not None
    with pytest.raises(TamperedError, match="the sealed order gives it to http"):
        check_recorded(load_inputs(gate, Path(os.environ["GATES_CACHE"])), sealed, store)


def test_without_a_seat_it_stops_and_then_continues(gate: Path, seats: tuple[Seat, Seat]) -> None:
    for number, seat in enumerate(seats):
        seat.at[6 + 4 * number] = seat.faulty.die
    stopped = gates("run", gate)
    assert stopped.returncode == 4
    assert "none of 2 seats answers any more" in stopped.stderr
    assert all(f"{seat.faulty.url}: stopped at arm" in stopped.stderr for seat in seats)
    assert "run the same command again: it continues" in stopped.stderr.replace("\n", " ")
    before = lines(folder(gate) / "generations.jsonl")
    assert 8 <= len(before) < TEXTS

    still = gates("run", gate)
    assert still.returncode == 4
    assert f"{seats[0].faulty.url}: no connection to the seat" in still.stderr

    seats[0].revive()
    found = complete(gate, gates("run", gate))
    assert found[: len(before)] == before
    assert phases(gate, *seats)[-3:] == [("lost", 1), ("start", 0), ("end", 0)]
    assert "it did not answer when the run went on" in warnings(gate)
    assert gates("verify", gate.parents[1]).returncode == 0


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_as_it_was_dealt(gate: Path, done: tuple[Path, Ended], home: Path) -> None:
    STARTED.set_forkserver_preload(["gates.cli.gate"])
    assert killed_at(40, gate.parents[1], command, home / "cache", "run", gate) == [], "it dies in the middle"
    written = (folder(gate) / "generations.jsonl").read_bytes().splitlines(keepends=True)
    whole = [json.loads(line) for line in written if line.endswith(b"\n")]
    assert 2 < len(whole) < TEXTS
    ended = gates("run", gate)
    found = complete(gate, ended)
    assert found[: len(whole)] == whole
    assert set(Counter((g["arm"], g["seat"]) for g in found).values()) == {len(BEATS)}
    texts = {(g["arm"], g["prompt"], g["seed"]): (g["seat"], g["text"]) for g in found}
    undisturbed = lines(folder(done[0]) / "generations.jsonl")
    assert texts == {(g["arm"], g["prompt"], g["seed"]): (g["seat"], g["text"]) for g in undisturbed}
    assert ended.returncode == done[1].returncode
    assert gates("verify", gate.parents[1]).returncode == 0


def test_a_judge_whose_seat_dies_goes_on_at_the_other(tmp_path: Path, seats: tuple[Seat, Seat], home: Path) -> None:
    first, _ = map(Judge, seats)
    first.tokens = lambda number: first.seat.faulty.die() or (" Yes", "no.") if number == 30 else (" Yes", "no.")
    # A second attempt tells an answer that was cut off from a seat that is gone.
    gate = write(tmp_path, [{**one, "attempts": 2} for one in listed(*seats)], **JUDGED)
    (gate.parent / "labelled.jsonl").write_text("\n".join(map(json.dumps, LABELLED)), "utf-8")
    try:
        flow.seal(gate, world([]))
        ended = gates("run", gate)
    finally:
        for seat in seats:
            seat.faulty.always = seat.tell
    complete(gate, ended)
    found = lines(folder(gate) / "judgements.jsonl")
    assert len({(j["arm"], j["prompt"], j["seed"], j["order"]) for j in found}) == len(found) == 2 * (20 + TEXTS)
    asked = Counter(j["seat"] for j in found)
    urls = [seat.faulty.url for seat in seats]
    assert 0 < asked[urls[0]] <= 30  # the answer it dies over may still go out
    assert asked.total() == asked[urls[0]] + asked[urls[1]]
    assert [j["seat"] for j in found] == sorted((j["seat"] for j in found), key=urls.index), "one, then the other"
    assert "as the judge: judging stopped at" in warnings(gate)
    assert gates("verify", gate.parents[1]).returncode == 0


def test_a_seat_that_was_never_seen_must_be_up(gate: Path, seats: tuple[Seat, Seat]) -> None:
    seats[1].die()
    down = gates("run", gate)
    assert down.returncode == 4
    assert seats[1].faulty.url in down.stderr
    assert not (folder(gate) / "generations.jsonl").exists()


def interrupted(gate: Path, after: int) -> None:
    """A run whose process is gone after so many generations."""

    class GoneError(BaseException):
        pass

    def gone(progress: object) -> None:
        if getattr(progress, "done", 0) == after:
            raise GoneError

    with pytest.raises(BaseException) as caught:  # noqa: PT011 - whatever asyncio makes of it
        flow.run(gate, flow.this_world(lambda _: None, gone, by="tester"))
    assert "GoneError" in repr(caught.value)


def test_a_run_that_was_cut_off_goes_on_as_it_was_dealt(gate: Path, seats: tuple[Seat, Seat]) -> None:
    interrupted(gate, 17)
    assert 17 <= len(lines(folder(gate) / "generations.jsonl")) < TEXTS
    found = complete(gate, gates("run", gate))
    assert set(Counter((g["arm"], g["seat"]) for g in found).values()) == {len(BEATS)}
    assert [phase for phase, _ in phases(gate, *seats)] == ["start"] * 4 + ["end"] * 2


def bare(seat: Seat) -> None:
    """Come back after a restart without the adapter, which had been loaded while it ran."""

    async def cards(request: object, wire: object) -> None:
        await wire.send({"object": "list", "data": [card("base")]})  # type: ignore[attr-defined]

    seat.faulty.routes["/v1/models"] = cards


def swapped(seat: Seat) -> None:
    seat.weights = "other"


@pytest.mark.parametrize(
    ("become", "code", "said"),
    [
        (bare, {0, 1, 3}, "could not be looked at again at the end: what small-"),
        (swapped, {4}, "other weights answer than when this run began: 'voice-one'"),
    ],
)
def test_a_lost_seat_that_comes_back(
    become: Callable[[Seat], None], code: set[int], said: str, gate: Path, seats: tuple[Seat, Seat]
) -> None:
    first, second = seats

    def back() -> None:
        become(second)
        second.revive()

    cards = second.faulty.routes["/v1/models"]
    second.at[5] = second.faulty.die
    first.at[40] = back
    ended = gates("run", gate)
    second.faulty.routes["/v1/models"] = cards
    assert ended.returncode in code, ended.stderr
    assert said in (ended.stderr if code == {4} else warnings(gate))


def other_fingerprint(seat: Seat) -> None:
    seat.fingerprint = "f-2"


def other_root(seat: Seat) -> None:
    seat.root = "/elsewhere/voice-one"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (other_fingerprint, 'fingerprint is "f-2", "f-1" at '),
        (other_root, 'adapters.voice-one.root is "/elsewhere/voice-one", "/models/voice-one" at '),
    ],
)
def test_seats_that_differ_are_not_sealed(
    change: Callable[[Seat], None], said: str, tmp_path: Path, seats: tuple[Seat, Seat], home: Path
) -> None:
    change(seats[1])
    with pytest.raises(RefusedError) as refused:
        flow.seal(write(tmp_path, listed(*seats)), world([]))
    assert f"{seats[1].faulty.url}: {said}{seats[0].faulty.url}" in refused.value.message
    assert "`unlike_seats: REASON`" in refused.value.next_step
    assert not (tmp_path / "workspace" / "prereg" / "ledger.jsonl").exists()


def test_a_third_seat_is_held_against_the_first(tmp_path: Path, seats: tuple[Seat, Seat], home: Path) -> None:
    async def newer(request: Request, wire: Wire) -> None:
        await wire.send({"version": "0.34.0"})

    with running(Seat) as third:
        third.faulty.routes["/version"] = newer
        with pytest.raises(RefusedError) as refused:
            flow.seal(write(tmp_path, listed(*seats, third)), world([]))
        said = f'{third.faulty.url}: version is "0.34.0", "0.33.0" at {seats[0].faulty.url}'
    assert said in refused.value.message
    assert seats[1].faulty.url not in refused.value.message


@pytest.mark.parametrize("key", ["", " ", "sk-secret\n", "clé-secret", "sk-sec"])
def test_a_key_that_cannot_be_sent_is_named_by_its_variable(
    key: str, tmp_path: Path, seats: tuple[Seat, Seat], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECOND_KEY", key)
    first, second = listed(*seats)
    refused = gates("seal", write(tmp_path, [first, {**second, "api_key_env": "SECOND_KEY"}]), "--yes")
    assert refused.returncode == 2
    assert re.search(r"gates: (the API key in|seat.api_key_env names) SECOND_KEY", refused.stderr)
    assert not key.strip() or key.strip() not in refused.stderr


def test_seats_whose_canaries_differ_generate_nothing(gate: Path, seats: tuple[Seat, Seat]) -> None:
    swapped(seats[1])
    refused = gates("run", gate)
    assert refused.returncode == 2
    assert f"nats away from the answer of {seats[0].faulty.url}" in refused.stderr.replace("\n", " ")
    assert not (folder(gate) / "generations.jsonl").exists()


def test_seats_may_differ_by_leave_of_the_gate(tmp_path: Path, seats: tuple[Seat, Seat], home: Path) -> None:
    other_fingerprint(seats[1])
    swapped(seats[1])
    gate = write(tmp_path, listed(*seats), unlike_seats="the second is patched on Friday")
    said: list[str] = []
    flow.seal(gate, world(said))
    assert any(sentence.startswith(f'note: {seats[1].faulty.url} differs: fingerprint is "f-2"') for sentence in said)
    found = complete(gate, gates("run", gate))
    assert {(g["seat"], g["fingerprint"]) for g in found} == {(seat.faulty.url, seat.fingerprint) for seat in seats}
    told = warnings(gate)
    assert "the seats differ, which the gate allows (the second is patched on Friday): " in told
    assert 'fingerprint is "f-2"' in told
    assert "'voice-one' answers" in told
    deviations = (folder(gate) / "report.md").read_text("utf-8").split("## Deviations")[1].split("\n## ")[0]
    assert "f-2" in deviations
    assert gates("verify", gate.parents[1]).returncode == 0


def test_a_generation_at_another_seat_than_its_own_is_found(gate: Path, seats: tuple[Seat, Seat], home: Path) -> None:
    interrupted(gate, 12)
    inputs, sealed = load_inputs(gate, home / "cache"), latest_seal(gate.parent, "small")
    assert sealed is not None
    store = RunStore(gate.parents[1] / "reports", "small", 1)
    assert len(check_recorded(inputs, sealed, store)) >= 12
    refuse_moved(gate, store, seats[0].faulty.url, seat=seats[1].faulty.url)


def test_a_recheck_knows_what_is_sealed_of_the_seat_it_asks(
    done: tuple[Path, Ended], tmp_path: Path, seats: tuple[Seat, Seat]
) -> None:
    run = Path(shutil.copytree(done[0].parents[1], tmp_path / "workspace")) / "reports" / "small" / "001"
    url = seats[1].faulty.url
    found = json.loads(gates("recheck", run, "--json", "--seat", url).stdout)
    assert found["plan"]["seat_label"] == url
    assert found["plan"]["changed"] == []
    assert found["same_texts"] == found["texts"] == TEXTS // 2
    assert gates("verify", tmp_path / "workspace").returncode == 0


def test_a_gate_of_one_seat_keeps_its_hash(root: Path) -> None:
    # as `gates check` told it before a gate could name several seats
    known = "b19e781002734f598ba263d3c6d47c2775feea1844e72802f1ed6869516757fe"
    assert load_gate(root / "tests" / "spec" / "gate.yaml").digest() == known
