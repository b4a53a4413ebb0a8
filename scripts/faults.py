"""Put random faults in the way of every command that writes records: faults.py [--count N] [--seed N] [--out FILE].

Each time the command is simply given again once the fault is gone. Nothing may then be lost or be there twice, the
verdict must be the undisturbed one, and `gates verify` must hold. Run from the repository's root, with the development
environment; strace and the right to mount are used where they are to be had. Ends with 1 when anything did not hold.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import click
import numpy as np

from tests.faults.child import can_trace
from tests.faults.home import Home
from tests.faults.trials import KINDS, FickleSeat, Trials, can_mount
from tests.flow.threaded import running
from tests.kills import STARTED


@click.command()
@click.option("--count", default=200, show_default=True, help="How many faults.")
@click.option("--first", default=1, show_default=True, help="The number of the first: each has a generator of its own.")
@click.option("--seed", default=7, show_default=True, help="Of the generator that draws them.")
@click.option("--kind", type=click.Choice(KINDS), help="Faults of this kind alone.")
@click.option("--out", type=click.File("w"), default="-", help="Where the report goes.")
def faults(count: int, first: int, seed: int, kind: str | None, out: click.utils.LazyFile) -> None:
    """Draw COUNT faults, and report each."""
    STARTED.set_forkserver_preload(["tests.faults.child"])
    wrong, drawn = 0, Counter[str]()
    with tempfile.TemporaryDirectory(prefix="faults-") as folder, running(FickleSeat) as seat:
        home = Home(Path(folder), seat.faulty.url)
        trials = Trials(home, seat, traces=can_trace(), mounts=can_mount(home.folder / "mounted"))
        print(f"# Faults {first} to {first + count - 1}, drawn with seed {seed}\n", file=out)
        print(
            f"Python {platform.python_version()}, {platform.system()} {platform.release()}; strace "
            f"{'used' if trials.traces else 'not to be had'}, small disks "
            f"{'mounted' if trials.mounts else 'imitated'}.\n",
            file=out,
        )
        begun = time.perf_counter()
        for number in range(first, first + count):
            chance = np.random.default_rng([seed, number])
            name = kind or str(chance.choice(KINDS))
            outcome = trials.meet(name, chance)
            drawn[name] += 1
            wrong += bool(outcome.wrong)
            print(f"{number}. {name}: {outcome}", file=out, flush=True)
        print(f"\n{count - wrong} of {count} held, in {time.perf_counter() - begun:.0f} s:", file=out)
        print(", ".join(f"{number} {name}" for name, number in sorted(drawn.items())), file=out)
        out.flush()
    sys.stdout.flush()
    os._exit(1 if wrong else 0)


if __name__ == "__main__":
    faults()
