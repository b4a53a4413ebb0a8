"""Pinning: writing the hashes of the texts that the cache holds into a manifest, in place of `unpinned`."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import yaml

from gates.corpora.cache import State, look_up
from gates.corpora.manifest import UNPINNED
from gates.corpora.texts import load_manifest, manifest_path
from gates.errors import CorpusError


def pin(workspace: Path, cache: Path, name: str) -> tuple[str, ...]:
    """Replace each `sha256: unpinned` of a manifest by the hash of the cached text; return the paths pinned.

    Nothing else in the file changes, comments included. Raises CorpusError when an unpinned text is missing, naming
    all such texts; then nothing is written.
    """
    manifest = load_manifest(workspace, name)
    loose = [look_up(cache, manifest, file) for file in manifest.files if file.pinned is None]
    missing = [cached.complaint for cached in loose if cached.state is State.MISSING]
    if missing:
        raise CorpusError(
            "\n  ".join([f"corpus {name}: {len(missing)} texts cannot be pinned", *missing]),
            next_step=f"gates corpora fetch {name} --from FOLDER_OR_ARCHIVE",
        )
    path = manifest_path(workspace, name)
    text = path.read_bytes().decode("utf-8")
    hashes = [str(cached.sha256) for cached in loose]
    for (start, end), value in reversed(list(zip(_markers(text), hashes, strict=True))):
        text = text[:start] + value + text[end:]
    if hashes:
        path.write_bytes(text.encode())
    return tuple(cached.file.path for cached in loose)


def _markers(text: str) -> list[tuple[int, int]]:
    """Where the values `unpinned` of the files' hashes stand, in the order of the files."""
    document = cast("yaml.MappingNode", yaml.compose(text, Loader=yaml.SafeLoader))
    files = next(value for key, value in document.value if key.value == "files")
    return [
        (value.start_mark.index, value.end_mark.index)
        for file in files.value
        for key, value in file.value
        if key.value == "sha256" and value.value == UNPINNED
    ]
