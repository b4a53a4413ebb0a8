"""What a seat serves against what is listed and what is on disk: drift in either direction, before it hurts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from pydantic import JsonValue

from gates.seat.client import SeatClient
from gates.seat.faults import printable
from gates.seat.operate.service import Service


@dataclass(frozen=True)
class Served:
    """What a running seat lists: bases, adapters with the path each was loaded from, and whether more can be loaded.

    `twice` are names that stand for more than one model: one hides the other.
    """

    version: str | None
    bases: tuple[str, ...]
    adapters: dict[str, str]
    runtime_lora: bool | None
    twice: tuple[str, ...] = ()


async def ask(client: SeatClient) -> Served:
    """Ask a seat what it serves; reads only. Raises FaultError."""
    cards = await client.models()
    version, names = await client.version(), Counter(printable(str(card["id"])) for card in cards)
    return Served(
        version=None if version is None else printable(version),
        bases=bases_of(cards),
        adapters={printable(str(card["id"])): _root(card) for card in cards if card.get("parent") is not None},
        runtime_lora=await client.has_route("/v1/load_lora_adapter"),
        twice=tuple(sorted(name for name, count in names.items() if count > 1)),
    )


def bases_of(cards: Iterable[Mapping[str, JsonValue]]) -> tuple[str, ...]:
    """The names of the models that are no adapters."""
    return tuple(printable(str(card["id"])) for card in cards if card.get("parent") is None)


def _root(card: dict[str, JsonValue]) -> str:
    root = card.get("root")
    return printable(root) if isinstance(root, str) else "not told"


@dataclass(frozen=True)
class Row:
    """One adapter: where it was loaded from, listed under which path, found on disk where; None where it is not.

    `out_of_sight`: it is listed in a volume that cannot be looked into from here, so that nothing is known of the disk.
    """

    name: str
    served: str | None
    listed: str | None
    on_disk: str | None
    drift: tuple[str, ...]
    out_of_sight: bool = False


def compare(served: Served | None, service: Service | None, folder: Path | None) -> list[Row]:
    """Every adapter that anybody knows of, by name; what is not given (None) is not compared."""
    loaded = served.adapters if served else {}
    listed = dict(service.adapters) if service else {}
    disk = on_disk(folder) if folder else {}
    here = {name: _place(service, name, inside, disk) for name, inside in listed.items()}
    named = {path for path, _ in here.values()}
    disk = {name: path for name, path in disk.items() if path not in named}
    rows = []
    for name in sorted({*loaded, *listed, *disk}):
        found, out_of_sight = here.get(name, (disk.get(name), False))
        row = Row(name, loaded.get(name), listed.get(name), found, (), out_of_sight)
        rows.append(replace(row, drift=tuple(_drift(row, served, service))))
    return rows


def _place(service: Service | None, name: str, inside: str, disk: Mapping[str, str]) -> tuple[str | None, bool]:
    """Where a listed adapter lies on disk, and whether that cannot be seen from here."""
    beside = disk.get(name) or disk.get(PurePosixPath(inside).name)
    host = service.host_path(inside) if service else None
    if beside is not None or (host is not None and (host / "adapter_config.json").is_file()):
        return beside or str(host), False
    return None, host is None and service is not None and service.volume(inside) is not None


def on_disk(folder: Path) -> dict[str, str]:
    """The PEFT adapters in a folder, by the name of their own folder."""
    found = (path for path in sorted(folder.iterdir()) if (path / "adapter_config.json").is_file())
    return {printable(path.name): str(path) for path in found}


def _drift(row: Row, served: Served | None, service: Service | None) -> Iterable[str]:
    name, loaded, listed = row.name, row.served, row.listed
    if served is not None and service is not None:
        if loaded is not None and listed is None:
            yield f"{name} is loaded but not listed: gone at the next restart"
        if loaded is None and listed is not None:
            yield f"{name} is listed but not served: the server was not restarted since, or unloaded it"
        if loaded is not None and listed is not None and loaded.rstrip("/") != listed.rstrip("/"):
            yield f"{name} was loaded from {loaded}, {listed} is listed: other bytes, perhaps, after the next restart"
    if listed is not None and row.on_disk is None and not row.out_of_sight:
        host = service.host_path(listed) if service else None
        yield f"{name} is listed, not on disk: the server will not start without {host or f'a volume for {listed}'}"
    if served is not None and name in served.bases:
        yield f"{name} is the base's own name, too: up to vLLM 0.30 the adapter answers in the base's place"
