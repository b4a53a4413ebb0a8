"""The way in: a context manager that serves the carrier and its adapters on loopback, and a function that serves on.

Nothing here needs the extra `embedded` until a seat is started.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from gates.errors import UsageError

if TYPE_CHECKING:
    from gates.seat.embedded.running import Running


@dataclass
class EmbeddedSeat:
    """A seat in this process: enter it to start, leave it to stop; it leaves nothing behind.

    `adapters` maps served names to GGUF files or PEFT folders. `port` 0 takes a free one. `servers` is the number of
    llama.cpp servers, as many as cores unless told. `runtime_lora` mounts the routes that load and unload adapters.
    Raises UsageError (extra missing, port taken, impossible option), InputError (an adapter that cannot be used),
    CorpusError (the model cannot be fetched) and SeatError (llama.cpp does not start).
    """

    cache: Path
    base_name: str
    adapters: Mapping[str, Path]
    port: int = 0
    api_key: str | None = None
    runtime_lora: bool = False
    servers: int | None = None
    max_model_len: int = 2048
    _running: Running | None = field(default=None, init=False, repr=False)

    @property
    def base_url(self) -> str:
        """What an OpenAI client takes as its base URL; only a started seat has one."""
        if self._running is None:
            raise UsageError("the embedded seat is not running", next_step="enter it: `with EmbeddedSeat(...) as seat`")
        return f"http://127.0.0.1:{self._running.port}/v1"

    def __enter__(self) -> Self:
        self._running = _running_class().start(self)
        return self

    def __exit__(self, *_: object) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.stop()


embedded_seat = EmbeddedSeat


def serve_forever(seat: EmbeddedSeat, announce: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; `announce` is told the base URL once the seat answers. Main thread only."""
    ended = threading.Event()
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with seat:
            announce(seat.base_url)
            ended.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _running_class() -> type[Running]:
    try:
        # Lazy: these need the optional extra, and loading llama.cpp takes time that other commands need not spend.
        from gates.seat.embedded.running import Running  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] == "gates":
            raise
        raise UsageError(
            f"the embedded seat needs the package {error.name}, which is not installed",
            next_step='pip install "voice-gates[embedded]"',
        ) from None
    return Running
