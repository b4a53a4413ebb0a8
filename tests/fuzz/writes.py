"""Watching where Python writes: an attack may write in the folder that it was given, and nowhere else."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CHANGING = {
    "os.mkdir": ((0, 2),),
    "os.remove": ((0, 1),),
    "os.rmdir": ((0, 1),),
    "os.truncate": ((0, None),),
    "os.chmod": ((0, 2),),
    "os.rename": ((0, 2), (1, 3)),
    "os.link": ((1, 3),),
    "os.symlink": ((1, 2),),
}
"""For each event of Python the place of each path in its arguments, and that of the folder it is relative to."""
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
            changed = [(path, -1)] if isinstance(flags, int) and flags & _WRITING else []
        else:
            changed = [(args[at], -1 if of is None else args[of]) for at, of in _CHANGING.get(event, ())]
        self.found += [f"{event} {path!r}" for path, folder in changed if self._is_outside(path, folder)]

    def _is_outside(self, path: object, folder: object) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return False  # a descriptor, which was opened before
        below = "" if folder == -1 else f"/proc/self/fd/{folder}"
        real = os.path.realpath(Path(below, os.fsdecode(path)))
        return real not in _ALLOWED and not real.startswith(self.home + os.sep)
