"""What a seat serves against what is listed and what is on disk: drift in either direction, before it hurts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from gates.seat.client import SeatClient
from gates.seat.faults import printable
from gates.seat.operate.service import Service


@dataclass(frozen=True)
class Served:
    """What a running seat lists: bases, adapters with the path each was loaded from, and whether more can be loaded."""

    version: str | None
    bases: tuple[str, ...]
    adapters: dict[str, str]
    runtime_lora: bool | None


async def ask(client: SeatClient) -> Served:
    """Ask a seat what it serves; reads only. Raises FaultError."""
    cards = await client.models()
    return Served(
        version=await client.version(),
        bases=tuple(printable(str(card["id"])) for card in cards if card.get("parent") is None),
        adapters={printable(str(card["id"])): _root(card) for card in cards if card.get("parent") is not None},
        runtime_lora=await client.has_route("/v1/load_lora_adapter"),
    )


def _root(card: dict[str, JsonValue]) -> str:
    root = card.get("root")
    return printable(root) if isinstance(root, str) else "not told"


@dataclass(frozen=True)
class Row:
    """One adapter: where it was loaded from, listed under which path, found on disk where; None where it is not."""

    name: str
    served: str | None
    listed: str | None
    on_disk: str | None
    drift: tuple[str, ...]


def compare(served: Served | None, service: Service | None, folder: Path | None) -> list[Row]:
    """Every adapter that anybody knows of, by name; what is not given (None) is not compared."""
    loaded = served.adapters if served else {}
    listed = dict(service.adapters) if service else {}
    disk = on_disk(folder) if folder else {}
    rows = []
    for name in sorted({*loaded, *listed, *disk}):
        found = disk.get(name)
        if found is None and service is not None and name in listed:
            host = service.host_path(listed[name])
            found = str(host) if host is not None and (host / "adapter_config.json").is_file() else None
        row = (loaded.get(name), listed.get(name), found)
        rows.append(Row(name, *row, drift=tuple(_drift(name, *row, served, service))))
    return rows


def on_disk(folder: Path) -> dict[str, str]:
    """The PEFT adapters in a folder, by the name of their own folder."""
    found = (path for path in sorted(folder.iterdir()) if (path / "adapter_config.json").is_file())
    return {printable(path.name): str(path) for path in found}


def _drift(
    name: str,
    loaded: str | None,
    listed: str | None,
    found: str | None,
    served: Served | None,
    service: Service | None,
) -> Iterable[str]:
    if served is not None and service is not None:
        if loaded is not None and listed is None:
            yield f"{name} is loaded but not listed: gone at the next restart"
        if loaded is None and listed is not None:
            yield f"{name} is listed but not served: the server was not restarted since, or unloaded it"
        if loaded is not None and listed is not None and loaded.rstrip("/") != listed.rstrip("/"):
            yield f"{name} was loaded from {loaded}, {listed} is listed: other bytes after the next restart"
    if listed is not None and found is None:
        yield f"{name} is listed, not on disk: the server will not start"
    if served is not None and name in served.bases:
        yield f"{name} is the base's own name, too"
