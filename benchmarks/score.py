"""What scoring, verifying and re-scoring cost from the shell, each command a process of its own.

    python benchmarks/score.py FOLDER                3 arms, 5 seeds, 24 beats; a train split of 1 M words
    python benchmarks/score.py FOLDER verify         a run of 10,005 generations
    python benchmarks/score.py FOLDER rescore        100 runs under a new rule

FOLDER is made and must not be there. Seconds are of the processor (user and system) and of the clock. `gates import`
scores a file of texts as `gates run` does when its last text is there: it reads and verifies the texts, makes the
frame, measures, judges, writes; and once a gate it computes what the gate can prove, which `gates check` gives alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

from made import gates, make

REASON = ("--reason", "a benchmark")
RULE = ("--rule", "pairwise-calibrated@1")


def main(folder: Path, what: str = "score") -> None:
    """Make a workspace, run the commands, print what each took."""
    if what == "score":
        home = make(folder)
        _time(home, "check", "prereg/bench.yaml")
    elif what == "verify":
        home = make(folder, beats=667)
    else:
        home = make(folder, runs=100, books=1)
    runs = sorted(home.glob("texts*.jsonl"))
    for number, texts in enumerate(runs, 1):
        _time(home, "import", texts.name, "--gate", "prereg/bench.yaml", told=number == 1)
    if what != "rescore":
        _time(home, "verify")
    found = [str(run.relative_to(home)) for run in sorted((home / "reports" / "bench").glob("[0-9]*"))]
    _time(home, "rescore", *found, *RULE, *REASON)
    _time(home, "--help")


def _time(home: Path, *words: str, told: bool = True) -> None:
    spent, clock, _ = gates(home, *words)
    if told:
        print(f"gates {words[0]}: {spent:.2f} s of the processor, {clock:.2f} s by the clock", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
