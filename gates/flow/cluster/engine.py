"""The parts of a source on the workers of a dask cluster: the same work as here, and the results in the same order.

What the work shares (the texts' sieve) is a task of its own, so that it is made again where the workers that held it
are gone; a part whose worker dies is read again by another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from distributed import CancelledError, Client, Future, KilledWorker, as_completed

from gates import __version__
from gates.errors import GatesError, UsageError
from gates.flow.overlap import PART_BYTES
from gates.spec.source import printable

_LOOK_S = 5.0
"""How long nothing may arrive before it is asked whether there are workers at all."""

_Shared = TypeVar("_Shared")
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Cluster:
    """The workers of a running dask scheduler; `progress` is told (parts done, all parts), `note` what holds it up."""

    part_bytes: int | None = PART_BYTES

    def __init__(
        self, client: Client, progress: Callable[[int, int], None], note: Callable[[str], None] = lambda _: None
    ) -> None:
        self._client, self._progress, self._note = client, progress, note

    def run(
        self, make: Callable[[], _Shared], work: Callable[[_Shared, _Item], _Result], items: Sequence[_Item]
    ) -> Iterator[_Result]:
        """`work` of what `make` gives and each item, in the order of the items.

        Raises what the work raises, UsageError where a worker has another version of gates, and GatesError when one
        part has killed every worker that read it or the cluster drops the work, as when its scheduler is gone.
        """
        shared = self._client.submit(make, pure=False)
        futures = [self._client.submit(at_version, __version__, work, shared, item, pure=False) for item in items]
        numbers = {future.key: number for number, future in enumerate(futures)}
        results: dict[int, _Result] = {}
        try:
            for future, result in self._arriving(futures):
                # Not the future's state: a result that came stays one when the worker that held it dies afterwards.
                if isinstance(result, CancelledError):
                    raise GatesError(
                        f"the cluster dropped the work, {len(results)} of {len(items)} parts done",
                        next_step="see whether its scheduler runs or was started anew, then give the same command",
                    )
                results[numbers[future.key]] = result
                self._progress(len(results), len(items))
        except KilledWorker as error:
            raise GatesError(
                f"workers of the cluster died again and again: {printable(str(error))}",
                next_step="look at the workers' logs; they may need more memory",
            ) from error
        return (results.pop(number) for number in range(len(items)))

    def _arriving(self, futures: Sequence[Future[_Result]]) -> Iterator[tuple[Future[_Result], _Result]]:
        """Each future and its result as they end; where nothing does, for want of workers, that is said once."""
        ready = as_completed(futures, loop=self._client.loop, with_results=True)
        quiet_since, said = time.monotonic(), False
        while not ready.is_empty():
            if ready.has_ready():
                yield next(ready)
                quiet_since, said = time.monotonic(), False
            elif time.monotonic() - quiet_since > _LOOK_S and self._client.status == "running" and not said:
                quiet_since = time.monotonic()
                if not self._client.nthreads():
                    said = True
                    self._note("the cluster has no worker left; waiting for one: dask worker HOST:PORT")
            else:
                time.sleep(0.02)


@contextmanager
def connected(
    address: str,
    progress: Callable[[int, int], None],
    note: Callable[[str], None] = lambda _: None,
    *,
    timeout_s: float = 30,
) -> Iterator[Cluster]:
    """The workers of the scheduler at dask://HOST:PORT.

    Raises UsageError where no scheduler or worker answers in time, or where a worker has another version of gates.
    """
    scheme, _, place = address.partition("://")
    if scheme != "dask" or not _is_place(place):
        raise UsageError(f"--engine {printable(address)}: no such engine", next_step="give dask://HOST:PORT")
    try:
        client = Client(f"tcp://{place}", timeout=timeout_s, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no dask scheduler answers at {printable(place)}: {printable(str(error))}",
            next_step="start one: dask scheduler",
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=timeout_s)
        except TimeoutError:
            raise UsageError(
                f"the cluster at {printable(place)} has no worker",
                next_step=f"start some: dask worker {printable(place)}",
            ) from None
        _refuse_others(client)
        yield Cluster(client, progress, note)


def _is_place(place: str) -> bool:
    host, _, port = place.rpartition(":")
    return bool(host) and port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16


def version() -> str:
    """What a worker runs."""
    return __version__


def at_version(wanted: str, work: Callable[[_Shared, _Item], _Result], shared: _Shared, item: _Item) -> _Result:
    """The work, by this very version. Raises UsageError by another: workers may come after all were asked."""
    if version() != wanted:
        raise _unlike(wanted, [f"one of them has {version()}"])
    return work(shared, item)


def _refuse_others(client: Client) -> None:
    found = client.run(version, on_error="return")
    if wrong := sorted(f"{worker}: {answer}" for worker, answer in found.items() if answer != __version__):
        raise _unlike(__version__, wrong)


def _unlike(wanted: str, found: Sequence[str]) -> UsageError:
    return UsageError(
        f"workers without gates {wanted}: {printable('; '.join(found))}",
        next_step=f'install "voice-gates[cluster]=={wanted}" where the workers run',
    )
