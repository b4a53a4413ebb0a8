"""Serving a page on loopback until Ctrl-C, to whoever opens the printed address first."""

from __future__ import annotations

import secrets
import signal
import socket
from collections.abc import Callable

import uvicorn

from gates.errors import UsageError
from gates.report.web.app import Desk, application


def serve_page(desk: Desk, announce: Callable[[str], None], port: int = 0) -> None:
    """Serve until SIGINT or SIGTERM; `announce` is told the address, which holds the one-time token. Main thread only.

    `port` 0 takes a free one. Raises UsageError when the port is taken.
    """
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", port))
        except OSError as error:
            raise UsageError(f"port {port}: {error.strerror}", next_step="choose another with --port") from None
        taken = listening.getsockname()[1]
        token = secrets.token_urlsafe(32)
        config = uvicorn.Config(
            application(desk, token, taken),
            access_log=False,
            log_level="warning",
            lifespan="off",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=2,
        )
        # uvicorn raises again, once it has stopped, the signal that stopped it: here it has done its work.
        before = {sent: signal.signal(sent, lambda *_: None) for sent in (signal.SIGINT, signal.SIGTERM)}
        try:
            listening.listen()
            announce(f"http://127.0.0.1:{taken}/?token={token}")
            uvicorn.Server(config).run(sockets=[listening])
        finally:
            for sent, handler in before.items():
                signal.signal(sent, handler)
