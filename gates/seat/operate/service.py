"""A compose file's service as far as it concerns a seat: what is served, mounted, published and asked for.

The file is foreign: it is read without evaluating anything in it, and its texts are made printable.
"""

from __future__ import annotations

import json
import os
import posixpath
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from gates.errors import UsageError
from gates.spec.foreign import read_foreign
from gates.spec.source import printable, without_keys


@dataclass(frozen=True)
class Service:
    """One compose service as far as it concerns a seat; flags without their dashes, each with its values."""

    name: str
    image: str
    flags: dict[str, list[str]]
    environment: dict[str, str]
    ports: tuple[str, ...]
    mounts: tuple[tuple[str, str, bool], ...]
    """Host path as it is written, container path, read-only."""
    healthcheck: bool
    home: Path = Path()
    """The compose file's folder, which relative host paths start from."""
    host_network: bool = False

    def flag(self, *names: str) -> str | None:
        """The last value of the first flag that is given."""
        return next((self.flags[name][-1] for name in names if self.flags.get(name)), None)

    @property
    def adapters(self) -> list[tuple[str, str]]:
        """(name, container path) of --lora-modules, in order."""
        return [_module(item) for item in self.flags.get("lora-modules", [])]

    @property
    def bases(self) -> list[str]:
        """The names that the base is served under."""
        return self.flags.get("served-model-name") or self.flags.get("model") or []

    def volume(self, inside: str) -> tuple[str, str] | None:
        """Host and container path of the mount that holds a path inside the container, None where none does."""
        place = PurePosixPath(posixpath.normpath(inside))
        holding = [mount[:2] for mount in self.mounts if place.is_relative_to(mount[1])]
        return max(holding, key=lambda mount: len(mount[1]), default=None)

    def host_path(self, inside: str) -> Path | None:
        """Where a path inside the container lies outside; None where no mount holds it, or a named volume does."""
        host, container = self.volume(inside) or ("", "")
        if not host.startswith(("/", ".", "~")):
            return None
        rest = PurePosixPath(posixpath.normpath(inside)).relative_to(container)
        return Path(os.path.normpath(self.home / os.path.expanduser(host) / rest))  # noqa: PTH111 - ~x of nobody stays


def read_service(path: Path, name: str | None = None) -> Service:
    """The service of a compose file that serves adapters, or the one of that name.

    Raises UsageError when the file is none, or more than one service could be meant.
    """
    document = read_foreign(path)
    services = document.get("services") if isinstance(document, dict) else None
    if not isinstance(services, dict):
        raise UsageError(f"{path}: no services in it", next_step="name a compose file, not seat.yaml")
    home = path.parent
    found = {str(key): _service(str(key), value, home) for key, value in services.items() if isinstance(value, dict)}
    if name is not None:
        if name not in found:
            raise UsageError(f"{path}: no service {name!r}", next_step=f"choose one of: {_first(found)}")
        return found[name]
    seats = [one for one in found.values() if "enable-lora" in one.flags or "vllm" in one.image]
    if len(seats) != 1:
        named = _first(one.name for one in seats) or "none"
        raise UsageError(f"{path}: services that look like a seat: {named}", next_step="name one with --service")
    return seats[0]


def _first(names: Iterable[str]) -> str:
    """Names in one line, the first twenty of them."""
    known = [printable(name) for name in names]
    return ", ".join(known[:20]) + (f" and {len(known) - 20} more" if len(known) > 20 else "")


def _service(name: str, body: Mapping[str, Any], home: Path) -> Service:
    return Service(
        name=printable(name),
        image=printable(str(body.get("image", ""))),
        flags=_flags(_words(body.get("entrypoint")) + _words(body.get("command"))),
        environment=_environment(body.get("environment")),
        ports=tuple(map(_port, _list(body.get("ports")))),
        mounts=tuple(mount for item in _list(body.get("volumes")) if (mount := _mount(item)) is not None),
        healthcheck=isinstance(body.get("healthcheck"), dict) and not body["healthcheck"].get("disable"),
        home=home,
        host_network=body.get("network_mode") == "host",
    )


def _words(command: object) -> list[str]:
    if isinstance(command, str):
        try:
            return shlex.split(command)
        except ValueError:
            return command.split()
    words = [str(word) for word in _list(command) if not isinstance(word, dict | list)]
    # What a shell is given is the command.
    return _words(words[2]) if len(words) > 2 and words[0].endswith("sh") and words[1] == "-c" else words


def _flags(words: list[str]) -> dict[str, list[str]]:
    flags: dict[str, list[str]] = {}
    current: list[str] | None = None
    for word in words:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            current = flags.setdefault(name.replace("_", "-"), [])
            if equals:
                current.append(value)
        elif current is not None:
            current.append(word)
    return flags


def _environment(value: object) -> dict[str, str]:
    if isinstance(value, dict):
        return {str(key): "" if each is None else str(each) for key, each in value.items()}
    pairs = (str(item).partition("=") for item in _list(value))
    return {key: each for key, _, each in pairs}


def _port(item: object) -> str:
    if isinstance(item, dict):
        where = f"{item['host_ip']}:" if item.get("host_ip") else ""
        return printable(f"{where}{item.get('published', '')}:{item.get('target', '')}")
    return printable(without_keys(str(item)))


def _mount(item: object) -> tuple[str, str, bool] | None:
    if isinstance(item, dict):
        source, target = item.get("source"), item.get("target")
        return (str(source), str(target), item.get("read_only") is True) if source and target else None
    host, _, rest = str(item).partition(":")
    container, _, mode = rest.partition(":")
    return (host, container, "ro" in mode.split(",")) if container else None


def _module(item: str) -> tuple[str, str]:
    """NAME=PATH, or vLLM's JSON form."""
    if item.lstrip().startswith("{"):
        try:
            document = json.loads(item)
            return printable(str(document["name"])), printable(str(document["path"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            return printable(item), ""
    name, _, path = item.partition("=")
    return printable(name), printable(path)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
