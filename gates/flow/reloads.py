"""Adapters that come back under a name they had with other bytes: the one change that a server may not notice."""

from __future__ import annotations

from contextlib import suppress

from gates.errors import TamperedError
from gates.record.body import said
from gates.record.ledger import Ledger
from gates.record.seal import AdapterIdentity, Binding, SealOnDisk, read_seal
from gates.spec.schema import Gate


def reloaded(ledger: Ledger, gate: Gate, now: Binding) -> list[str]:
    """One sentence for each adapter that an earlier seal of any gate knows by the same name with other bytes.

    None where the seat loaded it from another path since: vLLM keys its cache by name and path (from 0.31 on).
    """
    found: dict[str, str] = {}
    for stored in ledger.entries():
        if stored.entry.kind != "seal":
            continue
        with suppress(TamperedError):  # a seal that is gone or changed is another command's finding
            before = read_seal(ledger.path.parent, said(stored, "seal", str), said(stored, "file", str))
            found |= _other_bytes(before, gate, now)
    return list(found.values())


def _other_bytes(before: SealOnDisk, gate: Gate, now: Binding) -> dict[str, str]:
    arms = before.seal.gate.arms.all()
    known = {arms[arm].model: identity for arm, identity in before.seal.binding.adapters.items() if arm in arms}
    found = {}
    for arm, identity in now.adapters.items():
        model = gate.arms.all()[arm].model
        earlier = known.get(model)
        if earlier is not None and _unsafe(earlier, identity):
            found[model] = (
                f"{model!r} was sealed with other bytes on {before.seal.sealed_at} (gate {before.seal.gate.name!r}) "
                "and is served under the same name from the same path: a server that was not restarted since may "
                "answer from the old weights or a mixture of both; load the new bytes under a new name or from a new "
                "path, or restart the server"
            )
    return found


def _unsafe(earlier: AdapterIdentity, now: AdapterIdentity) -> bool:
    other = earlier.files is not None and now.files is not None and earlier.files != now.files
    return other and _root(earlier) == _root(now)


def _root(identity: AdapterIdentity) -> object:
    return (identity.card or {}).get("root")
