"""One look at a seat: probed, held against the seal and against the run's first look, its canary asked, recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gates.errors import UnfitSeatError
from gates.flow.binding import bind, cards_of, context_of, sealed_cards, sealed_context, with_seat
from gates.flow.inputs import Inputs
from gates.flow.reloads import reloaded
from gates.flow.world import World
from gates.record.ledger import Ledger
from gates.record.seal import SealOnDisk, differences, refuse_changes
from gates.record.store import Phase, RunStore, Session
from gates.records import canonical
from gates.seat.canary import CanaryReport, check_adapters, same_voices
from gates.seat.client import SeatClient
from gates.seat.identity import SeatIdentity, probe
from gates.seat.posture import lora_slots, warnings_about
from gates.seat.repeats import Determinism


@dataclass(frozen=True)
class Work:
    """What one start of generation needs beside its seats."""

    inputs: Inputs
    sealed: SealOnDisk
    store: RunStore
    world: World

    @property
    def ledger(self) -> Ledger:
        """The workspace's."""
        return Ledger(self.inputs.prereg)

    def salt(self) -> str:
        """A cache salt that no request has had."""
        return self.world.chance.bytes(16).hex()


class OtherWeightsError(UnfitSeatError):
    """A seat answers otherwise than when the run began."""


class Seen(NamedTuple):
    """What one look at a seat found."""

    identity: SeatIdentity
    canary: CanaryReport
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """What a look's record says beyond the look: how the seat differs from the others, what else a person must know."""

    unlike: Sequence[str] = ()
    warnings: Sequence[str] = ()
    determinism: Determinism | None = None


async def look(work: Work, client: SeatClient, salt: str, first: Session | None) -> Seen:
    """The seat as it is; `first` is this run's first look at it.

    Raises RefusedError or UnfitSeatError when it is not the sealed one, or not the one before.
    """
    inputs, sealed = work.inputs, work.sealed
    identity = await probe(client, inputs.gate)
    cards = cards_of(inputs, identity) if inputs.gate.seats is None else sealed_cards(sealed)
    binding = bind(inputs, with_seat(sealed, identity), cards)
    refuse_changes(sealed, binding, inputs.gate)
    context = identity.context
    canary = await check_adapters(client, inputs.gate, inputs.beats, salt, context=context.max_model_len)
    if first is not None:
        heard = CanaryReport.parse(canonical(first.canary), where=str(work.store.sessions_path))
        other = same_voices(heard, canary)
        if other:
            raise OtherWeightsError(
                "other weights answer than when this run began: " + "; ".join(other),
                next_step="serve the adapters that were sealed; the same command then continues",
            )
    warnings = warnings_about(
        inputs.gate,
        open_to_all=context.open_routes,
        slots=lora_slots(await client.metrics()),
        defaults=context.defaults,
        proxied=any(canary.targets.values()),
    )
    again = [] if inputs.gate.embedded else reloaded(work.ledger, inputs.gate, binding)
    return Seen(identity, canary, (*warnings, *again))


def record(work: Work, phase: Phase, salt: str, seen: Seen, found: Found | None = None) -> Session:
    """Write down what a look saw, and say of it what is new."""
    found = found or Found()
    stamp, sealed = work.world.stamp(), work.sealed
    name = seen.identity.base_url
    beside = differences(sealed_context(sealed, name), context_of(seen.identity, sealed.seal.gate))
    prefix = "" if sealed.seal.gate.seats is None else f"{name}: "
    deviations = tuple(f"{prefix}{sentence}" for sentence in (*beside, *found.unlike))
    for deviation in deviations if phase == "start" else ():
        work.world.say(f"deviates from the seal: {deviation}")
    for warning in seen.warnings if phase == "start" else found.warnings:
        work.world.say(f"note: {prefix if phase == 'start' else ''}{warning}")
    session = Session(
        phase=phase,
        seal=sealed.sha256,
        at=stamp.at,
        by=stamp.by,
        seat=seen.identity.as_json(),
        canary=seen.canary.as_json(),
        cache_salt=salt,
        deviations=deviations,
        generations=sum(1 for _ in work.store.generations(sealed.sha256)),
        generations_sha256=work.store.generations_sha256(),
        warnings=(*(f"{prefix}{warning}" for warning in seen.warnings), *found.warnings),
        determinism=None if found.determinism is None else found.determinism.as_json(),
    )
    work.store.add_session(session, work.ledger, work.world.key)
    return session


def record_loss(work: Work, last: Session, why: str) -> Session:
    """Write down that a seat answers no more; what is told of it is its last look."""
    stamp = work.world.stamp()
    work.world.say(f"note: lost {last.name}: {why}")
    session = last.model_copy(
        update={
            "phase": "lost",
            "at": stamp.at,
            "by": stamp.by,
            "deviations": (),
            "generations": sum(1 for _ in work.store.generations(work.sealed.sha256)),
            "generations_sha256": work.store.generations_sha256(),
            "warnings": (f"lost {last.name}: {why}",),
            "determinism": None,
        }
    )
    work.store.add_session(session, work.ledger, work.world.key)
    return session
