"""Opening the seats that a gate names: running servers, or the embedded one started for as long as it is needed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gates.errors import UsageError
from gates.flow.inputs import Inputs
from gates.flow.world import World
from gates.seat.client import SeatClient, check_key
from gates.seat.embedded.serve import EmbeddedSeat
from gates.spec.asking import Seat

EMBEDDED_TIMEOUT_S = 600.0
EMBEDDED_ATTEMPTS = 2


@dataclass(frozen=True)
class OpenSeat:
    """A seat that answers: its address, how hard it may be pressed, and the `label` that its generations carry."""

    base_url: str
    label: str
    api_key: str | None
    concurrency: int
    attempts: int
    timeout_s: float

    def client(self) -> SeatClient:
        """A new client; use it as an async context manager."""
        return SeatClient(self.base_url, self.api_key, timeout_s=self.timeout_s)


@contextmanager
def open_seats(inputs: Inputs, world: World) -> Iterator[tuple[OpenSeat, ...]]:
    """The gate's seats for as long as the context lasts. Raises UsageError when a named key is not set."""
    gate = inputs.gate
    if not gate.embedded:
        yield tuple(
            OpenSeat(
                base_url=seat.base_url,
                label=seat.base_url if gate.seats is None else seat.name,
                api_key=_key(seat, world),
                concurrency=seat.concurrency,
                attempts=seat.attempts,
                timeout_s=seat.timeout_s,
            )
            for seat in gate.servers
        )
        return
    adapters = {gate.arms.all()[arm].model: path for arm, path in inputs.adapters.items()}
    servers = os.cpu_count() or 1
    world.say("starting the embedded seat")
    with EmbeddedSeat(inputs.cache, gate.arms.base.model, adapters, servers=servers) as served:
        # One request more than there are servers, so that none of them waits for the next.
        yield (OpenSeat(served.base_url, "embedded", None, servers + 1, EMBEDDED_ATTEMPTS, EMBEDDED_TIMEOUT_S),)


def _key(seat: Seat, world: World) -> str | None:
    if seat.api_key_env is None:
        return None
    key = world.environ.get(seat.api_key_env)
    if not key:
        raise UsageError(
            f"seat.api_key_env names {seat.api_key_env}, and this variable is not set",
            next_step=f"export {seat.api_key_env}=... in the shell that runs gates; the key is never recorded",
        )
    check_key(key, seat.api_key_env)
    return key
