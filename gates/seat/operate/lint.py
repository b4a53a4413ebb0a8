"""What will surprise the operator of a seat: an existing compose file read for it, and nobody's file edited."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gates.seat.operate.compose import ADAPTERS, RANK, names_version
from gates.seat.operate.fit import LORA_RANKS
from gates.seat.operate.service import Service

_KEY = 'VLLM_API_KEY: "${VOICES_API_KEY:?}"'


@dataclass(frozen=True)
class Finding:
    """Something that will go wrong: which rule, what was found, and the line to write, if there is one."""

    rule: str
    found: str
    write: str = ""

    def __str__(self) -> str:
        return f"{self.rule}: {self.found}" + (f"\n    write: {self.write}" if self.write else "")


def lint(service: Service, *, loaded: Iterable[str] = ()) -> list[Finding]:
    """Everything about a service that will surprise its operator; `loaded` are adapters that a running seat lists."""
    return [
        *_names(service, loaded),
        *_ranks(service),
        *_memory(service),
        *_mounts(service),
        *_doors(service),
    ]


def _names(service: Service, loaded: Iterable[str]) -> Iterable[Finding]:
    names = [name for name, _ in service.adapters]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield Finding("name collision", f"two adapters are listed as {name}")
    for name in sorted(set(names) & set(service.bases)):
        yield Finding("name collision", f"adapter {name} has the base's own name: up to vLLM 0.30 it hides the base")
    for name in sorted(set(loaded) - set(names)):
        yield Finding(
            "runtime-only adapter",
            f"{name} is loaded but not listed: gone at the next restart",
            f"--lora-modules ... {name}={ADAPTERS}/{name}",
        )
    if names and "enable-lora" not in service.flags:
        yield Finding("adapters without LoRA", "--lora-modules stops the server without --enable-lora", "--enable-lora")


def _ranks(service: Service) -> Iterable[Finding]:
    limit = int(value) if (value := service.flag("max-lora-rank") or "").isdecimal() else RANK
    for name, inside in service.adapters:
        folder = service.host_path(inside)
        if folder is None:
            yield Finding("adapter not mounted", f"{name}: no volume holds {inside}", f"- HOST/{name}:{inside}:ro")
            continue
        rank = rank_of(folder)
        if rank is None:
            yield Finding("adapter not on disk", f"{name}: {folder} holds no adapter_config.json with a rank")
        elif rank > limit:
            offered = next((str(each) for each in LORA_RANKS if each >= rank), None)
            yield Finding(
                "rank above the maximum",
                f"{name} has rank {rank}, --max-lora-rank is {limit}",
                f"--max-lora-rank {offered}" if offered else "",
            )
    kept = service.flag("max-cpu-loras")
    if kept and kept.isdecimal() and int(kept) < len(service.adapters):
        yield Finding(
            "adapters read again and again",
            f"--max-cpu-loras {kept} for {len(service.adapters)} adapters: each of the others is read from disk",
            f"--max-cpu-loras {len(service.adapters)}",
        )


def _memory(service: Service) -> Iterable[Finding]:
    if service.flag("kv-cache-memory-bytes", "kv-cache-memory") is None:
        yield Finding(
            "KV not pinned",
            "the cache takes what the memory fraction leaves: it changes with whatever else is on the card",
            "--kv-cache-memory-bytes 2G",
        )
    if service.flag("gpu-memory-utilization") is None:
        yield Finding(
            "memory fraction not set",
            "vLLM refuses to start unless 0.92 of the card is free, pinned KV or not",
            "--gpu-memory-utilization FRACTION   (`gates seat fit` says which)",
        )


def _mounts(service: Service) -> Iterable[Finding]:
    held = {inside for _, inside in service.adapters}
    for host, container, read_only in service.mounts:
        holds = any(PurePosixPath(inside).is_relative_to(container) for inside in held)
        if holds and not read_only:
            yield Finding("adapters not read-only", f"{host} is mounted for writing", f"- {host}:{container}:ro")


def _doors(service: Service) -> Iterable[Finding]:
    key = service.flag("api-key") or service.environment.get("VLLM_API_KEY")
    if not key:
        yield Finding("open API", "the server asks for no key", _KEY)
    elif "${" not in key and not key.startswith("$"):
        yield Finding("key in the file", "the API key stands in the compose file", _KEY)
    public = [port for port in service.ports if not re.match(r"(127\.|\[?::1)", port)]
    if public:
        yield Finding("open port", f"{public[0]} listens on every address", f"- 127.0.0.1:{public[0]}")
    if service.environment.get("VLLM_ALLOW_RUNTIME_LORA_UPDATING", "").lower() in {"1", "true"}:
        yield Finding(
            "runtime loading is on",
            "whoever reaches the port can add and remove adapters: POST /adapters asks for no key",
            "VLLM_ALLOW_RUNTIME_LORA_UPDATING: only while trying a voice",
        )
    if not service.healthcheck:
        yield Finding("no health check", "nobody notices a server that died", "healthcheck: {test: [CMD, ...]}")
    if not names_version(service.image):
        yield Finding("image without a version", f"{service.image} is another server tomorrow", "image: NAME:vX.Y.Z")


def rank_of(folder: Path) -> int | None:
    """The rank in a PEFT adapter's configuration; None where there is none to read."""
    try:
        rank = json.loads((folder / "adapter_config.json").read_bytes())["r"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return rank if isinstance(rank, int) and not isinstance(rank, bool) else None
