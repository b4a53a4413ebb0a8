"""Every field of what a seal binds, and of its context, has a change here: refused, or recorded as a deviation."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gates.record.seal import AdapterIdentity, Binding
from gates.records import sha256
from gates.seat.identity import SeatBinding, SeatContext
from gates.spec.schema import Gate
from tests.flow.conftest import gates, lines
from tests.flow.threaded import Seat, running
from tests.seat.faulty import Request, Wire, card
from tests.small import small_workspace


class Sealed(NamedTuple):
    """A sealed workspace, its cache, and the seat that it was sealed against."""

    workspace: Path
    cache: Path
    seat: Seat

    @property
    def gate(self) -> Path:
        return self.workspace / "prereg" / "small.yaml"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sealed]:
    home = tmp_path_factory.mktemp("sealed")
    with running(Seat) as seat, pytest.MonkeyPatch.context() as patch:
        patch.setenv("GATES_CACHE", str(home / "cache"))
        gate = small_workspace(
            home / "workspace", home / "cache", seat={"base_url": seat.faulty.url, "concurrency": 1, "attempts": 1}
        )
        assert gates("seal", gate, "--yes").returncode == 0
        yield Sealed(home / "workspace", home / "cache", seat)


@pytest.fixture
def sealed(made: Sealed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sealed]:
    """A copy of the sealed workspace, to be changed."""
    copy = Sealed(tmp_path / "workspace", tmp_path / "cache", made.seat)
    shutil.copytree(made.workspace, copy.workspace)
    shutil.copytree(made.cache, copy.cache)
    monkeypatch.setenv("GATES_CACHE", str(copy.cache))
    routes = dict(made.seat.faulty.routes)
    yield copy
    made.seat.mend()
    made.seat.faulty.routes = routes


Change = Callable[[Sealed, pytest.MonkeyPatch], None]


def text(corpus: str, split: str) -> Change:
    """Another text under the same name, pinned anew."""

    def change(sealed: Sealed, _: pytest.MonkeyPatch) -> None:
        path = sealed.cache / "corpora" / corpus / f"{split}.txt"
        path.write_bytes(b"more " * 50 + path.read_bytes())
        manifest = sealed.workspace / "corpora" / f"{corpus}.yaml"
        document = json.loads(manifest.read_text("utf-8"))
        for file in document["files"]:
            if file["split"] == split:
                file["sha256"] = sha256(path.read_bytes())
        manifest.write_text(json.dumps(document), "utf-8")

    return change


def beats(sealed: Sealed, _: pytest.MonkeyPatch) -> None:
    path = sealed.workspace / "prereg" / "beats.txt"
    path.write_text(path.read_text("utf-8").replace("The ship", "A ship"), "utf-8")


def adapter(sealed: Sealed, _: pytest.MonkeyPatch) -> None:
    (sealed.workspace / "prereg" / "one.gguf").write_bytes(b"adapteR")


def rule(field: str, value: Any) -> Change:
    def change(sealed: Sealed, _: pytest.MonkeyPatch) -> None:
        sealed.gate.write_text(json.dumps(json.loads(sealed.gate.read_text("utf-8")) | {field: value}), "utf-8")

    return change


def tells(**attributes: Any) -> Change:
    def change(sealed: Sealed, _: pytest.MonkeyPatch) -> None:
        for name, value in attributes.items():
            setattr(sealed.seat, name, value)

    return change


def routed(path: str, document: Any) -> Change:
    """The seat says another thing at a path."""

    def change(sealed: Sealed, _: pytest.MonkeyPatch) -> None:
        async def answer(request: Request, wire: Wire) -> None:
            await wire.send(document)

        sealed.seat.faulty.routes[path] = answer

    return change


def cards(*more: dict[str, Any], **base: Any) -> Change:
    served = [card("base") | base, card("voice-one", parent="base") | {"root": "/models/voice-one"}, *more]
    return routed("/v1/models", {"object": "list", "data": served})


def patched(where: str, value: Any) -> Change:
    return lambda _, patch: patch.setattr(where, value)


BOUND: dict[str, Change] = {
    "gate": rule("memorisation", {"max_rate": 0.9}),
    "texts": text("author", "train"),
    "prompts": beats,
    "frame": text("others", "all"),
    "adapters.one.files": adapter,
    "adapters.one.card": tells(root="/somewhere/else"),
    "signatures": patched("gates.flow.binding.WORDS", "words@9"),
    "seat.version": routed("/version", {"version": "9.9"}),
    "seat.fingerprint": tells(fingerprint="f-2"),
    "seat.base_card": cards(root="/models/other"),
    "seat.base_card_sha256": cards(root="/models/other"),
}


def test_every_field_that_a_seal_binds_has_a_change_here() -> None:
    parts: dict[str, Any] = {"adapters": AdapterIdentity.model_fields, "seat": SeatBinding.model_fields}
    named = {"adapters": "adapters.one"}
    wanted = {
        f"{named.get(field, field)}.{part}" if part else field
        for field in Binding.model_fields
        for part in parts.get(field, [""])
    }
    assert set(BOUND) == wanted


@pytest.mark.parametrize("field", BOUND)
def test_a_change_of_what_is_bound_is_refused_by_its_name(
    sealed: Sealed, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    BOUND[field](sealed, monkeypatch)
    refused = gates("run", sealed.gate)
    assert refused.returncode == 2, refused
    named = [line.strip() for line in refused.stderr.split("\n") if line.strip().startswith((f"{field}:", f"{field}."))]
    assert named, refused.stderr
    assert " sealed " in named[0]
    assert not list(sealed.workspace.glob("reports/*/*/generations.jsonl"))


RULES: dict[str, Any] = {
    "question": "Does it fly?",
    "seat": {"base_url": "http://127.0.0.1:9/v1"},
    "seats": [{"base_url": "http://127.0.0.1:8/v1"}, {"base_url": "http://127.0.0.1:9/v1"}],
    "unlike_seats": "until Friday",
    "arms": {"base": "base", "candidates": {"two": {"model": "voice-one", "adapter": "one.gguf"}}},
    "corpora": {"train": "author/heldout", "heldout": "author/train", "reference": "others"},
    "prompts": {"file": "beats.txt", "template": "Scene: {beat}"},
    "probe": {"kind": "beats", "file": "beats.txt", "template": "Go on: {beat}", "max_rate": 0.5},
    "sampling": {"seeds": [1, 3], "temperature": 0.9, "top_p": 0.95, "max_tokens": 40},
    "voice": {"mfw": 100, "words_per_seed": 100, "times_floor": 2.0},
    "memorisation": {"max_rate": 0.3},
    "damage": {"ran_on": {"margin": 0.3}},
    "validity": {"max_empty": 0.5},
    "tie_break": ["voice"],
    "declarations": {"data_seen": "all of it, by everybody"},
    "sign_off": {"signers": 2},
    "judge": {"labelled": "labelled.jsonl"},
}


def test_every_field_of_a_gate_has_a_change_here() -> None:
    # Under another name it is another gate, and there is one schema.
    assert set(RULES) == set(Gate.model_fields) - {"schema_", "name"}


@pytest.mark.parametrize("field", RULES)
def test_a_change_of_the_gate_is_refused_field_by_field(
    sealed: Sealed, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    rule(field, RULES[field])(sealed, monkeypatch)
    if field in {"seats", "unlike_seats"}:
        # Several seats stand in the place of one, and they alone may be unlike.
        several = {name: value for name, value in json.loads(sealed.gate.read_bytes()).items() if name != "seat"}
        sealed.gate.write_text(json.dumps(several | {"seats": RULES["seats"]}), "utf-8")
    if field == "judge":
        # A judge without an axis for it is no gate.
        rule("damage", {"judged_on_beat": {"margin": 0.5}})(sealed, monkeypatch)
        rows = [{"beat": "Rain", "text": f"It rains {n}", "on_beat": n < 10} for n in range(20)]
        (sealed.workspace / "prereg" / "labelled.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    refused = gates("run", sealed.gate)
    assert refused.returncode == 2, refused
    assert f"  gate.{field}" in refused.stderr


def own_defaults(sealed: Sealed, patch: pytest.MonkeyPatch) -> None:
    """The seat samples otherwise where a request leaves its fields out."""

    async def tell(request: Request, wire: Wire) -> None:
        if "temperature" not in request.body:
            request.body["seed"] = 99
        await sealed.seat.tell(request, wire)

    patch.setattr(sealed.seat.faulty, "always", tell)


async def wrong_method(_: Request, wire: Wire) -> None:
    """What a route for POST alone says to a GET."""
    await wire.send({}, 405)


def loading(sealed: Sealed, _: pytest.MonkeyPatch) -> None:
    sealed.seat.faulty.routes["/v1/load_lora_adapter"] = wrong_method


CONTEXT: dict[str, Change] = {
    "python": patched("platform.python_version", lambda: "9.9.9"),
    "platform": patched("platform.machine", lambda: "abacus"),
    "packages": patched("gates.flow.binding.version", lambda _: "9.9.9"),
    "plug_ins": patched("gates.flow.binding.plug_ins", lambda _: {"axis": "plugged 9.9"}),
    "seat.loras": cards(card("voice-two", parent="base")),
    "seat.cache": routed("/metrics", b'vllm:cache_config_info{block_size="99"} 1.0\n'),
    "seat.runtime_lora": loading,
    "seat.defaults": own_defaults,
    "seat.open_routes": routed("/adapters", {}),
}


def test_every_field_of_the_context_has_a_change_here(made: Sealed) -> None:
    seal = json.loads(next((made.workspace / "prereg" / "seals").iterdir()).read_bytes())
    # The context length stands in the base's card, too, which is bound: it is refused there.
    seat = {f"seat.{field}" for field in SeatContext.model_fields} - {"seat.max_model_len"}
    assert set(CONTEXT) == {*seal["context"], "plug_ins"} - {"seat"} | seat


def test_another_context_length_is_refused_with_the_card(sealed: Sealed, monkeypatch: pytest.MonkeyPatch) -> None:
    cards(max_model_len=1024)(sealed, monkeypatch)
    refused = gates("run", sealed.gate)
    assert refused.returncode == 2
    assert "seat.base_card.max_model_len: sealed 512, now 1024" in refused.stderr


@pytest.mark.parametrize("field", CONTEXT)
def test_a_change_of_the_context_is_recorded_as_a_deviation(
    sealed: Sealed, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    CONTEXT[field](sealed, monkeypatch)
    # What was seen stands on the disk before the first text is asked for; more is not needed here.
    sealed.seat.at[1] = lambda: setattr(sealed.seat, "fingerprint", "f-2")
    ended = gates("run", sealed.gate)
    assert ended.returncode == 4, ended
    (session,) = lines(sealed.workspace / "reports/small/001/sessions.jsonl")
    named = [told for told in session["deviations"] if told.startswith((f"{field}:", f"{field}."))]
    assert named
    # Where adapters can be loaded without a key there is also one more open route.
    assert len(session["deviations"]) == (2 if field == "seat.runtime_lora" else len(named))
    assert f"deviates from the seal: {named[0]}" in ended.stderr
