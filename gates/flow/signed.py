"""Deriving the sign-offs of a run again: each from the records, marks and verdicts that the ledger held before it."""

from __future__ import annotations

from collections.abc import Sequence

from gates.errors import GatesError, TamperedError
from gates.flow.review import Reading
from gates.flow.signoff import Decided, Signer, draft, known_then
from gates.record.chain import with_ancestors
from gates.record.ledger import Stored
from gates.record.lines import State
from gates.record.signing import fingerprint
from gates.record.signoff import signoffs


def check_signoffs(reading: Reading, entries: Sequence[Stored]) -> list[str]:
    """Derive every sign-off of a run again, from the records and marks that it names; returns what was not derived.

    Raises TamperedError for one that could not have been made as it is.
    """
    older: list[str] = []
    for stored, signed in signoffs(reading.run.store, entries):
        place = f"{reading.run.store.folder / 'signoffs'}: the sign-off of {signed.arm} by {signed.by}"
        signing_key = stored.entry.body.get("signing_key")
        if not isinstance(signing_key, str) or fingerprint(signing_key) != signed.key:
            raise TamperedError(f"{place} is not signed by the key that it names")
        if (stored.entry.at, stored.entry.by) != (signed.at, signed.by):
            raise TamperedError(f"{place} is not of the time or person that the ledger names")
        before = with_ancestors(entries, set(stored.entry.previous))
        then = [one for one in entries if one.sha256 in before]
        rescore = signed.rescored.folder if signed.rescored else None
        decided = Decided(arm=signed.arm, decision=signed.decision, reason=signed.reason, rescore=rescore)
        marks = State(signed.marks, signed.review_sha256)
        try:
            known = known_then(reading, then, decided)
            if known.verdicts.others and signed.rescored is None and not signed.others:
                older.append(f"{place}: an earlier gates wrote it, without the verdicts of re-scores")
                continue
            again = draft(reading, decided, Signer(signed.by, signed.at, signed.key), known, marks)
        except GatesError as error:
            raise TamperedError(f"{place} could not have been made: {error.message}") from None
        if again != signed:
            raise TamperedError(f"{place}: derived again it differs")
    return older
