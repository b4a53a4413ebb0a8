"""The contract of a seat as raw requests see it: each fact is asked of a running server, and told in a few words.

`copes` is what the client copes with, as a pattern of the whole answer. What servers may answer differently has more
than one form in it; docs/seat.md lists where the embedded seat and vLLM do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
from safetensors.numpy import save_file

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
COPY, WRONG = "gates-conformance-copy", "gates-conformance-wrong-keys"


@dataclass
class Seat:
    """A running server under test: its root address, its key if it wants one, and a folder that it can read."""

    root: str
    key: str | None
    folder: Path
    seen: dict[str, str] = field(default_factory=dict)

    @cached_property
    def http(self) -> httpx2.Client:
        headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
        return httpx2.Client(base_url=self.root, timeout=120, headers=headers, trust_env=False)

    @cached_property
    def cards(self) -> list[dict[str, Any]]:
        cards: list[dict[str, Any]] = self.http.get("/v1/models").json()["data"]
        return cards

    @property
    def base(self) -> str:
        return str(next(card["id"] for card in self.cards if card["parent"] is None))

    @property
    def adapters(self) -> dict[str, str]:
        """Served name -> path, of those that were there before the test."""
        return {card["id"]: card["root"] for card in self.cards if card["parent"] is not None}

    def body(self, **changes: Any) -> dict[str, Any]:
        """A short chat request to the base; None takes a field out."""
        text = [{"role": "user", "content": "Beat: A letter comes late."}]
        fields = {"model": self.base, "messages": text, "max_tokens": 6, "seed": 7, "temperature": 0.9, "top_p": 0.95}
        return {name: value for name, value in (fields | changes).items() if value is not None}

    def chat(self, **changes: Any) -> httpx2.Response:
        return self.http.post(CHAT, json=self.body(**changes))

    def text(self, **changes: Any) -> str:
        return str(self.chat(**changes).json()["choices"][0]["message"]["content"])

    def manage(self, what: str, **body: Any) -> httpx2.Response:
        return self.http.post(f"/v1/{what}_lora_adapter", json=body)


def told(answer: httpx2.Response) -> str:
    """Status, and the error's type and parameter where the body is one."""
    try:
        document = answer.json()
    except ValueError:
        return f"{answer.status_code} {'text' if answer.text else 'without a body'}"
    error = document.get("error") if isinstance(document, dict) else None
    if isinstance(error, dict):
        return f"{answer.status_code} {error['type']}, param {error['param']}"
    plain = isinstance(document, dict) and set(document) in ({"detail"}, {"error"})
    return f"{answer.status_code} {json.dumps(document)}" if plain else str(answer.status_code)


Ask = Callable[[Seat], str]


@dataclass(frozen=True)
class Fact:
    """How one thing is asked, and what the client copes with."""

    ask: Ask
    copes: str

    def holds(self, said: str) -> bool:
        return re.fullmatch(self.copes, said) is not None


def asked(**changes: Any) -> Ask:
    return lambda seat: told(seat.chat(**changes))


def fetched(path: str) -> Ask:
    return lambda seat: told(seat.http.get(path))


def posted(data: bytes, kind: str = "application/json") -> Ask:
    return lambda seat: told(seat.http.post(CHAT, content=data, headers={"content-type": kind}))


def model_cards(seat: Seat) -> str:
    bases = [card for card in seat.cards if card["parent"] is None]
    lengths = {type(card["max_model_len"]).__name__ for card in bases}
    parents = {card["parent"] for card in seat.cards if card["parent"] is not None}
    kinds = {type(card["max_model_len"]).__name__ for card in seat.cards if card["parent"] is not None}
    mine = parents == {bases[0]["id"]}
    return f"base: parent null, length {'/'.join(lengths)}; adapters: parent base {mine}, length {'/'.join(kinds)}"


def changing_fields(seat: Seat) -> str:
    first, again = (seat.http.get("/v1/models").json()["data"][0] for _ in range(2))
    moved = {name for name in first if first[name] != again[name]} - {"created"}  # a second may pass, or not
    return ", ".join(sorted(moved)) or "none but created"


def who_answers(seat: Seat) -> str:
    base, adapter = (seat.chat(model=name).json() for name in (seat.base, next(iter(seat.adapters))))
    own = adapter["model"] == next(iter(seat.adapters)) and base["model"] == seat.base
    same = base["system_fingerprint"] == adapter["system_fingerprint"] is not None
    return f"own names {own}, one fingerprint {same}"


