"""Floors and verdicts as pure functions on measured values."""
