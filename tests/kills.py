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
    """Counts the steps on the disk below a folder, and dies at one of them; `told` lists those that were made.

    With `error` it refuses that step instead with this error of the system, and with `lasting` all later ones, too.
    """

    def __init__(self, below: Path, deadly: int, error: int | None = None, *, lasting: bool = False) -> None:
        self.below, self.deadly, self.error, self.lasting = str(below), deadly, error, lasting
        self.told: list[str] = []

    def step(self, what: str, path: object) -> bool:
        """Whether to fail now; `path` may be an open file's number."""
        name = Path(f"/proc/self/fd/{path}").readlink() if isinstance(path, int) else os.fspath(path)
        if not str(name).startswith(self.below):
            return False
        self.told.append(f"{what} {os.path.relpath(name, self.below)}")
        # What is refused for want of room can still be taken away.
        kept = self.lasting and what not in ("unlink", "remove", "truncate", "ftruncate")
        return len(self.told) == self.deadly or (kept and 0 < self.deadly < len(self.told))

    def fail(self) -> None:
        """Die, or raise the error."""
        if self.error is not None:
            raise OSError(self.error, os.strerror(self.error))
        os.kill(os.getpid(), signal.SIGKILL)

    def watch(self) -> None:
        """Put this disk under everything that the process does from here on."""
        for what in STEPS:
            setattr(os, what, self._watched(what, getattr(os, what)))
        io.open = self._open(io.open)

    def _watched(self, what: str, real: Callable) -> Callable:
        def step(path: object, *rest: object, **named: object) -> object:
            if self.step(what, path):
                self.fail()
            return real(path, *rest, **named)

        return step

    def _open(self, real: Callable) -> Callable:
        disk = self

        class File(io.FileIO):
            full = False

            def write(self, data: object) -> int:
                if self.full:
                    self.full = disk.lasting
                    disk.fail()
                if disk.step("write", self.name):
                    written = super().write(memoryview(data)[: len(data) // 2])
                    if disk.error is None:
                        disk.fail()
                    # As the system does it: a short write, and the error at the next.
                    self.full = True
                    return written
                return super().write(data)

            def truncate(self, size: int | None = None) -> int:
                if disk.step("truncate", self.name):
                    disk.fail()
                return super().truncate(size)

        def opened(path: object, mode: str = "r", buffering: int = -1, *rest: object, **named: object) -> object:
            if "b" not in mode or mode == "rb" or not str(path).startswith(self.below):
                return real(path, mode, buffering, *rest, **named)
            raw = File(path, mode.replace("b", ""))
            if buffering == 0:
                return raw
            return io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)

        return opened


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
