"""report.html and the index of a workspace: self-contained pages with pictures; they need the extra `report`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec

from gates.errors import UsageError
from gates.report.html.model import Line, Page


def html_report(page: Page) -> str:
    """The page of a run as one HTML document. Raises UsageError without the extra `report`."""
    with _extra():
        # Lazy: an optional extra, and slow to import.
        from gates.report.html.page import render  # noqa: PLC0415
    return render(page)


def html_index(lines: Sequence[Line], name: str) -> str:
    """The list of a workspace's runs as one HTML document. Raises UsageError without the extra `report`."""
    with _extra():
        # Lazy: the same.
        from gates.report.html.index import render_index  # noqa: PLC0415
    return render_index(lines, name)


def can_draw() -> bool:
    """Whether the extra `report` is installed."""
    return all(find_spec(name) for name in ("jinja2", "matplotlib"))


@contextmanager
def _extra() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        if error.name is None or error.name.split(".")[0] not in ("jinja2", "markupsafe", "matplotlib"):
            raise
        raise UsageError(
            f"report.html needs the package {error.name}, which is not installed",
            next_step='pip install "voice-gates[report]"',
        ) from None
