"""What git holds of a workspace, read by the user's own git; nothing is ever written through it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

# A workspace that somebody else hands over brings its settings of git: none of them may run a command, fetch what is
# missing, or put another object in the place of one that was committed.
_HARMLESS = ("--no-replace-objects", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
_AT_HOME = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "", "GIT_OPTIONAL_LOCKS": "0"}


def commit_of(workspace: Path, revision: str) -> str | None:
    """The commit that a branch, tag or other name stands for; None where there is none, or no git repository."""
    found = _git(workspace, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    return None if found is None else found.decode("ascii").strip()


def shown(workspace: Path, commit: str, path: Path) -> bytes | None:
    """The bytes of a file of the workspace in a commit; None where it does not hold it."""
    return _git(workspace, "show", f"{commit}:./{_within(workspace, path)}")


def removed(workspace: Path, path: Path) -> list[bytes]:
    """The records' lines that a commit up to HEAD took out of a line file of the workspace, against any parent."""
    place = f"./{_within(workspace, path)}"
    commits = _git(workspace, "rev-list", "--full-history", "HEAD", "--", place) or b""
    # By what git itself compares, whatever the repository's settings and attributes say of differences.
    compared = ("-m", "--patch", "--unified=0", "--text", "--no-ext-diff", "--no-textconv", "--no-renames")
    found = _git(workspace, "diff-tree", "--stdin", *compared, "--", place, data=commits) or b""
    return [line[1:] for line in found.split(b"\n") if line.startswith(b"-{")]


def is_shallow(workspace: Path) -> bool:
    """Whether the repository holds the last part of its history alone."""
    return (_git(workspace, "rev-parse", "--is-shallow-repository") or b"").strip() == b"true"


def files_below(workspace: Path, commit: str, folder: Path) -> list[Path]:
    """The files that a commit holds in a folder of the workspace."""
    listed = _git(workspace, "ls-tree", "-r", "-z", "--name-only", commit, "--", f"./{_within(workspace, folder)}/")
    return [workspace / name.decode("utf-8", "surrogateescape") for name in (listed or b"").split(b"\0") if name]


def _within(workspace: Path, path: Path) -> str:
    return path.relative_to(workspace).as_posix()


def _git(workspace: Path, *words: str, data: bytes = b"") -> bytes | None:
    try:
        ended = subprocess.run(  # noqa: S603 - fixed words, no shell; paths and commits are ours
            ["git", *_HARMLESS, "-C", str(workspace), *words],  # noqa: S607 - the user's own git
            input=data,
            env={**os.environ, **_AT_HOME},
            capture_output=True,
            check=False,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.stdout if ended.returncode == 0 else None
