"""What the loss of power at any moment could take or tear, read off the steps that a writer makes on the disk.

A killed process leaves all that it wrote, for the system has it. After a loss of power only that is sure to be there
which was synchronised: a file's bytes by an fsync of the file, its name by one of the folder that holds it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

LEDGER = "ledger.jsonl"
_PART = re.compile(r"\.(.+)\.\d+\.part")


def names_in(folder: Path) -> set[str]:
    """All that is in a folder, by its path from there."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def at_risk(
    steps: Iterable[str], before: Collection[str] = (), lines: Sequence[Collection[str]] | None = None
) -> list[str]:
    """What the steps, as `tests.kills.Disk` tells them, leave to luck, in a folder that held `before`.

    A file that is not added to line by line gets its name when it is whole and on the disk, and is never written in its
    place. When a ledger is written, and at the end, all that was written before is on the disk. `lines`: for each line
    that the ledger gets, in their order, the files whose bytes it holds: they are there before it.
    """
    drive = _Drive({".", *before}, lines)
    for step in steps:
        drive.take(*step.split(" ", 1))
    return [*drive.found, *(f"at the end: {what}" for what in drive.loose())]


class _Drive:
    def __init__(self, there: set[str], lines: Sequence[Collection[str]] | None) -> None:
        self.there, self.lines = there, None if lines is None else iter(lines)
        self.found: list[str] = []
        self.bytes: set[str] = set()
        self.names: set[str] = set()

    def loose(self, but: str = "") -> list[str]:
        """What is not on the disk: bytes of files, names of files and folders."""
        texts = [f"bytes of {path}" for path in self.bytes] + [f"name of {path}" for path in self.names]
        return sorted(text for text in texts if text.split(" of ")[1] != but)

    def take(self, what: str, path: str) -> None:
        if what in ("write", "truncate", "ftruncate"):
            self._write(path)
        elif what == "fsync":
            self.bytes.discard(path)
            self.names = {one for one in self.names if (posixpath.dirname(one) or ".") != path}
        elif what == "mkdir":
            self._named(path)
        elif what in ("link", "replace", "rename"):
            self._name(path)
        elif what in ("unlink", "remove"):
            self.bytes.discard(path)

    def _write(self, path: str) -> None:
        name = posixpath.basename(path)
        if name == LEDGER:
            self._relied(path)
            held = () if self.lines is None else next(self.lines)
            self.found += [f"a line of {path} before {file}" for file in sorted({*held} - self.there)]
        self.bytes.add(path)
        if not _PART.fullmatch(name):
            self._named(path)
            if not name.endswith(".jsonl"):
                self.found.append(f"{path} is written in its place")

    def _name(self, path: str) -> None:
        """What was written beside its place takes it, as new bytes under that name."""
        if path in self.bytes:
            self.found.append(f"{path} gets its name before it is on the disk")
        folder, name = posixpath.split(path)
        half = _PART.fullmatch(name)
        place = posixpath.join(folder, half[1] if half else name)
        if half and half[1] == LEDGER:
            self._relied(place)
        self.there.add(place)
        self.names.add(place)

    def _relied(self, ledger: str) -> None:
        self.found += [f"{ledger} tells of more: {loose}" for loose in self.loose(but=ledger)]

    def _named(self, path: str) -> None:
        if path not in self.there:
            self.there.add(path)
            self.names.add(path)
