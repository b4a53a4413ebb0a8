"""The audit of a proxy that speaks LiteLLM's shapes and pages: read only, no raw key, to the last page."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from gates.errors import SeatError
from gates.seat.client import SeatClient
from gates.seat.operate.audit import Audit, audit
from tests.flow.conftest import Ended, gates
from tests.flow.threaded import listening
from tests.seat.faulty import FaultySeat, Request, Wire

ADMIN = "sk-admin-key-0123"
RAW = "sk-raw-user-key-4567"


class Proxy(FaultySeat):
    """LiteLLM's three routes, with paging; anything but GET is a failure of the test."""

    def __init__(self, keys: dict[str, dict[str, Any]], models: list[dict[str, Any]], total: Any = None) -> None:
        super().__init__()
        self.keys, self.models_info, self.total = keys, models, total

    async def _serve(self, request: Request, wire: Wire) -> None:
        self.seen.append(request)
        url = urlsplit(request.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        assert request.method == "GET"
        if request.headers.get("authorization") != f"Bearer {ADMIN}":
            await wire.send({"error": {"message": f"bad key {request.headers.get('authorization')}"}}, 401)
        elif url.path == "/model/info":
            await wire.send({"data": self.models_info})
        elif url.path == "/key/list":
            size, page = int(query["size"]), int(query["page"])
            names = list(self.keys)
            pages = -(-len(names) // size) if self.total is None else self.total
            part = names[(page - 1) * size : page * size]
            await wire.send({"keys": part, "total_count": len(names), "current_page": page, "total_pages": pages})
        else:
            found = {token_of(name): info for name, info in self.keys.items()}.get(query["key"])
            await wire.send(
                {"key": query["key"], "info": found} if found else {"error": {"message": "no"}}, 200 if found else 404
            )


def token_of(name: str) -> str:
    return name if len(name) == 64 else hashlib.sha256(name.encode()).hexdigest()


def hashed(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def deployment(
    name: str, target: str, base: str = "http://seat:8027/v1", groups: tuple[str, ...] = ()
) -> dict[str, Any]:
    return {
        "model_name": name,
        "litellm_params": {"model": target, "api_base": base},
        "model_info": {"id": "1", "db_model": False, "access_groups": list(groups)},
    }


MODELS = [
    deployment("bronte", "hosted_vllm/lv-bronte", groups=("voices",)),
    deployment("austen", "openai/lv-austen"),
    deployment("gpt", "openai/gpt-9", "https://elsewhere/v1"),
]


def read(proxy: Proxy, served: frozenset[str] | None = None, key: str = ADMIN) -> Audit:
    async def main() -> Audit:
        async with proxy, SeatClient(proxy.url.removesuffix("/v1"), key) as client:
            return await audit(client, served, "http://seat:8027")

    return asyncio.run(main())


def key(models: list[str], alias: str | None = "app", **more: Any) -> dict[str, Any]:
    return {"models": models, "key_alias": alias, "key_name": "sk-...4567", "aliases": {}, **more}


def test_dead_names_are_found_and_the_last_one_would_open_the_key() -> None:
    found = read(
        Proxy(
            {hashed(1): key(["bronte", "gone"]), hashed(2): key(["gone", "lost"]), hashed(3): key(["bronte"])}, MODELS
        )
    )
    some, all_dead = found.findings
    assert (some.dead, some.alive, some.opens) == (("gone",), ("bronte",), False)
    assert "take gone off; bronte stays" in some.plan
    assert (all_dead.dead, all_dead.opens) == (("gone", "lost"), True)
    assert "'no-default-models' on the list first" in all_dead.plan
    assert not found.clean


@pytest.mark.parametrize(
    "name", ["*", "all-proxy-models", "all-team-models", "no-default-models", "openai/*", "voices"]
)
def test_litellms_own_words_wildcards_and_groups_are_no_dead_names(name: str) -> None:
    assert read(Proxy({hashed(1): key([name])}, MODELS)).clean


def test_a_keys_own_alias_counts_for_what_it_stands_for() -> None:
    proxy = Proxy({hashed(1): key(["mine", "old"], aliases={"mine": "bronte", "old": "gone"})}, MODELS)
    (finding,) = read(proxy).findings
    assert finding.dead == ("old",)


def test_open_keys_are_noted() -> None:
    found = read(Proxy({hashed(1): key([], alias="open one"), hashed(2): key(["*"], alias=None)}, MODELS))
    assert found.clean
    assert [label.split(" ", 1)[-1] for label in found.open_keys] == ["(open one)", hashed(2)[:12]]


def test_every_page_is_read() -> None:
    keys = {hashed(number): key(["gone" if number == 249 else "bronte"]) for number in range(250)}
    proxy = Proxy(keys, MODELS)
    found = read(proxy)
    assert found.keys == 250
    assert len(found.findings) == 1
    pages = [request.path for request in proxy.seen if request.path.startswith("/key/list")]
    assert [parse_qs(urlsplit(path).query)["page"] for path in pages] == [["1"], ["2"], ["3"]]


def test_no_raw_key_is_asked_about_or_printed() -> None:
    proxy = Proxy({RAW: key(["gone"], alias=RAW)}, MODELS)
    found = read(proxy)
    assert RAW not in json.dumps(asdict(found))
    assert all(RAW not in request.path for request in proxy.seen)


def test_only_this_seats_targets_are_compared() -> None:
    found = read(Proxy({}, MODELS), served=frozenset({"voices-base", "lv-bronte"}))
    assert found.unserved == ("austen leads to lv-austen, which the seat does not serve",)
    assert not found.clean


def test_a_wrong_key_ends_the_audit_without_repeating_it() -> None:
    with pytest.raises(SeatError) as caught:
        read(Proxy({}, MODELS), key="sk-wrong-key-000")
    assert "401" in str(caught.value)
    assert "sk-wrong" not in str(caught.value)


@pytest.mark.parametrize("total", ["3", True, -1, 1.0])
def test_pages_without_a_count_are_refused(total: Any) -> None:
    with pytest.raises(SeatError, match="no total_pages"):
        read(Proxy({hashed(1): key([])}, MODELS, total=total))


class Odd(Proxy):
    """A proxy whose pages and keys are what a test says."""

    def __init__(self, pages: Any = None, info: Any = None, models: Any = MODELS) -> None:
        super().__init__({}, models)
        self.pages, self.info = pages, info

    async def _serve(self, request: Request, wire: Wire) -> None:
        url = urlsplit(request.path)
        if url.path == "/key/list":
            told = self.pages or (lambda _page: page(hashed(1)))
            await wire.send(told(int(parse_qs(url.query)["page"][0])))
        elif url.path == "/key/info":
            await wire.send({"info": key(["bronte"])} if self.info is None else self.info)
        else:
            await super()._serve(request, wire)


def page(*tokens: Any, **more: Any) -> dict[str, Any]:
    return {"keys": list(tokens), "total_count": len(tokens), "total_pages": 1, **more}


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        (lambda n: page(hashed(n), total_pages=n + 1, total_count=9), "does not end: 13 pages are told of on page 12"),
        (lambda _n: page(hashed(1), total_pages=10**9), "does not end"),
        (lambda _n: page(hashed(1), hashed(2), total_pages=3), "page 2 of 3 brings no key"),
        (lambda n: page(*[hashed(n)] * (n != 2), total_pages=3), "page 2 of 3 brings no key"),
        (lambda _n: page(total_pages=1) | {"keys": None}, "keys is no list"),
        (lambda _n: page(5), "no key's hash"),
        (lambda _n: page("pass-word-77"), "no key's hash"),
        (lambda _n: page({"token": None}), "no key's hash"),
        (lambda _n: page(total_count=None), "no total_count"),
    ],
)
def test_what_is_no_page_of_keys_is_never_read_as_an_empty_one(pages: Any, said: str) -> None:
    with pytest.raises(SeatError, match=said) as caught:
        read(Odd(pages))
    assert "pass-word" not in str(caught.value)


@pytest.mark.parametrize("models", ["bronte", 5, ["bronte", None], [["bronte"]], {"bronte": 1}])
def test_an_allowlist_that_is_none_is_not_read_as_an_open_one(models: Any) -> None:
    with pytest.raises(SeatError, match="models"):
        read(Odd(info={"info": key([]) | {"models": models}}))


@pytest.mark.parametrize(
    "info",
    [
        {},
        {"info": None},
        {"info": {}},
        {"info": {"models": [], "aliases": {"a": 5}}},
        [],
        {"info": key([]) | {"key_alias": {}}},
    ],
)
def test_what_is_no_key_is_refused(info: Any) -> None:
    with pytest.raises(SeatError):
        read(Odd(info=info))


@pytest.mark.parametrize(
    "model", [5, {}, {"model_name": "x", "litellm_params": "y"}, deployment("x", "y") | {"model_name": ["x"]}]
)
def test_what_is_no_deployment_is_refused(model: Any) -> None:
    with pytest.raises(SeatError, match="model"):
        read(Odd(models=[model]))


def test_null_is_the_empty_list_and_the_teams_list_goes_before_everything() -> None:
    found = read(Odd(info={"info": key([]) | {"models": None}}))
    assert len(found.open_keys) == 1
    found = read(Odd(info={"info": key(["all-team-models", "*"])}))
    assert (found.open_keys, len(found.team_keys)) == ((), 1)


def test_keys_that_did_not_come_or_are_gone_are_no_clean_audit() -> None:
    assert read(Odd(lambda _n: page(hashed(1), total_count=7))).unread == ("/key/list tells of 7 keys and brought 1",)
    proxy = Proxy({hashed(1): {}}, MODELS)  # listed, and 404 when it is asked about
    assert "not there any more" in read(proxy).unread[0]
    assert not read(proxy).clean


def test_a_seat_that_no_alias_leads_to_was_not_compared() -> None:
    found = read(Proxy({}, [deployment("x", "openai/x", "http://elsewhere")]), served=frozenset({"x"}))
    assert "nothing was compared" in found.unread[0]
    assert not found.clean


def test_no_key_of_anybody_comes_out_of_odd_fields() -> None:
    models = [*MODELS, deployment(RAW, f"openai/{RAW}"), deployment("w/*", "openai/*")]
    info = {"info": key(["gone", RAW + "x", f"Bearer {RAW}x", "w/y"], alias=f"of {RAW}, sk-1+/=", aliases={RAW: RAW})}
    found = read(Odd(lambda _n: page(RAW, {"token": hashed(2), "key_name": RAW}), info, models), frozenset())
    text = json.dumps(asdict(found)) + "".join(one.plan for one in found.findings)
    assert "sk-" not in text
    assert found.findings[0].alive == ("w/y",)
    assert "(of [api key], [api key])" in text


def test_a_long_list_is_found_through_and_told_short() -> None:
    found = read(Odd(info={"info": key([f"gone-{number}" for number in range(30_000)])}))
    (finding,) = found.findings
    assert len(finding.dead) == 30_000
    assert len(finding.plan) < 500
    assert "and 29980 more" in finding.plan


def said_of(proxy: Proxy, *options: str, served: FaultySeat | None = None) -> Ended:
    """What the command itself says of a proxy that runs."""
    with pytest.MonkeyPatch.context() as patch, listening(proxy, *([served] if served else [])):
        patch.setenv("ADMIN", ADMIN)
        more = ("--seat", served.url) if served else ()
        return gates("seat", "audit", "--proxy", proxy.url.removesuffix("/v1"), "--key-env", "ADMIN", *more, *options)


def test_the_command_warns_of_opening_a_key_and_writes_nothing() -> None:
    proxy = Proxy({hashed(1): key(["gone"]), RAW: key(["bronte", "gone"], alias=RAW), hashed(3): key([])}, MODELS)
    ended = said_of(proxy)
    assert ended.returncode == 1
    assert ended.stdout.count("taking the last dead name off would open this key to ALL models") == 1
    assert "put 'no-default-models' on the list first" in ended.stdout
    assert "is open to every model now" in ended.stdout
    assert "what the aliases lead to was not compared: --seat URL" in ended.stdout
    assert {request.method for request in proxy.seen} == {"GET"}
    found = said_of(proxy, "--json")
    assert [one["opens"] for one in json.loads(found.stdout)["findings"]] == [True, False]
    for said in (ended, found):
        assert RAW not in said.stdout + said.stderr
        assert ADMIN not in said.stdout + said.stderr


def test_the_command_compares_with_what_the_seat_serves() -> None:
    seat = FaultySeat(models=("voices-base", "lv-bronte"))
    ended = said_of(Proxy({}, MODELS), "--seat-as", "http://seat:8027", served=seat)
    assert ended.returncode == 1
    assert "alias austen leads to lv-austen, which the seat does not serve\n  plan: load that voice" in ended.stdout
    assert "was not compared" not in ended.stdout


def test_a_proxy_that_is_not_there_is_called_the_proxy() -> None:
    ended = gates("seat", "audit", "--proxy", "http://127.0.0.1:1")
    assert ended.returncode == 4
    assert "no connection to the proxy" in ended.stderr
    assert "--proxy URL names another" in ended.stderr
    ended = said_of(Proxy({}, MODELS), "--key-env", "WRONG")
    assert "--key-env WRONG: this variable is not set" in ended.stderr
