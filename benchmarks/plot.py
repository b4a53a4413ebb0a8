"""Draw what a benchmark costs against its size: python benchmarks/plot.py FIGURES.json OUT.svg "SIZE IN WHAT" "TITLE"

FIGURES.json is what the benchmark wrote: rows of `size`, `tool` and `cpu_s`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

mpl.rcParams["svg.hashsalt"] = "gates"

FLOOR = "every byte read once"


def main(source: Path, out: Path, size: str, title: str) -> None:
    """One line a tool, both axes logarithmic, the floor (every byte read once, in the same run) dotted."""
    rows = [row for row in json.loads(source.read_text("utf-8")) if "cpu_s" in row]
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for tool in dict.fromkeys(row["tool"] for row in rows):
        own = [row for row in rows if row["tool"] == tool]
        axes.loglog(
            [row["size"] for row in own], [row["cpu_s"] for row in own], "k:" if tool == FLOOR else "o-", label=tool
        )
    axes.set(xlabel=size, ylabel="processor seconds", title=title)
    axes.legend(fontsize="small")
    figure.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:5])
