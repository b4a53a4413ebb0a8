"""What a seat says of itself, and the bytes of adapters on disk."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from gates.errors import UnfitSeatError, UsageError
from gates.records import digest
from gates.seat.client import SeatClient
from gates.seat.faults import BrokenContractError, TransientError
from gates.seat.identity import SeatIdentity, adapter_files, probe
from gates.spec.schema import Gate
from tests.seat.faulty import BASE, ONE, TWO, FaultySeat, Request, Wire, a_gate, card, reply, status

GATE = a_gate()


def identify(seat: FaultySeat, gate: Gate = GATE) -> SeatIdentity:
    async def main() -> SeatIdentity:
        async with seat, SeatClient(seat.url) as client:
            return await probe(client, gate)

    return asyncio.run(main())


def test_a_vllm_seat_in_full() -> None:
    seat = FaultySeat()
    identity = identify(seat)
    assert identity.base_url == seat.url
    binding, context = identity.binding, identity.context
    assert (binding.version, binding.fingerprint) == ("0.33.0", "vllm-0.33.0-abc")
    assert binding.base_card == {
        "id": BASE,
        "object": "model",
        "owned_by": "vllm",
        "root": "/models/base",
        "parent": None,
        "max_model_len": 512,
    }
    assert binding.base_card_sha256 == digest(binding.base_card)
    assert [(lora.name, lora.root, lora.parent) for lora in context.loras] == [
        (ONE, f"/models/{ONE}", BASE),
        (TWO, f"/models/{TWO}", BASE),
    ]
    assert context.cache == {"block_size": "16", "enable_prefix_caching": "True", "note": 'a \\"b\\", c'}
    assert (context.max_model_len, context.runtime_lora) == (512, False)
    assert SeatIdentity.parse(identity.model_dump_json().encode(), where="x") == identity


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
def test_what_is_binding_is_the_same_on_every_call(endpoint: str) -> None:
    gate = a_gate(prompts={"file": "b", "template": "{beat}", "endpoint": endpoint})
    first, second = identify(FaultySeat(), gate), identify(FaultySeat(models=(TWO, BASE)), gate)
    assert first.binding == second.binding
    assert first.context != second.context


def test_a_server_that_tells_little() -> None:
    async def wrong_method(request: Request, wire: Wire) -> None:
        await wire.send({"detail": "Method Not Allowed"}, 405)

    routes = {
        "/version": status(404),
        "/metrics": status(403),
        "/v1/models": reply({"data": [{"id": BASE}]}),
        "/v1/load_lora_adapter": wrong_method,
    }
    identity = identify(FaultySeat(routes=routes))
    assert (identity.binding.version, identity.context.cache, identity.context.max_model_len) == (None, None, None)
    assert identity.context.runtime_lora is True
    assert identify(FaultySeat(routes={"/v1/load_lora_adapter": status(401)})).context.runtime_lora is None
    assert identify(FaultySeat(routes={"/metrics": reply(b"up 1\n")})).context.cache is None


def test_a_seat_without_the_gates_base_is_unfit() -> None:
    with pytest.raises(UnfitSeatError, match="does not serve the gate's base 'base'; it serves: voice-one, other"):
        identify(FaultySeat(models=(ONE, "other")))
    with pytest.raises(UnfitSeatError, match="it serves: none"):
        identify(FaultySeat(models=()))


def test_an_adapter_that_hides_its_base_is_refused() -> None:
    cards = reply({"data": [card(BASE), card(BASE, parent=BASE)]})
    with pytest.raises(UnfitSeatError, match="lists more than one model as base: one hides the other") as caught:
        identify(FaultySeat(routes={"/v1/models": cards}))
    assert "give the adapter a name that no base has" in caught.value.next_step


def test_an_adapter_that_stands_in_its_bases_place_is_refused() -> None:
    cards = reply({"data": [card(BASE, parent=BASE), card(ONE, parent=BASE)]})
    with pytest.raises(UnfitSeatError, match="lists 'base' as an adapter of itself: an adapter hides the base"):
        identify(FaultySeat(routes={"/v1/models": cards}))


def test_a_card_without_canonical_form_is_refused() -> None:
    cards = reply({"data": [{"id": BASE, "size": 2**60}]})
    with pytest.raises(BrokenContractError, match="no canonical JSON form"):
        identify(FaultySeat(routes={"/v1/models": cards}))


def test_a_context_length_that_is_no_number_is_not_told() -> None:
    cards = reply({"data": [{"id": BASE, "max_model_len": True}]})
    assert identify(FaultySeat(routes={"/v1/models": cards})).context.max_model_len is None


def test_a_seat_that_fails_while_probed_is_no_identity() -> None:
    with pytest.raises(TransientError, match="the seat answered 500"):
        identify(FaultySeat(faults=[status(500)]))


# sha256sum of "a" and of "b"
A = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
B = "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"


def test_a_folder_of_adapter_files(tmp_path: Path) -> None:
    folder = tmp_path / "adapter"
    (folder / "sub").mkdir(parents=True)
    (folder / "z.safetensors").write_bytes(b"a")
    (folder / "sub" / "config.json").write_bytes(b"b")
    (folder / "link.json").symlink_to("sub/config.json")
    (folder / "again").symlink_to("sub")
    os.mkfifo(folder / "pipe")
    files = adapter_files(folder)
    assert files == {"link.json": B, "sub/config.json": B, "z.safetensors": A}
    assert list(files) == sorted(files)
    (tmp_path / "by-link").symlink_to(folder)
    assert adapter_files(tmp_path / "by-link") == files


def test_a_single_file_and_nothing_at_all(tmp_path: Path) -> None:
    (tmp_path / "voice.gguf").write_bytes(b"a")
    assert adapter_files(tmp_path / "voice.gguf") == {"voice.gguf": A}
    assert adapter_files(tmp_path / "missing") is None
    (tmp_path / "dangling").symlink_to("nowhere")
    assert adapter_files(tmp_path / "dangling") is None


@pytest.mark.parametrize("target", ["outside.bin", "outside", "adapter/weights", "nowhere"])
def test_a_link_out_of_the_folder_is_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside.bin").write_bytes(b"a")
    folder = tmp_path / "adapter"
    folder.mkdir()
    (folder / "weights").symlink_to(tmp_path / target)
    with pytest.raises(UsageError, match="adapter/weights: the link leads out of the adapter's folder"):
        adapter_files(folder)


def test_an_empty_or_unreadable_adapter_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="holds no file"):
        adapter_files(tmp_path)
    (tmp_path / "w").write_bytes(b"a")

    def denied(path: Path, *_: object, **__: object) -> object:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", denied)  # a mode would not stop a root user
    with pytest.raises(UsageError, match="/w: the adapter cannot be read: Permission denied"):
        adapter_files(tmp_path)
