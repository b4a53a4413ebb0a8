"""The mutants that mutmut left alive, each tried again in a process of its own: python scripts/survivors.py TEST ...

Run it in the folder that scripts/mutants.sh worked in, with the environment it made. mutmut tries mutants in copies of
one process in which every test has run once: what a function keeps (`lru_cache`) then hides its mutants. Prints the
name of each mutant that the tests do not see here either, and how many those are.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def alive(tests: Sequence[str], name: str) -> bool:
    """Whether these tests pass with the mutant of that name."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "MUTANT_UNDER_TEST": name, "PYTHONPATH": "."}
    try:
        ended = subprocess.run(command, cwd="mutants", env=environment, capture_output=True, check=False, timeout=300)
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == 0


def main(tests: Sequence[str]) -> None:
    """Try all that are given on standard input, a name a line, as `mutmut results` lists them."""
    names = [line.split(":")[0].strip() for line in sys.stdin if "survived" in line or "no tests" in line]
    if not alive(tests, ""):
        raise SystemExit(f"{' '.join(tests)}: these tests fail without any mutant in {Path('mutants').resolve()}")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        left = [
            name
            for name, passed in zip(names, pool.map(lambda one: alive(tests, one), names), strict=True)
            if passed and not print(name, flush=True)
        ]
    print(f"{len(left)} of {len(names)} are alive", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
