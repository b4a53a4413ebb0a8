"""Answers of the real carrier: what they depend on, and what they do not."""

import math
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.seat.embedded.conftest import chat_body

CHAT = "/v1/chat/completions"


def test_answers_do_not_depend_on_order_or_company(client):
    """Each request alone, then all of them, twice shuffled, eight at a time over two servers and three adapter sets."""
    requests = [
        {"model": model, "prompt": prompt, "seed": seed, "max_tokens": 10}
        for model in ("base", "e12", "ranon")
        for seed in (1, 2)
        for prompt in ("A storm breaks and", "She waits at the gate for her brother.")
    ]

    def ask(index):
        return index, client.post("/v1/completions", requests[index]).json()["choices"]

    alone = dict(ask(index) for index in range(len(requests)))
    assert len({str(choices) for choices in alone.values()}) == len(requests)
    for shuffle in (1, 2):
        order = list(range(len(requests)))
        random.Random(shuffle).shuffle(order)
        with ThreadPoolExecutor(8) as pool:
            assert dict(pool.map(ask, order)) == alone


def first_logprobs(client, model):
    choice = client.chat(model, max_tokens=1, logprobs=True, top_logprobs=20)["choices"][0]
    return {top["token"]: top["logprob"] for top in choice["logprobs"]["content"][0]["top_logprobs"]}


def test_adapters_change_the_numbers_and_leave_the_base_alone(client):
    before = first_logprobs(client, "base")
    adapted = first_logprobs(client, "e12")
    shared = before.keys() & adapted.keys()
    assert max(abs(before[token] - adapted[token]) for token in shared) > 0.1
    assert adapted != first_logprobs(client, "ranon")
    assert first_logprobs(client, "base") == before


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("base", {"A": -2.054, "The": -2.783, "“": -3.325, "H": -3.519}),
        ("e12", {"A": -0.726, "“": -1.037, "I": -4.652, "She": -5.482}),
    ],
)
def test_the_numbers_are_those_of_another_implementation(client, model, expected):
    """Next-token log probabilities by transformers 5 and PEFT in float32.

    From the same carrier (rebuilt from the GGUF by scripts/train_adapter.py) and the PEFT folder that
    `lv-bronte-e12.gguf` was converted from. llama.cpp rounds the activations to 8 bits, hence the tolerance; a wrong
    scale or row order of the adapter moves at least one of the four by more.
    """
    messages = [{"role": "user", "content": "Beat: A governess — “hé” finds 12 letters!\n"}]
    answer = client.chat(model, messages=messages, max_tokens=1, temperature=0, logprobs=True, top_logprobs=10)
    found = {top["token"]: top["logprob"] for top in answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]}
    assert {token: found[token] for token in expected} == pytest.approx(expected, abs=0.19)


def test_log_probabilities_are_those_of_the_raw_distribution(client):
    content = client.chat(temperature=0, max_tokens=4, logprobs=True, top_logprobs=20)["choices"][0]["logprobs"][
        "content"
    ]
    assert len(content) == 4
    for entry in content:
        tops = [top["logprob"] for top in entry["top_logprobs"]]
        assert tops == sorted(tops, reverse=True)
        assert 0.2 < sum(map(math.exp, tops)) <= 1 + 1e-6
        assert entry["logprob"] == tops[0], "greedy decoding takes the likeliest token"
        assert bytes(entry["bytes"]).decode() == entry["token"]


def test_seeds_repeat_and_differ(client):
    def text(**fields):
        body = {"prompt": "The moor", "max_tokens": 6, **fields}
        return client.post("/v1/completions", body).json()["choices"][0]["text"]

    for seed in (0, 2**53 - 1, 2**63 - 1, -5):
        assert text(seed=seed) == text(seed=seed)
    assert len({text(seed=seed) for seed in (0, 7, 2**32 + 7, 2**53 - 1)}) == 4
    for unseeded in (None, -1):
        assert len({text(seed=unseeded) for _ in range(3)}) > 1
    assert text(seed=1, temperature=0) == text(seed=2, temperature=0)


def test_one_seed_draws_differently_for_each_prompt(client):
    """Under one seed the first tokens of several prompts may not all come from the tail of what is likely."""
    first = []
    for prompt in ("The moor", "My father", "In the garden", "He said that", "There was a", "I had been"):
        body = {"prompt": prompt, "max_tokens": 1, "seed": 1, "logprobs": 1}
        first.append(client.post("/v1/completions", body).json()["choices"][0]["logprobs"]["token_logprobs"][0])
    assert max(first) > -4


