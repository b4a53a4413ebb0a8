"""The parts of a source on the workers of a dask cluster: the same work as here, and the results in the same order.

What the work shares (the texts' sieve) is a task of its own, so that it is made again where the workers that held it
are gone; a part whose worker dies is read again by another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from distributed import Client, KilledWorker, as_completed

from gates import __version__
from gates.errors import GatesError, UsageError
from gates.spec.source import printable

PART_BYTES = 256 << 20
"""A part takes a core some seconds: long beside what a task costs, short beside what is lost with a worker."""

_Shared = TypeVar("_Shared")
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Cluster:
    """The workers of a running dask scheduler; `progress` is told (parts done, all parts)."""

    def __init__(self, client: Client, progress: Callable[[int, int], None], part_bytes: int = PART_BYTES) -> None:
        self.part_bytes = part_bytes
        self._client, self._progress = client, progress

    def run(
        self, make: Callable[[], _Shared], work: Callable[[_Shared, _Item], _Result], items: Sequence[_Item]
    ) -> Iterator[_Result]:
        """`work` of what `make` gives and each item, in the order of the items.

        Raises what the work raises, and GatesError when one part has killed every worker that read it.
        """
        shared = self._client.submit(make, pure=False)
        futures = [self._client.submit(work, shared, item, pure=False) for item in items]
        results: list[_Result | None] = [None] * len(items)
        numbers = {future.key: number for number, future in enumerate(futures)}
        try:
            for done, (future, result) in enumerate(
                as_completed(futures, loop=self._client.loop, with_results=True), 1
            ):
                results[numbers[future.key]] = result
                self._progress(done, len(items))
        except KilledWorker as error:
            raise GatesError(
                f"workers of the cluster died again and again: {printable(str(error))}",
                next_step="look at the workers' logs; they may need more memory",
            ) from error
        return (result for result in results if result is not None)


@contextmanager
def connected(address: str, progress: Callable[[int, int], None], *, timeout_s: float = 30) -> Iterator[Cluster]:
    """The workers of the scheduler at dask://HOST:PORT.

    Raises UsageError where no scheduler or worker answers in time, or where a worker has another version of gates.
    """
    scheme, _, place = address.partition("://")
    if scheme != "dask" or not place:
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
        yield Cluster(client, progress)


def version() -> str:
    """What a worker runs."""
    return __version__


def _refuse_others(client: Client) -> None:
    found = client.run(version, on_error="return")
    wrong = sorted(f"{worker}: {answer}" for worker, answer in found.items() if answer != __version__)
    if wrong:
        raise UsageError(
            f"workers without gates {__version__}: {printable('; '.join(wrong))}",
            next_step=f'install "voice-gates[cluster]=={__version__}" where the workers run',
        )
