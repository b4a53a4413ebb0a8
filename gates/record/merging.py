"""Joining two branches of a ledger: a record with two parents, and not a byte of either branch's records changed.

Where both branches gave one number to runs of the same gate, the other branch's run is moved to the next free number:
the merge record says so, and its folder is copied there. Marks and votes that both branches have added to one run are
joined in the same way: by a line that follows the ends of both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from gates.errors import GatesError, RecordError, TamperedError, UsageError
from gates.record.body import said
from gates.record.chain import Entry, Moved, Source, Stored, heads, ordered, read, view
from gates.record.files import write_once
from gates.record.git import commit_of, files_below, shown
from gates.record.ledger import Ledger, Stamp
from gates.record.lines import Lines
from gates.record.review import Review
from gates.record.store import RunStore
from gates.record.votes import Votes
from gates.records import canonical

MERGING = "MERGE_HEAD"
"""What git calls the other branch while a merge is under way."""


@dataclass(frozen=True)
class Joined:
    """What a merge did: its record (None where nothing was to join), how many records came, which runs were moved.

    `lines` are the files of marks and votes to which both branches had added.
    """

    record: Stored | None
    came: int
    moved: tuple[Moved, ...]
    lines: tuple[Path, ...]


def merge(workspace: Path, branch: str | None, stamp: Stamp) -> Joined:
    """Join the ledger of another git branch, by default of the merge under way, into this workspace's ledger.

    Raises UsageError where there is no such branch or ledger, TamperedError where either ledger does not hold.
    """
    ledger = Ledger(workspace / "prereg")
    commit = commit_of(workspace, branch or MERGING)
    if commit is None:
        raise UsageError(
            f"{workspace}: git knows no commit {branch!r} here"
            if branch
            else f"{workspace}: no git merge is under way",
            next_step="name the other branch: `gates ledger merge BRANCH`",
        )
    theirs = read(_committed(workspace, ledger, commit))
    with ledger.writing():
        ours = _ours(workspace, ledger, theirs)
        if not ours:
            raise UsageError(f"{ledger.path} is empty: there is nothing to join", next_step="`git merge` takes theirs")
        held = {record.sha256 for record in ours}
        came = [record for record in theirs if record.sha256 not in held]
        moved = _collisions(ours, came)
        for one in moved:
            _copy_run(workspace, commit, one)
        joined = None
        if came and not set(heads(ours)) <= {record.sha256 for record in theirs}:
            listed: list[JsonValue] = [one.as_json() for one in moved]
            ends = tuple(sorted((*heads(ours), *heads(theirs))))
            body: dict[str, JsonValue] = {"moved": listed, "commit": commit}
            entry = Entry(previous=ends, kind="merge", at=stamp.at, by=stamp.by, gate="", body=body)
            joined = ledger.signed(entry, stamp)
        together = ordered([*ours, *came, *([joined] if joined else [])])
        _refuse_doubles(view(together), ledger)
        ledger.rewrite(ours, together)
    return Joined(joined, len(came), moved, tuple(_join_lines(workspace, commit, moved, stamp)))


def _join_lines(workspace: Path, commit: str, moved: Sequence[Moved], stamp: Stamp) -> Iterator[Path]:
    """Join what both branches have added to the marks and votes of one run, and enter it in the ledger."""
    ledger, taken = Ledger(workspace / "prereg"), {(one.gate, one.run) for one in moved}
    runs = [(one.entry.gate, said(one, "run", int)) for one in ledger.entries() if one.entry.kind == "run"]
    # What the other branch has of a moved run lies in the folder it was moved to.
    for gate, run in [one for one in runs if one not in taken]:
        folder = RunStore(workspace / "reports", gate, run).folder
        both: tuple[Lines[Any], ...] = (Review(folder), Votes(folder))
        for lines in both:
            theirs = shown(workspace, commit, lines.path)
            if theirs is None or not lines.path.is_file():
                continue
            if lines.join(partial(_our_lines, workspace, lines), theirs, stamp):
                yield lines.path
            lines.enter(ledger, gate, run, stamp)


def _our_lines(workspace: Path, lines: Lines[Any]) -> bytes:
    """This branch's bytes of the file: as they lie here, or as committed where git has mixed the two branches."""
    try:
        lines.read()
    except TamperedError:
        committed = shown(workspace, "HEAD", lines.path) if commit_of(workspace, MERGING) else None
        if committed is None:
            raise
        return committed
    return lines.path.read_bytes()


