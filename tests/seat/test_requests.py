"""The body sent for an arm: every sampling field in it, the gate's extra fields never over the gate's own."""

from __future__ import annotations

from gates.seat.requests import canary_body, request_body, salted
from tests.seat.faulty import BASE, ONE, a_gate

SAMPLING = {"seeds": (1, 2, 3), "temperature": 0.9, "top_p": 0.95, "max_tokens": 40, "stop": ("END",)}


def test_the_whole_body() -> None:
    gate = a_gate(sampling={**SAMPLING, "extra_body": {"chat_template_kwargs": {"enable_thinking": False}}})
    # written by hand from the sampling fields that vLLM would else take from generation_config.json
    assert request_body(gate, "one", "A ship goes down.", 2) == {
        "model": ONE,
        "messages": [{"role": "user", "content": "Beat: A ship goes down."}],
        "seed": 2,
        "temperature": 0.9,
        "top_p": 0.95,
        "top_k": 0,
        "min_p": 0.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0,
        "max_tokens": 40,
        "stop": ["END"],
        "n": 1,
        "stream": False,
        "return_token_ids": True,
        "chat_template_kwargs": {"enable_thinking": False},
    }


def test_completions_take_a_prompt_and_no_messages() -> None:
    gate = a_gate(prompts={"file": "b", "template": "Beat: {beat}\n", "endpoint": "completions"})
    body = request_body(gate, "base", "A {beat} in braces.", 1)
    assert body["prompt"] == "Beat: A {beat} in braces.\n"
    assert "messages" not in body
    assert body["stop"] is None


def test_an_arm_is_shown_its_own_system_line() -> None:
    arms = {
        "base": BASE,
        "candidates": {"one": {"model": ONE, "adapter": "a"}},
        "controls": {"prompted": {"model": BASE, "system": "Write as the author did."}},
    }
    prompted = request_body(a_gate(arms=arms), "prompted", "B.", 1)["messages"]
    assert prompted == [
        {"role": "system", "content": "Write as the author did."},
        {"role": "user", "content": "Beat: B."},
    ]


def test_extra_fields_never_replace_the_gates_own() -> None:
    gate = a_gate()
    forced = gate.sampling.model_copy(update={"extra_body": {"temperature": 0.0, "model": "x", "ignore": 1}})
    body = request_body(gate.model_copy(update={"sampling": forced}), "one", "B.", 1)
    assert (body["temperature"], body["model"], body["ignore"]) == (0.9, ONE, 1)


def test_the_salt_is_sent_and_not_recorded() -> None:
    body = request_body(a_gate(), "one", "B.", 1)
    assert salted(body, "s")["cache_salt"] == "s"
    assert "cache_salt" not in body


def test_the_canary_asks_greedily_for_log_probabilities() -> None:
    chat = canary_body(a_gate(), ONE, "B.", tokens=8, top=5)
    assert (chat["model"], chat["temperature"], chat["max_tokens"], chat["stop"]) == (ONE, 0.0, 8, None)
    assert (chat["logprobs"], chat["top_logprobs"]) == (True, 5)
    completions = a_gate(prompts={"file": "b", "template": "{beat}", "endpoint": "completions"})
    text = canary_body(completions, ONE, "B.", tokens=8, top=5)
    assert text["logprobs"] == 5
    assert "top_logprobs" not in text
