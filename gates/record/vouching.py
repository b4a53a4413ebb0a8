"""Who vouches for a ledger: signatures checked against the keys that records name, and against trust from outside.

Without a list from outside a signature shows integrity and no identity: whoever forges a workspace signs it with a key
of their own. With one, a signature also vouches for every record that its own record follows, for the chain holds them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from gates.errors import GatesError, TamperedError
from gates.record.body import said
from gates.record.chain import with_ancestors
from gates.record.ledger import Stored
from gates.record.signing import fingerprint, holds, signature_path, trusted


@dataclass
class Vouched:
    """What the signatures of a ledger show: `told` for a person, `breaks`, and `open`: what nobody trusted covers."""

    told: list[str] = field(default_factory=list)
    breaks: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)


def vouch(prereg: Path, records: Sequence[Stored], allowed: Path | None) -> Vouched:
    """Check every signature of a ledger; `allowed` is the allowed-signers file of whoever asks, if there is one."""
    found = Vouched()
    signed = [(record, key) for record in records if (key := _key(prereg, record, found)) is not None]
    unsigned = sum("signing_key" not in record.entry.body for record in records)
    if allowed is None:
        for key, count in Counter(fingerprint(key) for _, key in signed).items():
            found.told.append(
                f"{count} records are signed by a key this workspace itself lists: integrity, not identity ({key})"
            )
    else:
        _trust(prereg, records, signed, allowed, found)
    if unsigned:
        found.told.append(f"{unsigned} of {len(records)} records carry no signature")
    return found


def _key(prereg: Path, record: Stored, found: Vouched) -> str | None:
    """The key that signed a record, when it names one and the signature holds."""
    if "signing_key" not in record.entry.body:
        return None
    path = signature_path(prereg, record.sha256)
    named = f"{record.entry.kind} of {record.entry.gate}"
    try:
        key = said(record, "signing_key", str)
        good = path.is_file() and holds(record.line, path.read_bytes(), key)
    except TamperedError as error:
        found.breaks.append(error.message)
        return None
    except GatesError as error:
        found.open.append(f"{path}: {error.message}")
        return None
    if not good:
        wrong = "not a signature of its record by the key that the record names" if path.is_file() else "missing"
        found.breaks.append(f"{path} ({named}): {wrong}")
    return key if good else None


def trusted_signers(prereg: Path, records: Sequence[Stored], allowed: Path) -> dict[str, str]:
    """Who of a list from outside signed which record, by the record's hash: those alone whose signatures hold."""
    held = {record.sha256 for record in records if _key(prereg, record, Vouched()) is not None}
    return _signers(prereg, records, held, allowed)


def _signers(prereg: Path, records: Sequence[Stored], held: Collection[str], allowed: Path) -> dict[str, str]:
    """Who of a list signed which of the records whose signatures are `held` to be good.

    A signature is taken to be made when its record says, and no earlier than what any of them signed before it: whoever
    has come by a key of former times cannot date a record back behind those that it follows.
    """
    found: dict[str, str] = {}
    latest: dict[str, datetime] = {}
    for record in records:
        before = max((latest[name] for name in record.entry.previous), default=_NEVER)
        latest[record.sha256] = before
        stated = _moment(record.entry.at)
        if record.sha256 not in held or stated is None:
            continue
        at, armoured = max(before, stated), signature_path(prereg, record.sha256).read_bytes()
        if who := trusted(record.line, armoured, allowed, at.isoformat()):
            found[record.sha256], latest[record.sha256] = who, at
    return found


_NEVER = datetime.min.replace(tzinfo=UTC)


def _moment(at: str) -> datetime | None:
    """When a record says it was made, in any form of ISO 8601, UTC without a zone; None where it says no time."""
    try:
        found = datetime.fromisoformat(at)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _trust(
    prereg: Path, records: Sequence[Stored], signed: Sequence[tuple[Stored, str]], allowed: Path, found: Vouched
) -> None:
    """Who of the list from outside signed what, and what none of them signed or followed."""
    signers = _signers(prereg, records, {record.sha256 for record, _ in signed}, allowed)
    by: dict[tuple[str | None, str], list[Stored]] = defaultdict(list)
    for record, key in signed:
        by[signers.get(record.sha256), fingerprint(key)].append(record)
    covered = with_ancestors(records, set(signers))
    for (who, key), ones in by.items():
        if who is not None:
            found.told.append(f"{len(ones)} records are signed by {who}, as {allowed} lists ({key})")
            continue
        alone = [one for one in ones if one.sha256 not in covered]
        sentence = f"{len(ones)} records are signed by a key that {allowed} does not trust ({key})"
        (found.breaks if alone else found.told).append(sentence)
    keyed = {record.sha256 for record, _ in signed}
    bare = [record for record in records if record.sha256 not in covered and record.sha256 not in keyed]
    if bare:
        first = bare[0]
        found.open.append(
            f"{len(bare)} records are covered by no signature that {allowed} trusts; "
            f"the first is {first.sha256} ({first.entry.kind} of {first.entry.gate})"
        )
