"""Every command that writes records, each from a workspace in which it has its work to do, and what it must come to."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from unittest import mock

from gates.record.ledger import Entry, Ledger, Stored
from tests.faults.child import Order, Told, Trouble, carry_out
from tests.flow.conftest import Ended, gates
from tests.flow.test_judging import JUDGED, LABELLED
from tests.kills import STARTED
from tests.record.test_signing import make_key
from tests.small import BEATS, prose, small_workspace

GATE = "prereg/small.yaml"
RUN = "reports/small/001"
HASH = re.compile(r"[0-9a-f]{64}|(?<=-)[0-9a-f]{12}(?=\.json)|(?<=signoffs/)[0-9a-f]{12}(?=\.json)")
TIME = re.compile(r"20\d\d-\d\d-\d\dT[0-9:.]+(\+00:00|Z)?")
SECONDS = re.compile(r'"(latency_s|started|at|cache_salt|median_s|seconds)":("[^"]*"|[0-9.e-]+)')


@dataclass(frozen=True)
class Case:
    """A command: its words, the state that it starts from, whether it asks the seat.

    `ends`: the kind of ledger record with which it is done, where giving it once more asks for something new.
    """

    name: str
    words: tuple[str, ...]
    state: str
    asks: bool = False
    ends: str = ""


CASES = (
    Case("seal", ("seal", GATE, "--yes", "--by", "ann"), "new", asks=True),
    Case("amend", ("amend", GATE, "--reason", "trained again", "--yes", "--by", "ann"), "changed", asks=True),
    Case("run", ("run", GATE), "sealed", asks=True),
    Case("judged run", ("run", GATE), "judged", asks=True),
    Case("import", ("import", "old.jsonl", "--gate", GATE, "--by", "ann"), "new"),
    Case("rescore", ("rescore", RUN, "--rule", "pairwise-calibrated@1", "--reason", "asked", "--by", "ann"), "ran"),
    Case("recheck", ("recheck", RUN, "--by", "ann"), "ran", asks=True, ends="rechecked"),
    Case("review", ("review", RUN, "--by", "ann", "--mark", "ITEM0", "ok", "--mark", "ITEM1", "bad"), "ran"),
    Case("read", ("read", RUN, "--blind", "--trials", "3", "--by", "ann"), "ran"),
    Case(
        "signoff",
        ("signoff", RUN, "--arm", "one", "--decision", "hold", "--reason", "made up", "--by", "ann"),
        "read",
    ),
    Case("merge", ("ledger", "merge", "--by", "ann"), "branched"),
    Case("export", ("export", RUN, "--format", "inspect", "--to", "logs"), "ran"),
    Case("share", ("report", RUN, "--share", "shared"), "read"),
)


class Home:
    """A folder with cache, key and a workspace in each state; `work` is where a command is tried."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.work = folder, folder / "work"
        self.key = make_key(folder)
        self._hours = 0
        self._seat = {"base_url": url, "concurrency": 2, "attempts": 12, "timeout_s": 5.0}
        self._write("new")
        (self._at("new") / "old.jsonl").write_text("".join(json.dumps(row) + "\n" for row in _old()), "utf-8")
        self._makers = {
            "sealed": lambda: self._make("sealed", "new", self.words("seal")),
            "judged": self._judge,
            "changed": self._change,
            "ran": lambda: self._make("ran", "sealed", self.words("run")),
            "read": self._read,
            "branched": self._branch,
        }

    @cached_property
    def items(self) -> list[str]:
        """The items of the run's reading list."""
        self._made("ran")
        listed = json.loads(self._gates("review", self._at("ran") / RUN, "--by", "ann", "--json").stdout)
        return [item["name"] for item in listed["items"]]

    def words(self, name: str) -> tuple[str, ...]:
        """The words of a command."""
        case = next(case for case in CASES if case.name == name)
        return tuple(self.items[int(word[4:])] if word.startswith("ITEM") else word for word in case.words)

    def begin(self, state: str) -> None:
        """Put a fresh copy of a state where commands work."""
        self._made(state)
        if self.work.exists():
            # What is mounted there stays.
            for inside in self.work.iterdir():
                shutil.rmtree(inside) if inside.is_dir() else inside.unlink()
        shutil.copytree(self._at(state), self.work, dirs_exist_ok=True)

    def order(self, words: tuple[str, ...], trouble: Trouble | None = None, hour: int = 100) -> Order:
        return Order(words, self.folder, hour, trouble or Trouble(), ())

    def give(self, *orders: Order) -> list[Told | None]:
        """Carry out orders, all at once; None for one that died."""
        started = []
        for order in orders:
            ours, theirs = STARTED.Pipe(duplex=False)
            process = STARTED.Process(target=carry_out, args=(order, theirs))
            process.start()
            theirs.close()
            started.append((process, ours))
        found: list[Told | None] = []
        for process, ours in started:
            try:
                found.append(ours.recv())
            except EOFError:
                found.append(None)
            process.join()
            ours.close()
        return found

    def verified(self) -> dict[str, object]:
        """What `gates verify` finds in the workspace."""
        found: dict[str, object] = json.loads(self._gates("verify", self.work, "--json").stdout)
        return found

    def _gates(self, *words: object) -> Ended:
        with mock.patch.dict(os.environ, {"GATES_CACHE": str(self.folder / "cache")}):
            return gates(*words)

    def _at(self, state: str) -> Path:
        return self.folder / "states" / state

    def _made(self, state: str) -> None:
        if not self._at(state).exists():
            self._makers[state]()

    def _write(self, state: str, **changes: object) -> Path:
        """A workspace of three prompts, not sealed; the folder of its gate."""
        folder = small_workspace(self._at(state), self.folder / "cache", seat=self._seat, **changes).parent
        (folder / "beats.txt").write_text("\n".join(BEATS[:3]), "utf-8")
        return folder

    def _judge(self) -> None:
        labelled = "\n".join(map(json.dumps, LABELLED))
        (self._write("asking", **JUDGED) / "labelled.jsonl").write_text(labelled, "utf-8")
        self._make("judged", "asking", self.words("seal"))

    def _change(self) -> None:
        self._make("changed", "sealed")
        (self._at("changed") / "prereg" / "one.gguf").write_bytes(b"trained again")

    def _read(self) -> None:
        every = [word for name in self.items for word in ("--mark", name, "ok")]
        self._make("read", "ran", ("review", RUN, "--by", "ann", *every))

    def _make(self, state: str, of: str, words: tuple[str, ...] = ()) -> None:
        self.begin(of)
        if words:
            self._hours += 1
            (told,) = self.give(self.order(words, hour=self._hours))
            assert told is not None
            assert told.code in (0, 1, 3, 4), told
            assert "internal error" not in told.said, told
        shutil.copytree(self.work, self._at(state))

    def _branch(self) -> None:
        """A repository in which two branches have each run the sealed gate."""
        self.begin("sealed")
        _git(self.work, "init", "-q", "-b", "ours")
        _commit(self.work)
        _git(self.work, "checkout", "-q", "-b", "theirs")
        for branch in ("theirs", "ours"):
            _git(self.work, "checkout", "-q", branch)
            self._hours += 1
            (told,) = self.give(self.order(self.words("run"), hour=self._hours))
            assert told is not None
            _commit(self.work)
        _git(self.work, "merge", "theirs", check=False)
        _git(self.work, "checkout", "-q", "--ours", "reports")
        shutil.copytree(self.work, self._at("branched"), symlinks=True)