def _refuse_doubles(records: Sequence[Stored], ledger: Ledger) -> None:
    """Two branches that joined each other crosswise may each have moved the other's run to the same number.

    And both may have gone on with one unfinished run: it can end once.
    """
    if twice := _twice(records, "run"):
        raise RecordError(
            f"{ledger.path}: both branches have joined the other already, and {twice} is now two",
            next_step="drop the merge of one branch, and join the branches from the other one",
        )
    if twice := _twice(records, "verdict", "spoiled"):
        raise RecordError(
            f"{ledger.path}: both branches have ended {twice}, and a run ends once",
            next_step="drop what one branch entered of it: move that branch back to where the run had begun",
        )


def _twice(records: Sequence[Stored], *kinds: str) -> str:
    """A run of which there are two records of these kinds; empty where there is none."""
    found = Counter((one.entry.gate, said(one, "run", int)) for one in records if one.entry.kind in kinds)
    return next((f"run {run:03d} of {gate}" for (gate, run), count in found.items() if count > 1), "")


def _committed(workspace: Path, ledger: Ledger, commit: str) -> Source:
    lines, head = (shown(workspace, commit, path) for path in (ledger.path, ledger.head_path))
    if lines is None:
        raise UsageError(f"{ledger.path}: commit {commit[:12]} holds no such file", next_step="name another branch")
    return Source(lines, head or b"", f"{commit[:12]}:{ledger.path}", f"{commit[:12]}:{ledger.head_path}")


def _ours(workspace: Path, ledger: Ledger, theirs: Sequence[Stored]) -> tuple[Stored, ...]:
    """This branch's records: of the files as they lie here, or as committed where git has mixed the two branches."""
    try:
        return ledger.entries()
    except GatesError as error:
        if commit_of(workspace, MERGING) is None:
            raise
        ours = read(_committed(workspace, ledger, "HEAD"))
        lines = {record.line for record in (*ours, *theirs)}
        marks = (b"<<<<<<<", b"|||||||", b"=======", b">>>>>>>")
        for number, line in enumerate(ledger.path.read_bytes().splitlines(), start=1):
            if line not in lines and not line.startswith(marks):
                raise RecordError(
                    f"{ledger.path}:{number}: this record is in neither of the branches that git merges",
                    next_step="see what wrote it; `git checkout --ours` gives back this branch's ledger",
                ) from error
        return ours


def _collisions(ours: Sequence[Stored], came: Sequence[Stored]) -> tuple[Moved, ...]:
    """The runs that came under a number that is taken here, each with the next number that neither branch has given."""
    taken = {(record.entry.gate, said(record, "run", int)) for record in ours if record.entry.kind == "run"}
    runs = [(record.entry.gate, said(record, "run", int), record) for record in came if record.entry.kind == "run"]
    last = {gate: max(run for of, run in (*taken, *(r[:2] for r in runs)) if of == gate) for gate, _, _ in runs}
    moved: list[Moved] = []
    for gate, run, record in runs:
        if (gate, run) in taken:
            last[gate] += 1
            one = {"gate": gate, "run": run, "to": last[gate], "record": record.sha256}
            moved.append(Moved.parse(canonical(one), where=f"ledger record {record.sha256}"))
    return tuple(moved)


def _copy_run(workspace: Path, commit: str, moved: Moved) -> None:
    """Copy the other branch's folder of a moved run to its new place, where git holds that folder."""
    was, now = (RunStore(workspace / "reports", moved.gate, number).folder for number in (moved.run, moved.to))
    for path in files_below(workspace, commit, was):
        data = shown(workspace, commit, path)
        if data is not None and ".." not in path.parts:
            write_once(now / path.relative_to(was), data)
