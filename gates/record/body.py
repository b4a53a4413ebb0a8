"""What the body of a ledger record says: the chain holds its bytes, and nothing yet holds their meaning."""

from __future__ import annotations

from typing import TypeVar

from gates.errors import TamperedError
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
