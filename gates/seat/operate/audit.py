"""LiteLLM's keys against its aliases and the seat: what is dead, what would open, what leads nowhere; reads only.

Source: LiteLLM 1.110 (proxy/auth/auth_checks.py, management_endpoints/key_management_endpoints.py). A key's `models`
is a list of allowed names; the EMPTY list allows every model, so that taking the last dead name out opens the key.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from gates.errors import SeatError
from gates.seat.client import SeatClient
from gates.seat.faults import BrokenContractError, printable

PAGE = 100
MOST_PAGES = 10_000
EVERYTHING = frozenset({"*", "all-proxy-models"})
TEAM, NOTHING = "all-team-models", "no-default-models"
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Alias:
    """One deployment: the name that people ask for, the served name behind it, and where that is."""

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


@dataclass(frozen=True)
class KeyFinding:
    """A key whose allowlist holds names that nothing answers to; `opens` when no other name is left on it."""

    label: str
    dead: tuple[str, ...]
    alive: tuple[str, ...]
    opens: bool

    @property
    def plan(self) -> str:
        """What a person may do, in one sentence; nothing is done here."""
        if self.opens:
            return (
                f"put {NOTHING!r} on the list first (or block the key), then take {', '.join(self.dead)} off; an empty "
                "list allows every model"
            )
        return f"take {', '.join(self.dead)} off; {', '.join(self.alive)} stays"


@dataclass(frozen=True)
class Audit:
    """What was found: how much was read, keys with dead names, keys open to everything, aliases that lead nowhere."""

    keys: int
    aliases: tuple[str, ...]
    findings: tuple[KeyFinding, ...]
    open_keys: tuple[str, ...]
    unserved: tuple[str, ...]

    @property
    def clean(self) -> bool:
        """Whether there is nothing to repair."""
        return not (self.findings or self.unserved)


async def audit(proxy: SeatClient, served: frozenset[str] | None, seat: str | None = None) -> Audit:
    """Read every alias and every key of a proxy; `served` are the names of the seat that the proxy knows as `seat`.

    Raises FaultError when the proxy does not answer, SeatError when its pages do not end.
    """
    aliases = await _aliases(proxy)
    keys = [await _key(proxy, token) for token in await _tokens(proxy)]
    names = {alias.name for alias in aliases} | {group for alias in aliases for group in alias.groups}
    findings = [finding for key in keys if (finding := _finding(key, names)) is not None]
    unserved = [
        f"{alias.name} leads to {alias.target}, which the seat does not serve"
        for alias in aliases
        if served is not None and seat is not None and _same(alias.base, seat) and alias.target not in served
    ]
    return Audit(
        keys=len(keys),
        aliases=tuple(sorted({alias.name for alias in aliases})),
        findings=tuple(findings),
        open_keys=tuple(key.label for key in keys if not key.models or EVERYTHING & set(key.models)),
        unserved=tuple(dict.fromkeys(unserved)),
    )


def _finding(key: Key, names: set[str]) -> KeyFinding | None:
    """What is dead on a key's list. The names of LiteLLM's own and wildcards are always alive."""
    dead = tuple(name for name in key.models if not _alive(key.aliases.get(name, name), names))
    alive = tuple(name for name in key.models if name not in dead)
    return KeyFinding(key.label, dead, alive, opens=not alive) if dead else None


def _alive(name: str, names: set[str]) -> bool:
    return name in names or name in EVERYTHING or name in {TEAM, NOTHING} or "*" in name


async def _aliases(proxy: SeatClient) -> list[Alias]:
    found = _object(await proxy.document("/model/info"), "/model/info").get("data")
    if not isinstance(found, list):
        raise BrokenContractError("/model/info holds no list of models")
    aliases: list[Alias] = []
    for item in found:
        model = _object(item, "a model of /model/info")
        target = _object(model.get("litellm_params") or {}, "litellm_params")
        info = _object(model.get("model_info") or {}, "model_info")
        aliases.append(
            Alias(
                name=printable(str(model.get("model_name"))),
                target=printable(str(target.get("model", ""))).partition("/")[2] or printable(str(target.get("model"))),
                base=printable(str(target.get("api_base", ""))),
                groups=tuple(printable(str(group)) for group in _list(info.get("access_groups"))),
            )
        )
    return aliases


async def _tokens(proxy: SeatClient) -> list[str]:
    """Every key's token (a hash), page by page to the end."""
    tokens: dict[str, None] = {}
    for page in range(1, MOST_PAGES):
        before = len(tokens)
        path = f"/key/list?{urlencode({'page': page, 'size': PAGE})}"
        document = _object(await proxy.document(path), "/key/list")
        for item in _list(document.get("keys")):
            token = item.get("token") if isinstance(item, dict) else item
            tokens[str(token)] = None
        total = document.get("total_pages")
        if not isinstance(total, int) or isinstance(total, bool):
            raise BrokenContractError("/key/list says no total_pages")
        if page >= total or len(tokens) == before:
            return list(tokens)
    raise SeatError(f"/key/list has more than {MOST_PAGES} pages")


async def _key(proxy: SeatClient, token: str) -> Key:
    # A raw key is asked about by its hash, which is what LiteLLM stores: raw keys end up in access logs.
    name = token if _HASH.fullmatch(token) else hashlib.sha256(token.encode()).hexdigest()
    document = _object(await proxy.document(f"/key/info?key={quote(name)}"), "/key/info")
    info = _object(document.get("info") or {}, "info")
    alias = info.get("key_alias")
    label = f"{name[:12]}" + (f" ({printable(str(alias), limit=60)})" if alias else "")
    aliases = info.get("aliases") or {}
    return Key(
        label=label if token not in label else name[:12],
        models=tuple(printable(str(model)) for model in _list(info.get("models"))),
        aliases={str(k): str(v) for k, v in aliases.items()} if isinstance(aliases, dict) else {},
    )


def _same(one: str, other: str) -> bool:
    return one.rstrip("/").removesuffix("/v1") == other.rstrip("/").removesuffix("/v1")


def _object(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise BrokenContractError(f"{what} is no object")
    return value


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
