"""Watching where Python writes: an attack may write in the folder that it was given, and nowhere else."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CHANGING = {
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.rmdir": (0,),
    "os.truncate": (0,),
    "os.chmod": (0,),
    "os.rename": (0, 1),
    "os.link": (1,),
    "os.symlink": (1,),
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_ALLOWED = (os.devnull,)


class Outside:
    """The places outside `home` that were written to while it was watched, in their order."""

    def __init__(self, home: Path) -> None:
        self.home = os.path.realpath(home)
        self.found: list[str] = []
        self._watching = False
        sys.addaudithook(self._seen)  # it can never be taken away again

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch what is written meanwhile, by this process."""
        self._watching = True
        try:
            yield
        finally:
            self._watching = False

    def _seen(self, event: str, args: tuple[object, ...]) -> None:
        if not self._watching:
            return
        if event == "open":
            path, _, flags = args
            changed = [path] if isinstance(flags, int) and flags & _WRITING else []
        else:
            changed = [args[at] for at in _CHANGING.get(event, ())]
        self.found += [f"{event} {path!r}" for path in changed if self._is_outside(path)]

    def _is_outside(self, path: object) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return False  # a descriptor, which was opened before
        real = os.path.realpath(os.fsdecode(path))
        return real not in _ALLOWED and not real.startswith(self.home + os.sep)
