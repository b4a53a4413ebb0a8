"""Exact runs of 500 generations of 300 words in 5 MB to 1 GB of text: gates beside its peers, in one run.

    python benchmarks/memorisation.py PEERS DATA [SIZE_MB ...]

PEERS is the folder of benchmarks/peers.sh, DATA that of benchmarks/texts.py. Each figure is of a process of its own,
from the open source to the list of runs, imports left out; seconds are of the processor (user, system, children). gates
reads the text as printed, normalises it and gives every position; the peers are given words that are normalised, and
what normalising costs (gates' own, in a process of its own, the row `normalising`) is added in the last column.
Prints a table in Markdown and writes DATA/memorisation.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PEERS = ("python", "polars", "numba", "tokengrams", "pydivsufsort", "infini-gram")
LARGEST = {"tokengrams": 100, "pydivsufsort": 100, "infini-gram": 20}
"""Megabytes at which a peer still ends in minutes and in memory."""

LIMIT_S = 540
OWN = """
import json, resource, sys, time
from pathlib import Path
from gates.corpora.files import read_texts
from gates.flow.overlap import Here, overlap
started = [time.process_time(), time.perf_counter()]
texts = read_texts([Path(sys.argv[2])])
found = overlap([sys.argv[1]], texts, [None] * len(texts), 8, Here())
runs = {(run.text, run.start, run.length) for run in found.runs}
print(json.dumps({
    "cpu_s": time.process_time() - started[0], "wall_s": time.perf_counter() - started[1],
    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "runs": len(runs), "texts": found.hits,
}))
"""


NORMALISING = """
import json, resource, sys, time
from gates.corpora.streams.plan import plan
from gates.corpora.streams.read import text_of
from gates.text import flat_prose
started = [time.process_time(), time.perf_counter()]
for data in text_of(plan([sys.argv[1]])[0]):
    flat_prose(data)
print(json.dumps({
    "cpu_s": time.process_time() - started[0], "wall_s": time.perf_counter() - started[1],
    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "runs": 0, "texts": 0,
}))
"""
FLOOR = """
import json, resource, sys, time
import numpy as np
started = [time.process_time(), time.perf_counter()]
with open(sys.argv[1], "rb", buffering=0) as file:
    while data := file.read(1 << 20):
        np.frombuffer(data, dtype=np.uint8).max()
print(json.dumps({
    "cpu_s": time.process_time() - started[0], "wall_s": time.perf_counter() - started[1],
    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "runs": 0, "texts": 0,
}))
"""
SCRIPTS = {"gates": OWN, "normalising": NORMALISING, "every byte read once": FLOOR}


def measured(name: str, peers: Path, data: Path, size: int) -> dict[str, Any]:
    """One run of gates or of a peer."""
    if name in SCRIPTS:
        command = [sys.executable, "-c", SCRIPTS[name], str(data / f"{size}.txt"), str(data / "texts.jsonl")]
    else:
        python = sys.executable if name == "python" else str(peers / name / "bin" / "python")
        script = str(Path(__file__).with_name("peer_memorisation.py"))
        command = [python, script, name, str(data / f"{size}.flat"), str(data / "texts.flat")]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {LIMIT_S} s"}
    if ended.returncode:
        return {"failed": (ended.stderr.strip().splitlines() or ["?"])[-1][:100]}
    found: dict[str, Any] = json.loads(ended.stdout.strip().splitlines()[-1])
    return found


def main(peers: Path, data: Path, sizes: list[int]) -> None:
    """Run everything, smallest first."""
    rows: list[dict[str, Any]] = []
    print(
        "| MB | tool | CPU s | wall s | peak MB | runs | texts hit | CPU against gates | normalising paid |\n|"
        + "---|" * 9
    )
    for size in sizes:
        own = normalising = 0.0
        for name in (*SCRIPTS, *PEERS):
            if size > LARGEST.get(name, 1000):
                continue
            row = {"size": size, "tool": name, "load": os.getloadavg()[0]} | measured(name, peers, data, size)
            rows.append(row)
            own = row["cpu_s"] if name == "gates" else own
            normalising = row["cpu_s"] if name == "normalising" else normalising
            if "failed" in row:
                print(f"| {size} | {name} | {row['failed']} | | | | | | |", flush=True)
            else:
                figures = (
                    f"{row['cpu_s']:.2f} | {row['wall_s']:.1f} | {row['peak_mb']:.0f} | {row['runs']} | {row['texts']}"
                )
                paid = f"{(row['cpu_s'] + normalising) / own:.1f}" if name in PEERS else ""
                print(f"| {size} | {name} | {figures} | {row['cpu_s'] / own:.2f} | {paid} |", flush=True)
    (data / "memorisation.json").write_text(json.dumps(rows, indent=1), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), [int(size) for size in sys.argv[3:]] or [5, 20, 100, 1000])
