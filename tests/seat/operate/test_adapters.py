"""Loading, unloading and status: every refusal of vLLM's explained, on a real socket; drift in either direction."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gates.errors import SeatError, UsageError
from gates.seat.client import SeatClient
from gates.seat.operate.adapters import check_adapter, load, unload
from gates.seat.operate.lint import rank_of
from gates.seat.operate.service import Service
from gates.seat.operate.status import Served, compare
from tests.flow.conftest import gates
from tests.flow.threaded import Seat, listening, running
from tests.seat.faulty import FaultySeat, Request, Wire, error


def ticks() -> Any:
    moments: Iterator[float] = iter((10.0, 10.24))
    return lambda: next(moments)


# What vLLM 0.32 and 0.33 answer, with the cause and the remedy that must be named.
SAID = {
    "loaded": (400, "InvalidUserInput", "The lora adapter 'b' has already been loaded. If you want ...", "new name"),
    "path": (404, "NotFoundError", "Loading lora x failed: No adapter found for /a/b", "container sees it"),
    "empty": (400, "InvalidUserInput", "Both 'lora_name' and 'lora_path' must be provided.", "NAME PATH"),
    "schema": (400, "Bad Request", "1 validation error: body.lora_path: Field required", "NAME PATH"),
    "base": (400, "InvalidUserInput", "The lora adapter 'base' conflicts with a served base model.", "no base has"),
    "rank": (
        500,
        "InternalServerError",
        "Call to add_lora method failed: Worker failed with error 'LoRA rank 64 is greater than max_lora_rank 16.'",
        "higher --max-lora-rank",
    ),
    "modules": (
        500,
        "InternalServerError",
        "Call to add_lora method failed: ... 'vLLM only supports modules_to_save being either None or '",
        "without modules_to_save",
    ),
    "dora": (
        500,
        "InternalServerError",
        "Call to add_lora method failed: Worker failed with error 'vLLM does not yet support DoRA.'",
        "merge it",
    ),
    "tensors": (
        500,
        "InternalServerError",
        "Call to add_lora method failed: Worker failed with error '/adapters/lv-dora doesn't contain tensors'",
        "must hold lora_A and lora_B",
    ),
    "bias": (
        500,
        "InternalServerError",
        "Call to add_lora method failed: Worker failed with error 'Adapter bias is not supported.'",
        'bias: "none"',
    ),
    "init": (
        500,
        "InternalServerError",
        "Call to add_lora method failed: Worker failed with error 'vLLM does not support init_lora_weights='pissa'.'",
        "convert it to a plain LoRA",
    ),
    "other modules": (
        500,
        "InternalServerError",
        "Call to add_lora method failed: Worker failed with error 'While loading /adapters/x, expected target modules'",
        "gates seat supports",
    ),
    "empty file": (
        500,
        "InternalServerError",
        "Call to add_lora method failed: Worker failed with error '', please check the stack trace above",
        "server's log",
    ),
    "log": (
        500,
        "InternalServerError",
        "Call to add_lora method failed: Worker failed with error 'lv-dora, bias-free: KeyError'",
        "server's log",
    ),
    "off": (500, "InternalServerError", "... LoRA is not enabled. Use --enable-lora to enable LoRA.", "--enable-lora"),
    "broken": (400, "BadRequestError", "LoRA adapter 'X' was found but could not be loaded.", "server's log"),
}


def call(seat: FaultySeat, act: Any) -> Any:
    async def main() -> Any:
        async with seat, SeatClient(seat.url) as client:
            return await act(client)

    return asyncio.run(main())


def answering(status: int, document: object) -> Any:
    async def answer(_request: Request, wire: Wire) -> None:
        await wire.send(document, status)

    return answer


@pytest.mark.parametrize("case", SAID)
def test_every_refusal_to_load_is_explained(case: str) -> None:
    status, kind, message, remedy = SAID[case]
    seat = FaultySeat(routes={"/v1/load_lora_adapter": answering(status, error(message, kind, status))})
    with pytest.raises(SeatError) as caught:
        call(seat, lambda client: load(client, "x", "/a/b", ticks()))
    assert remedy in caught.value.next_step
    assert message[:40] in caught.value.message
    assert caught.value.message.index("(") > 20, "the cause comes first"
    assert "InternalServerError" not in caught.value.message, "the server's sentence alone is quoted"


def test_several_faults_of_one_adapter_are_all_explained() -> None:
    said = error("... vLLM does not yet support DoRA. LoRA rank 64 is greater than max_lora_rank 16.", "E", 500)
    with pytest.raises(SeatError) as caught:
        call(
            FaultySeat(routes={"/v1/load_lora_adapter": answering(500, said)}),
            lambda client: load(client, "x", "/a/b", ticks()),
        )
    assert "higher --max-lora-rank" in caught.value.next_step
    assert "merge it" in caught.value.next_step


def test_an_adapter_is_never_loaded_over_the_base() -> None:
    # Up to 0.30 the server takes it with 200, and the adapter answers in the base's place.
    seat = FaultySeat(routes={"/v1/load_lora_adapter": answering(200, b"Success")})
    with pytest.raises(SeatError, match="the base's own name") as caught:
        call(seat, lambda client: load(client, "base", "/a/b", ticks()))
    assert "no base has" in caught.value.next_step
    assert {request.method for request in seat.seen} == {"GET"}


@pytest.mark.parametrize("name", ["", "a,b", "a=b", "a\nb", "x" * 257])
def test_a_name_that_the_server_would_cut_is_refused(name: str) -> None:
    ended = gates("seat", "load", name, "/a", "--seat", "http://127.0.0.1:1/v1")
    assert ended.returncode == 2
    assert "is no name for an adapter" in ended.stderr


def test_a_server_without_runtime_loading_says_how_to_turn_it_on() -> None:
    # Neither route is mounted: the router itself answers.
    for act in (lambda client: load(client, "x", "/a", ticks()), lambda client: unload(client, "x", ticks())):
        with pytest.raises(SeatError) as caught:
            call(FaultySeat(), act)
        assert "VLLM_ALLOW_RUNTIME_LORA_UPDATING=1" in caught.value.next_step


@pytest.mark.parametrize(
    ("status", "kind", "said", "remedy"),
    [
        (404, "NotFoundError", "The lora adapter 'nope' cannot be found.", "gates seat status"),
        (400, "InvalidUserInput", "'lora_name' needs to be provided to unload a LoRA adapter.", "unload NAME"),
    ],
)
def test_every_refusal_to_unload_is_explained(status: int, kind: str, said: str, remedy: str) -> None:
    seat = FaultySeat(routes={"/v1/unload_lora_adapter": answering(status, error(said, kind, status))})
    with pytest.raises(SeatError) as caught:
        call(seat, lambda client: unload(client, "nope", ticks()))
    assert remedy in caught.value.next_step


def test_an_unknown_refusal_stays_as_it_was_said() -> None:
    seat = FaultySeat(routes={"/v1/load_lora_adapter": answering(418, error("teapot", "X", 418))})
    with pytest.raises(SeatError, match=r"418.*teapot"):
        call(seat, lambda client: load(client, "x", "/a", ticks()))


def test_loading_is_timed_and_sends_name_and_path() -> None:
    said = b"Success: LoRA adapter 'x' added successfully."
    seat = FaultySeat(routes={"/v1/load_lora_adapter": answering(200, said)}, models=("base", "x"))
    done = call(seat, lambda client: load(client, "x", "/adapters/x", ticks()))
    assert (done.said, round(done.seconds, 2)) == (said.decode(), 0.24)
    (sent,) = [request.body for request in seat.seen if request.method == "POST"]
    assert sent == {"lora_name": "x", "lora_path": "/adapters/x"}


def test_a_200_that_changed_nothing_is_no_success() -> None:
    page = answering(200, b"<html>Welcome</html>")
    seat = FaultySeat(routes={"/v1/load_lora_adapter": page, "/v1/unload_lora_adapter": page}, models=("base", "y"))
    with pytest.raises(SeatError, match=r"Welcome.* does not list x: it is not loaded"):
        call(seat, lambda client: load(client, "x", "/adapters/x", ticks()))
    with pytest.raises(SeatError, match=r"Welcome.* still lists y: it is not unloaded"):
        call(seat, lambda client: unload(client, "y", ticks()))


def test_names_that_are_served_twice_and_odd_versions_are_told_of() -> None:
    seat = FaultySeat(models=("base", "x", "x"), routes={"/version": answering(200, {"version": "1\x1b[2J\nno drift"})})
    with running(lambda: Odd(seat)) as served:
        ended = gates("seat", "status", "--seat", served.faulty.url)
    assert ended.returncode == 1
    assert "x is served more than once: one model hides the other" in ended.stdout
    assert ended.stdout.startswith(f"{served.faulty.url}: 1 [2J no drift; base base\n")


class Odd(Seat):
    """A thread's seat that is the one given."""

    def __init__(self, seat: FaultySeat) -> None:
        super().__init__()
        self.faulty = seat


