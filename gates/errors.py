"""Exit codes and the one tree of exceptions that this package raises.

GatesError
├── UsageError          the caller's mistake: a missing file, an impossible option
│   └── InputError      a document with mistakes, all of them listed (gate, manifest, values)
├── CorpusError         a text is missing, unreadable or not what its manifest says
├── SeatError           the seat cannot be reached, or does not keep its contract
│   └── UnfitSeatError  the seat answers, but not with what was asked for (canary, wrong model): INVALID
├── RecordError         a record is missing, locked or of an unknown schema
│   └── RefusedError    generation refused: no seal, or something binding has changed
├── DiskError           the disk refuses to write: full, read-only, without the right, or failing
└── TamperedError       a hash or chain does not hold
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's exit status means."""

    PASS = 0
    FAIL = 1
    USAGE = 2
    INCONCLUSIVE = 3
    INVALID = 4
    TAMPERED = 5


class GatesError(Exception):
    """Anything this package refuses, with the next step a person can take.

    `exit_code` is the status the command line ends with.
    """

    exit_code = ExitCode.USAGE

    def __init__(self, message: str, *, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step

    def __reduce__(self) -> tuple[Callable[..., GatesError], tuple[object, ...]]:
        return _restored, (type(self), self.args, vars(self))

    def __str__(self) -> str:
        return f"{self.message}\n  next: {self.next_step}" if self.next_step else self.message


def _restored(kind: type[GatesError], args: tuple[str, ...], state: dict[str, object]) -> GatesError:
    """An error as another process raised it, whatever its class asks for when it is made."""
    error = kind.__new__(kind, *args)
    vars(error).update(state)
    return error


class UsageError(GatesError):
    """The caller asked for something that cannot be."""


@dataclass(frozen=True)
class Problem:
    """One mistake in a document: where it stands, what it says, which rule it breaks, what to write instead."""

    where: str
    path: str
    value: str
    rule: str
    suggestion: str = ""

    def __str__(self) -> str:
        hint = f" ({self.suggestion})" if self.suggestion else ""
        value = f" = {self.value}" if self.value else ""
        return f"{self.where}: {self.path}{value}: {self.rule}{hint}"


class InputError(UsageError):
    """A document with mistakes; `problems` holds all of them, in the order of the file."""

    def __init__(self, title: str, problems: tuple[Problem, ...], *, next_step: str = "") -> None:
        super().__init__("\n".join([title, *(f"  {problem}" for problem in problems)]), next_step=next_step)
        self.problems = problems


class CorpusError(GatesError):
    """A text is missing, unreadable, or not the text its manifest names."""


class SeatError(GatesError):
    """The seat cannot be reached or does not keep its contract."""

    exit_code = ExitCode.INVALID


class UnfitSeatError(SeatError):
    """The seat answers, but something else than what the gate names: the run is INVALID."""


class RecordError(GatesError):
    """A record is missing, locked, or of a schema this version does not know."""


class RefusedError(RecordError):
    """Generation is refused: there is no seal, or something binding has changed since."""


class DiskError(GatesError):
    """The disk refuses to write. What was recorded before stays, and nothing half written is kept."""

    @classmethod
    def of(cls, error: OSError, path: object = None) -> DiskError:
        """The system's error, said of `path` or of the file that it names, with the way out of it."""
        remedy = _REMEDIES.get(error.errno or 0, "make room, or give the rights")
        return cls(
            f"{path or error.filename or 'the system'}: {error.strerror or error}",
            next_step=f"{remedy}; then repeat the command: what was recorded stays, and it continues",
        )


_REMEDIES = {
    errno.ENOSPC: "make room on this disk",
    errno.EDQUOT: "make room, or have the quota raised",
    errno.EFBIG: "raise the limit on the size of files (`ulimit -f`)",
    errno.EROFS: "make this file system writable",
    errno.EACCES: "give yourself the right to write there",
    errno.EPERM: "give yourself the right to write there",
    errno.EIO: "see what ails the device: it failed to read or write",
}


class TamperedError(GatesError):
    """A hash or a chain of hashes does not hold."""

    exit_code = ExitCode.TAMPERED