def _git(work: Path, *words: str, check: bool = True) -> None:
    named = ["-c", "user.name=t", "-c", "user.email=t@t"]
    subprocess.run(["git", "-C", work, *named, *words], check=check, capture_output=True)


def _commit(work: Path) -> None:
    _git(work, "add", "-A")
    _git(work, "commit", "-qm", "as it is")


def _old() -> list[dict[str, object]]:
    return [
        {
            "arm": arm,
            "seed": seed,
            "prompt": number,
            "text": prose(100 * seed + number, 50, 0.02 * (arm == "base")),
            "finish_reason": "stop",
        }
        for arm in ("base", "one")
        for seed in (1, 2)
        for number in range(3)
    ]


Facts = dict[str, object]


def plain(text: str) -> str:
    """A record without what times alone decide: instants, seconds, and hashes over them."""
    return HASH.sub("#", TIME.sub("@", SECONDS.sub(r'"\1":0', text)))


def facts(work: Path) -> Facts:
    """What a workspace holds by its ledger: each record once, how those of a kind follow each other, what they say.

    Left out are sessions, for a run that was interrupted has looked at its seat more often, and of the ends of
    sittings all but the last, for one that was interrupted has ended before.
    """
    found: Facts = {}
    entries = [stored.entry for stored in Ledger(work / "prereg").entries() if stored.entry.kind != "session"]
    kinds: Counter[str] = Counter()
    for entry in entries:
        kinds[entry.kind] += entry.kind not in ("review", "votes") or not kinds[entry.kind]
        name = f"{entry.kind} {kinds[entry.kind]}"
        found[name] = [entry.gate, entry.body.get("run"), entry.body.get("lines"), entry.by]
        for path in _files_of(work, entry):
            told = _generations(path) if path.name == "generations.jsonl" else plain(path.read_text("utf-8"))
            found[f"{name}, {path.name if path.name in _NAMED else 'file'}"] = told
    for name in ("review.jsonl", "votes.jsonl", "judgements.jsonl"):
        for path in sorted(work.glob(f"reports/*/*/{name}")):
            told = [plain(line) for line in path.read_text("utf-8").splitlines()]
            # Answers stand in the order they came.
            found[f"{path.relative_to(work)}"] = sorted(told) if name == "judgements.jsonl" else told
    for folder in ("logs", "shared"):
        for path in sorted((work / folder).rglob("*")):
            if path.is_file() and not path.name.startswith("."):
                found[plain(f"{path.relative_to(work)}")] = path.read_bytes()
    return found


