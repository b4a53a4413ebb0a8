"""Faults, drawn at random or each in turn; the command given again must then come to the undisturbed end."""

from __future__ import annotations

import errno
import os
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from gates.record.ledger import Ledger
from tests.durable import at_risk, names_in
from tests.faults.child import RECORD_CALLS, Told, Trouble
from tests.faults.home import CASES, Case, Facts, Home, facts, held_since
from tests.flow.test_judging import Judge
from tests.flow.threaded import Seat
from tests.seat.faulty import Handler, Request, Wire, error

KINDS = (
    "killed",
    "call killed",
    "refused once",
    "call refused",
    "full disk",
    "file limit",
    "read-only folder",
    "clock back",
    "two at once",
    "half errors",
    "seat restarted",
)
REFUSALS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)
PAGE_BYTES = 4096


class FickleSeat(Seat):
    """A seat of whose answers a share are errors, or that is down for its next requests, while it restarts."""

    def __init__(self) -> None:
        super().__init__()
        Judge(self)
        self.share, self.down, self.up, self.texts_alone = 0.0, 0, 0, False
        self.chance = np.random.default_rng(0)
        answers, cards = self.faulty.always, self.faulty.routes["/v1/models"]
        assert answers is not None
        self.faulty.always, self.faulty.routes["/v1/models"] = self._fickle(answers), self._fickle(cards)

    def _fickle(self, good: Handler) -> Handler:
        async def handle(request: Request, wire: Wire) -> None:
            self.up -= 1
            if self.up < 0 < self.down:
                self.down -= 1
                wire.reset()
            elif (not self.texts_alone or _asks_a_text(request)) and self.chance.random() < self.share:
                await wire.send(error("busy", "X", 503), 503)
            else:
                await good(request, wire)

        return handle

    def mend(self) -> None:
        """Behave well again."""
        super().mend()
        self.share, self.down, self.up, self.texts_alone = 0.0, 0, 0, False


def _asks_a_text(request: Request) -> bool:
    return bool(request.body.get("cache_salt")) and not request.body.get("logprobs")


@dataclass(frozen=True)
class Whole:
    """A command that nothing disturbs: how it ends, what it leaves, the records it touches.

    `largest` counts the bytes of its largest file, `pages` what it adds to the
    disk, `asked` its requests to the seat.
    """

    told: Told
    facts: Facts
    paths: tuple[str, ...]
    largest: int
    pages: int
    asked: int


@dataclass
class Outcome:
    """One trial: the fault in words, how the command ended, and whatever then did not hold."""

    fault: str
    ended: str = ""
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.fault}: {self.ended}" + "".join(f"\n    WRONG: {sentence}" for sentence in self.wrong)


