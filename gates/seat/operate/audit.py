"""LiteLLM's keys against its aliases and the seat: what is dead, what would open, what leads nowhere; reads only.

Source: LiteLLM 1.110 (proxy/auth/auth_checks.py). A key's `models` is a list of allowed names; the EMPTY list allows
every model, so that taking the last dead name out opens the key. With `all-team-models` on it the team's list counts
and nothing else on the key's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from gates.seat.client import SeatClient
from gates.seat.operate.proxy import Alias, Key, read_aliases, read_key, read_tokens, told

EVERYTHING = frozenset({"*", "all-proxy-models"})
TEAM, NOTHING = "all-team-models", "no-default-models"
_SHOWN = 20


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
                f"put {NOTHING!r} on the list first (or block the key), then take {listed(self.dead)} off; an empty "
                "list allows every model"
            )
        return f"take {listed(self.dead)} off; {listed(self.alive)} stays"


@dataclass(frozen=True)
class Audit:
    """What was found: how much was read, keys with dead names, open keys, aliases that lead nowhere.

    `team_keys` take their team's list, which is not read here; `unread` says what could not be read or compared.
    """

    keys: int
    aliases: tuple[str, ...]
    findings: tuple[KeyFinding, ...]
    open_keys: tuple[str, ...]
    team_keys: tuple[str, ...]
    unserved: tuple[str, ...]
    unread: tuple[str, ...]

    @property
    def clean(self) -> bool:
        """Whether everything was read, and there is nothing to repair."""
        return not (self.findings or self.unserved or self.unread)


async def audit(proxy: SeatClient, served: frozenset[str] | None, seat: str | None = None) -> Audit:
    """Read every alias and every key of a proxy; `served` are the names of the seat that the proxy knows as `seat`.

    No text of the result holds a key. Raises FaultError when the proxy does not answer as LiteLLM does, SeatError when
    its pages do not end.
    """
    aliases = await read_aliases(proxy)
    tokens, unread = await read_tokens(proxy)
    keys: list[Key] = []
    for token in tokens:
        key = await read_key(proxy, token)
        if key is None:
            unread.append(f"key {token[:12]} was listed and is not there any more: read again")
        else:
            keys.append(key)
    alive = _alive(aliases)
    unserved: list[str] = []
    if served is not None and seat is not None:
        here = [alias for alias in aliases if _same(alias.base, seat)]
        unserved = [
            f"{told(alias.name)} leads to {told(alias.target)}, which the seat does not serve"
            for alias in here
            if alias.target not in served and "*" not in alias.target
        ]
        if not here:
            unread.append(
                f"no alias leads to {seat}: nothing was compared with the seat; give its address as the proxy knows it "
                "(--seat-as)"
            )
    return Audit(
        keys=len(keys),
        aliases=tuple(sorted({told(alias.name) for alias in aliases})),
        findings=tuple(finding for key in keys if (finding := _finding(key, alive)) is not None),
        open_keys=tuple(key.label for key in keys if _open(key)),
        team_keys=tuple(key.label for key in keys if TEAM in key.models),
        unserved=tuple(dict.fromkeys(unserved)),
        unread=tuple(unread),
    )


def listed(names: tuple[str, ...]) -> str:
    """Names in one line, the first twenty of them."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _finding(key: Key, alive: Callable[[str], bool]) -> KeyFinding | None:
    """What is dead on a key's list."""
    dead: list[str] = []
    kept: list[str] = []
    for name in key.models:
        (kept if alive(key.aliases.get(name, name)) else dead).append(told(name))
    return KeyFinding(key.label, tuple(dead), tuple(kept), opens=not kept) if dead else None


def _alive(aliases: list[Alias]) -> Callable[[str], bool]:
    """Whether something may answer to a name: LiteLLM's own names and wildcards always, others by alias or group."""
    names = {alias.name for alias in aliases} | {group for alias in aliases for group in alias.groups}
    names |= {*EVERYTHING, TEAM, NOTHING}
    wild = [re.compile(".*".join(map(re.escape, name.split("*")))) for name in names if "*" in name and name != "*"]

    def alive(name: str) -> bool:
        return name in names or "*" in name or any(pattern.fullmatch(name) for pattern in wild)

    return alive


def _open(key: Key) -> bool:
    return TEAM not in key.models and (not key.models or bool(EVERYTHING & set(key.models)))


def _same(one: str, other: str) -> bool:
    return one.rstrip("/").removesuffix("/v1") == other.rstrip("/").removesuffix("/v1")
