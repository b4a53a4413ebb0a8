"""The sign-off: one person's decision on one candidate, bound to everything it rests on, and signed.

reports/GATE/NUMBER/signoffs/HASH.json holds it, a ledger record of kind `signoff` its hash, and an SSH signature covers
that record. What several sign-offs of a candidate amount to: `gates.record.release`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, JsonValue, SerializerFunctionWrapHandler, StringConstraints, model_serializer

from gates.errors import TamperedError
from gates.record.body import said
from gates.record.files import write_once
from gates.record.ledger import Ledger, Stamp, Stored
from gates.record.seal import AdapterIdentity
from gates.record.store import RunStore
from gates.record.verdicts import RescoreVerdict
from gates.records import Outcome, Record, Sha256, canonical, sha256
from gates.spec.asking import Sampling

Decision = Literal["ship", "hold", "waive"]
"""`waive` ships in spite of what stands against it, for a reason that everybody can read."""

Reason = Annotated[str, StringConstraints(min_length=1, max_length=2000, strip_whitespace=True)]


class Serving(Record):
    """The one serving form that a sign-off speaks of: adapter bytes, base, server, sampling, as sealed and judged."""

    model: str = Field(description="the served name")
    adapter: AdapterIdentity
    base: dict[str, JsonValue] = Field(description="the base's model card, which names its revision")
    base_card_sha256: str
    server_version: str | None
    fingerprint: str | None
    sampling: Sampling


class Doubt(Record):
    """An item of the reading list that the signer has marked bad, and their note."""

    item: Sha256
    note: str


class SignOff(Record):
    """One decision on one candidate (`gates.signoff/1`).

    `outcome` and the hashes are the run's own; `rescored` is there only where a re-score's verdict is signed in its
    place, `others` only where there are other re-scores. `read` of the `list_sha256` items were required and are read
    by the signer; the first `marks` lines of review.jsonl and their hash say so. `caveats` are what a reader of this
    decision must know.
    """

    schema_: Literal["gates.signoff/1"] = Field(default="gates.signoff/1", alias="schema")
    gate: str
    gate_sha256: Sha256
    seal: Sha256
    arm: str
    decision: Decision
    reason: Reason
    outcome: Outcome
    attempts: int
    generations_sha256: Sha256
    measurements_sha256: Sha256
    verdict_sha256: Sha256
    list_sha256: Sha256
    read: int
    marks: int
    review_sha256: Sha256
    doubts: tuple[Doubt, ...]
    serving: Serving
    caveats: tuple[str, ...]
    signers: int
    at: str
    by: str
    key: str = Field(description="SHA256 fingerprint of the signer's public key")
    rescored: RescoreVerdict | None = Field(default=None, description="the re-score whose verdict is signed")
    others: tuple[RescoreVerdict, ...] = Field(default=(), description="what every other re-score of the run says")

    @property
    def signed_outcome(self) -> Outcome:
        """What the verdict that is signed says of the candidate."""
        return self.outcome if self.rescored is None else self.rescored.outcome

    @property
    def signed_sha256(self) -> Sha256:
        """Which verdict is signed: the hash of the re-score, or of the run's own verdict."""
        return self.verdict_sha256 if self.rescored is None else self.rescored.rescore_sha256

    @model_serializer(mode="wrap")
    def _without_absent_parts(self, handler: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        document: dict[str, JsonValue] = handler(self)
        return {key: value for key, value in document.items() if key not in ("rescored", "others") or value}


class Entered(NamedTuple):
    """A sign-off as the ledger holds it."""

    stored: Stored
    signoff: SignOff


def write_signoff(store: RunStore, ledger: Ledger, signoff: SignOff, stamp: Stamp) -> Path:
    """Write a sign-off and enter it in the ledger, signed by the stamp's key; returns its file.

    The caller is `writing` the ledger, so that nothing is entered after what the sign-off knows of.
    """
    data = canonical(signoff.as_json())
    name = sha256(data)
    path = signoff_path(store, signoff)
    write_once(path, data)
    body: dict[str, JsonValue] = {
        "run": store.number,
        "arm": signoff.arm,
        "decision": signoff.decision,
        "signoff_sha256": name,
        **_rescored(signoff),
    }
    ledger.append_held("signoff", store.gate, body, stamp)
    return path


def _rescored(signoff: SignOff) -> dict[str, JsonValue]:
    """What the ledger says of the re-score that is signed; nothing where the run's own verdict is."""
    return {} if signoff.rescored is None else {"rescored": str(signoff.rescored)}


def signoff_path(store: RunStore, signoff: SignOff) -> Path:
    """Where a sign-off lies."""
    return store.folder / "signoffs" / f"{signoff.digest()[:12]}.json"


def signoffs(store: RunStore, entries: Sequence[Stored]) -> list[Entered]:
    """Every sign-off of a run in the ledger's order. Raises TamperedError for one that is not what was signed."""
    mine = [s for s in entries if s.entry.kind == "signoff" and s.entry.gate == store.gate]
    return [_read(store, stored) for stored in mine if said(stored, "run", int) == store.number]


def _read(store: RunStore, stored: Stored) -> Entered:
    name = said(stored, "signoff_sha256", str)
    path = store.folder / "signoffs" / f"{name[:12]}.json"
    if not path.is_file():
        raise TamperedError(f"{path}: the ledger holds this sign-off and it is missing", next_step="restore the file")
    data = path.read_bytes()
    if sha256(data) != name:
        raise TamperedError(
            f"{path}: SHA-256 is {sha256(data)}, the ledger says {name}", next_step="restore the file from its commit"
        )
    found = SignOff.parse(data, where=str(path))
    told = (said(stored, "arm", str), said(stored, "decision", str), stored.entry.body.get("rescored"))
    if told != (found.arm, found.decision, _rescored(found).get("rescored")):
        raise TamperedError(f"{path}: it is not the decision that the ledger names")
    return Entered(stored, found)
