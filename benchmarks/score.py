"""What scoring, verifying and re-scoring cost from the shell, each command a process of its own.

    python benchmarks/score.py FOLDER                3 arms, 5 seeds, 24 beats; a train split of 1 M words
    python benchmarks/score.py FOLDER verify         runs of 360, 1,995 and 10,005 generations
    python benchmarks/score.py FOLDER rescore        1, 10, 30 and 100 runs under a new rule, each in one command

What FOLDER lacks is made, which takes minutes for 100 runs; FOLDER/WHAT.json gets the figures, for benchmarks/plot.py.
Seconds are of the processor (user and system) and of the clock. `gates import` scores a file of texts as `gates run`
does when its last text is there: it reads and verifies the texts, makes the frame, measures, judges, writes; and once
a gate it computes what the gate can prove, which `gates check` gives alone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from made import gates, make

SIZES = {"verify": (24, 133, 667), "rescore": (1, 10, 30, 100)}
PER_BEAT = 15


def main(folder: Path, what: str = "score") -> None:
    """Make what is to be scored, run the commands, print what each took."""
    rows: list[dict[str, object]] = []
    if what == "rescore":
        home = _made(folder, runs=max(SIZES[what]), books=1)
        found = [str(run.relative_to(home)) for run in sorted((home / "reports" / "bench").glob("[0-9]*"))]
        for size in SIZES[what]:
            reason = f"a benchmark of {size} runs"
            spent = _time(home, "rescore", *found[:size], "--rule", "pairwise-calibrated@1", "--reason", reason)
            rows.append({"size": size, "tool": "gates rescore", "cpu_s": spent})
    elif what == "verify":
        for beats in SIZES[what]:
            home = _made(folder / str(beats), beats=beats)
            rows.append({"size": PER_BEAT * beats, "tool": "gates verify", "cpu_s": _time(home, "verify")})
    else:
        home = _made(folder)
        for words in (("check", "prereg/bench.yaml"), ("verify",), ("--help",)):
            _time(home, *words)
    (folder / f"{what}.json").write_text(json.dumps(rows, indent=1), "utf-8")


def _made(folder: Path, *, beats: int = 24, runs: int = 1, books: int = 10) -> Path:
    """A workspace whose texts are judged; one that is there already is taken as it is."""
    home = folder / "workspace"
    if not (home / "reports").is_dir():
        make(folder, beats=beats, runs=runs, books=books)
        for texts in sorted(home.glob("texts*.jsonl")):
            gates(home, "import", texts.name, "--gate", "prereg/bench.yaml")
    return home


def _time(home: Path, *words: str) -> float:
    spent, clock, _ = gates(home, *words)
    told = f"gates {words[0]} ({len(words) - 1} arguments)"
    print(f"{told}: {spent:.2f} s of the processor, {clock:.2f} s by the clock", flush=True)
    return spent


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
