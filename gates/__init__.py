"""Pre-registered gates that decide whether a voice adapter may ship."""

__version__ = "0.1.0"