PLAIN = {"peft_type": "LORA", "r": 16, "bias": "none", "lora_alpha": 32, "target_modules": ["q_proj"]}


def test_the_house_swap_is_told_to_the_millisecond(monkeypatch: pytest.MonkeyPatch) -> None:
    routes = {"/v1/load_lora_adapter": answering(200, b"loaded"), "/v1/unload_lora_adapter": answering(200, b"off")}
    seat = FaultySeat(routes=routes, models=("base", "lv-x"))
    moments = iter((1.0, 1.24, 2.0, 2.003))
    monkeypatch.setattr("gates.cli.seat.adapters.time", SimpleNamespace(perf_counter=lambda: next(moments)))
    with listening(seat):
        loaded = gates("seat", "load", "lv-x", "/adapters/lv-x", "--seat", seat.url)
        seat.models = ("base",)
        unloaded = gates("seat", "unload", "lv-x", "--seat", seat.url)
    assert loaded.stdout.startswith(
        "loaded (0.240 s)\nlv-x is loaded until the next restart; list it in --lora-modules"
    )
    assert unloaded.stdout.startswith("off (0.003 s)\n")


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    folder = tmp_path / "lv-x"
    folder.mkdir()
    (folder / "adapter_model.safetensors").write_bytes(b"x")
    (folder / "adapter_config.json").write_text(json.dumps(PLAIN), "utf-8")
    return folder


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"r": 64}, "rank 64 is over --max-lora-rank 32"),
        ({"r": None}, "r is None"),
        ({"r": "8" * 5000}, "not a rank"),
        ({"rank_pattern": {"q_proj": 64}}, "rank 64 is over --max-lora-rank 32"),
        ({"rank_pattern": {"q_proj": "64"}}, "not a rank"),
        ({"rank_pattern": 64}, "rank 64 is over"),
        ({"rank_pattern": "x"}, "not a rank"),
        ({"lora_alpha": None}, "lora_alpha is missing"),
        ({"target_modules": None}, "target_modules is missing"),
        ({"use_dora": True}, "DoRA"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"bias": "all"}, "bias is 'all'"),
        ({"lora_bias": True}, "lora_bias is set"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights is 'pissa'"),
        ({"peft_type": "IA3"}, "peft_type is 'IA3'"),
    ],
)
def test_what_vllm_refuses_is_known_before_the_call(adapter: Path, change: dict[str, Any], said: str) -> None:
    assert check_adapter(adapter, max_rank=32) == []
    config = adapter / "adapter_config.json"
    config.write_text(json.dumps(json.loads(config.read_bytes()) | change), "utf-8")
    (wrong,) = check_adapter(adapter, max_rank=32)
    assert said in wrong
    ended = gates("seat", "load", "x", adapter, "--max-lora-rank", 32, "--seat", "http://127.0.0.1:1/v1")
    assert ended.returncode == 2
    assert said in ended.stderr


