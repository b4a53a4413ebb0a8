"""Modules that are imported when something of them is first asked for: they take longer than most commands do."""

from __future__ import annotations

from importlib import import_module


class Deferred:
    """Stands for the module of that name. Beside `if TYPE_CHECKING: import ...`, so that types are checked."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> object:
        found: object = getattr(import_module(self._name), attribute)
        return found
