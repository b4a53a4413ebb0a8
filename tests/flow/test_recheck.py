"""`gates recheck`: the same voice, another one, another serving form; recorded, continued and verified."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from gates.flow.sample import sample_seeds
from gates.flow.verifying import verify
from gates.record.ledger import Ledger
from gates.record.recheck import RecheckPlan
from gates.records import sha256
from tests.flow.conftest import Ended, gates
from tests.flow.test_forged import rebuild
from tests.flow.threaded import Seat, running
from tests.record.test_signing import make_key
from tests.seat.faulty import Request, Wire, answer, card, error
from tests.small import prose, small_workspace


class Voice(Seat):
    """A seat whose adapter writes like `lean` says, may be merged under a name of its own, and may die."""

    def __init__(self) -> None:
        super().__init__()
        self.lean, self.names, self.dies_at, self.served = 0.0, ["base", "voice-one"], -1, 0
        self.home, self.carrier = "/models", None
        self.version, self.revision = "0.33.0", "/models/base"
        self.faulty.routes["/version"] = self.release

    async def tell(self, request: Request, wire: Wire) -> None:
        model = request.body["model"]
        if model not in self.names:
            await wire.send(error("The model does not exist.", "NotFoundError", 404), 404)
            return
        if request.body.get("seed") is not None and not request.body.get("logprobs"):
            self.served += 1
            if self.served == self.dies_at:
                await wire.send(error("The API key is refused.", "Unauthorized", 401), 401)
                return
        document = answer(request.body, weights=self.carrier if model == "base" else self.weights)
        said = int(sha256(f"{model}{request.body['messages']}{request.body.get('seed')}".encode())[:8], 16)
        text = prose(said, 40, 0.002 if model == "base" else self.lean)
        document["choices"][0]["message"]["content"] = text
        await wire.send(document)

    async def cards(self, request: Request, wire: Wire) -> None:
        parent = "base" if "base" in self.names else None
        cards = [card(name, parent=None if name == "base" else parent) for name in self.names]
        cards[0]["root"] = self.revision
        cards[-1]["root"] = f"{self.home}/{self.names[-1]}"
        await wire.send({"object": "list", "data": cards})

    async def release(self, _request: Request, wire: Wire) -> None:
        await wire.send({"version": self.version})


@pytest.fixture(scope="module")
def served() -> Iterator[Voice]:
    with running(Voice) as made:
        yield made


@pytest.fixture(scope="module")
def finished(served: Voice, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cache and a workspace, in which a run of four seeds is finished."""
    home = tmp_path_factory.mktemp("recheck")
    gate = small_workspace(
        home / "workspace",
        home / "cache",
        seat={"base_url": served.faulty.url, "concurrency": 2, "attempts": 1},
        sampling={"seeds": [1, 2, 3, 4], "temperature": 0.9, "top_p": 0.95, "max_tokens": 400},
        damage={"ran_on": {"within": "floor"}, "empty": {"margin": 0.3}},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GATES_CACHE", str(home / "cache"))
        assert gates("seal", gate, "--yes").returncode == 0
        assert gates("run", gate).returncode in {0, 1}
    return home


@pytest.fixture
def seat(served: Voice) -> Iterator[Voice]:
    """The seat as it was when the run was made; put right again after the test."""
    kept = dict(vars(served))
    tell = served.faulty.always
    yield served
    vars(served).update(kept)
    served.faulty.always = tell


@pytest.fixture
def run(finished: Path, seat: Voice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a finished run, to be rechecked or spoilt."""
    monkeypatch.setenv("GATES_CACHE", str(finished / "cache"))
    shutil.copytree(finished / "workspace", tmp_path / "workspace")
    return tmp_path / "workspace" / "reports" / "small" / "001"


def found(ended: Ended) -> dict:
    return json.loads(ended.stdout)


def ledger(run: Path) -> list[str]:
    return [stored.entry.kind for stored in Ledger(run.parents[2] / "prereg").entries()]


def test_the_same_voice_passes_and_is_derived_again(run: Path, seat: Voice) -> None:
    ended = gates("recheck", run, "--json")
    assert ended.returncode == 0, ended
    told = found(ended)
    assert (told["same_texts"], told["texts"]) == (24, 24)
    assert told["plan"]["changed"] == []
    axes = told["candidates"]["one"]["axes"]
    assert {name: axis["outcome"] for name, axis in axes.items()} == dict.fromkeys(
        ("validity", "same_voice", "memorisation", "ran_on", "empty"), "PASS"
    )
    assert axes["same_voice"]["value"] == 0
    assert ledger(run)[-2:] == ["recheck", "rechecked"]
    assert gates("verify", run.parents[2]).returncode == 0


def forged(kind: str, known: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Another word for each that the ledger says of a recheck, and one that it does not say.

    Left out is which version of gates wrote the report: where this one words it alike, nothing hangs on it.
    """
    for word, said in known.items():
        if word != "gates":
            yield word, said + 1 if isinstance(said, int) else "0" * 64 if word.endswith("sha256") else "FAIL"
    if kind == "rechecked":
        yield "judgements_sha256", "0" * 64


def test_each_word_of_the_ledger_on_a_recheck_is_held_against_it(run: Path, finished: Path) -> None:
    assert gates("recheck", run).returncode == 0
    workspace = run.parents[2]
    records = Ledger(workspace / "prereg")
    kept = records.path.read_bytes(), records.head_path.read_bytes()
    for one in records.entries()[-2:]:
        kind = one.entry.kind
        for word, said in forged(kind, one.entry.body):
            rebuild(
                workspace, lambda of, body, at=(kind, word, said): body.update({at[1]: at[2]} if of == at[0] else {})
            )
            assert verify(workspace, finished / "cache").breaks != (), (kind, word)
            records.path.write_bytes(kept[0])
            records.head_path.write_bytes(kept[1])
    assert verify(workspace, finished / "cache").exit_code == 0


def test_every_record_of_a_recheck_is_signed_where_a_key_is_named(
    run: Path, seat: Voice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATES_SIGNING_KEY", str(make_key(tmp_path)))
    before = len(Ledger(run.parents[2] / "prereg").entries())
    gates("recheck", run)
    records = Ledger(run.parents[2] / "prereg").entries()[before:]
    assert [record.entry.kind for record in records] == ["recheck", "rechecked"]
    assert all("signing_key" in record.entry.body for record in records)


def test_another_voice_fails_by_the_floor_of_the_run(run: Path, seat: Voice) -> None:
    floor = json.loads((run / "verdict.json").read_text())["candidates"]["one"]["axes"]["voice"]["floor"]
    seat.lean = 0.05
    ended = gates("recheck", run, "--json")
    assert ended.returncode == 1, ended
    axis = found(ended)["candidates"]["one"]["axes"]["same_voice"]
    assert abs(axis["value"]) > axis["threshold"] == floor
    assert axis["outcome"] == "FAIL"
    assert "does not answer as it did" in gates("recheck", run).stdout
    assert gates("verify", run.parents[2]).returncode == 0


def changed(ended: Ended) -> list[str]:
    assert ended.returncode in {0, 1}, ended
    return found(ended)["plan"]["changed"]


def test_another_base_under_the_same_card_is_heard(run: Path, seat: Voice) -> None:
    seat.carrier = "voice-two"
    (heard,) = changed(gates("recheck", run, "--json"))
    assert heard.startswith("'base' answers")


def test_an_adapter_that_was_loaded_from_elsewhere_is_named(run: Path, seat: Voice) -> None:
    seat.home = "/elsewhere"
    assert changed(gates("recheck", run, "--json")) == [
        'served.root: sealed "/models/voice-one", now "/elsewhere/voice-one"'
    ]


@pytest.mark.slow
def test_a_merged_form_is_rechecked_alone_and_named_as_another(run: Path, seat: Voice) -> None:
    seat.names = ["merged"]
    assert gates("recheck", run).returncode == 4
    ended = gates("recheck", run, "--model", "merged", "--alone", "--json")
    told = found(ended)
    assert told["texts"] == 24
    assert told["same_texts"] == 0
    changed = " ".join(told["plan"]["changed"])
    assert 'model: sealed "voice-one", now "merged"' in changed
    assert "base_card" in changed
    assert any("not what was judged" in warning for warning in told["warnings"])
    assert any("nothing proved that an adapter is applied" in warning for warning in told["warnings"])
    plan = RecheckPlan.parse(json.dumps(told["plan"]).encode(), where="plan")
    assert plan.otherwise == "not what was judged"
    assert plan.model_copy(update={"signoffs": ("0" * 64,)}).otherwise == "not what was signed"


def test_other_weights_under_the_same_name_are_named(run: Path, seat: Voice) -> None:
    # The texts are the same and so is every file that can be read here: the canary alone hears the difference.
    seat.weights = "voice-two"
    told = found(gates("recheck", run, "--json"))
    (changed,) = told["plan"]["changed"]
    assert re.fullmatch(r"'voice-one' answers .* nats away from its first answer in the run .*", changed)
    assert told["warnings"] == [f"not what was judged: {changed}"]


def test_what_was_signed_is_one_serving_form(run: Path, seat: Voice, tmp_path: Path) -> None:
    items = json.loads(gates("review", run, "--by", "a", "--json").stdout)["items"]
    gates("review", run, "--by", "a", *(word for item in items for word in ("--mark", item["name"], "ok")))
    signed = ("--arm", "one", "--decision", "hold", "--reason", "x", "--by", "a", "--key", make_key(tmp_path))
    assert gates("signoff", run, *signed).returncode == 3
    ended = gates("recheck", run)
    assert "the same serving form" in ended.stdout
    seat.weights, seat.version, seat.revision = "voice-two", "0.34.0", "/models/base-2"
    (run.parents[2] / "prereg" / "one.gguf").write_bytes(b"another")
    ended = gates("recheck", run)
    assert "not what was signed; the notes name each difference" in ended.stdout
    told = "".join(ended.stdout.split())
    for changed in (
        'seat.version: sealed "0.33.0", now "0.34.0"',
        'seat.base_card.root: sealed "/models/base", now "/models/base-2"',
        "adapter.one.gguf: sealed",
        "nats away from its first answer in the run",
    ):
        assert "".join(changed.split()) in told
    assert "to ship this one, seal a gate for it, run it, sign it off" in ended.stdout
    report = max((run / "rechecks").glob("*/report.md")).read_text("utf-8")
    assert "not what was signed: the sign-off of one covers another serving form" in report


@pytest.mark.slow
def test_adapter_bytes_that_differ_are_named(run: Path) -> None:
    (run.parents[2] / "prereg" / "one.gguf").write_bytes(b"another")
    told = found(gates("recheck", run, "--json"))
    assert any(sentence.startswith("adapter.one.gguf: sealed") for sentence in told["plan"]["changed"])


@pytest.mark.slow
def test_an_adapter_that_cannot_be_read_is_said_so(run: Path) -> None:
    (run.parents[2] / "prereg" / "one.gguf").unlink()
    ended = gates("recheck", run, "--json")
    assert ended.returncode == 0, ended
    assert found(ended)["plan"]["changed"] == ["adapter: one.gguf cannot be read here: its bytes were not compared"]


@pytest.mark.slow
def test_an_imported_run_is_rechecked_and_its_unknown_form_said(run: Path, tmp_path: Path, seat: Voice) -> None:
    home = run.parents[2]
    gate = json.loads((home / "prereg" / "small.yaml").read_text("utf-8")) | {"name": "older"}
    (home / "prereg" / "older.yaml").write_text(json.dumps(gate), "utf-8")
    kept = ("arm", "seed", "prompt", "text", "finish_reason")
    rows = [json.loads(line) for line in (run / "generations.jsonl").read_bytes().splitlines()]
    texts = [{key: row[key] for key in kept} | row["usage"] for row in rows]
    (tmp_path / "old.jsonl").write_text("\n".join(map(json.dumps, texts)), "utf-8")
    received = gates("import", tmp_path / "old.jsonl", "--gate", home / "prereg" / "older.yaml")
    older = home / "reports" / "older" / "001"
    assert (older / "verdict.json").is_file(), received
    ended = gates("recheck", older, "--json")
    assert ended.returncode == 0, ended
    assert found(ended)["same_texts"] == 24
    assert 'seat.version: not sealed, now "0.33.0"' in found(ended)["plan"]["changed"]


@pytest.mark.slow
def test_an_adapter_that_was_never_read_is_said_so(run: Path) -> None:
    home = run.parents[2]
    gate = home / "prereg" / "unread.yaml"
    gate.write_text(json.dumps(json.loads((home / "prereg" / "small.yaml").read_text()) | {"name": "unread"}), "utf-8")
    kept = (home / "prereg" / "one.gguf").read_bytes()
    (home / "prereg" / "one.gguf").unlink()
    assert gates("seal", gate, "--yes").returncode == 0
    assert gates("run", gate).returncode in {0, 1}
    (home / "prereg" / "one.gguf").write_bytes(kept)
    told = found(gates("recheck", home / "reports" / "unread" / "001", "--json"))
    assert told["plan"]["changed"] == ["adapter: the seal does not know its bytes: nothing to compare with"]


@pytest.mark.slow
def test_an_interrupted_recheck_continues_and_asks_nothing_twice(run: Path, seat: Voice) -> None:
    blocked = run / "rechecks"
    blocked.write_text("", "utf-8")
    refused = gates("recheck", run)
    assert (refused.returncode, f"{blocked}/" in refused.stderr) == (2, True), refused
    blocked.unlink()
    seat.served, seat.dies_at = 0, 10
    assert gates("recheck", run).returncode == 4
    texts = next((run / "rechecks").glob("001-*")) / "generations.jsonl"
    lines = texts.read_bytes()
    texts.write_bytes(torn := lines + b'{"arm":"o')
    assert gates("verify", run.parents[2]).returncode == 3
    seat.dies_at, kept = -1, seat.weights
    seat.weights = "voice-two"
    assert "what was judged" in gates("recheck", run).stdout, "another seat's answers are another recheck"
    assert texts.read_bytes() == torn
    seat.weights = kept
    ended = gates("recheck", run, "--json")
    assert ended.returncode == 0
    assert texts.read_bytes().startswith(lines)
    assert sorted(path.name[:3] for path in (run / "rechecks").iterdir()) == ["001", "002"]
    assert gates("verify", run.parents[2]).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plan.json", "generations.jsonl", "recheck.json", "report.md"])
def test_a_changed_file_is_a_break(run: Path, name: str) -> None:
    assert gates("recheck", run).returncode == 0
    path = next((run / "rechecks").glob("001-*")) / name
    data = path.read_bytes()
    path.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
    ended = gates("verify", run.parents[2])
    assert ended.returncode == 5
    assert name in ended.stdout


@pytest.mark.slow
def test_weights_that_change_during_a_recheck_make_it_invalid(run: Path, seat: Voice) -> None:
    seat.served, tell = 0, seat.tell

    async def later(request: Request, wire: Wire) -> None:
        if seat.served >= 20:
            seat.weights = "voice-two"
        await tell(request, wire)

    seat.faulty.always = later
    ended = gates("recheck", run, "--json")
    assert ended.returncode == 4
    assert "changed during the recheck" in found(ended)["troubles"][0]


def test_what_cannot_be_asked_is_refused(run: Path) -> None:
    for wrong, said in (
        (("--arm", "two"), "choose one of: one"),
        (("--seeds", "9"), "the run has 4 seeds"),
        (("--seat", "nonsense"), "--seat 'nonsense' is no address"),
        (("--seat", "http://me:pass-word@h/v1"), "--seat has a user name"),
        (("--seat", "http://h/v1", "--api-key-env", "sk-pass-word"), "--api-key-env takes the name of"),
        (("--seat", ""), "--seat '' is no address"),
        (("--arm", ""), "choose one of: one"),
        (("--model", ""), "that is no name"),
        (("--model", "base"), "that is the base"),
        (("--api-key-env", "KEY"), "belongs to --seat"),
    ):
        ended = gates("recheck", run, *wrong)
        assert ended.returncode == 2, ended
        assert said in ended.stderr
        assert "pass-word" not in ended.stderr
    assert gates("recheck", run.parent).returncode == 2


def test_nothing_is_written_through_a_link_in_the_rechecks_place(run: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (run / "rechecks").symlink_to(tmp_path / "elsewhere")
    ended = gates("recheck", run)
    assert (ended.returncode, "this is a link" in ended.stderr) == (5, True), ended
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_sample_is_drawn_from_the_seal() -> None:
    seeds = tuple(range(10))
    drawn = {sample_seeds(f"{number:064d}", seeds, 2) for number in range(200)}
    assert sample_seeds("0" * 64, seeds, 2) == sample_seeds("0" * 64, seeds, 2)
    assert {seed for pair in drawn for seed in pair} == set(seeds)
    assert all(first < second for first, second in drawn)
    assert len(drawn) > 30
