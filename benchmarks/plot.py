"""Draw the cost of the memorisation benchmark against size: python benchmarks/plot.py DATA/memorisation.json OUT.svg"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

mpl.rcParams["svg.hashsalt"] = "gates"

FLOOR = "every byte read once"


def main(source: Path, out: Path) -> None:
    """One line a tool, both axes logarithmic, the floor (every byte read once, in the same run) dotted."""
    rows = [row for row in json.loads(source.read_text("utf-8")) if "cpu_s" in row]
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for tool in dict.fromkeys(row["tool"] for row in rows):
        own = [row for row in rows if row["tool"] == tool]
        axes.loglog(
            [row["mb"] for row in own], [row["cpu_s"] for row in own], "k:" if tool == FLOOR else "o-", label=tool
        )
    axes.set(
        xlabel="source, MB", ylabel="processor seconds", title="500 generations of 300 words, runs of 8 words and more"
    )
    axes.legend(fontsize="small")
    figure.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
