"""Pre-registered gates that decide whether a voice adapter may ship.

`from gates import load_run` reads a finished run as pandas frames.
"""

from importlib import import_module

__version__ = "0.1.0"
__all__ = ["RunFrames", "__version__", "load_run"]


def __getattr__(name: str) -> object:
    """The public names, imported when they are first asked for: the command starts without them."""
    if name in ("RunFrames", "load_run"):
        return getattr(import_module("gates.flow.frames"), name)
    raise AttributeError(f"module 'gates' has no attribute {name!r}")