class Trials:
    """Trials in a home against a seat; `traces`: whether strace may follow a process, `mounts`: whether to mount."""

    def __init__(self, home: Home, seat: FickleSeat, *, traces: bool, mounts: bool) -> None:
        self.home, self.seat, self.traces, self.mounts = home, seat, traces, mounts
        self._wholes: dict[str, Whole] = {}
        self._calls: dict[str, Counter[str]] = {}
        self._kinds: tuple[Callable[[Case, np.random.Generator], Outcome], ...] = (
            self._killed,
            self._call_killed,
            self._refused,
            self._call_refused,
            self._full,
            self._limited,
            self._read_only,
            self._clock_back,
            self._two,
            self._half_errors,
            self._restarted,
        )

    def meet(self, kind: str, chance: np.random.Generator, command: str | None = None) -> Outcome:
        """A fault of this kind in the way of a command, or of a random one."""
        met = [case for case in CASES if case.asks or kind not in ("half errors", "seat restarted")]
        met = [case for case in met if command in (None, case.name)]
        case = met[int(chance.integers(len(met)))]
        try:
            return self._kinds[KINDS.index(kind)](case, chance)
        finally:
            self.seat.mend()

    def killed_everywhere(self, case: Case) -> Iterator[Outcome]:
        """Killed at each step of the command in turn, at a write after half of it: so before and after every step."""
        for at in range(1, len(self.whole(case).told.steps) + 1):
            yield self._killed_at(case, at)

    def killed_at_every_call(self, case: Case) -> Iterator[Outcome]:
        """Killed by strace at each system call on the command's records in turn; nothing where it may not follow."""
        for call, number in self._every_call(case) if self.traces else ():
            yield self._killed_at_call(case, call, number)

    def whole(self, case: Case) -> Whole:
        """The command undisturbed, once."""
        if case.name not in self._wholes:
            self._wholes[case.name] = self._undisturbed(case)
        return self._wholes[case.name]

    def _undisturbed(self, case: Case) -> Whole:
        self.home.begin(case.state)
        before, self.seat.up = _pages(self.home.work), 0
        names, known = names_in(self.home.work), _records(self.home.work)
        told, wrong = self._given(case)
        assert told is not None
        assert not wrong, wrong
        left, asked = facts(self.home.work), -self.seat.up
        assert left, case
        found = self.home.verified()
        assert (found["breaks"], found["not_derived"]) == ([], []), (case, found)
        assert at_risk(told.steps, names, held_since(self.home.work, known)) == []
        paths = tuple(_record_paths(self.home.work))
        largest = max(path.stat().st_size for path in self.home.work.rglob("*") if path.is_file())
        return Whole(told, left, paths, largest, _pages(self.home.work) - before, asked)

    def _counted(self, case: Case, paths: tuple[str, ...]) -> Counter[str]:
        """How often each system call is made on the records, by the busiest thread."""
        self.home.begin(case.state)
        log = self.home.folder / "calls"
        order = replace(self.home.order(self.home.words(case.name)), paths=paths, log=str(log))
        self.home.give(order)
        seen = Counter(re.findall(r"^(\d+) +(\w+)\(", log.read_text("utf-8", "replace"), re.MULTILINE))
        calls: Counter[str] = Counter()
        for (_, call), count in seen.items():
            calls[call] = max(calls[call], count)
        return Counter({call: count for call, count in calls.items() if call in RECORD_CALLS})

    def _given(self, case: Case, trouble: Trouble | None = None, hour: int = 100) -> tuple[Told | None, list[str]]:
        order = self.home.order(self.home.words(case.name), trouble, hour)
        paths = self._wholes[case.name].paths if trouble is not None and trouble.call else ()
        (told,) = self.home.give(replace(order, paths=paths))
        return told, _manners(told)

    def _tried(self, case: Case, fault: str, trouble: Trouble) -> Outcome:
        told, wrong = self._given(case, trouble)
        return self._then(case, Outcome(f"{case.name}, {fault}", _ended(told), wrong), [told])

    def _then(self, case: Case, outcome: Outcome, first: list[Told | None]) -> Outcome:
        """The fault is gone; the command is given again, and everything must be as if there had been no fault."""
        whole = self.whole(case)
        for told in first:
            if told is not None and told.code != whole.told.code and "next:" not in told.said:
                outcome.wrong.append(f"ended with {told.code} and no next step: {told.said}")
        if not case.ends or case.ends not in {s.entry.kind for s in Ledger(self.home.work / "prereg").entries()}:
            again, wrong = self._given(case, hour=101)
            outcome.wrong += wrong
            if again is None or again.code != whole.told.code:
                outcome.wrong.append(f"given again it ended with {again}, undisturbed with {whole.told.code}")
        outcome.wrong += _different(whole.facts, facts(self.home.work))
        found = self.home.verified()
        if found["breaks"] or found["not_derived"]:
            outcome.wrong.append(f"gates verify: {found['breaks']} {found['not_derived']}")
        return outcome

    def _killed(self, case: Case, chance: np.random.Generator) -> Outcome:
        return self._killed_at(case, 1 + int(chance.integers(len(self.whole(case).told.steps))))

    def _killed_at(self, case: Case, at: int) -> Outcome:
        steps = self.whole(case).told.steps
        self.home.begin(case.state)
        return self._tried(case, f"killed at step {at} of {len(steps)} ({steps[at - 1]})", Trouble(step=at))

    def _refused(self, case: Case, chance: np.random.Generator) -> Outcome:
        steps = self.whole(case).told.steps
        at, why = 1 + int(chance.integers(len(steps))), int(chance.choice(REFUSALS))
        self.home.begin(case.state)
        fault = f"{os.strerror(why)} at step {at} of {len(steps)} ({steps[at - 1]})"
        return self._tried(case, fault, Trouble(step=at, error=why))

    def _every_call(self, case: Case) -> list[tuple[str, int]]:
        paths = self.whole(case).paths
        calls = self._calls.get(case.name) or self._calls.setdefault(case.name, self._counted(case, paths))
        return [(call, number) for call, count in sorted(calls.items()) for number in range(1, count + 1)]

    def _call(self, case: Case, chance: np.random.Generator) -> tuple[str, int]:
        every = self._every_call(case)
        return every[int(chance.integers(len(every)))]

    def _call_killed(self, case: Case, chance: np.random.Generator) -> Outcome:
        if not self.traces:
            return self._killed(case, chance)
        return self._killed_at_call(case, *self._call(case, chance))

    def _killed_at_call(self, case: Case, call: str, number: int) -> Outcome:
        self.home.begin(case.state)
        return self._tried(case, f"killed at {call} number {number}", Trouble(call=call, step=number))

    def _call_refused(self, case: Case, chance: np.random.Generator) -> Outcome:
        if not self.traces:
            return self._refused(case, chance)
        call, number = self._call(case, chance)
        why = int(chance.choice(REFUSALS))
        self.home.begin(case.state)
        fault = f"{os.strerror(why)} at {call} number {number}"
        return self._tried(case, fault, Trouble(call=call, step=number, error=why))

    def _full(self, case: Case, chance: np.random.Generator) -> Outcome:
        """A disk with too little room, or one that is full from some step on where nothing may be mounted."""
        if not self.mounts:
            steps = self.whole(case).told.steps
            at = 1 + int(chance.integers(len(steps)))
            self.home.begin(case.state)
            fault = f"no space from step {at} of {len(steps)} on"
            return self._tried(case, fault, Trouble(step=at, error=errno.ENOSPC, lasting=True))
        room = int(chance.integers(self.whole(case).pages + 1))
        with _small_disk(self.home.work):
            self.home.begin(case.state)
            _resize(self.home.work, _pages(self.home.work) + room)
            told, wrong = self._given(case)
            _resize(self.home.work, 100_000)
            outcome = Outcome(f"{case.name}, a disk with {room * PAGE_BYTES} bytes of room", _ended(told), wrong)
            return self._then(case, outcome, [told])

    def _limited(self, case: Case, chance: np.random.Generator) -> Outcome:
        limit = int(chance.integers(self.whole(case).largest + 1))
        self.home.begin(case.state)
        return self._tried(case, f"files of {limit} bytes at most", Trouble(limit=limit))

    def _read_only(self, case: Case, chance: np.random.Generator) -> Outcome:
        self.whole(case)
        self.home.begin(case.state)
        folders = sorted(path for path in (self.home.work, *self.home.work.rglob("*")) if _plain_folder(path))
        folder = folders[int(chance.integers(len(folders)))]
        name = folder.relative_to(self.home.work)
        with _shut(folder):
            told, wrong = self._given(case, Trouble(bare=True))
        return self._then(case, Outcome(f"{case.name}, {name} read-only", _ended(told), wrong), [told])

    def _clock_back(self, case: Case, chance: np.random.Generator) -> Outcome:
        self.whole(case)
        at = 1 + int(chance.integers(4))
        self.home.begin(case.state)
        return self._tried(case, f"the clock goes back a day at reading {at}", Trouble(back_at=at))

    def _two(self, case: Case, chance: np.random.Generator) -> Outcome:
        self.whole(case)
        self.home.begin(case.state)
        words = self.home.words(case.name)
        both = self.home.give(self.home.order(words), self.home.order(words))
        wrong = [sentence for told in both for sentence in _manners(told)]
        return self._then(case, Outcome(f"{case.name}, twice at once", "; ".join(map(_ended, both)), wrong), both)

    def _half_errors(self, case: Case, chance: np.random.Generator) -> Outcome:
        self.whole(case)
        self.home.begin(case.state)
        self.seat.chance, self.seat.share, self.seat.texts_alone = chance, 0.5, bool(chance.integers(2))
        which = "answers" if not self.seat.texts_alone else "texts"
        told, wrong = self._given(case)
        self.seat.mend()
        return self._then(case, Outcome(f"{case.name}, half of the {which} are errors", _ended(told), wrong), [told])

    def _restarted(self, case: Case, chance: np.random.Generator) -> Outcome:
        self.whole(case)
        self.home.begin(case.state)
        self.seat.up, self.seat.down = up, gone = (
            int(chance.integers(self.whole(case).asked)),
            int(chance.choice([1, 3, 10_000])),
        )
        told, wrong = self._given(case)
        self.seat.mend()
        fault = f"after {up} requests the seat is down for {gone}"
        return self._then(case, Outcome(f"{case.name}, {fault}", _ended(told), wrong), [told])


