"""A run's folder: resumable, written once, nothing foreign in it; and the ledger's count of attempts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gates.errors import RecordError, TamperedError
from gates.record.files import append_line, held
from gates.record.ledger import Ledger, Stamp
from gates.record.store import KeptStore, RunStore, Session, finished_files, gate_lock, is_closed, open_run, runs
from gates.records import Generation, Usage, canonical, sha256
from gates.spec.judging import Judgement
from tests.judge.arms import HASH

OTHER = "cd" * 32
ONE, TWO = (Usage(prompt_tokens=1, completion_tokens=tokens) for tokens in (1, 2))
STAMP = Stamp("2026-01-01T00:00:00+00:00", "somebody")


def generation(prompt: int = 0, **changes: object) -> Generation:
    return Generation(
        **{
            "seal": HASH,
            "arm": "base",
            "prompt": prompt,
            "seed": 1,
            "seat": "embedded",
            "request": {"model": "m"},
            "text": "Tëxt\n\u2028with\x00 everything",
            "finish_reason": "stop",
            "usage": None,
            "model": "m",
            "fingerprint": None,
            "prompt_sha256": None,
            "started": "t",
            "latency_s": 0.1,
            "attempts": 1,
            "error": None,
        }
        | changes
    )


def store(tmp_path: Path, *found: Generation) -> RunStore:
    made = RunStore(tmp_path, "demo", 7)
    made.resume(HASH)
    for one in found:
        made.add(one)
    return made


def test_generations_come_back_as_they_were_and_in_order(tmp_path: Path) -> None:
    given_ = [generation(2), generation(0), generation(0, seed=5), generation(0, arm="a")]
    made = store(tmp_path, *given_)
    assert made.folder == tmp_path / "demo" / "007"
    assert list(made.generations(HASH)) == given_
    assert made.resume(HASH) == {("base", 2, 1), ("base", 0, 1), ("base", 0, 5), ("a", 0, 1)}
    assert made.generations_sha256() == sha256(made.generations_path.read_bytes())


def test_a_kept_store_reads_the_same_once(tmp_path: Path) -> None:
    given_ = [generation(2), generation(0)]
    path, kept = store(tmp_path, *given_).generations_path, KeptStore(tmp_path, "demo", 7)
    assert list(kept.generations(HASH)) == given_
    path.unlink()
    assert list(kept.generations(HASH)) == given_


def test_a_kept_store_keeps_no_refusal(tmp_path: Path) -> None:
    store(tmp_path, generation(0))
    kept = KeptStore(tmp_path, "demo", 7)
    for _ in range(2):
        with pytest.raises(TamperedError, match="belongs to seal"):
            list(kept.generations(OTHER))
    assert list(kept.generations(HASH)) == [generation(0)]


def test_a_store_without_generations_has_none(tmp_path: Path) -> None:
    assert store(tmp_path).resume(HASH) == set()


@given(st.integers(1, 400))
def test_a_torn_last_line_is_cut_and_generated_again(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    made = store(tmp_path_factory.mktemp("run"), generation(0), generation(1))
    data = made.generations_path.read_bytes()
    last = len(data.splitlines(keepends=True)[-1])
    made.generations_path.write_bytes(data[: -min(cut, last - 1)])
    assert made.resume(HASH) == {("base", 0, 1)}
    made.add(generation(1))
    assert made.generations_path.read_bytes() == data


def test_an_append_that_failed_half_way_spoils_no_other(tmp_path: Path) -> None:
    made = store(tmp_path, generation(0))
    with made.generations_path.open("ab") as handle:
        handle.write(b'{"arm":"ba')
    made.add(generation(1))
    assert [one.key for one in made.generations(HASH)] == [("base", 0, 1), ("base", 1, 1)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (canonical(generation(0).as_json()), r"generations\.jsonl:2: \('base', 0, 1\) is recorded twice"),
        (canonical(generation(1, seal=OTHER).as_json()), f"jsonl:2: it belongs to seal {OTHER}, this run to {HASH}"),
        (b"", r"jsonl:2: not a record of this version"),
        (canonical(TWO.as_json()), r"jsonl:2: not a record of this version"),
        (b"\xff\x00", r"jsonl:2: not a record of this version"),
        (b"[" * 100_000, r"jsonl:2: not a record of this version"),
        (canonical(generation(1).as_json() | {"more": 1}), r"jsonl:2: .*: more: Extra inputs are not permitted"),
        (canonical(generation(1).as_json() | {"schema": "gates.generation/2"}), r"jsonl:2: .*: schema: "),
    ],
    ids=["twice", "foreign", "blank", "list", "binary", "nested", "unknown key", "unknown schema"],
)
def test_a_foreign_line_is_tampered(tmp_path: Path, line: bytes, message: str) -> None:
    made = store(tmp_path, generation(0))
    append_line(made.generations_path, line)
    with pytest.raises(TamperedError, match=message):
        list(made.generations(HASH))
    with pytest.raises(TamperedError, match=message):
        made.resume(HASH)


def session(made: RunStore, phase: str = "start", *, by: str = "b", seat: str = "a") -> Session:
    return Session(
        phase=phase,
        seal=HASH,
        at="t",
        by=by,
        seat={"base_url": seat},
        canary={},
        cache_salt="s",
        deviations=("python: ...",),
        generations=sum(1 for _ in made.generations(HASH)),
        generations_sha256=made.generations_sha256(),
    )


def test_sessions_are_appended_and_their_hashes_stand_in_the_ledger(tmp_path: Path) -> None:
    made, ledger = store(tmp_path), Ledger(tmp_path / "prereg")
    one, two = session(made), session(made, "end")
    made.add_session(one, ledger)
    made.add_session(two, ledger)
    assert made.sessions_path.read_bytes() == b"".join(canonical(s.as_json()) + b"\n" for s in (one, two))
    assert [s.entry.body["session_sha256"] for s in ledger.entries()] == [one.digest(), two.digest()]
    assert made.check_sessions(ledger) == [one, two]
    assert made.deviations() == ("python: ...",)


def test_a_session_whose_ledger_record_a_kill_prevented_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, ledger = store(tmp_path), Ledger(tmp_path / "prereg")
    made.add_session(session(made), ledger)
    append_line(made.sessions_path, canonical(session(made).as_json()))
    assert len(made.check_sessions(ledger)) == 2
    assert len(made.settle(ledger)) == len(made.settle(ledger)) == 2
    assert len(ledger.entries()) == 2
    made.add_session(session(made), ledger)
    assert len(made.check_sessions(ledger)) == 3


def judgement(**changes: object) -> Judgement:
    about = {"seal": HASH, "arm": "one", "prompt": 0, "seed": 1, "order": "beat-first", "request": {}, "error": "none"}
    return Judgement(**(about | changes))


@pytest.mark.parametrize("other", [judgement(yes=-0.5, no=-1.0, error=None), judgement(prompt=1, seal=OTHER)])
def test_a_judgement_twice_or_of_another_seal_is_tampered(tmp_path: Path, other: Judgement) -> None:
    made = store(tmp_path)
    made.add_judgements([judgement()])
    assert made.judgements(HASH) == [judgement()]
    made.add_judgements([other])
    with pytest.raises(TamperedError, match=r"jsonl:2: another seal's, or \('one', [01], 1, .* is recorded twice"):
        made.judgements(HASH)


@pytest.mark.parametrize(
    ("looks", "closed"),
    [
        ("", False),
        ("a start", False),
        ("a start, a end", True),
        ("a start, a end, a start", False),
        ("a start, a start, a end", True),
    ],
)
@pytest.mark.parametrize("several", [False, True])
def test_a_run_at_one_seat_is_closed_by_a_look_after_the_last_start(
    tmp_path: Path, looks: str, closed: bool, several: bool
) -> None:
    assert is_closed(seen(tmp_path, looks), several=several) is closed


@pytest.mark.parametrize(
    ("looks", "closed"),
    [
        ("a start, b start, a end", False),
        ("a start, b start, a end, b end", True),
        ("a start, b start, b lost, a end", True),
        ("a start, b start, a end, b lost", True),
        ("a start, b start, a lost, b lost", False),
        ("a start, b start, a end, b lost, b start, b lost", False),
    ],
)
def test_of_several_seats_each_is_looked_at_again_or_lost_and_one_has_ended(
    tmp_path: Path, looks: str, closed: bool
) -> None:
    assert is_closed(seen(tmp_path, looks), several=True) is closed


def seen(tmp_path: Path, looks: str) -> list[Session]:
    made = store(tmp_path)
    return [session(made, phase, seat=seat) for seat, phase in (look.split() for look in looks.split(", ") if look)]


def test_of_sessions_that_no_record_holds_one_alone_is_believed(tmp_path: Path) -> None:
    made, ledger = store(tmp_path), Ledger(tmp_path / "prereg")
    for _ in range(2):
        append_line(made.sessions_path, canonical(session(made).as_json()))
    with pytest.raises(TamperedError, match="the ledger knows 0 sessions of this run, and these are others"):
        made.check_sessions(ledger)


def test_whatever_a_killed_process_has_left_half_written_is_cut_at_the_restart(tmp_path: Path) -> None:
    made = store(tmp_path)
    paths = (made.sessions_path, made.generations_path, made.judgements_path)
    for path in paths:
        path.write_bytes(b'{"arm":"ba')
    assert made.resume(HASH) == set()
    assert [path.read_bytes() for path in paths] == [b"", b"", b""]


def test_what_a_session_saw_may_not_change(tmp_path: Path) -> None:
    made, ledger = store(tmp_path, generation(1)), Ledger(tmp_path / "prereg")
    made.add_session(session(made), ledger)
    made.add(generation(2))
    assert len(made.check_sessions(ledger)) == 1
    good = made.generations_path.read_bytes()
    for bad in (good.replace(b'"text":"', b'"text":"x', 1), b"", good.split(b"\n", 1)[1]):
        made.generations_path.write_bytes(bad)
        with pytest.raises(TamperedError, match=r"generations\.jsonl: the first 1 lines are not those"):
            made.check_sessions(ledger)
    made.generations_path.write_bytes(good)
    made.sessions_path.write_bytes(canonical(session(made, by="another").as_json()) + b"\n")
    with pytest.raises(TamperedError, match=r"the ledger knows 1 sessions of this run, and these are others"):
        made.check_sessions(ledger)
    made.sessions_path.unlink()
    with pytest.raises(TamperedError, match="the ledger knows 1 sessions"):
        made.check_sessions(ledger)


def test_results_are_written_once(tmp_path: Path) -> None:
    made = store(tmp_path)
    assert made.write("verdict.json", ONE) == ONE
    assert made.write("verdict.json", ONE) == ONE
    with pytest.raises(RecordError, match=r"007/verdict\.json: a record is written once"):
        made.write("verdict.json", TWO)


def test_an_unfinished_run_goes_on_and_a_finished_one_makes_room_for_the_next(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "prereg")

    def opened(seal: str = HASH, gate: str = "demo") -> int:
        return open_run(ledger, tmp_path, gate, seal, STAMP).number

    assert [opened(), opened(), opened(gate="demo2")] == [1, 1, 1]
    assert opened(OTHER) == 2
    ledger.append("verdict", "demo", {"run": 1}, STAMP)
    assert [opened(), opened()] == [3, 3]
    ledger.append("spoiled", "demo", {"run": 3, "why": "other weights"}, STAMP)
    assert [opened(), opened()] == [4, 4]
    assert [(s.entry.body["run"], v is not None) for s, v in runs(ledger.entries(), "demo")] == [
        (1, True),
        (2, False),
        (3, True),
        (4, False),
    ]


def test_nobody_enters_a_run_while_a_number_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A merge may move one to this very number."""
    ledger, seen = Ledger(tmp_path / "prereg"), []

    def watched(*about: object) -> list:
        seen.append(held(tmp_path / "prereg" / ".ledger.lock"))
        return runs(*about)

    monkeypatch.setattr("gates.record.store.runs", watched)
    assert open_run(ledger, tmp_path, "demo", HASH, STAMP).number == 1
    assert seen == [True]


