"""A new workspace: a commented gate, its beats, two manifests, a workflow; nothing that is there is touched."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from gates.errors import UsageError
from gates.record.files import write_once

_STARTER = {
    "prereg/{name}.yaml": "gate.yaml",
    "prereg/{name}/beats.txt": "beats.txt",
    "corpora/my-author.yaml": "my-author.yaml",
    "corpora/my-reference.yaml": "my-reference.yaml",
    ".github/workflows/gates.yaml": "workflow.yaml",
    ".gitignore": "gitignore",
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def start(folder: Path, name: str) -> tuple[Path, ...]:
    """Write a workspace with a gate of that name into a folder; returns the files written.

    Raises UsageError for a name that no gate may have, and when any of the files is there already.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name for a gate",
            next_step="use letters, digits, dots, underscores and hyphens, at most 64",
        )
    made = {folder / place.format(name=name): _filled(part, name) for place, part in _STARTER.items()}
    there = [str(path) for path in made if path.exists()]
    if there:
        raise UsageError(
            f"there already: {', '.join(there)}", next_step="name an empty folder, or another gate with --name"
        )
    for path, text in made.items():
        write_once(path, text.encode())
    return tuple(made)


def _filled(part: str, name: str) -> str:
    text = files("gates.spec").joinpath("starter", part).read_text("utf-8")
    return text.replace("my-voice", name)
