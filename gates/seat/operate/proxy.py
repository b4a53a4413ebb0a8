"""LiteLLM's documents, read strictly: what has another shape is an error, never an empty list; reads only.

Source: LiteLLM 1.110 (management_endpoints/key_management_endpoints.py, proxy_server.py).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.parse import urlencode

from gates.errors import SeatError
from gates.seat.client import SeatClient
from gates.seat.faults import BrokenContractError, printable
from gates.spec.source import REDACTED

PAGE = 100
MOST_PAGES = 10_000
NEW_PAGES = 10
"""How many pages may come to a list while it is read."""

_HASH = re.compile(r"[0-9a-f]{64}")
_KEY = re.compile(r"(?<![A-Za-z])sk-[^\s\"',;]+")
"""A key of LiteLLM's always starts with `sk-`; whose it is, and where it stands, does not matter."""


@dataclass(frozen=True)
class Alias:
    """One deployment: the name that people ask for, the served name behind it, where that is, its access groups."""

    name: str
    target: str
    base: str
    groups: tuple[str, ...]


@dataclass(frozen=True)
class Key:
    """One key as far as it concerns models: a label that is no key, its allowlist, its own aliases."""

    label: str
    models: tuple[str, ...]
    aliases: dict[str, str]


def told(text: str) -> str:
    """A text of the proxy's as one printable line, at most 60 characters, without anybody's key."""
    return printable(_KEY.sub(REDACTED, text[:600]), limit=60)


async def read_aliases(proxy: SeatClient) -> list[Alias]:
    """Every deployment. Raises FaultError."""
    return [_alias(_object(item, "a model")) for item in _list(await _document(proxy, "/model/info"), "data")]


async def read_tokens(proxy: SeatClient) -> tuple[list[str], list[str]]:
    """The hash of every key, page by page to the end, and what was missed, as sentences.

    Raises SeatError for pages that do not end or bring nothing, FaultError for what is no page.
    """
    hashes: dict[str, None] = {}
    last = MOST_PAGES
    for page in count(1):
        document = await _document(proxy, f"/key/list?{urlencode({'page': page, 'size': PAGE})}")
        pages = _whole(document, "total_pages")
        if pages > last:
            raise SeatError(f"/key/list does not end: {pages} pages are told of on page {page}")
        last = min(last, pages + NEW_PAGES)
        before = len(hashes)
        hashes |= dict.fromkeys(map(_hash, _list(document, "keys")))
        if page >= pages:
            break
        if len(hashes) == before:
            raise SeatError(
                f"/key/list: page {page} of {pages} brings no key that was not there before: keys are missing"
            )
    total = _whole(document, "total_count")
    missed = [f"/key/list tells of {total} keys and brought {len(hashes)}"] if total > len(hashes) else []
    return list(hashes), missed


async def read_key(proxy: SeatClient, name: str) -> Key | None:
    """The key of this hash; None where it is not there any more. Raises FaultError."""
    document = await proxy.document(f"/key/info?key={name}", gone=True)
    if document is None:
        return None
    info = _object(_object(document, "/key/info").get("info"), "info of /key/info")
    alias = info.get("key_alias")
    if "models" not in info or not isinstance(alias, str | None):
        raise BrokenContractError("info of /key/info holds no models, or a key_alias that is no text")
    aliases = _object(info.get("aliases") or {}, "aliases of /key/info")
    if not all(isinstance(model, str) for model in aliases.values()):
        raise BrokenContractError("aliases of /key/info leads to something that is no name")
    return Key(
        label=name[:12] + (f" ({told(alias)})" if alias else ""),
        # null, as LiteLLM reads it, is the empty list.
        models=() if info["models"] is None else tuple(_names(info, "models")),
        aliases=dict(aliases),
    )


def _alias(model: Mapping[str, Any]) -> Alias:
    target = _object(model.get("litellm_params"), "litellm_params of a model")
    info = _object(model.get("model_info") or {}, "model_info of a model")
    name, served, base = model.get("model_name"), target.get("model"), target.get("api_base") or ""
    if not (isinstance(name, str) and isinstance(served, str) and isinstance(base, str)):
        raise BrokenContractError("a model of /model/info has no name, no target, or an address that is none")
    groups = _names(info, "access_groups") if info.get("access_groups") is not None else []
    return Alias(name, served.partition("/")[2] or served, base, tuple(groups))


def _hash(item: object) -> str:
    """What LiteLLM stores of a key. A raw key is only ever asked about by it: raw keys end up in access logs."""
    token = item.get("token") if isinstance(item, dict) else item
    if isinstance(token, str) and _HASH.fullmatch(token):
        return token
    if isinstance(token, str) and token.startswith("sk-"):
        return hashlib.sha256(token.encode(errors="replace")).hexdigest()
    raise BrokenContractError("/key/list holds something that is no key's hash")


async def _document(proxy: SeatClient, path: str) -> Mapping[str, Any]:
    return _object(await proxy.document(path), path.partition("?")[0])


def _object(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise BrokenContractError(f"{what} is no object")
    return value


def _whole(document: Mapping[str, Any], name: str) -> int:
    value = document.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
        raise BrokenContractError(f"/key/list says no {name}")
    return value


def _list(document: Mapping[str, Any], name: str) -> list[Any]:
    value = document.get(name)
    if not isinstance(value, list):
        raise BrokenContractError(f"{name} is no list")
    return value


def _names(document: Mapping[str, Any], name: str) -> list[str]:
    names = _list(document, name)
    if not all(isinstance(each, str) for each in names):
        raise BrokenContractError(f"{name} holds something that is no name")
    return names
