"""What git holds of a workspace, read by the user's own git; nothing is ever written through it."""

from __future__ import annotations

import subprocess
from pathlib import Path


def commit_of(workspace: Path, revision: str) -> str | None:
    """The commit that a branch, tag or other name stands for; None where there is none, or no git repository."""
    found = _git(workspace, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    return None if found is None else found.decode("ascii").strip()


def shown(workspace: Path, commit: str, path: Path) -> bytes | None:
    """The bytes of a file of the workspace in a commit; None where it does not hold it."""
    return _git(workspace, "show", f"{commit}:./{_within(workspace, path)}")


def files_below(workspace: Path, commit: str, folder: Path) -> list[Path]:
    """The files that a commit holds in a folder of the workspace."""
    listed = _git(workspace, "ls-tree", "-r", "-z", "--name-only", commit, "--", f"./{_within(workspace, folder)}/")
    return [workspace / name.decode("utf-8", "surrogateescape") for name in (listed or b"").split(b"\0") if name]


def _within(workspace: Path, path: Path) -> str:
    return path.resolve().relative_to(workspace.resolve()).as_posix()


def _git(workspace: Path, *words: str) -> bytes | None:
    try:
        ended = subprocess.run(  # noqa: S603 - fixed words, no shell; paths and commits are ours
            ["git", "-C", str(workspace), *words],  # noqa: S607 - the user's own git
            capture_output=True,
            check=False,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.stdout if ended.returncode == 0 else None
