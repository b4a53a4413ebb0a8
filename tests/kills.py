"""A process that dies at its n-th step on the disk: at a write after half of its bytes, else before the step."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from pathlib import Path

STARTED = multiprocessing.get_context("forkserver")
"""Processes that begin with everything imported, which spares each the seconds that Python takes to start."""

BIG = 10_000
"""More steps than anything makes."""

FORKED = multiprocessing.get_context("fork")
"""Processes that begin as they are, at once; for work that needs no threads."""

STEPS = ("fsync", "link", "replace", "rename", "unlink", "remove", "truncate", "ftruncate", "mkdir")


class Disk:
    """Counts the steps on the disk below a folder, and dies at one of them; `told` lists those that were made."""

    def __init__(self, below: Path, deadly: int) -> None:
        self.below, self.deadly = str(below), deadly
        self.told: list[str] = []

    def step(self, what: str, path: object) -> bool:
        """Whether to die now; `path` may be an open file's number."""
        name = Path(f"/proc/self/fd/{path}").readlink() if isinstance(path, int) else os.fspath(path)
        if not str(name).startswith(self.below):
            return False
        self.told.append(f"{what} {Path(str(name)).name}")
        return len(self.told) == self.deadly

    def watch(self) -> None:
        """Put this disk under everything that the process does from here on."""
        for what in STEPS:
            setattr(os, what, self._watched(what, getattr(os, what)))
        io.open = self._open(io.open)

    def _watched(self, what: str, real: Callable) -> Callable:
        def step(path: object, *rest: object, **named: object) -> object:
            if self.step(what, path):
                die()
            return real(path, *rest, **named)

        return step

    def _open(self, real: Callable) -> Callable:
        disk = self

        class File(io.FileIO):
            def write(self, data: object) -> int:
                if disk.step("write", self.name):
                    super().write(memoryview(data)[: len(data) // 2])
                    die()
                return super().write(data)

            def truncate(self, size: int | None = None) -> int:
                if disk.step("truncate", self.name):
                    die()
                return super().truncate(size)

        def opened(path: object, mode: str = "r", *rest: object, **named: object) -> object:
            if "b" not in mode or mode == "rb" or not str(path).startswith(self.below):
                return real(path, mode, *rest, **named)
            raw = File(path, mode.replace("b", ""))
            return io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)

        return opened


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _child(work: Callable[..., object], arguments: tuple, below: Path, deadly: int, told: Connection) -> None:
    disk = Disk(below, deadly)
    disk.watch()
    with Path(os.devnull).open("w") as nowhere:
        sys.stdout = sys.stderr = nowhere
        with contextlib.suppress(SystemExit):
            work(*arguments)
    told.send(disk.told)


def killed_at(
    deadly: int, below: Path, work: Callable[..., object], *arguments: object, context: BaseContext = STARTED
) -> list[str]:
    """Do `work` in a process of its own that dies at step `deadly`; the steps it made if it lived, else nothing."""
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(work, arguments, below, deadly, theirs))
    process.start()
    theirs.close()
    process.join()
    if process.exitcode == 0:
        return ours.recv()
    assert process.exitcode == -signal.SIGKILL, process.exitcode
    return []