def test_sampling_fields_do_what_they_are_named_for(client):
    greedy = client.chat(temperature=0)["choices"]
    for narrow in ({"top_k": 1}, {"top_p": 1e-6}, {"min_p": 1.0}):
        assert client.chat(temperature=1.5, **narrow)["choices"] == greedy
    wide = client.chat(temperature=1.5, top_p=1.0, top_k=0)["choices"]
    assert client.chat(temperature=1.5, top_p=1.0, top_k=-1)["choices"] == wide != greedy
    repeating = {"prompt": "one two one two one two one", "temperature": 0, "max_tokens": 12}

    def twos(**penalty):
        text = client.post("/v1/completions", repeating | penalty).json()["choices"][0]["text"]
        return text.count("two")

    assert twos() > 5
    assert twos(repetition_penalty=2.0) < 2
    assert twos(presence_penalty=2.0, frequency_penalty=2.0) < 2


def test_ending(client):
    """The prompt leaves the carrier nothing but to end its turn: `ignore_eos` alone makes it go on."""
    prompt = "<|im_start|>user\nSay yes.<|im_end|>\n<|im_start|>assistant\nYes.<|im_end|>\n<|im_start|>assistant\nYes."
    body = {"prompt": prompt, "temperature": 0, "max_tokens": 6, "return_token_ids": True}
    ended = client.post("/v1/completions", body).json()["choices"][0]
    assert (ended["finish_reason"], ended["stop_reason"]) == ("stop", None)
    assert ended["token_ids"][-1] == 2
    going_on = client.post("/v1/completions", body | {"ignore_eos": True}).json()
    assert (going_on["choices"][0]["finish_reason"], going_on["usage"]["completion_tokens"]) == ("length", 6)


def test_stop_strings_cut_the_text_and_are_named(client):
    whole = client.chat(temperature=0, max_tokens=20)["choices"][0]["message"]["content"]
    stop = whole[12:17]
    choice = client.chat(temperature=0, max_tokens=20, stop=["\0never", stop])["choices"][0]
    assert choice["message"]["content"] == whole[: whole.index(stop)]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)


@pytest.mark.parametrize("stop", [None, "the"])
def test_a_stream_says_what_the_whole_says(client, stop):
    fields = {"max_tokens": 24, "stop": stop, "logprobs": True, "return_token_ids": True, "temperature": 0}
    whole = client.chat("e12", **fields)
    events = client.events(CHAT, chat_body("e12", stream_options={"include_usage": True}, **fields))
    *chunks, usage = events
    choices = [chunk["choices"][0] for chunk in chunks]
    (wanted,) = whole["choices"]
    assert choices[0]["delta"] == {"role": "assistant", "content": ""}
    assert "".join(choice["delta"]["content"] for choice in choices) == wanted["message"]["content"]
    assert [token for choice in choices for token in choice["token_ids"]] == wanted["token_ids"]
    logprobs = [entry for choice in choices for entry in choice["logprobs"]["content"]]
    assert logprobs == wanted["logprobs"]["content"]
    last = choices[-1]
    assert (last["finish_reason"], last["stop_reason"]) == (wanted["finish_reason"], wanted["stop_reason"])
    assert {choice["finish_reason"] for choice in choices[:-1]} == {None}
    assert (usage["choices"], usage["usage"]) == ([], whole["usage"])
    assert events[0]["prompt_token_ids"] == whole["prompt_token_ids"]
    assert {event["object"] for event in events} == {"chat.completion.chunk"}
    assert [chunk["system_fingerprint"] for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)


def test_a_completion_stream_says_what_the_whole_says(client):
    body = {"prompt": "The moor", "max_tokens": 10, "seed": 5, "logprobs": 1, "echo": False}
    whole = client.post("/v1/completions", body).json()["choices"][0]
    choices = [event["choices"][0] for event in client.events("/v1/completions", body)]
    assert "".join(choice["text"] for choice in choices) == whole["text"]
    offsets = [offset for choice in choices for offset in choice["logprobs"]["text_offset"]]
    assert offsets == whole["logprobs"]["text_offset"]
    echoed = client.events("/v1/completions", {"prompt": "The moor", "max_tokens": 10, "seed": 5, "echo": True})
    assert "".join(event["choices"][0]["text"] for event in echoed) == "The moor" + whole["text"]
