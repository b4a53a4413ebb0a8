"""vLLM's contract as a client sees it. The expected shapes and words were read off a vLLM 0.32 server."""

import http.client
import json
import re
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gates.seat.embedded.serve import EmbeddedSeat
from tests.seat.embedded.conftest import E12, RANON, Client, chat_body

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


def test_plain_endpoints(client):
    health = client.get("/health")
    assert (health.status_code, health.content) == (200, b"")
    assert "content-type" not in health.headers
    assert client.post("/ping", {}).status_code == 200
    assert set(client.get("/version").json()) == {"version"}
    for path in ("/nope", "/v1/models/base"):
        assert (client.get(path).status_code, client.get(path).json()) == (404, {"detail": "Not Found"})
    wrong = client.get(CHAT)
    assert (wrong.status_code, wrong.json()) == (405, {"detail": "Method Not Allowed"})


def test_model_cards(client):
    listing = client.get("/v1/models").json()
    assert listing["object"] == "list"
    cards = {card["id"]: card for card in listing["data"]}
    assert list(cards) == ["base", "e12", "ranon"]
    assert (cards["base"]["parent"], cards["base"]["max_model_len"]) == (None, 256)
    assert cards["base"]["root"].endswith("SmolLM2-135M-Instruct.Q4_1.gguf")
    assert (cards["e12"]["root"], cards["e12"]["parent"], cards["e12"]["max_model_len"]) == (str(E12), "base", None)
    assert {card["object"] for card in cards.values()} == {"model"}
    assert cards["ranon"]["permission"][0]["object"] == "model_permission"


def test_chat_answer_has_every_field_of_the_contract(client):
    answer = client.chat("e12")
    assert answer["id"].startswith("chatcmpl-")
    assert (answer["object"], answer["model"]) == ("chat.completion", "e12")
    (choice,) = answer["choices"]
    assert choice["message"]["role"] == "assistant"
    assert (choice["index"], choice["finish_reason"], choice["stop_reason"]) == (0, "length", None)
    assert (choice["logprobs"], choice["token_ids"], answer["prompt_token_ids"]) == (None, None, None)
    usage = answer["usage"]
    assert (usage["completion_tokens"], usage["total_tokens"]) == (8, usage["prompt_tokens"] + 8)
    assert re.fullmatch(r"gates-embedded-[\w.]+-[0-9a-f]{8}", answer["system_fingerprint"])
    assert client.chat("base")["system_fingerprint"] == answer["system_fingerprint"]


def test_a_missing_or_empty_model_is_the_base(client):
    wanted = client.chat("base")
    for model in (None, ""):
        answer = client.chat(model)
        assert (answer["model"], answer["choices"]) == ("base", wanted["choices"])


WRONG = [
    ({"model": "zzz"}, 404, "NotFoundError", "model", "The model `zzz` does not exist. Valid aliases: base."),
    (
        {"max_tokens": 5000},
        400,
        "BadRequestError",
        "max_tokens",
        "max_tokens=5000 cannot be greater than max_model_len=256.",
    ),
    ({"max_tokens": 0}, 400, "BadRequestError", "max_tokens", "max_tokens must be at least 1, got 0."),
    ({"temperature": -1}, 400, "BadRequestError", "temperature", "must be non-negative"),
    ({"temperature": 3}, 400, "BadRequestError", "temperature", "must be in [0, 2]"),
    ({"temperature": "hot"}, 400, "Bad Request", "body.temperature", "1 validation error"),
    ({"top_p": 0}, 400, "BadRequestError", "top_p", "must be in (0, 1]"),
    ({"n": 2, "temperature": 0}, 400, "BadRequestError", "n", "n must be 1 when using greedy sampling, got 2."),
    ({"logprobs": True, "top_logprobs": 50}, 400, "BadRequestError", "logprobs", "greater than max allowed: 20"),
    ({"top_logprobs": 2}, 400, "BadRequestError", "top_logprobs", "`logprobs` must be set to true"),
    ({"stop": list("abcde")}, 400, "Bad Request", "body.stop", "validation error"),
    ({"stop": ""}, 400, "BadRequestError", "stop", "stop cannot contain an empty string."),
    ({"seed": 2**63}, 400, "Bad Request", "body.seed", "1 validation error"),
    ({"messages": []}, 400, "BadRequestError", None, "Cannot apply chat template to an empty conversation."),
    ({"messages": None}, 400, "Bad Request", "body.messages", "1 validation error"),
    ({"logit_bias": {"3": 1}}, 400, "BadRequestError", "logit_bias", "not supported by the embedded seat"),
    ({"stream_options": {}}, 400, "BadRequestError", "stream_options", "`stream=True`"),
    (
        {"messages": [{"role": "user", "content": "word " * 300}]},
        400,
        "BadRequestError",
        "input_tokens",
        "This model's maximum context length is 256 tokens. However, your prompt contains at least",
    ),
    ({"messages": [{"role": "user", "content": "x" * 40_000}]}, 400, "BadRequestError", "input_text", "40"),
]


