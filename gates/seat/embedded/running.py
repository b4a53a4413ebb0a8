"""A started seat: the socket, the pool, and uvicorn in a thread of its own."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Self

import uvicorn

from gates.errors import SeatError, UsageError
from gates.seat.embedded.adapters import check_names
from gates.seat.embedded.engine import Engine
from gates.seat.embedded.front import application
from gates.seat.embedded.model import carrier
from gates.seat.embedded.peft import prepare
from gates.seat.embedded.state import State

if TYPE_CHECKING:
    from gates.seat.embedded.serve import EmbeddedSeat


class Running:
    """Everything that must be stopped when a seat ends."""

    def __init__(self, engine: Engine, state: State, listener: socket.socket, api_key: str | None) -> None:
        self._engine, self._listener = engine, listener
        self.port: int = listener.getsockname()[1]
        config = uvicorn.Config(
            application(state, api_key=api_key),
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listener]}, name=f"embedded-seat-{self.port}", daemon=True
        )

    @classmethod
    def start(cls, seat: EmbeddedSeat) -> Self:
        """Fetch, convert, start and listen. Whatever fails, nothing is left running."""
        check_names(seat.base_name, list(seat.adapters))
        model = carrier(seat.cache)
        files = {name: prepare(path, seat.cache) for name, path in seat.adapters.items()}
        engine = Engine(model, files, servers=seat.servers, context=seat.max_model_len)
        roots = {name: str(path) for name, path in seat.adapters.items()}
        state = State(engine, seat.cache, seat.base_name, roots, runtime_lora=seat.runtime_lora)
        listener = _listen(seat.port)
        try:
            engine.start()
            running = cls(engine, state, listener, seat.api_key)
            running._thread.start()
        except BaseException:
            listener.close()
            engine.close()
            raise
        running._await_start()
        return running

    def stop(self) -> None:
        """Stop listening, break off what still runs, end the servers."""
        self._server.should_exit = True
        self._engine.close()
        self._thread.join()
        self._listener.close()

    def _await_start(self) -> None:
        while not self._server.started:
            self._thread.join(timeout=0.01)
            if not self._thread.is_alive():
                self._listener.close()
                self._engine.close()
                raise SeatError("the embedded seat's HTTP front did not start")


def _listen(port: int) -> socket.socket:
    """A listening socket on loopback alone."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise UsageError(
            f"port {port} on 127.0.0.1 cannot be taken: {error}",
            next_step="stop what listens there, or choose another port (0 takes a free one)",
        ) from None
    return listener
