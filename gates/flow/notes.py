"""What a verification notes: breaks, and what could not be derived; and the checks of a record's bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gates.errors import GatesError, TamperedError
from gates.record.body import said
from gates.record.ledger import Stored
from gates.record.seal import SealOnDisk, read_seal
from gates.records import is_canonical


@dataclass
class Notes:
    """Sentences: what does not hold, and what could not be derived here."""

    breaks: list[str] = field(default_factory=list)
    not_derived: list[str] = field(default_factory=list)

    def guard(self, step: Callable[[], None]) -> None:
        """Run a step; a hash that does not hold is a break, anything else that stops it is not derived.

        What was read strictly and cannot be worked with (an arm that is missing, rows of two lengths) is a break,
        too: a record that stops its own verification must not pass for one that lacks a text.
        """
        try:
            step()
        except TamperedError as error:
            self.breaks.append(error.message)
        except GatesError as error:
            self.not_derived.append(error.message)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            self.breaks.append(
                f"what is recorded does not fit together ({type(error).__name__}: {error}): gates did not write it so; "
                "if nobody else did, gates is mistaken: report it"
            )


def refuse_bent(path: Path, data: bytes) -> None:
    """Raise TamperedError for a record whose bytes another reader may read otherwise than this program does."""
    lines = data.splitlines() if path.suffix == ".jsonl" else [data] if path.suffix == ".json" and data else []
    for number, line in enumerate(lines, start=1):
        if not is_canonical(line):
            raise TamperedError(f"{path}:{number}: it is not the canonical JSON it was written as")


def seal_of(prereg: Path, stored: Stored) -> SealOnDisk:
    """The seal that a ledger record names."""
    return read_seal(prereg, said(stored, "seal", str), said(stored, "file", str))
