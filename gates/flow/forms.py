"""How a voice is served now against how it was when it was judged: what the seat says, what is on disk, what is heard.

What a seat says of itself and the bytes on this disk prove nothing of the weights that answer: these are heard.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from gates.flow.finished import FinishedRun
from gates.record.seal import Seal, differences
from gates.records import canonical
from gates.seat.canary import CanaryReport, same_voices
from gates.seat.identity import SeatIdentity, adapter_files


@dataclass(frozen=True)
class Form:
    """A serving form as it is now, beside the seal of the one that was judged: arm, served name, files, seat."""

    seal: Seal
    arm: str
    model: str
    adapter: Path
    seat: SeatIdentity


def form_changes(form: Form) -> list[str]:
    """How the serving form of now differs from the one that was judged, by what is said and what lies on disk."""
    seal, seat = form.seal, form.seat.binding.as_json()
    sealed = seal.seat_at(form.seat.base_url)
    judged: dict[str, JsonValue] = {key: part for key, part in sealed.items() if key in seat}
    model = seal.gate.arms.candidates[form.arm].model
    then: dict[str, JsonValue] = {"model": model, "seat": judged}
    now: dict[str, JsonValue] = {"model": form.model, "seat": seat}
    known = seal.binding.adapters.get(form.arm)
    cards = {card.name: card.as_json() for card in form.seat.context.loras}
    peers = sealed.get("adapters")
    card = (known.card if known else None) or (peers.get(model) if isinstance(peers, dict) else None)
    if isinstance(card, dict) and form.model in cards:
        then["served"] = {key: card.get(key) for key in ("root", "parent")}
        now["served"] = {key: cards[form.model].get(key) for key in ("root", "parent")}
    files = adapter_files(form.adapter)
    if known is None or known.files is None:
        return [*differences(then, now), "adapter: the seal does not know its bytes: nothing to compare with"]
    if files is None:
        unread = f"adapter: {form.adapter.name} cannot be read here: its bytes were not compared"
        return [*differences(then, now), unread]
    return differences(then | {"adapter": dict(known.files)}, now | {"adapter": dict(files)})


def heard_otherwise(run: FinishedRun, canary: CanaryReport, names: dict[str, str]) -> list[str]:
    """What answers otherwise than when the run began; `names` are the models' then and now.

    An imported run has no such answers. Another adapter under the same name, or another base, shows here alone.
    """
    looks = [session for session in run.store.sessions() if session.canary]
    if not looks:
        return []
    heard = CanaryReport.parse(canonical(looks[0].canary), where=str(run.store.sessions_path))
    now = canary.of({name: name for name in names.values()})
    return same_voices(heard.of(names), now, "its first answer in the run")
