"""The seal: one gate's pre-registration, made before generation, with the hash of everything it rests on.

*Binding* parts may not change between seal and run; *context* (package, Python and platform versions, when and by
whom) is recorded, and a change is shown as a deviation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue, SerializerFunctionWrapHandler, model_serializer

from gates.errors import RecordError, RefusedError, TamperedError, UsageError
from gates.record.body import said
from gates.record.files import write_once
from gates.record.ledger import Ledger, Stamp, Stored
from gates.records import Record, Sha256, canonical, sha256
from gates.spec.fields import Text
from gates.spec.schema import Gate

_FILE = re.compile(r"seals/[A-Za-z0-9._-]{1,100}\.json")

SEALING = ("seal", "import")
"""Kinds of ledger record that name a seal: made before generation, or for texts that are older than the record."""

_OPTIONAL = frozenset({"amendment", "imported"})
"""Parts of a seal that most seals lack: they are then not written down."""


class AdapterIdentity(Record):
    """An adapter's bytes: SHA-256 of each file, and the model card that a running seat lists it under.

    `files` is None where none can be read here: the card alone is weaker. `card` is None where the seat lists none.
    """

    files: dict[str, Sha256] | None
    card: dict[str, JsonValue] | None


class Binding(Record):
    """Everything whose change between seal and run is refused."""

    gate: Sha256
    texts: dict[str, dict[str, Sha256]] = Field(description="role -> file -> SHA-256 of the text as measured")
    prompts: Sha256
    frame: Sha256
    adapters: dict[str, AdapterIdentity]
    signatures: dict[str, str]
    seat: dict[str, JsonValue]


class Amendment(Record):
    """Why a seal took the place of the one that it `amends`, and every field in which the two differ."""

    reason: Text
    changes: tuple[str, ...]


class Imported(Record):
    """The file of older texts that a seal was made for: its name and hash as received; names of fields in it."""

    file: str
    sha256: Sha256
    bytes: int = Field(ge=0)
    names: dict[str, str]


class Seal(Record):
    """The pre-registration record of one gate (`gates.seal/1`)."""

    schema_: Literal["gates.seal/1"] = Field(default="gates.seal/1", alias="schema")
    gate: Gate
    gate_file: str
    binding: Binding
    context: dict[str, JsonValue]
    order_seed: int
    operating: dict[str, JsonValue]
    sealed_at: str
    sealed_by: str
    previous: tuple[Sha256, ...] = Field(description="the ledger's heads when the seal was made")
    amends: Sha256 | None = Field(description="the seal of this gate that was in force before")
    runs_before: int = Field(ge=0, description="runs of this gate that had begun before: any makes the seal post-hoc")
    amendment: Amendment | None = Field(default=None, description="left out of a gate's first seal")
    imported: Imported | None = Field(default=None, description="only where the texts are older than the seal")

    def seat_at(self, name: str | None = None) -> dict[str, JsonValue]:
        """What is sealed of the seat at an address; of the first one where no other is sealed."""
        if self.gate.seats is None:
            return self.binding.seat
        parts = {url: part for url, part in self.binding.seat.items() if isinstance(part, dict)}
        first = parts.get(self.gate.seats[0].name, {})
        return parts.get(name or "", first)

    @model_serializer(mode="wrap")
    def _without_absent_parts(self, handler: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        document: dict[str, JsonValue] = handler(self)
        return {key: value for key, value in document.items() if key not in _OPTIONAL or value is not None}


@dataclass(frozen=True)
class SealOnDisk:
    """A seal, the SHA-256 of its file, and where it lies."""

    sha256: str
    path: Path
    seal: Seal


def write_seal(prereg: Path, seal: Seal, key: Path | None = None) -> SealOnDisk:
    """Write the seal's file and its ledger record, signed with `key` if there is one.

    For imported texts that record is of another kind: no gate is ever run under such a seal.
    """
    ledger = Ledger(prereg)
    with ledger.writing():
        return write_seal_held(ledger, seal, key)


def write_seal_held(ledger: Ledger, seal: Seal, key: Path | None = None) -> SealOnDisk:
    """As `write_seal`, where the seal tells of the ledger as it stands: the caller is `writing` and has read it."""
    data = canonical(seal.as_json())
    name = sha256(data)
    path = ledger.prereg / "seals" / f"{seal.gate.name}-{name[:12]}.json"
    write_once(path, data)
    ledger.append_held(
        "seal" if seal.imported is None else "import",
        seal.gate.name,
        {"seal": name, "file": f"seals/{path.name}", "gate_sha256": seal.binding.gate},
        Stamp(seal.sealed_at, seal.sealed_by, key),
    )
    return SealOnDisk(name, path, seal)


def read_seal(prereg: Path, name: str, file: str) -> SealOnDisk:
    """Read a seal that the ledger names. Raises TamperedError when its bytes are not the sealed ones."""
    if not _FILE.fullmatch(file):
        raise TamperedError(f"the ledger names the seal file {file[:200]!r}, which gates never wrote")
    path = prereg / file
    if not path.is_file():
        raise TamperedError(f"{path}: the ledger names this seal and it is missing", next_step="restore it from git")
    data = path.read_bytes()
    if sha256(data) != name:
        raise TamperedError(
            f"{path}: SHA-256 is {sha256(data)}, the ledger says {name}", next_step="restore the file from git"
        )
    try:
        return SealOnDisk(name, path, _parsed(data))
    except RecordError:
        return SealOnDisk(name, path, Seal.parse(data, where=str(path)))


# What is read again and again for one ledger is parsed once; its bytes are looked at each time.
@lru_cache(maxsize=1 << 10)
def _parsed(data: bytes) -> Seal:
    return Seal.parse(data, where="a seal")


def entered_seal(prereg: Path, records: Sequence[Stored], name: str) -> SealOnDisk:
    """The seal of that hash, as the ledger's record of it says. Raises TamperedError where no record does."""
    entered = next((s for s in records if s.entry.kind in SEALING and said(s, "seal", str) == name), None)
    if entered is None:
        raise TamperedError(f"the ledger has a run under seal {name}, and no such seal", next_step="restore prereg/")
    return read_seal(prereg, name, said(entered, "file", str))


