"""Who answers: what the seat says of itself, and the bytes of the adapters on disk."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Literal, NoReturn

from pydantic import Field, JsonValue

from gates.errors import UnfitSeatError, UsageError
from gates.records import Record, Sha256, digest
from gates.seat.client import SeatClient, SeatRequest
from gates.seat.faults import BrokenContractError, printable
from gates.seat.posture import Defaults, defaults_in_force, open_routes
from gates.spec.schema import Gate

_CHANGING = frozenset({"created", "permission"})
_CACHE_SERIES = re.compile(r"(?m)^vllm:cache_config_info\{(.{0,4000})\} \S+$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class LoraCard(Record):
    """A served adapter: its name, the path it was loaded from, the base it belongs to."""

    name: str
    root: str | None
    parent: str | None


class SeatBinding(Record):
    """What may not change between seal and run: server version, configuration fingerprint, the base's model card.

    `version` and `fingerprint` are None for a server that does not tell them. The card is without `created` and
    `permission`, which vLLM makes anew for every call.
    """

    version: str | None
    fingerprint: str | None
    base_card: dict[str, JsonValue]
    base_card_sha256: Sha256


class PeerBinding(SeatBinding):
    """The same of one of several seats, with the cards of the gate's adapters there, by the name they are served as."""

    adapters: dict[str, LoraCard]


class SeatContext(Record):
    """What is recorded and may change: served adapters, cache configuration, context length, runtime loading.

    `cache` holds the labels of vLLM's `cache_config_info`, None without; `max_model_len` is in tokens; `runtime_lora`
    says whether adapters can be loaded while the seat runs, None where it does not show. `defaults`: what a request
    without sampling fields is sampled by; `open_routes` answer without the API key.
    """

    loras: tuple[LoraCard, ...]
    cache: dict[str, str] | None
    max_model_len: int | None
    runtime_lora: bool | None
    defaults: Defaults | None = None
    open_routes: tuple[str, ...] = ()


class SeatIdentity(Record):
    """A seat as probed (`gates.seat/1`)."""

    schema_: Literal["gates.seat/1"] = Field(default="gates.seat/1", alias="schema")
    base_url: str
    binding: SeatBinding
    context: SeatContext


async def probe(client: SeatClient, gate: Gate) -> SeatIdentity:
    """Ask the seat who it is: reads, one request of one token for the fingerprint, and three short ones for defaults.

    Raises UnfitSeatError when the seat does not serve the gate's base, or serves one name twice, and FaultError when
    it does not answer.
    """
    cards = await client.models()
    base = _base_card(cards, gate.arms.base.model)
    text: dict[str, JsonValue] = (
        {"messages": [{"role": "user", "content": "."}]} if gate.prompts.endpoint == "chat" else {"prompt": "."}
    )
    body: dict[str, JsonValue] = {"model": gate.arms.base.model, "max_tokens": 1, "temperature": 0.0, **text}
    answer = await client.complete(SeatRequest(gate.prompts.endpoint, body))
    metrics = await client.metrics()
    length = base.get("max_model_len")
    try:
        card_sha256 = digest(base)
    except ValueError as error:
        raise BrokenContractError(f"the base's model card has no canonical JSON form: {error}") from None
    return SeatIdentity(
        base_url=client.base_url,
        binding=SeatBinding(
            version=await client.version(),
            fingerprint=answer.fingerprint,
            base_card=base,
            base_card_sha256=card_sha256,
        ),
        context=SeatContext(
            loras=tuple(_lora_card(card) for card in cards if card.get("parent") is not None),
            cache=None if metrics is None else _cache_labels(metrics),
            max_model_len=length if type(length) is int else None,
            runtime_lora=await client.has_route("/v1/load_lora_adapter"),
            defaults=await defaults_in_force(client, gate),
            open_routes=await open_routes(client),
        ),
    )


def _base_card(cards: tuple[dict[str, JsonValue], ...], model: str) -> dict[str, JsonValue]:
    names = [str(card["id"]) for card in cards]
    served = printable(", ".join(names)) or "none"
    if model not in names:
        raise UnfitSeatError(
            f"the seat does not serve the gate's base {model!r}; it serves: {served}",
            next_step="write one of these names as arms.base.model, or serve the base under this name",
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UnfitSeatError(
            f"the seat lists more than one model as {printable(', '.join(twice))}: one hides the other",
            next_step="give the adapter a name that no base has, and load it again",
        )
    card = cards[names.index(model)]
    if card.get("parent") == model:
        raise UnfitSeatError(
            f"the seat lists {model!r} as an adapter of itself: an adapter hides the base of this name",
            next_step="give the adapter a name that no base has, and load it again",
        )
    return {key: value for key, value in card.items() if key not in _CHANGING}


def _lora_card(card: dict[str, JsonValue]) -> LoraCard:
    root, parent = card.get("root"), card.get("parent")
    return LoraCard(
        name=str(card["id"]),
        root=root if isinstance(root, str) else None,
        parent=parent if isinstance(parent, str) else None,
    )


def _cache_labels(metrics: str) -> dict[str, str] | None:
    series = _CACHE_SERIES.search(metrics)
    return dict(_LABEL.findall(series[1])) if series else None


def adapter_files(path: Path) -> dict[str, str] | None:
    """SHA-256 of every regular file of an adapter, by its path within the folder, sorted; of the file for a file.

    None when nothing is at `path`. A link inside the folder is followed while it leads inside; one that leads out
    raises UsageError, as do an empty folder and a file that cannot be read, because bytes that the seat may load would
    go unhashed.
    """
    if not path.exists():
        return None
    if path.is_file():
        return {path.name: _file_sha256(path)}
    home = path.resolve()
    found: dict[str, str] = {}
    for folder, folders, files in os.walk(home, onerror=_refuse):
        for name in [*folders, *files]:
            entry = Path(folder, name)
            if entry.is_symlink() and not _leads_into(home, entry):
                raise UsageError(
                    f"{path / entry.relative_to(home)}: the link leads out of the adapter's folder, or nowhere",
                    next_step="copy the adapter with its files (cp -RL) and name the copy",
                )
            if entry.is_file():
                found[entry.relative_to(home).as_posix()] = _file_sha256(entry)
    if not found:
        raise UsageError(f"{path}: the adapter's folder holds no file", next_step="name the folder with its weights")
    return dict(sorted(found.items()))


def _leads_into(home: Path, link: Path) -> bool:
    """Whether a link ends inside the folder; one that leads round in a circle does not."""
    try:
        return link.resolve(strict=True).is_relative_to(home)
    except (OSError, RuntimeError):
        return False


def _file_sha256(path: Path) -> str:
    try:
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        _refuse(error)


def _refuse(error: OSError) -> NoReturn:
    raise UsageError(
        f"{error.filename}: the adapter cannot be read: {error.strerror}", next_step="make it readable"
    ) from None