def without_model(seat: Seat) -> str:
    answer = seat.chat(model="")
    return f"{answer.status_code}, answered by {'the base' if answer.json()['model'] == seat.base else 'another'}"


def clamped(seat: Seat) -> str:
    length = next(card["max_model_len"] for card in seat.cards if card["parent"] is None)
    prompt = seat.http.post("/tokenize", json={"model": seat.base, "prompt": "a b " * length}).json()["tokens"]
    body = {"model": seat.base, "prompt": prompt[: length - 5], "max_tokens": 20, "ignore_eos": True, "seed": 1}
    answer = seat.http.post(COMPLETIONS, json=body)
    if answer.status_code != 200:
        return told(answer)
    document = answer.json()
    total, reason = document["usage"]["total_tokens"], document["choices"][0]["finish_reason"]
    return f"200, {reason}, stops {'at' if total == length else f'{total - length} tokens off'} the context's end"


def too_long(seat: Seat) -> str:
    length = next(card["max_model_len"] for card in seat.cards if card["parent"] is None)
    return told(seat.chat(messages=[{"role": "user", "content": "a b " * length}]))


def length_over_context(seat: Seat) -> str:
    length = next(card["max_model_len"] for card in seat.cards if card["parent"] is None)
    return told(seat.chat(max_tokens=length + 1))


def exact_length(seat: Seat) -> str:
    answer = seat.chat(max_tokens=9, ignore_eos=True).json()
    return f"{answer['usage']['completion_tokens']} of 9 tokens, {answer['choices'][0]['finish_reason']}"


def same_seed(seat: Seat) -> str:
    return "the same text" if seat.text(max_tokens=12) == seat.text(max_tokens=12) else "another text"


def other_seeds(seat: Seat) -> str:
    texts = {seat.text(seed=seed, temperature=1.5, top_p=1.0, max_tokens=12) for seed in range(4)}
    return "other texts" if len(texts) > 1 else "the same text"


def without_seed(seat: Seat) -> str:
    texts = {seat.text(seed=None, temperature=1.5, top_p=1.0, max_tokens=12) for _ in range(3)}
    return "other texts" if len(texts) > 1 else "the same text"


def neutral_top_k(seat: Seat) -> str:
    texts = {seat.text(top_k=value) for value in (0, -1)}
    return "0 and -1 are the same" if len(texts) == 1 else "0 and -1 differ"


def salt(seat: Seat) -> str:
    return "changes no text" if seat.text() == seat.text(cache_salt="gates-1") else "changes the text"


def chat_fields(seat: Seat) -> str:
    (choice,) = seat.chat(return_token_ids=True).json()["choices"]
    return ", ".join(sorted(choice))


def prompt_ids(seat: Seat) -> str:
    chat = seat.chat(return_token_ids=True).json()
    text = seat.http.post(COMPLETIONS, json={"model": seat.base, "prompt": "The moor", "return_token_ids": True}).json()
    places = ["top" if body.get("prompt_token_ids") else "choice" for body in (chat, text)]
    inside = bool(text["choices"][0].get("prompt_token_ids"))
    return f"chat: {places[0]}; completions: {places[1] if inside else 'missing'}"


def scores(seat: Seat) -> str:
    answer = seat.chat(logprobs=True, top_logprobs=3, temperature=0.0).json()["choices"][0]["logprobs"]["content"]
    first = answer[0]
    return f"{len(answer)} tokens, {len(first['top_logprobs'])} candidates, greedy is the first {_greedy(first)}"


def _greedy(entry: dict[str, Any]) -> bool:
    return bool(entry["top_logprobs"][0]["token"] == entry["token"])


def raw_scores(seat: Seat) -> str:
    """Whether temperature changes the log probabilities that are told: the canary's must be the model's own."""
    best = [max(each["logprob"] for each in _first(seat, temperature)["top_logprobs"]) for temperature in (0.0, 2.0)]
    return "before temperature" if abs(best[0] - best[1]) < 0.05 else "after temperature"


def drawn(seat: Seat) -> str:
    """Where a token that was drawn and is not the likeliest stands among the candidates."""
    for seed in range(20):
        entry = _first(seat, 2.0, seed=seed)
        values = [each["logprob"] for each in entry["top_logprobs"]]
        if entry["logprob"] < max(values):
            first = entry["top_logprobs"][0]["token"] == entry["token"]
            return "the drawn one first" if first else "the likeliest first"
    return "none was drawn"


