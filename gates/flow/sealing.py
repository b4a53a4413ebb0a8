"""Pre-registering a gate, and amending what was pre-registered: probe its seat, bind everything, enter it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from gates.errors import RecordError, RefusedError, UsageError
from gates.flow.alike import Heard, refuse_unlike
from gates.flow.binding import bind, cards_of, context_of, seats_part
from gates.flow.earlier import Asked
from gates.flow.inputs import Inputs, load_inputs, refuse_unpinned
from gates.flow.planning import operating_of, refuse_retired, seed_of
from gates.flow.reloads import reloaded
from gates.flow.seats import OpenSeat, open_seats
from gates.flow.world import World
from gates.record.ledger import Ledger
from gates.record.seal import Amendment, Binding, Seal, SealOnDisk, changes, latest_seal, write_seal_held
from gates.record.store import gate_lock, runs
from gates.seat.identity import SeatIdentity, probe
from gates.spec.fields import stated


def _agreed(_changes: Sequence[str]) -> None:
    """Nobody is asked."""


def seal(
    path: Path,
    world: World,
    earlier: Path | None = None,
    *,
    reason: str | None = None,
    agree: Callable[[Sequence[str]], None] = _agreed,
) -> SealOnDisk:
    """Pre-register a gate: probe its seat, bind everything it rests on, write the seal and its ledger record.

    The seal names the run whose base seeds were split, `earlier` or the newest that will do.

    A gate whose seal in force binds all of this already keeps that seal; so does one amended for this very reason. One
    that differs from it is amended: that takes a `reason`, and `agree` is called with every difference before anything
    is written. A seal made after a run of the gate has begun says so for ever.
    Raises RefusedError for a difference without a reason, UsageError for a reason without a difference.
    """
    if reason is not None:
        stated(reason)
    inputs = load_inputs(path, world.cache)
    refuse_unpinned(inputs)
    refuse_retired(inputs.gate)
    identities = _identities(inputs, world)
    identity, *others = identities
    _say_unlike(inputs, identities, world)
    binding = bind(inputs, seats_part(inputs.gate, identities), cards_of(inputs, identity))
    before = latest_seal(inputs.prereg, inputs.gate.name)
    changed = [] if before is None else changes(before.seal, binding, inputs.gate)
    _check_reason(path, before, changed, reason)
    if before is not None and not changed:
        world.say(f"sealed already, on {before.seal.sealed_at}, and nothing has changed")
        return before
    if changed:
        agree(changed)
    ledger = Ledger(inputs.prereg)
    for warning in [] if inputs.gate.embedded else reloaded(ledger, inputs.gate, binding):
        world.say(f"note: {warning}")
    context, operating = context_of(identity, inputs.gate, *others), operating_of(asked_of(inputs, binding), earlier)
    # No run of the gate may begin between the count of those before and the record, nor come by a merge.
    with gate_lock(inputs.reports, inputs.gate.name), ledger.writing():
        if latest_seal(inputs.prereg, inputs.gate.name) != before:
            raise RecordError(f"{path}: another process has sealed this gate meanwhile", next_step="look, and repeat")
        stamp = world.stamp()
        made = Seal(
            gate=inputs.gate,
            gate_file=gate_file(path, inputs.workspace),
            binding=binding,
            context=context,
            order_seed=seed_of("order", inputs.gate),
            operating=operating.as_json(),
            sealed_at=stamp.at,
            sealed_by=stamp.by,
            previous=ledger.heads(),
            amends=None if before is None else before.sha256,
            runs_before=len(runs(ledger.entries(), inputs.gate.name)),
            amendment=None if reason is None else Amendment(reason=reason, changes=tuple(changed)),
        )
        return write_seal_held(ledger, made, world.key)


def asked_of(inputs: Inputs, binding: Binding | None = None) -> Asked:
    """A gate with all that decides what it can prove."""
    heldout = tuple(document.text for document in inputs.heldout)
    return Asked(inputs.gate, inputs.beats, inputs.workspace, inputs.probe, heldout, binding)


def gate_file(path: Path, workspace: Path) -> str:
    """Where a gate file lies in its workspace; the link's own name where it is a link."""
    return (path.parent.resolve() / path.name).relative_to(workspace).as_posix()


def _check_reason(path: Path, before: SealOnDisk | None, changed: Sequence[str], reason: str | None) -> None:
    if reason is None:
        if before is not None and changed:
            raise RefusedError(
                "\n".join(
                    [
                        f"{path}: the gate is sealed already ({before.path.name}), otherwise:",
                        *(f"  {c}" for c in changed),
                    ]
                ),
                next_step=f"amend the seal: `gates amend {path} --reason TEXT`; the old one stays in the ledger",
            )
    elif before is None:
        raise UsageError(f"{path}: the gate has no seal to amend", next_step=f"seal it: `gates seal {path}`")
    elif not changed and (before.seal.amendment is None or before.seal.amendment.reason != reason):
        raise UsageError(f"{path}: nothing differs from the seal in force ({before.path.name}): nothing to amend")


def _say_unlike(inputs: Inputs, identities: Sequence[SeatIdentity], world: World) -> None:
    """Say how the gate's seats differ. Raises RefusedError where it does not allow it."""
    for name, sentences in refuse_unlike(inputs.gate, [Heard(identity) for identity in identities]).items():
        for sentence in sentences:
            world.say(f"note: {name} differs: {sentence}")


def _identities(inputs: Inputs, world: World) -> list[SeatIdentity]:
    async def asked(seat: OpenSeat) -> SeatIdentity:
        async with seat.client() as client:
            return await probe(client, inputs.gate)

    with open_seats(inputs, world) as seats:
        return [asyncio.run(asked(seat)) for seat in seats]
