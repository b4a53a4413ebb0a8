"""The anchor outside the ledger's own files: what git last committed of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gates.record.git import shown
from gates.records import sha256

_ALONE = "the head file alone: it cannot catch somebody who rebuilt ledger and head together"


def committed_breaks(workspace: Path, ledger: Path, known: Sequence[str]) -> tuple[str, list[str]]:
    """Which anchor was used, and every committed record (by hash) that the ledger no longer holds.

    Git's last commit of the ledger is the anchor where there is one; it cannot catch a rewritten history.
    """
    committed = shown(workspace, "HEAD", ledger)
    if committed is None:
        return f"{_ALONE}; commit prereg/ for a stronger one", []
    held = set(known)
    lost = [name for line in committed.splitlines() if (name := sha256(line)) not in held]
    breaks = [f"{ledger}: record {name} is in the last commit and no longer in the ledger" for name in lost]
    return "the head file and git's last commit: they cannot catch a rewritten git history", breaks