@pytest.mark.parametrize("number", [None, "1", True, [1], {}])
@pytest.mark.parametrize("kind", ["run", "verdict"])
def test_a_run_without_a_number_is_tampered(tmp_path: Path, kind: str, number: object) -> None:
    ledger = Ledger(tmp_path)
    ledger.append(kind, "demo", {"run": number, "seal": HASH}, STAMP)
    with pytest.raises(TamperedError, match=rf"\({kind} of 'demo'\): run is .*, which is no int"):
        open_run(ledger, tmp_path, "demo", HASH, STAMP)


def finished(tmp_path: Path):
    made = store(tmp_path, generation())
    made.write("measurements.json", ONE)
    made.write("verdict.json", TWO)
    made.write_report("report")
    append_line(made.sessions_path, b"{}")
    body = {
        "sessions_sha256": made.sessions_sha256(),
        "report_sha256": sha256(b"report"),
        "run": 7,
        "generations_sha256": made.generations_sha256(),
        "measurements_sha256": ONE.digest(),
        "verdict_sha256": TWO.digest(),
    }
    return made, Ledger(tmp_path / "prereg").append("verdict", "demo", body, STAMP)


def test_a_finished_run_is_what_the_ledger_holds(tmp_path: Path) -> None:
    made, verdict = finished(tmp_path)
    assert finished_files(made, verdict) == {
        "generations.jsonl": canonical(generation().as_json()) + b"\n",
        "measurements.json": canonical(ONE.as_json()),
        "verdict.json": canonical(TWO.as_json()),
        "sessions.jsonl": b"{}\n",
        "report.md": b"report",
    }


