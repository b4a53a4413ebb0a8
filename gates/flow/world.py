"""What the flow needs from outside: where the cache is, who runs it, clock, chance, keys, and who watches."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from gates.corpora.cache import cache_dir
from gates.record.ledger import Stamp
from gates.seat.progress import Progress
from gates.spec.source import printable


def _now() -> datetime:
    return datetime.now(UTC)


def _nobody_watches(_progress: Progress) -> None:
    """No display."""


@dataclass(frozen=True)
class World:
    """The outside of one command, so that tests can give their own."""

    cache: Path
    by: str
    environ: Mapping[str, str]
    now: Callable[[], datetime] = _now
    chance: np.random.Generator = field(default_factory=np.random.default_rng)
    say: Callable[[str], None] = lambda _sentence: None
    watch: Callable[[Progress], None] = _nobody_watches
    key: Path | None = None

    def stamp(self) -> Stamp:
        """Now, by whom, and signed with which key."""
        return Stamp(self.now().isoformat(timespec="seconds"), self.by, self.key)


def this_world(
    say: Callable[[str], None],
    watch: Callable[[Progress], None] = _nobody_watches,
    by: str | None = None,
    key: Path | None = None,
) -> World:
    """The world of a command: cache and keys from the environment, the user's name unless `by` gives another.

    `key` is the SSH key file that signs every record, if any does.
    """
    name = _clean(by or "") or _clean(_user()) or "unknown"
    return World(cache=cache_dir(os.environ), by=name, environ=os.environ, say=say, watch=watch, key=key)


def _clean(name: str) -> str:
    """A name as one printable line of UTF-8, which every record can hold: what is no UTF-8 in it is replaced."""
    return printable(" ".join(name.encode("utf-8", "replace").decode("utf-8").split()))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
