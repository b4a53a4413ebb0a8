"""Where costly work runs: in this process, or on the workers of a scheduler that `--engine` names."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gates.cli.output import say
from gates.corpora.streams.extra import missing
from gates.flow.overlap import Engine, Here

_EVERY_S = 5.0
"""How often progress is said: work that takes less is not worth a line."""


@contextmanager
def engine_at(address: str | None, parts: str) -> Iterator[Engine]:
    """The engine at an address, this process without one; `parts` says what progress counts. Raises UsageError."""
    if address is None:
        yield Here(progress(parts))
        return
    try:
        from gates.flow.cluster.engine import connected  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError as error:
        raise missing(error) from None
    with _quiet(), connected(address, progress(parts, last=True), say) as engine:
        yield engine


@contextmanager
def _quiet() -> Iterator[None]:
    """Without log lines: those of a cluster's client are tracebacks, and what happened is said in a sentence."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def progress(
    parts: str, *, last: bool = False, clock: Callable[[], float] = time.monotonic
) -> Callable[[int, int], None]:
    """What says how far the work is, every few seconds and with the time left; of the last part only where `last`."""
    begun = said = clock()

    def watch(done: int, total: int) -> None:
        nonlocal said
        now = clock()
        if done == total:
            if last or said > begun:
                say(f"{done} of {total} {parts}")
        elif now - said >= _EVERY_S:
            said = now
            say(f"{done} of {total} {parts}, about {(now - begun) / done * (total - done):.0f} s left")

    return watch
