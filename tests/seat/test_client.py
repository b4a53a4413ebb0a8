"""The client: what it reads, what it refuses, and that nothing foreign and no secret comes out of it."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import socket
from collections.abc import Awaitable, Callable
from operator import methodcaller
from typing import Any, TypeVar

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.errors import SeatError, UnfitSeatError, UsageError
from gates.seat import client as client_module
from gates.seat.answers import Answer, read_answer
from gates.seat.client import SeatClient, SeatRequest
from gates.seat.faults import (
    FOREIGN,
    BrokenContractError,
    FaultError,
    RefusedRequestError,
    TransientError,
    UnauthorisedError,
    UnknownModelError,
    UnreachableError,
    fault_of,
    mapped_by,
    printable,
)
from tests.seat.faulty import (
    KEY,
    FaultySeat,
    Handler,
    Request,
    Wire,
    a_gate,
    changed,
    drip,
    hang,
    reply,
    reset_mid_body,
    status,
    truncated,
)

T = TypeVar("T")
CHAT = SeatRequest("chat", {"model": "base", "messages": [{"role": "user", "content": "Hi"}], "seed": 1})
TEXT = SeatRequest("completions", {"model": "base", "prompt": "Hi", "seed": 1, "logprobs": 2})


def ask(
    seat: FaultySeat,
    act: Callable[[SeatClient], Awaitable[T]],
    *,
    key: str | None = None,
    timeout_s: float = 30.0,
    root: bool = False,
) -> T:
    async def main() -> T:
        async with seat:
            url = seat.url.removesuffix("/v1") if root else seat.url
            async with SeatClient(url, key, timeout_s=timeout_s) as client:
                return await act(client)

    return asyncio.run(main())


def fault(handler: Handler, *, timeout_s: float = 30.0) -> FaultError:
    with pytest.raises(FaultError) as caught:
        ask(FaultySeat(always=handler), lambda client: client.complete(CHAT), timeout_s=timeout_s)
    return caught.value


def test_reads_a_chat_answer() -> None:
    answer = ask(FaultySeat(), lambda client: client.complete(CHAT))
    assert (answer.text, answer.finish_reason, answer.model) == ("base 1: Hi", "stop", "base")
    assert answer.fingerprint == "vllm-0.33.0-abc"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (3, 2)
    # printf '1,2,3' | sha256sum
    assert answer.prompt_sha256 == "8a6ae15122001229edb8866f56e342af12ae8187203c3e3b33931743e7c0c48d"
    assert answer.scores == ()


def test_reads_a_text_answer_with_its_scores() -> None:
    answer = ask(FaultySeat(), lambda client: client.complete(TEXT))
    assert answer.text == "base 1: Hi"
    assert [score.token for score in answer.scores] == ["a", "c"]
    assert list(answer.scores[0].top) == ["a", "b"]
    assert answer.scores[0].logprob == answer.scores[0].top["a"] < -0.1


def test_sends_the_body_and_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-environment")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-from-environment")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Extra: from-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://192.0.2.1/v1")
    monkeypatch.setenv("HTTP_PROXY", "http://192.0.2.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://192.0.2.1:9")
    seat = FaultySeat()
    ask(seat, lambda client: client.complete(CHAT))
    (request,) = seat.generated
    assert request.body == CHAT.body
    assert "from-environment" not in str(request.headers)
    assert "authorization" not in request.headers
    assert not [name for name in request.headers if name.startswith(("openai-", "x-stainless"))]


def test_sends_the_key_it_was_given() -> None:
    seat = FaultySeat(key=KEY)
    assert isinstance(ask(seat, lambda client: client.complete(CHAT), key=KEY), Answer)
    assert seat.seen[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_base_url_without_v1_is_its_own_root() -> None:
    seat = FaultySeat(routes={"/models": reply({"data": [{"id": "m"}]})})
    assert ask(seat, lambda client: client.models(), root=True) == ({"id": "m"},)
    assert ask(FaultySeat(), lambda client: client.version(), root=True) == "0.33.0"


def test_version_and_metrics_are_none_where_there_are_none() -> None:
    async def both(client: SeatClient) -> tuple[str | None, str | None]:
        return await client.version(), await client.metrics()

    seat = FaultySeat(routes={"/version": status(404), "/metrics": status(404)})
    assert ask(seat, both) == (None, None)
    with pytest.raises(BrokenContractError, match="/version is not an object with a version"):
        ask(FaultySeat(routes={"/version": reply({"version": 3})}), lambda client: client.version())
    with pytest.raises(TransientError, match="the seat answered 500"):
        ask(FaultySeat(routes={"/version": status(500)}), lambda client: client.version())


def test_a_list_of_models_that_is_none_is_refused() -> None:
    with pytest.raises(BrokenContractError, match="no list of model cards"):
        ask(FaultySeat(routes={"/v1/models": reply({"data": [{"name": "m"}]})}), lambda client: client.models())


def test_keeps_the_headers_that_tell_of_a_proxy() -> None:
    async def handler(request: Request, wire: Wire) -> None:
        headers = {"x-litellm-model-id": "m1", "Via": "1.1 p", "X-Cache": "HIT", "X-Other": "no"}
        await wire.send({"choices": [{"message": {"content": "t"}, "finish_reason": "stop"}]}, 200, **headers)

    answer = ask(FaultySeat(always=handler), lambda client: client.complete(CHAT))
    assert answer.headers == {"x-litellm-model-id": "m1", "via": "1.1 p", "x-cache": "HIT"}


@pytest.mark.parametrize(
    ("handler", "kind", "message"),
    [
        (truncated, BrokenContractError, "breaks the contract: body: Invalid JSON: EOF"),
        (reset_mid_body, TransientError, "the request got no complete answer: (ReadError|RemoteProtocol)"),
        (reply({"error": {"message": "out of memory", "code": 500}}), BrokenContractError, "200 with an error.*memory"),
        (reply({"choices": []}), BrokenContractError, "no choices where one was asked for"),
        (reply({"id": "x"}), BrokenContractError, "no choices"),
        (reply({"choices": [{"message": {"content": "a"}}] * 2}), BrokenContractError, "2 choices"),
        (reply({"choices": [{"text": "a"}]}), BrokenContractError, "choices.0.message is missing"),
        (reply({"choices": [{"message": {"content": ["a"]}}]}), BrokenContractError, "message.content: .*valid string"),
        (
            reply({"choices": [{"message": {"content": "a"}}], "usage": {"prompt_tokens": -1}}),
            BrokenContractError,
            "usage",
        ),
        (reply(b'{"x": "\xff"}'), BrokenContractError, "body: not UTF-8 at byte 7 of 10"),
        (changed(usage={"prompt_tokens": 2**60}), BrokenContractError, "usage.prompt_tokens: .*less than or equal"),
        (changed(prompt_token_ids=[10**400]), BrokenContractError, "prompt_token_ids.0: .*less than or equal"),
        (reply(b"[" * 100_000), BrokenContractError, "recursion"),
        (reply(b""), BrokenContractError, "EOF"),
        (status(500, "boom"), TransientError, "the seat answered 500: .*boom"),
        (status(400, "too long"), RefusedRequestError, "the seat answered 400: .*too long"),
        (status(404, "The model `m` does not exist."), UnknownModelError, "does not exist"),
        (status(400, "Invalid model name passed in model=m."), UnknownModelError, "Invalid model name"),
        (status(403, "key not allowed"), UnauthorisedError, "the seat answered 403"),
    ],
)
def test_what_is_no_answer_is_named(handler: Handler, kind: type[FaultError], message: str) -> None:
    caught = fault(handler)
    assert type(caught) is kind
    with pytest.raises(kind, match=f"(?s){message}"):
        raise caught


@pytest.mark.parametrize("handler", [hang, drip])
def test_the_whole_request_has_one_time_limit(handler: Handler) -> None:
    with pytest.raises(TransientError, match=r"no complete answer within 0\.2 s|no complete answer: ReadTimeout"):
        raise fault(handler, timeout_s=0.2)


@pytest.mark.parametrize(
    ("code", "stops", "retryable", "answered"),
    [
        (400, False, False, True),
        (404, True, False, True),
        (408, False, True, False),
        (409, False, True, False),
        (425, False, True, False),
        (429, False, True, False),
        (500, False, True, True),
        (501, False, True, True),
        (502, False, True, False),
        (503, False, True, False),
        (504, False, True, False),
    ],
)
def test_a_status_decides_what_to_do(code: int, stops: bool, retryable: bool, answered: bool) -> None:
    caught = fault(status(code, "no"))
    assert (caught.stops, caught.retryable, caught.answered) == (stops, retryable, answered)


def test_redirects_are_not_followed() -> None:
    caught = fault(status(307, "elsewhere", Location="http://192.0.2.1/v1/chat/completions"))
    assert type(caught) is RefusedRequestError
    assert caught.stops
    assert "redirects are not followed" in caught.message


def test_a_compressed_or_endless_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def compressed(request: Request, wire: Wire) -> None:
        await wire.send(b"\x1f\x8b", 200, Content_Encoding="gzip")

    assert "encoded as gzip" in fault(compressed).message
    monkeypatch.setattr(client_module, "MAX_BYTES", 1000)
    caught = fault(reply({"choices": [{"message": {"content": "x" * 2000}}]}))
    assert type(caught) is BrokenContractError
    assert "larger than 1000 bytes" in caught.message


def test_a_seat_that_is_down_is_unreachable() -> None:
    async def main() -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
            async with SeatClient(f"http://127.0.0.1:{unused.getsockname()[1]}/v1") as client:
                await client.complete(CHAT)

    with pytest.raises(UnreachableError, match="no connection to the seat: ConnectError"):
        asyncio.run(main())


@pytest.mark.parametrize("begun", ["HTTP/1.1 {} what\r\n\r\n", "{}\r\n\r\n", "HTTP/1.1 200 OK\r\n{}\r\n\r\n"])
def test_a_key_in_what_is_no_http_is_never_repeated(begun: str) -> None:
    async def parrot(request: Request, wire: Wire) -> None:
        await wire.raw(begun.format(request.headers["authorization"]).encode())

    for act in (lambda client: client.complete(CHAT), lambda client: client.models()):
        seat = FaultySeat(always=parrot, routes={"/v1/models": parrot})
        with pytest.raises(FaultError) as caught:
            ask(seat, act, key=KEY)
        assert KEY not in repr(caught.value)
        assert KEY not in str(caught.value)


def test_a_refused_key_is_never_repeated() -> None:
    async def parrot(request: Request, wire: Wire) -> None:
        await wire.send({"error": {"message": f"bad key {request.headers['authorization']}"}}, 401)

    with pytest.raises(UnauthorisedError, match="the seat answered 401") as caught:
        ask(FaultySeat(always=parrot), lambda client: client.complete(CHAT), key=KEY)
    assert KEY not in str(caught.value)
    assert KEY not in repr(caught.value)
    assert caught.value.__cause__ is None
    assert "[api key]" in caught.value.message
    assert "api_key_env" in caught.value.next_step
    assert KEY not in repr(SeatClient("http://127.0.0.1:1/v1", KEY))


def in_body(text: str) -> bytes:
    """An answer with `text`, a part of a JSON string as it stands, in every place that is recorded."""
    choice = '{"finish_reason":"stop","message":{"content":"T"},"text":"T"}'
    body = f'{{"model":"T","system_fingerprint":"T","choices":[{choice}]}}'
    return body.replace('"T"', f'"{text}"').encode()


AWKWARD = 'sk-"a/b\\c<d'


@pytest.mark.parametrize(
    ("key", "spelled"),
    [
        (KEY, KEY),
        (KEY, "\\u0073k-Very\\u002DSecret-77"),
        (AWKWARD, r"sk-\"a/b\\c<d"),  # as json.dumps writes it
        (AWKWARD, r"sk-\"a\/b\\c\u003cd"),  # as PHP and Go do
        (AWKWARD, r"sk-\\\"a/b\\\\c<d"),  # JSON within a string of JSON
    ],
)
def test_a_key_that_is_echoed_is_read_as_a_fixed_word(key: str, spelled: str) -> None:
    data = in_body(f"Bearer {spelled}!")
    for request in (CHAT, TEXT):
        answer = ask(FaultySeat(always=reply(data)), methodcaller("complete", request), key=key)
        assert answer.text == answer.model == answer.fingerprint == "Bearer [api key]!"


def test_a_key_is_echoed_nowhere() -> None:
    async def parrot(request: Request, wire: Wire) -> None:
        await wire.send({"error": {"message": request.headers["authorization"]}})

    async def cut(request: Request, wire: Wire) -> None:
        data = in_body(KEY)
        await wire.head(200, len(data), Via=KEY)
        for start in range(0, len(data), 7):  # the key comes in pieces
            await wire.raw(data[start : start + 7])
            await asyncio.sleep(0.001)

    with pytest.raises(BrokenContractError, match=r"200 with an error: .*Bearer \[api key\]"):
        ask(FaultySeat(always=parrot), lambda client: client.complete(CHAT), key=KEY)
    answer = ask(FaultySeat(always=cut), lambda client: client.complete(CHAT), key=KEY)
    assert KEY not in repr(answer)
    assert answer.headers == {"via": "[api key]"}
    finished = in_body("t").replace(b"stop", KEY.encode())
    with pytest.raises(BrokenContractError, match=r"finish_reason is '\[api key\]'"):
        ask(FaultySeat(always=reply(finished)), lambda client: client.complete(CHAT), key=KEY)

    async def about(client: SeatClient) -> list[object]:
        return [await client.models(), await client.version(), await client.metrics()]

    routes = {
        "/v1/models": reply({"data": [{"id": "m", "root": KEY}]}),
        "/version": reply({"version": KEY}),
        "/metrics": reply(KEY.encode()),
    }
    told = ask(FaultySeat(routes=routes), about, key=KEY)
    assert told == [({"id": "m", "root": "[api key]"},), "[api key]", "[api key]"]


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=20), st.integers(0, 3))
@settings(max_examples=50)
def test_every_key_is_found_however_json_writes_it(key: str, nested: int) -> None:
    text = key
    for _ in range(min(nested, 2)):
        text = json.dumps(text)[1:-1]
    if nested == 3:
        text = "".join(f"\\u{ord(char):04x}" for char in key)
    assert client_module._spellings(key).sub(b"-", text.encode()) == b"-"


def test_a_key_too_short_to_be_told_from_words_is_refused() -> None:
    with pytest.raises(UsageError, match="fewer than 8 characters") as caught:
        SeatClient("http://127.0.0.1:1/v1", "letters")
    assert "letters" not in str(caught.value)


@pytest.mark.parametrize("key", ["", "sk-a\n", "sk a", "clé"])
def test_a_key_that_cannot_be_sent_is_refused_unseen(key: str) -> None:
    with pytest.raises(UsageError, match="the API key is empty, or holds a space") as caught:
        SeatClient("http://127.0.0.1:1/v1", key)
    assert not key or key not in str(caught.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:-1/v1", "http://h:port/v1", "http:///v1", "http://:80/v1"])
def test_a_gate_names_no_address_that_is_none(url: str) -> None:
    with pytest.raises(ValueError, match=r"seat\.[\w.]*base_url"):
        a_gate(seat={"base_url": url})


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000/v1", "https://h.example", "http://[::1]:8000/v1", "http://h/a:b/"]
)
def test_a_gate_names_an_address(url: str) -> None:
    assert getattr(a_gate(seat={"base_url": url}).seat, "base_url", None) == url


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:notaport/v1",
        "http://127.0.0.1:99999/v1",
        "http://127.0.0.1:-1/v1",
        "http://h:0/v1",
        "http:///v1",
        "http://[zz]/v1",
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match=rf"seat\.base_url '{re.escape(url)}' is no address") as caught:
        SeatClient(url)
    assert caught.value.next_step == "write http://HOST:PORT/v1"


@pytest.mark.parametrize(
    "url",
    ["http://me:pass-word-77@h/v1", "http://h/v1?key=pass-word-77", "http://h/v1#pass-word-77", "me:pass-word-77@h"],
)
def test_an_address_with_room_for_a_secret_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UsageError, match="has a user name, a query or a fragment") as caught:
        SeatClient(url)
    assert "pass-word" not in str(caught.value)


@pytest.mark.parametrize("url", ["ftp://h/v1", "http://a b/v1"])
def test_another_scheme_or_a_space_is_no_address(url: str) -> None:
    with pytest.raises(UsageError, match="no http or https address"):
        SeatClient(url)


def test_a_key_of_anybody_is_left_out_of_what_a_server_says() -> None:
    said = fault(status(500, "key sk-of-Another_1 is over its budget")).message
    assert "sk-of" not in said
    assert "key [api key] is over its budget" in said
    assert "sk-of" not in fault(reply({"error": "no sk-of-Another_1"})).message


def test_what_is_no_text_cannot_be_sent() -> None:
    lone = SeatRequest("completions", {"model": "\udcff", "prompt": "Hi"})
    with pytest.raises(UsageError, match="holds something that is no text"):
        ask(FaultySeat(), lambda client: client.complete(lone))
    with pytest.raises(UsageError, match="holds something that is no text"):
        ask(FaultySeat(), lambda client: client.timed(lone, lambda: 0.0))


def test_errors_keep_to_one_safe_line() -> None:
    assert printable("a\x1b[31m\r\nb\u202e c" + "x" * 400, limit=20) == "a [31m b c" + "x" * 7 + "..."


def foreign_exceptions() -> list[type[Exception]]:
    public = [getattr(httpx2, name) for name in httpx2.__all__]
    found = {value for value in public if inspect.isclass(value) and issubclass(value, Exception)}
    return sorted((kind for kind in found if not issubclass(kind, Warning)), key=lambda kind: kind.__qualname__)


ROOTS = (httpx2.HTTPError, httpx2.RequestError, httpx2.TransportError)


@pytest.mark.parametrize("kind", foreign_exceptions())
def test_every_foreign_exception_is_mapped_by_more_than_its_root(kind: type[Exception]) -> None:
    assert issubclass(kind, FOREIGN)
    assert mapped_by(kind) is not None
    if kind not in ROOTS:
        assert mapped_by(kind) not in ROOTS, f"{kind.__name__} is new: give it a line of its own in gates.seat.faults"


def test_there_are_foreign_exceptions_to_map() -> None:
    assert {httpx2.ReadTimeout, httpx2.InvalidURL} < set(foreign_exceptions())


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx2.ConnectTimeout("slow"), UnreachableError),
        (httpx2.RemoteProtocolError("gone"), TransientError),
        (httpx2.InvalidURL("bad"), UnreachableError),
        (ConnectionResetError(104, "reset"), TransientError),
        (httpx2.ReadError("odd"), TransientError),
    ],
)
def test_foreign_errors_become_ours(error: Exception, kind: type[FaultError]) -> None:
    ours = fault_of(error, secret=None)
    assert type(ours) is kind
    assert isinstance(ours, SeatError)
    assert type(error).__name__ in ours.message


def test_an_unknown_model_is_an_unfit_seat() -> None:
    assert isinstance(fault(status(404, "The model `m` does not exist.")), UnfitSeatError)


@pytest.mark.parametrize(
    ("changes", "field", "value"),
    [
        ({"usage": None}, "usage", None),
        ({"usage": {"prompt_tokens": 3}}, "usage", None),
        ({"system_fingerprint": None}, "fingerprint", None),
        ({"prompt_token_ids": None}, "prompt_sha256", None),
        ({"choices": [{"message": {"content": None}, "finish_reason": "stop"}]}, "text", ""),
    ],
)
def test_what_a_seat_does_not_tell_is_none(changes: dict[str, Any], field: str, value: object) -> None:
    answer = ask(FaultySeat(always=changed(**changes)), lambda client: client.complete(CHAT))
    assert getattr(answer, field) == value


@pytest.mark.parametrize(
    "reason", ["abort", "content_filter", "error", "repetition", "tool_calls", "", None, "a\nb" * 99]
)
def test_an_answer_that_was_broken_off_is_none(reason: str | None) -> None:
    caught = fault(changed(choices=[{"message": {"content": "half a"}, "finish_reason": reason}]))
    assert type(caught) is BrokenContractError
    assert caught.retryable
    assert f"finish_reason is {reason!r}"[:40] in caught.message
    assert len(caught.message) < 200


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (r"a\ud800", "a\ufffd"),
        (r"\udc00\uD83D!", "\ufffd\ufffd!"),
        (r"\ud83d\ude00", "\U0001f600"),
        (r"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (r"\\ud800 \" \n", '\\ud800 " \n'),  # an escaped backslash before "ud800": no surrogate at all
    ],
)
def test_half_a_surrogate_pair_is_a_replacement_character(written: str, text: str) -> None:
    assert read_answer("chat", in_body(written), {}).text == text


@pytest.mark.parametrize("number", ["1e308", "-1e308", "NaN", "-Infinity", "1e999", "0.5", "-10001"])
@pytest.mark.parametrize("place", ["logprob", "top_logprobs"])
def test_a_log_probability_that_is_none_breaks_the_contract(number: str, place: str) -> None:
    token = '{"token":"a","logprob":%s,"top_logprobs":[{"token":"a","logprob":%s}]}'
    values = (number, "-1") if place == "logprob" else ("-1", number)
    data = in_body("t").replace(b'"text"', b'"logprobs":{"content":[%s]},"text"' % (token % values).encode())
    with pytest.raises(
        BrokenContractError, match=rf"choices\.0\.logprobs\.content\.0\.{place}.*: Input should be"
    ) as caught:
        read_answer("chat", data, {})
    assert not caught.value.retryable
