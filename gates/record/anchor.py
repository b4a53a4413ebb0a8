"""The anchor outside the ledger's own files: what git has ever committed of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gates.record.git import is_shallow, removed, shown
from gates.records import sha256

_ALONE = "the head file alone: it cannot catch somebody who rebuilt ledger and head together"
_GIT = "the head file and every commit of the ledger up to git's last one: they cannot catch a rewritten git history"
_SHALLOW = "; this clone holds its last part alone (`git fetch --unshallow` brings the rest)"


def committed_breaks(workspace: Path, ledger: Path, known: Sequence[str]) -> tuple[str, list[str]]:
    """Which anchor was used, and every record (by hash) that a commit has held and the ledger holds no longer.

    Every commit counts that the checked out one rests on: whoever rebuilds a ledger can commit that, too. Git cannot
    catch a rewritten history.
    """
    last, before = shown(workspace, "HEAD", ledger), removed(workspace, ledger)
    if last is None and not before:
        return f"{_ALONE}; commit prereg/ for a stronger one", []
    held = set(known)
    lines = dict.fromkeys([*(last or b"").splitlines(), *before])
    lost = [name for line in lines if (name := sha256(line)) not in held]
    breaks = [f"{ledger}: record {name} was committed and is no longer in the ledger" for name in lost]
    return f"{_GIT}{_SHALLOW if is_shallow(workspace) else ''}", breaks