def latest_seal(prereg: Path, gate: str) -> SealOnDisk | None:
    """The seal in force for the gate of this name: the last that the ledger holds; None without one."""
    mine = [s for s in Ledger(prereg).entries() if s.entry.kind == "seal" and s.entry.gate == gate]
    return read_seal(prereg, said(mine[-1], "seal", str), said(mine[-1], "file", str)) if mine else None


def find_seal(prereg: Path, name: str) -> SealOnDisk:
    """The seal that a person names: by gate (the one in force), by at least 6 digits of its hash, or by its file.

    Raises UsageError when the ledger holds no such seal, or several.
    """
    records = [record for record in Ledger(prereg).entries() if record.entry.kind in SEALING]
    stem = Path(name).name.removesuffix(".json")
    found = [record for record in records if Path(said(record, "file", str)).stem == stem]
    if len(name) >= 6:
        found = found or [record for record in records if said(record, "seal", str).startswith(name)]
    found = found or [record for record in records if record.entry.gate == name][-1:]
    if len(found) != 1:
        known = ", ".join(dict.fromkeys(record.entry.gate for record in records)) or "none"
        raise UsageError(
            f"{prereg / 'ledger.jsonl'}: {'several seals are' if found else 'no seal is'} called {name!r}",
            next_step=f"name a sealed gate ({known}), the beginning of a seal's hash, or its file",
        )
    return read_seal(prereg, said(found[0], "seal", str), said(found[0], "file", str))


def seal_in_force(prereg: Path, gate: str, gate_file: Path) -> SealOnDisk:
    """As `latest_seal`. Raises RefusedError without one, saying how to seal `gate_file`."""
    sealed = latest_seal(prereg, gate)
    if sealed is None:
        raise RefusedError(
            f"gate {gate!r} has no seal in {prereg / 'ledger.jsonl'}", next_step=f"run `gates seal {gate_file}` first"
        )
    return sealed


def differences(sealed: JsonValue, now: JsonValue, path: str = "") -> list[str]:
    """Every place where two JSON values differ, as `path: sealed X, now Y`, in the order of the keys."""
    if isinstance(sealed, dict) and isinstance(now, dict):
        found: list[str] = []
        for key in sorted(sealed.keys() | now.keys()):
            place = f"{path}.{key}" if path else key
            if key not in now:
                found.append(f"{place}: sealed {_short(sealed[key])}, now missing")
            elif key not in sealed:
                found.append(f"{place}: not sealed, now {_short(now[key])}")
            else:
                found.extend(differences(sealed[key], now[key], place))
        return found
    if isinstance(sealed, list) and isinstance(now, list) and len(sealed) == len(now):
        pairs = enumerate(zip(sealed, now, strict=True))
        return [found for place, (one, other) in pairs for found in differences(one, other, f"{path}[{place}]")]
    return [] if sealed == now else [f"{path}: sealed {_short(sealed)}, now {_short(now)}"]


def _short(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."


def changes(sealed: Seal, now: Binding, gate: Gate) -> list[str]:
    """Everything binding that differs from a seal; of the gate, field by field, and where no field differs its hash."""
    fields = differences(sealed.gate.as_json(), gate.as_json(), "gate")
    then, bound = sealed.binding.as_json(), now.as_json()
    return differences(then, bound | {"gate": then["gate"]} if fields else bound) + fields


def refuse_changes(sealed: SealOnDisk, now: Binding, gate: Gate) -> None:
    """Raise RefusedError listing everything binding that differs from the seal; of the gate, field by field."""
    changed = changes(sealed.seal, now, gate)
    if changed:
        raise RefusedError(
            "\n".join(
                [f"what {sealed.path.name} binds has changed since it was sealed:", *(f"  {c}" for c in changed)]
            ),
            next_step="undo the change, or amend the seal: `gates amend GATE --reason TEXT` (the old one stays)",
        )
