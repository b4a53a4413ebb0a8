"""One embedded seat for all tests here, on the real carrier out of the cache."""

import json
import os
from pathlib import Path

import httpx2
import pytest

from gates.corpora.cache import cache_dir
from gates.seat.embedded.serve import EmbeddedSeat

ADAPTERS = Path(__file__).parents[3] / "prereg" / "demo" / "adapters"
E12, RANON = ADAPTERS / "lv-bronte-e12.gguf", ADAPTERS / "lv-bronte-ranon.gguf"


class Client:
    """Requests to one seat, with what every test sends filled in."""

    def __init__(self, seat: EmbeddedSeat) -> None:
        self.url = seat.base_url.removesuffix("/v1")
        self.http = httpx2.Client(base_url=self.url, timeout=60)

    def get(self, path: str, **kwargs):
        return self.http.get(path, **kwargs)

    def post(self, path: str, body, **kwargs):
        return self.http.post(path, json=body, **kwargs)

    def chat(self, model: str = "base", **fields):
        answer = self.post("/v1/chat/completions", chat_body(model, **fields))
        assert answer.status_code == 200, answer.text
        return answer.json()

    def events(self, path: str, body):
        with self.http.stream("POST", path, json={**body, "stream": True}) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line]
        assert lines[-1] == "[DONE]"
        return [json.loads(line) for line in lines[:-1]]


def chat_body(model: str = "base", **fields):
    messages = [{"role": "user", "content": "Beat: A letter comes."}]
    return {
        "model": model,
        "messages": messages,
        "max_tokens": 8,
        "seed": 7,
        "temperature": 0.9,
        "top_p": 0.95,
    } | fields


@pytest.fixture(scope="session")
def cache():
    return cache_dir(os.environ)


@pytest.fixture(scope="session")
def seat(cache):
    adapters = {"e12": E12, "ranon": RANON}
    with EmbeddedSeat(cache, "base", adapters, servers=2, runtime_lora=True, max_model_len=256) as running:
        yield running


@pytest.fixture(scope="session")
def client(seat):
    made = Client(seat)
    yield made
    made.http.close()
