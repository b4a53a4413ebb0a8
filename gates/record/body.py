"""What the body of a ledger record says: the chain holds its bytes, and nothing yet holds their meaning."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from gates import __version__
from gates.errors import RecordError, TamperedError
from gates.record.ledger import Stored

T = TypeVar("T", int, str)


def said(stored: Stored, key: str, kind: type[T]) -> T:
    """The value of `key` in a record's body. Raises TamperedError when it is missing or of another type."""
    value = stored.entry.body.get(key)
    # Exactly this type: True is an int to isinstance.
    if type(value) is not kind:
        raise TamperedError(
            f"ledger record {stored.sha256} ({stored.entry.kind} of {stored.entry.gate!r}): {key} is {value!r}, "
            f"which is no {kind.__name__}: gates did not write it",
            next_step="compare prereg/ledger.jsonl with the last commit and restore what was changed",
        )
    return value


def check_report(path: Path, told: str, entered: Stored, what: str) -> None:
    """Check a report, whose bytes the ledger's record `entered` holds, against the one that this version writes.

    Its wording belongs to the version of gates that wrote it, which stands in that record as `gates`. Raises
    TamperedError for a report of this version that says otherwise, RecordError for another version's.
    """
    if path.is_file() and path.read_text("utf-8", "replace") == told:
        return
    wrote = entered.entry.body.get("gates")
    if path.is_file() and wrote != __version__:
        raise RecordError(f"{path}: worded by gates {wrote or 'of another version'}, not by {__version__}")
    raise TamperedError(f"{path}: not the report of {what}")
