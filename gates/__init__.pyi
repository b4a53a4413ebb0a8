"""What the package offers, for type checkers; `__init__.py` imports it when it is first asked for."""

from gates.flow.frames import RunFrames as RunFrames
from gates.flow.frames import load_run as load_run

__version__: str
__all__ = ["RunFrames", "__version__", "load_run"]
