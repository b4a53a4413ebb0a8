"""One `gates` command in a process of its own, a fault in its way, under a clock and chance that can be had again."""

from __future__ import annotations

import ctypes
import io
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

import gates.cli.export
import gates.cli.gate
import gates.cli.importing
import gates.cli.ledger
import gates.cli.read
import gates.cli.rescore
import gates.cli.review
import gates.cli.sealed
import gates.cli.signoff
import gates.flow.world
from gates.cli import main
from gates.seat.pace import Pace
from tests.kills import Disk

BEGIN = datetime(2026, 2, 1, tzinfo=UTC)
DAY = 86_400

RECORD_CALLS = ("write", "fsync", "mkdir", "linkat", "link", "rename", "unlink", "ftruncate", "openat")
"""The system calls that change a record, or open it for a change."""


@dataclass(frozen=True)
class Trouble:
    """What stands in a command's way, each part alone or none.

    `step` and `error`: at that step on the disk (from 1) the process dies, or the system refuses with this error; with
    `lasting` it refuses from that step on. `call`: the same by strace, for one system call on `paths`. `limit`: the
    most bytes of a file. `bare`: without the rights by which the superuser writes everywhere. `back_at`: the reading
    of the clock, from 1, at which it goes back a day.
    """

    step: int | None = None
    error: int | None = None
    lasting: bool = False
    call: str | None = None
    limit: int | None = None
    bare: bool = False
    back_at: int | None = None


@dataclass(frozen=True)
class Order:
    """A command, where it works, when it begins (hours after `BEGIN`), and the paths of its records.

    `log`: the file into which strace is to write every system call on these paths.
    """

    words: tuple[str, ...]
    home: Path
    hour: int
    trouble: Trouble = Trouble()
    paths: tuple[str, ...] = ()
    log: str | None = None


@dataclass(frozen=True)
class Told:
    """How a command ended: exit code, all that it said, and the steps on the disk that it made."""

    code: int
    said: str
    steps: tuple[str, ...] = ()


def clock(hour: int, back_at: int | None) -> datetime:
    """The next second of a clock that begins at that hour, and goes back a day at a reading."""
    clock.readings += 1
    readings: int = clock.readings
    back = DAY if back_at is not None and readings >= back_at else 0
    return BEGIN + timedelta(hours=hour, seconds=readings - back)


def carry_out(order: Order, told: Connection) -> None:
    """Do what was ordered, and tell how it ended, unless it dies."""
    os.environ |= {"GATES_CACHE": str(order.home / "cache"), "GATES_SIGNING_KEY": str(order.home / "key")}
    os.chdir(order.home / "work")
    clock.readings = 0
    now = partial(clock, order.hour, order.trouble.back_at)
    chance = np.random.default_rng(order.hour)
    gates.flow.world.World = partial(gates.flow.world.World, now=now, chance=chance)
    Pace.wait_s = lambda *_: 0.001
    gates.cli.read.serve = vote_on_all
    trouble = order.trouble
    disk = Disk(order.home / "work", 0 if trouble.call else trouble.step or 0, trouble.error, lasting=trouble.lasting)
    disk.watch()
    if trouble.limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (trouble.limit, trouble.limit))
    if trouble.bare:
        give_up_rights()
    if trouble.call is not None:
        trace(injected(trouble), order.paths)
    elif order.log is not None:
        trace("", order.paths, order.log)
    said = io.StringIO()
    sys.stdout = sys.stderr = said
    sys.argv = ["gates", *order.words]
    try:
        main()
    except SystemExit as ended:
        told.send(Told(int(ended.code or 0), said.getvalue(), tuple(disk.told)))


def vote_on_all(desk: gates.cli.read.BlindDesk, _port: int) -> None:
    """The reader at the page of `gates read --blind`: a vote on everything that has none yet."""
    for item in desk.overview()["items"]:
        if not item["voted"]:
            desk.say(item["name"], {"author": 0, "best": 1, "note": "read"})


def give_up_rights() -> None:
    """Drop all capabilities: rights on files then bind the superuser as anybody."""
    header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    if ctypes.CDLL(None, use_errno=True).capset(header, none):
        raise OSError(ctypes.get_errno(), "capset")


def injected(trouble: Trouble) -> str:
    what = "signal=KILL" if trouble.error is None else f"error={trouble.error}"
    return f"inject={trouble.call}:{what}:when={trouble.step}{'+' if trouble.lasting else ''}"


def trace(inject: str, paths: Sequence[str], out: str = os.devnull) -> None:
    """Have strace follow this process, all of its threads and children, with an eye on `paths`."""
    mine = [word for path in paths for word in ("-P", path.replace("PID", str(os.getpid())))]
    calls = f"trace={','.join(RECORD_CALLS)}"
    words = ["strace", "-qq", "-f", "-o", out, "-e", calls, *(["-e", inject] if inject else []), *mine]
    # Where only a parent may follow a process (yama), its child may when it allows that.
    ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)
    tracer = subprocess.Popen(
        [*words, "-p", str(os.getpid())], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    while not traced():
        if tracer.poll() is not None:
            assert tracer.stderr is not None
            raise PermissionError(tracer.stderr.read().decode())
        time.sleep(0.002)


def traced() -> bool:
    status = Path("/proc/self/status").read_text("ascii")
    return "TracerPid:\t0\n" not in status


def can_trace() -> bool:
    """Whether strace is here, and may follow a process."""
    if shutil.which("strace") is None:
        return False
    asked = ["strace", "-qq", "-o", os.devnull, "-e", "trace=none", "true"]
    return subprocess.run(asked, check=False, capture_output=True).returncode == 0
