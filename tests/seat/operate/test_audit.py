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


@pytest.mark.parametrize("total", [None, "3", True])
def test_pages_without_an_end_are_refused(total: Any) -> None:
    proxy = Proxy({hashed(1): key([])}, MODELS, total=total)
    if total is None:
        proxy.models_info = [{"model_name": "x", "litellm_params": "y"}]
    with pytest.raises(SeatError, match=r"is no object|no total_pages"):
        read(proxy)