def _records(work: Path) -> int:
    """How many records the ledger holds; none where git has mixed two."""
    path = work / "prereg" / "ledger.jsonl"
    return len(path.read_bytes().splitlines()) if path.exists() else 0


def can_mount(folder: Path) -> bool:
    """Whether a small disk may be mounted."""
    try:
        with _small_disk(folder):
            return True
    except subprocess.CalledProcessError:
        return False


def _manners(told: Told | None) -> list[str]:
    """A command that ends by itself ends with a verdict's code or says what stopped it; never with a traceback."""
    if told is None:
        return []
    bad = told.code not in range(6) or "Traceback" in told.said or "internal error" in told.said
    return [f"ended with {told.code}: {told.said}"] if bad else []


def _ended(told: Told | None) -> str:
    if told is None:
        return "killed"
    lines = [line for line in told.said.splitlines() if line.startswith("gates: ")]
    said = re.sub(r"/\S*/work/?", "", lines[-1]) if lines else ""
    return f"ended with {told.code}" + (f", {said}" if said else "")


def _different(whole: Facts, found: Facts) -> list[str]:
    return [
        f"{key}: undisturbed {str(whole.get(key))[:2000]}, now {str(found.get(key))[:2000]}"
        for key in sorted({*whole, *found})
        if whole.get(key) != found.get(key)
    ]


def _record_paths(work: Path) -> Iterator[str]:
    """Files and folders of records, each file also as it is while it is being written."""
    for path in (work, *sorted(work.rglob("*"))):
        if ".git" not in path.parts:
            yield str(path)
            if path.is_file():
                yield str(path.with_name(f".{path.name}.PID.part"))


def _plain_folder(path: Path) -> bool:
    return path.is_dir() and ".git" not in path.parts


def _pages(folder: Path) -> int:
    """How many pages of memory a copy of a folder takes on a disk of its own, roughly."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sum(-(-path.stat().st_size // PAGE_BYTES) for path in files) + 1


@contextmanager
def _small_disk(at: Path) -> Iterator[None]:
    at.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", at], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", at], check=True)


def _resize(at: Path, pages: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={pages * PAGE_BYTES}", at], check=True)


@contextmanager
def _shut(folder: Path) -> Iterator[None]:
    """Nobody may write in a folder and below it."""
    every = [path for path in (folder, *folder.rglob("*")) if not path.is_symlink()]
    modes = {path: path.stat().st_mode for path in every}
    for path in every:
        path.chmod(modes[path] & ~0o222)
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
