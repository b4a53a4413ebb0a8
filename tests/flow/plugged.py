"""Distributions that plug something in, installed for one test."""

from __future__ import annotations

from pathlib import Path

import pytest


def install(site: Path, monkeypatch: pytest.MonkeyPatch, entries: str, module: tuple[str, str], version: str) -> None:
    """Put a distribution named as the folder `site` on the path: its entry points, and one module (name, code)."""
    info = site / f"{site.name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {site.name}\nVersion: {version}\n", "utf-8")
    (info / "entry_points.txt").write_text(entries, "utf-8")
    (site / f"{module[0]}.py").write_text(module[1], "utf-8")
    monkeypatch.syspath_prepend(site)
