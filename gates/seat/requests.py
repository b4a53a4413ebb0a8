"""The request body for a gate's arm, beat and seed: every sampling field is sent, none is left to the server."""

from __future__ import annotations

from pydantic import JsonValue

from gates.spec.asking import Candidate, Prompts
from gates.spec.prompts import render
from gates.spec.schema import Gate


def request_body(gate: Gate, arm: str, beat: str, seed: int, prompts: Prompts | None = None) -> dict[str, JsonValue]:
    """The body as it is recorded: for the gate's endpoint, without the run's cache salt.

    `prompts` holds the template, the gate's own unless another is given.
    """
    about = gate.arms.all()[arm]
    sampling = gate.sampling
    body: dict[str, JsonValue] = {
        **sampling.extra_body,  # first, so that it can never replace a field of the gate
        "model": about.model,
        "seed": seed,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "repetition_penalty": sampling.repetition_penalty,
        "max_tokens": sampling.max_tokens,
        "stop": list(sampling.stop) or None,
        "n": 1,
        "stream": False,
        "return_token_ids": True,
    }
    prompt = render(prompts or gate.prompts, beat, None if isinstance(about, Candidate) else about.system)
    if isinstance(prompt, str):
        body["prompt"] = prompt
    else:
        body["messages"] = [message.as_json() for message in prompt]
    return body


def canary_body(gate: Gate, model: str, beat: str, *, tokens: int, top: int) -> dict[str, JsonValue]:
    """The base's request under another model's name, made greedy and short, with log probabilities.

    `tokens` tokens (the end of text does not end it earlier, where the server knows `ignore_eos`), each with the
    `top` likeliest in its place.
    """
    chat: dict[str, JsonValue] = {"logprobs": True, "top_logprobs": top}
    completions: dict[str, JsonValue] = {"logprobs": top}
    return {
        **request_body(gate, "base", beat, seed=0),
        "model": model,
        "temperature": 0.0,
        "max_tokens": tokens,
        "stop": None,
        "ignore_eos": True,
        **(chat if gate.prompts.endpoint == "chat" else completions),
    }


JUDGE_TOP = 20
"""How many likely tokens a judge's answer must list; vLLM gives as many unless it is told otherwise."""


def judge_body(gate: Gate, question: str) -> dict[str, JsonValue]:
    """The question to the gate's judge as it is recorded: one greedy token with log probabilities, no system line."""
    model = gate.arms.base.model if gate.judge is None or gate.judge.model is None else gate.judge.model
    neutral: dict[str, JsonValue] = {
        **gate.sampling.extra_body,
        "model": model,
        "seed": 0,
        "temperature": 0.0,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": 0.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0,
        "max_tokens": 1,
        "stop": None,
        "n": 1,
        "stream": False,
        "return_token_ids": True,
    }
    if gate.prompts.endpoint == "completions":
        return {**neutral, "prompt": question, "logprobs": JUDGE_TOP}
    messages: JsonValue = [{"role": "user", "content": question}]
    return {**neutral, "messages": messages, "logprobs": True, "top_logprobs": JUDGE_TOP}


def salted(body: dict[str, JsonValue], cache_salt: str) -> dict[str, JsonValue]:
    """The body as it is sent: with the run's cache salt, so that no other run's cached prefix can answer it."""
    return {**body, "cache_salt": cache_salt}
