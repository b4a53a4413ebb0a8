"""Kill every command that writes records at each step on the disk and at each system call on a record, in turn.

    python scripts/kills.py [COMMAND ...] > report.md

Each time the command is given again. Nothing may then be lost or be there twice, the verdict must be the undisturbed
one, and `gates verify` must hold. Run from the repository's root, with the development environment; calls are those
that strace shows, where it may follow a process. Ends with 1 when anything did not hold.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from pathlib import Path

import click

from tests.faults.child import can_trace
from tests.faults.home import CASES, Home
from tests.faults.trials import FickleSeat, Trials
from tests.flow.threaded import running
from tests.kills import STARTED


@click.command()
@click.argument("commands", nargs=-1, type=click.Choice([case.name for case in CASES]))
def kills(commands: tuple[str, ...]) -> None:
    """Kill COMMANDS, or all, everywhere."""
    STARTED.set_forkserver_preload(["tests.faults.child"])
    held = True
    with tempfile.TemporaryDirectory(prefix="kills-") as folder, running(FickleSeat) as seat:
        home = Home(Path(folder), seat.faulty.url)
        trials = Trials(home, seat, traces=can_trace(), mounts=False)
        print(
            f"Python {platform.python_version()}, {platform.system()}; strace {'used' if trials.traces else 'none'}.\n"
        )
        print("| command | kills at steps | held | kills at system calls | held | s |\n|---|---|---|---|---|---|")
        for case in CASES:
            if case.name in commands or not commands:
                begun = time.perf_counter()
                found = [[*trials.killed_everywhere(case)], [*trials.killed_at_every_call(case)]]
                cells = [f"{len(kind)} | {sum(not outcome.wrong for outcome in kind)}" for kind in found]
                print(f"| {case.name} | {' | '.join(cells)} | {time.perf_counter() - begun:.0f} |", flush=True)
                for outcome in (one for kind in found for one in kind if one.wrong):
                    held = False
                    print(outcome, file=sys.stderr)
    sys.stdout.flush()
    os._exit(not held)


if __name__ == "__main__":
    kills()