_NAMED = ("verdict.json", "generations.jsonl", "recheck.json")


def held_since(work: Path, known: int) -> list[list[str]]:
    """For each record of the ledger after the first `known`, the files whose bytes it holds, as paths in `work`."""
    return [_held(work, stored) for stored in Ledger(work / "prereg").entries()[known:]]


def _held(work: Path, stored: Stored) -> list[str]:
    entry, body = stored.entry, stored.entry.body
    run = f"reports/{entry.gate}/{body.get('run') or 0:03d}"
    signed = [f"prereg/signatures/{stored.sha256}.sig"] if "signing_key" in body else []
    below: list[str] = []
    match entry.kind:
        case "session":
            below = ["sessions.jsonl"]
        case "verdict":
            names = ("sessions.jsonl", "generations.jsonl", "measurements.json", "verdict.json", "report.md")
            below = [*names, *(["judgements.jsonl"] if "judgements_sha256" in body else [])]
        case "review" | "votes":
            below = [f"{entry.kind}.jsonl"]
        case "rescore":
            place = f"rescores/{_numbered(body['rescore'], body['rescore_sha256'])}"
            below = [f"{place}/{name}" for name in ("rescore.json", "verdict.json", "report.md")]
        case "recheck" | "rechecked":
            place = f"rechecks/{_numbered(body['recheck'], body['plan_sha256'])}"
            names = ("plan.json", "generations.jsonl", "recheck.json", "report.md")
            below = [f"{place}/{name}" for name in (names if entry.kind == "rechecked" else names[:1])]
    files = [path.relative_to(work).as_posix() for path in _files_of(work, entry)]
    return [*signed, *files, *(f"{run}/{name}" for name in below)]


def _files_of(work: Path, entry: Entry) -> list[Path]:
    """The files that a ledger record speaks of and that times alone do not change."""
    body = entry.body
    folder = work / "reports" / entry.gate / f"{body.get('run') or 0:03d}"
    match entry.kind:
        case "seal" | "import":
            return [work / "prereg" / str(body["file"])]
        case "verdict":
            return [folder / "verdict.json", folder / "generations.jsonl"]
        case "rescore":
            return [folder / "rescores" / _numbered(body["rescore"], body["rescore_sha256"]) / "verdict.json"]
        case "rechecked":
            return [folder / "rechecks" / _numbered(body["recheck"], body["plan_sha256"]) / "generations.jsonl"]
        case "signoff":
            return [folder / "signoffs" / f"{str(body['signoff_sha256'])[:12]}.json"]
    return []


def _numbered(number: object, sha256: object) -> str:
    return f"{number:03d}-{str(sha256)[:12]}"


def _generations(path: Path) -> list[str]:
    """Each text by what was asked: none lost, none twice."""
    lines = map(json.loads, path.read_text("utf-8").splitlines())
    return sorted(json.dumps([g["arm"], g["prompt"], g["seed"], g["text"], g["error"]]) for g in lines)