def test_an_adapter_without_weights_or_configuration_is_named(adapter: Path) -> None:
    (adapter / "adapter_model.safetensors").unlink()
    assert "no adapter_model.safetensors" in check_adapter(adapter)[0]
    (adapter / "adapter_config.json").write_text("{", "utf-8")
    with pytest.raises(UsageError, match="no JSON"):
        check_adapter(adapter)


@pytest.mark.parametrize("device", [None, "/dev/zero", "adapter_config.json"])
def test_a_configuration_that_is_no_file_is_not_waited_for(adapter: Path, device: str | None) -> None:
    config = adapter / "adapter_config.json"
    config.unlink()
    if device is None:
        os.mkfifo(config)
    else:
        config.symlink_to(device)
    with pytest.raises(UsageError, match=r"not a regular file|symbolic links"):
        check_adapter(adapter)
    assert rank_of(adapter) is None


def service(*modules: str, mounts: tuple[tuple[str, str, bool], ...] = ()) -> Service:
    return Service("seat", "vllm", {"lora-modules": list(modules)}, {}, (), mounts, True)


def test_drift_in_either_direction(adapter: Path) -> None:
    served = Served("1", ("base",), {"lv-x": "/adapters/lv-x", "lv-new": "/tmp/lv-new", "lv-moved": "/a"}, True)
    listed = service(
        "lv-x=/adapters/lv-x",
        "lv-gone=/adapters/lv-gone",
        "lv-moved=/b",
        mounts=((str(adapter.parent), "/adapters", True),),
    )
    drift = {row.name: "; ".join(row.drift) for row in compare(served, listed, None)}
    assert drift["lv-x"] == ""
    assert "lv-new is loaded but not listed: gone at the next restart" in drift["lv-new"]
    assert "lv-gone is listed but not served" in drift["lv-gone"]
    assert "lv-gone is listed, not on disk: the server will not start without" in drift["lv-gone"]
    assert f"{adapter.parent}/lv-gone" in drift["lv-gone"]
    assert (
        "lv-moved was loaded from /a, /b is listed: other bytes, perhaps, after the next restart" in drift["lv-moved"]
    )
    assert "the server will not start without a volume for /b" in drift["lv-moved"]


def test_what_cannot_be_seen_from_here_is_not_called_missing() -> None:
    listed = service("lv-x=/adapters/lv-x", mounts=(("voices", "/adapters", True),))
    (row,) = compare(Served("1", ("base",), {"lv-x": "/adapters/lv-x"}, True), listed, None)
    assert (row.drift, row.out_of_sight) == ((), True)


def test_a_folder_of_another_name_than_the_voice_is_its_place(adapter: Path) -> None:
    (row,) = compare(None, service("voice=/adapters/lv-x"), adapter.parent)
    assert (row.name, row.on_disk, row.drift) == ("voice", str(adapter), ())


def test_what_is_only_on_disk_is_shown_without_drift(adapter: Path) -> None:
    (row,) = compare(Served("1", ("base",), {}, None), None, adapter.parent)
    assert (row.name, row.served, row.drift) == ("lv-x", None, ())
    assert row.on_disk == str(adapter)


def test_an_adapter_that_shadows_the_base_is_drift() -> None:
    (row,) = compare(Served("1", ("base",), {"base": "/a"}, None), None, None)
    assert "base is the base's own name, too" in row.drift[0]