@pytest.mark.parametrize(
    "name", ["generations.jsonl", "measurements.json", "verdict.json", "sessions.jsonl", "report.md"]
)
def test_a_finished_run_that_was_touched_is_tampered(tmp_path: Path, name: str) -> None:
    made, verdict = finished(tmp_path)
    path = made.folder / name
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(TamperedError, match=rf"007/{name}: SHA-256 is [0-9a-f]{{64}}, the ledger says [0-9a-f]{{64}}"):
        finished_files(made, verdict)
    path.unlink()
    with pytest.raises(TamperedError, match=rf"007/{name}: the ledger holds its hash and it is missing"):
        finished_files(made, verdict)


def test_a_verdict_without_its_hashes_is_tampered(tmp_path: Path) -> None:
    made, _ = finished(tmp_path)
    bare = Ledger(tmp_path / "prereg").append("verdict", "demo", {"run": 7}, STAMP)
    with pytest.raises(TamperedError, match="generations_sha256 is None, which is no str"):
        finished_files(made, bare)


def test_a_gate_is_run_by_one_process(tmp_path: Path) -> None:
    with gate_lock(tmp_path, "demo"):
        with pytest.raises(RecordError, match=r"demo/\.lock: another process is running this gate"):
            gate_lock(tmp_path, "demo").__enter__()
        with gate_lock(tmp_path, "demo2"):
            pass
    with gate_lock(tmp_path, "demo"):
        pass