def _first(seat: Seat, temperature: float, seed: int = 7) -> dict[str, Any]:
    body = seat.chat(logprobs=True, top_logprobs=2, temperature=temperature, top_p=1.0, seed=seed, max_tokens=1)
    first: dict[str, Any] = body.json()["choices"][0]["logprobs"]["content"][0]
    return first


def columns(seat: Seat) -> str:
    body = {"model": seat.base, "prompt": "The moor was", "max_tokens": 4, "seed": 3, "logprobs": 2}
    found = seat.http.post(COMPLETIONS, json=body).json()["choices"][0]["logprobs"]
    return ", ".join(f"{name} {len(found[name])}" for name in ("tokens", "token_logprobs", "top_logprobs"))


def streamed(seat: Seat) -> str:
    body = seat.body(stream=True, stream_options={"include_usage": True}, ignore_eos=True)
    lines = [line for line in seat.http.post(CHAT, json=body).text.splitlines() if line.startswith("data:")]
    events = [json.loads(line[5:]) for line in lines[:-1]]
    usage = events[-1]["usage"]["completion_tokens"] if events[-1].get("usage") else None
    return f"ends with {lines[-1][5:].strip()}, usage {usage} of 6 in the last event"


def metrics(seat: Seat) -> str:
    seat.chat(model=next(iter(seat.adapters)))
    text = seat.http.get("/metrics").text
    names = ("vllm:cache_config_info{", 'max_lora="', "vllm:num_requests_running{", "vllm:prefix_cache_hits_total{")
    return ", ".join(re.sub(r"\W*$", "", name.removeprefix("vllm:")) for name in names if name in text)


def posts_to(path: str) -> Ask:
    """Whether a route for POST is there, and whether it wants the key, asked by a GET."""

    def ask(seat: Seat) -> str:
        status = httpx2.get(f"{seat.root}{path}", trust_env=False).status_code
        return {404: "not there", 405: "open to all", 401: "asks for the key"}.get(status, str(status))

    return ask


def loading(seat: Seat) -> str:
    """Load a served adapter's files again under a new name, ask it, load it again, unload it."""
    name, path = next(iter(seat.adapters.items()))
    loaded = seat.manage("load", lora_name=COPY, lora_path=path)
    if loaded.status_code != 200:
        return told(loaded)
    own, copy = seat.text(model=name), seat.text(model=COPY)
    again = told(seat.manage("load", lora_name=COPY, lora_path=path))
    gone = seat.manage("unload", lora_name=COPY).status_code
    after = told(seat.chat(model=COPY))
    same = "as the original" if own == copy else "otherwise"
    return f"200, answers {same}; again {again}; unloaded {gone}, then {after}"


def loading_badly(what: str, **body: Any) -> Ask:
    def ask(seat: Seat) -> str:
        return told(seat.manage(what, **{key: value or seat.base for key, value in body.items()}))

    return ask


def wrong_adapter(seat: Seat) -> Path:
    """A folder with an adapter whose tensors have a prefix that no module of the base has."""
    folder = seat.folder / "wrong-keys"
    folder.mkdir(exist_ok=True)
    config = {"peft_type": "LORA", "r": 8, "lora_alpha": 16, "target_modules": ["q_proj"], "bias": "none"}
    (folder / "adapter_config.json").write_text(json.dumps(config | {"task_type": "CAUSAL_LM"}), "utf-8")
    stem = "base_model.model.wrong.layers.0.self_attn.q_proj"
    tensors = {f"{stem}.lora_A.weight": np.ones((8, 576), "float32"), f"{stem}.lora_B.weight": np.ones((576, 8), "f4")}
    save_file(tensors, folder / "adapter_model.safetensors")
    return folder


def wrong_keys(seat: Seat) -> str:
    loaded = seat.manage("load", lora_name=WRONG, lora_path=str(wrong_adapter(seat)))
    if loaded.status_code != 200:
        return told(loaded)
    same = seat.text(model=WRONG) == seat.text()
    seat.manage("unload", lora_name=WRONG)
    return f"200, answers {'as the base' if same else 'otherwise'}"


