"""What will surprise the operator of a seat: an existing compose file read for it, and nobody's file edited."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gates.errors import UsageError
from gates.seat.operate.compose import RANK, names_version
from gates.seat.operate.fit import LORA_RANKS
from gates.seat.operate.peft import adapter_config, largest_rank
from gates.seat.operate.service import Service

_VARIABLE = re.compile(r"\$\{[A-Za-z_]\w*(:?\?[^}]*)?\}|\$[A-Za-z_]\w*")
"""What compose puts a variable's value in for, without a value of its own in the file."""
_KEY = 'VLLM_API_KEY: "${VOICES_API_KEY:?}"'


@dataclass(frozen=True)
class Finding:
    """Something that will go wrong: which rule, what was found, and the line to write or what else to do."""

    rule: str
    found: str
    write: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        told = (("write", self.write), ("do", self.remedy))
        return "\n    ".join([f"{self.rule}: {self.found}", *(f"{what}: {how}" for what, how in told if how)])


def lint(service: Service, *, loaded: Mapping[str, str] | None = None) -> list[Finding]:
    """Everything about a service that will surprise its operator.

    `loaded` are the adapters that a running seat lists, each with the path it was loaded from.
    """
    return [
        *_names(service, loaded or {}),
        *_ranks(service),
        *_memory(service),
        *_mounts(service),
        *_doors(service),
    ]


def _names(service: Service, loaded: Mapping[str, str]) -> Iterable[Finding]:
    names = [name for name, _ in service.adapters]
    for name in sorted({name for name in names if names.count(name) > 1}):
        found = f"two adapters are listed as {name}"
        yield Finding("name collision", found, remedy="give each a name of its own in --lora-modules")
    for name in sorted(set(names) & set(service.bases)):
        found = f"adapter {name} has the base's own name: up to vLLM 0.30 it hides the base"
        yield Finding("name collision", found, remedy="give the adapter another name in --lora-modules")
    for name in sorted(set(loaded) - set(names)):
        yield Finding(
            "runtime-only adapter",
            f"{name} is loaded but not listed: gone at the next restart",
            f"--lora-modules ... {name}={loaded[name]}",
        )
    if names and "enable-lora" not in service.flags:
        yield Finding("adapters without LoRA", "--lora-modules stops the server without --enable-lora", "--enable-lora")


def _ranks(service: Service) -> Iterable[Finding]:
    given = _whole(service.flag("max-lora-rank"))
    limit = given or RANK
    if given and limit not in LORA_RANKS:
        larger = next((each for each in LORA_RANKS if each >= limit), LORA_RANKS[-1])
        yield Finding("rank not offered", f"vLLM takes no --max-lora-rank {given}", f"--max-lora-rank {larger}")
    for name, inside in service.adapters:
        folder = service.host_path(inside)
        if folder is None:
            yield _out_of_sight(service, name, inside)
            continue
        rank = rank_of(folder)
        if rank is None:
            found = f"{name}: {folder} holds no adapter_config.json with ranks: the server will not start without it"
            yield Finding("adapter not on disk", found, remedy=f"copy the adapter to {folder} on the server's machine")
        elif rank > limit:
            offered = next((str(each) for each in LORA_RANKS if each >= rank), None)
            yield Finding(
                "rank above the maximum",
                f"{name} has rank {rank}, --max-lora-rank is {limit}",
                f"--max-lora-rank {offered}" if offered else "",
                "" if offered else f"{LORA_RANKS[-1]} is the largest that vLLM serves: merge the adapter",
            )
    kept = _whole(service.flag("max-cpu-loras"))
    if kept is not None and kept < len(service.adapters):
        yield Finding(
            "adapters read again and again",
            f"--max-cpu-loras {kept} for {len(service.adapters)} adapters: each of the others is read from disk",
            f"--max-cpu-loras {len(service.adapters)}",
        )


def _out_of_sight(service: Service, name: str, inside: str) -> Finding:
    held = service.volume(inside)
    if held is None:
        return Finding("adapter not mounted", f"{name}: no volume holds {inside}", f"- HOST/{name}:{inside}:ro")
    found = f"{name}: {inside} lies in the volume {held[0]}, which cannot be looked into: its rank is not known here"
    return Finding("adapter out of sight", found, remedy=f"mount a folder by its path: - /FOLDER:{held[1]}:ro")


def _whole(value: str | None) -> int | None:
    return int(value) if value is not None and re.fullmatch("[0-9]{1,9}", value) else None


def _memory(service: Service) -> Iterable[Finding]:
    if service.flag("kv-cache-memory-bytes", "kv-cache-memory") is None:
        yield Finding(
            "KV not pinned",
            "the cache takes what the memory fraction leaves: it changes with whatever else is on the card",
            "--kv-cache-memory-bytes SIZE   (`gates seat fit` says what a size holds)",
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
    keys = [key for key in (*service.flags.get("api-key", []), service.environment.get("VLLM_API_KEY", "")) if key]
    if not keys:
        yield Finding("open API", "the server asks for no key", _KEY)
    elif any(_VARIABLE.sub("", key) for key in keys):
        yield Finding("key in the file", "the API key stands in the compose file", _KEY)
    elif not any("?" in key for key in keys):
        yield Finding("open API", "the server asks for no key where the variable is not set", _KEY)
    public = [port for port in service.ports if not re.match(r"(127\.|\[?::1)", port)]
    if public:
        yield Finding("open port", f"{public[0]} listens on every address", f"- 127.0.0.1:{public[0]}")
    if service.host_network and not re.match(r"127\.|::1|localhost", service.flag("host") or ""):
        yield Finding("open port", "network_mode is host: the server listens on every address", "--host 127.0.0.1")
    if service.environment.get("VLLM_ALLOW_RUNTIME_LORA_UPDATING", "").lower() in {"1", "true"}:
        yield Finding(
            "runtime loading is on",
            "whoever reaches the port can add and remove adapters: POST /adapters asks for no key",
            remedy="take VLLM_ALLOW_RUNTIME_LORA_UPDATING out, except while a voice is tried",
        )
    if not service.healthcheck:
        yield Finding("no health check", "nobody notices a server that died", "healthcheck: {test: [CMD, ...]}")
    if not names_version(service.image):
        yield Finding("image without a version", f"{service.image} is another server tomorrow", "image: NAME:vX.Y.Z")


def rank_of(folder: Path) -> int | None:
    """The largest rank in a PEFT adapter's configuration; None where there is none to read."""
    try:
        return largest_rank(adapter_config(folder))
    except UsageError:
        return None