@pytest.mark.parametrize(("change", "status", "kind", "param", "message"), WRONG)
def test_refusals(client, change, status, kind, param, message):
    answer = client.post(CHAT, chat_body(**change))
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["type"], error["param"]) == (status, status, kind, param)
    assert message in error["message"]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"{", "application/json"),
        (b"[" * 100_000, "application/json"),
        (b'{"messages": "\\ud800"}', "application/json"),
        (b'{"messages": [], "temperature": NaN}', "application/json"),
        (b"{}", "text/plain"),
        (b"[]", "application/json"),
    ],
)
def test_bodies_that_are_no_request(client, data, kind):
    answer = client.http.post(CHAT, content=data, headers={"content-type": kind})
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "Bad Request")


def test_a_body_over_the_limit_is_refused(client):
    answer = client.post(COMPLETIONS, {"prompt": "x" * (2 * 2**20)})
    assert answer.status_code == 413
    assert "exceeds 2097152 bytes" in answer.json()["error"]["message"]


def test_fields_that_change_nothing_are_accepted(client):
    plain = client.chat()["choices"]
    salted = client.chat(cache_salt="s", chat_template_kwargs={"enable_thinking": False}, user="me", unheard_of=1, n=1)
    assert salted["choices"] == plain


def test_a_length_over_the_context_is_clamped_silently(client):
    prompt = client.post("/tokenize", {"prompt": "a b " * 110}).json()["tokens"]
    body = {"prompt": prompt, "max_tokens": 256, "ignore_eos": True, "seed": 1}
    answer = client.post(COMPLETIONS, body).json()
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["total_tokens"] == 256


def test_completions(client):
    body = {"prompt": "The moor was", "seed": 3, "logprobs": 2, "echo": False, "return_token_ids": True}
    answer = client.post(COMPLETIONS, body).json()
    (choice,) = answer["choices"]
    assert (answer["object"], answer["usage"]["completion_tokens"]) == ("text_completion", 16)
    assert answer["id"].startswith("cmpl-")
    logprobs = choice["logprobs"]
    assert len(logprobs["tokens"]) == len(logprobs["token_logprobs"]) == len(choice["token_ids"]) == 16
    assert "".join(logprobs["tokens"]) == choice["text"]
    assert all(2 <= len(top) <= 3 for top in logprobs["top_logprobs"])
    assert choice["text"][logprobs["text_offset"][5] :].startswith(logprobs["tokens"][5])
    echoed = client.post(COMPLETIONS, {"prompt": "The moor was", "seed": 3, "echo": True}).json()
    assert echoed["choices"][0]["text"] == "The moor was" + choice["text"]
    by_ids = client.post(COMPLETIONS, {"prompt": choice["prompt_token_ids"], "seed": 3}).json()
    assert by_ids["choices"][0]["text"] == choice["text"]
    empty = client.post(COMPLETIONS, {"prompt": ""})
    assert (empty.status_code, empty.json()["error"]["param"]) == (400, "prompt")


def test_token_ids_and_tokenize_agree(client):
    answer = client.chat(return_token_ids=True)
    counted = client.post("/tokenize", {"model": "e12", "messages": chat_body()["messages"]}).json()
    assert counted["tokens"] == answer["prompt_token_ids"]
    assert (counted["count"], counted["max_model_len"]) == (answer["usage"]["prompt_tokens"], 256)
    assert client.post("/detokenize", {"tokens": answer["choices"][0]["token_ids"]}).json() == {
        "prompt": answer["choices"][0]["message"]["content"]
    }
    strings = client.post("/tokenize", {"prompt": "the moor", "return_token_strs": True}).json()["token_strs"]
    assert strings == ["the", " moor"]
    assert client.post("/tokenize", {"model": "zzz", "prompt": "x"}).status_code == 404


def test_metrics(client):
    client.chat()
    text = client.get("/metrics").text
    assert 'vllm:lora_requests_info{max_lora="2",running_lora_adapters="e12,ranon",waiting_lora_adapters=""}' in text
    assert re.search(r"vllm:cache_config_info\{.*kv_cache_size_tokens=\"512\".*enable_prefix_caching=\"False\"", text)
    assert 'vllm:request_success_total{model_name="base",engine="0",finished_reason="length"}' in text
    assert 'vllm:num_requests_running{model_name="base",engine="0"} 0\n' in text