REFUSED = r"400 (BadRequestError|Bad Request), param {}"
FACTS: dict[str, Fact] = {
    "GET /health": Fact(fetched("/health"), "200 without a body"),
    "GET /version": Fact(fetched("/version"), "200"),
    "an unknown path": Fact(fetched("/nope"), r'404 \{"detail": "Not Found"\}'),
    "a wrong method": Fact(fetched(CHAT), r'405 \{"detail": "Method Not Allowed"\}'),
    "model cards": Fact(model_cards, "base: parent null, length int; adapters: parent base True, length NoneType"),
    "card fields that change": Fact(changing_fields, "permission|none but created"),
    "model and fingerprint": Fact(who_answers, "own names True, one fingerprint True"),
    "an unknown model": Fact(asked(model="zzz"), "404 NotFoundError, param model"),
    "an empty model": Fact(without_model, "200, answered by the base"),
    "prompt over the context": Fact(too_long, REFUSED.format("(input_tokens|input_text)")),
    "max_tokens over the context": Fact(length_over_context, REFUSED.format("max_tokens")),
    "prompt and max_tokens over it": Fact(clamped, "200, length, stops at the context's end"),
    "max_tokens 0": Fact(asked(max_tokens=0), REFUSED.format("max_tokens")),
    "temperature -1": Fact(asked(temperature=-1), REFUSED.format("temperature")),
    "temperature 'hot'": Fact(asked(temperature="hot"), REFUSED.format("body.temperature")),
    "top_p 0": Fact(asked(top_p=0), REFUSED.format("top_p")),
    "top_logprobs 50": Fact(asked(logprobs=True, top_logprobs=50), REFUSED.format("logprobs")),
    "five stop strings": Fact(asked(stop=list("abcde")), REFUSED.format("body.stop")),
    "a seed over int64": Fact(asked(seed=2**63), REFUSED.format("body.seed")),
    "no messages": Fact(asked(messages=[]), REFUSED.format("(None|messages)")),
    "broken JSON": Fact(posted(b"{"), REFUSED.format(".*")),
    "a body that is no JSON": Fact(posted(b"{}", "text/plain"), REFUSED.format(".*")),
    "an unknown field": Fact(asked(unheard_of=1), "200"),
    "logit_bias": Fact(asked(logit_bias={"3": 1}), "200|" + REFUSED.format("logit_bias")),
    "two answers at once (n 2)": Fact(asked(n=2), "200|" + REFUSED.format("n")),
    "fields of a choice": Fact(chat_fields, r".*finish_reason.*logprobs, message.*"),
    "ids of the prompt": Fact(prompt_ids, "chat: top; completions: choice"),
    "ignore_eos": Fact(exact_length, "9 of 9 tokens, length"),
    "one seed twice, alone": Fact(same_seed, "the same text"),
    "other seeds": Fact(other_seeds, "other texts"),
    "no seed": Fact(without_seed, "other texts|the same text"),
    "top_k": Fact(neutral_top_k, "0 and -1 are the same"),
    "cache_salt": Fact(salt, "changes no text"),
    "log probabilities of a chat": Fact(scores, "[1-6] tokens, 3 candidates, greedy is the first True"),
    "log probabilities are told": Fact(raw_scores, "before temperature"),
    "candidates of a drawn token": Fact(drawn, "the drawn one first|the likeliest first"),
    "log probabilities of a text": Fact(columns, r"tokens (\d), token_logprobs \1, top_logprobs \1"),
    "a stream": Fact(streamed, r"ends with \[DONE\], usage 6 of 6 in the last event"),
    "metrics": Fact(metrics, "cache_config_info, max_lora, num_requests_running(, prefix_cache_hits_total)?"),
    "POST /v1/load_lora_adapter, no key": Fact(posts_to("/v1/load_lora_adapter"), "open to all|asks for the key"),
    "POST /adapters, no key": Fact(posts_to("/adapters"), "not there|open to all|asks for the key"),
    "loading and unloading": Fact(
        loading,
        "200, answers as the original; again 400 InvalidUserInput, param None; unloaded 200, "
        "then 404 NotFoundError, param model",
    ),
    "loading what is not there": Fact(
        loading_badly("load", lora_name="x", lora_path="/nowhere/at/all"), "404 NotFoundError, param .*"
    ),
    "loading under the base's name": Fact(
        loading_badly("load", lora_name=None, lora_path="/nowhere"), "40[04] (InvalidUserInput|NotFoundError), param .*"
    ),
    "unloading an unknown name": Fact(loading_badly("unload", lora_name="nope"), "404 NotFoundError, param .*"),
    "an adapter with wrong keys": Fact(wrong_keys, r"200, answers as the base|500 InternalServerError, param .*"),
}
