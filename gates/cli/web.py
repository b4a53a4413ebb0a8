"""Serving a page to the person at this machine, where the extra for it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gates.cli.output import say
from gates.errors import UsageError

if TYPE_CHECKING:
    from gates.report.web.app import Desk


def serve(desk: Desk, port: int) -> None:
    """Serve a desk on loopback until Ctrl-C. Raises UsageError where the extra is not installed or the port taken."""
    try:
        # Lazy: these need the optional extra.
        from gates.report.web.serve import serve_page  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] == "gates":
            raise
        raise UsageError(
            f"the page needs the package {error.name}, which is not installed",
            next_step='pip install "voice-gates[report]", or read on the terminal',
        ) from None
    serve_page(
        desk,
        lambda url: say(f"open {url} (good once, on this machine only); Ctrl-C ends the sitting", needed=True),
        port,
    )