def test_loading_and_unloading(client, tmp_path):
    body = {"lora_name": "third", "lora_path": str(RANON)}
    loaded = client.post("/v1/load_lora_adapter", body)
    assert (loaded.status_code, loaded.text) == (200, "Success: LoRA adapter 'third' added successfully.")
    assert "content-type" not in loaded.headers
    assert client.chat("third")["choices"] == client.chat("ranon")["choices"]
    again = client.post("/v1/load_lora_adapter", body)
    assert (again.status_code, again.json()["error"]["type"]) == (400, "InvalidUserInput")
    assert "has already been loaded" in again.json()["error"]["message"]
    swapped = client.post("/v1/load_lora_adapter", {**body, "lora_path": str(E12), "load_inplace": True})
    assert swapped.status_code == 200
    assert client.chat("third")["choices"] == client.chat("e12")["choices"]
    gone = client.post("/v1/unload_lora_adapter", {"lora_name": "third"})
    assert (gone.status_code, gone.text) == (200, "Success: LoRA adapter 'third' removed successfully.")
    assert client.post(CHAT, chat_body("third")).status_code == 404
    foreign = tmp_path / "foreign.gguf"
    foreign.write_bytes(b"GGUF" + bytes(100))
    for path, status, words in (
        (str(tmp_path / "nowhere"), 404, f"Loading lora third failed: No adapter found for {tmp_path / 'nowhere'}"),
        (str(foreign), 500, "Call to add_lora method failed: Worker failed with error"),
        ("", 400, "Both 'lora_name' and 'lora_path' must be provided."),
    ):
        bad = client.post("/v1/load_lora_adapter", {**body, "lora_path": path})
        assert (bad.status_code, bad.json()["error"]["code"]) == (status, status)
        assert words in bad.json()["error"]["message"]
    shadow = client.post("/v1/load_lora_adapter", {**body, "lora_name": "base"}).json()["error"]
    assert shadow["message"] == "The lora adapter 'base' conflicts with a served base model."
    unknown = client.post("/v1/unload_lora_adapter", {"lora_name": "nope"}).json()["error"]
    assert (unknown["code"], unknown["message"]) == (404, "The lora adapter 'nope' cannot be found.")
    assert [card["id"] for card in client.get("/v1/models").json()["data"]] == ["base", "e12", "ranon"]


def test_the_key_guards_v1_alone(cache):
    with EmbeddedSeat(cache, "base", {}, servers=1, api_key="sk-test", max_model_len=128) as seat:
        client = Client(seat)
        for header in ({}, {"authorization": "Bearer wrong"}, {"authorization": "sk-test"}):
            refused = client.get("/v1/models", headers=header)
            assert (refused.status_code, refused.json()) == (401, {"error": "Unauthorized"})
        assert client.get("/v1/models", headers={"authorization": "bearer sk-test"}).status_code == 200
        assert client.get("/health").status_code == client.get("/metrics").status_code == 200
        loading = client.post("/v1/load_lora_adapter", {}, headers={"authorization": "Bearer sk-test"})
        assert (loading.status_code, loading.json()) == (404, {"detail": "Not Found"})
        client.http.close()


def test_it_listens_on_loopback_alone(client):
    port = urlsplit(client.url).port
    table = [line.split() for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]]
    listening = [row[1] for row in table if row[3] == "0A" and row[1].endswith(f":{port:04X}")]
    assert listening == [f"0100007F:{port:04X}"]


def test_a_client_that_hangs_up_frees_its_server(client):
    address = urlsplit(client.url)
    for stream in (False, True):
        connections = [http.client.HTTPConnection(address.hostname, address.port) for _ in range(2)]
        body = json.dumps(chat_body(max_tokens=200, ignore_eos=True, stream=stream))
        for connection in connections:
            connection.request("POST", CHAT, body, {"content-type": "application/json"})
        _wait_for(client, "vllm:num_requests_running", 2)
        for connection in connections:
            connection.sock.shutdown(socket.SHUT_RDWR)
            connection.close()
        _wait_for(client, "vllm:num_requests_running", 0)
        assert client.chat(max_tokens=1)["usage"]["completion_tokens"] == 1


def _wait_for(client, series, value):
    for _ in range(500):
        if re.search(rf"^{series}\{{.*\}} {value}$", client.get("/metrics").text, re.MULTILINE):
            return
        time.sleep(0.01)
    raise AssertionError(f"{series} never became {value}")
