"""The picture of a speed measurement: every sample, every median, and the band that the base against itself fills."""

from __future__ import annotations

import io
import os
from importlib.util import find_spec
from pathlib import Path

from gates.errors import UsageError
from gates.report.marks import plain
from gates.seat.operate.bench import AGAIN, BASE, Bench


def check_drawing(path: Path) -> None:
    """Raise UsageError where a picture could not be written to `path`: said before anything is measured."""
    if find_spec("matplotlib") is None:
        raise UsageError("drawing needs matplotlib", next_step='pip install "voice-gates[report]"')
    if path.suffix.lower() != ".svg":
        raise UsageError(f"{path}: the picture is an SVG", next_step=f"--plot {path.with_suffix('.svg')}")
    if path.exists() or path.is_symlink() or not os.access(path.absolute().parent, os.W_OK):
        raise UsageError(
            f"{path}: there is something already, or its folder cannot be written to", next_step="name a new file"
        )


def bench_svg(bench: Bench) -> str:
    """Decode speed of every arm as SVG, the same bytes for the same figures.

    Raises UsageError without matplotlib (the extra `report`).
    """
    try:
        # Lazy: an optional extra, and slow to import.
        import matplotlib as mpl  # noqa: PLC0415
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        raise UsageError("drawing needs matplotlib", next_step='pip install "voice-gates[report]"') from None
    with mpl.rc_context({"svg.hashsalt": "gates", "svg.fonttype": "none", "text.parse_math": False}):
        figure = Figure(figsize=(7.0, 1.2 + 0.6 * len(bench.arms)), layout="constrained")
        axes = figure.add_subplot()
        own = [sample.decode for sample in bench.samples if sample.arm in (BASE, AGAIN)]
        axes.axvspan(min(own), max(own), color="0.9", label="the base, both times")
        for row, arm in enumerate(reversed(bench.arms)):
            values = [sample.decode for sample in bench.samples if sample.arm == arm.arm]
            axes.plot(values, [row] * len(values), "o", color="tab:blue", alpha=0.3, markersize=4)
            axes.plot([arm.decode] * 2, [row - 0.3, row + 0.3], color="black")
            axes.annotate(f"{arm.decode:.1f}", (arm.decode, row + 0.33), ha="center", va="bottom", fontsize=8)
        axes.set_yticks(range(len(bench.arms)), [plain(arm.arm) for arm in reversed(bench.arms)])
        axes.set_ylim(-0.6, len(bench.arms) - 0.2)
        axes.set_xlabel("decode, tokens/s (line: median)")
        axes.legend(loc="lower right", fontsize=8)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()
