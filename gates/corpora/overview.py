"""What there is, for people: every corpus with its splits, how much of it the cache holds, and how many words."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from gates.corpora.cache import State, look_up
from gates.corpora.manifest import Manifest, TextFile
from gates.corpora.texts import list_manifests, load_manifest, load_split
from gates.records import Record
from gates.text import words


class SplitOverview(Record):
    """One split: paths by what the cache holds of them; `words` (as `words@1` counts) is None where not counted."""

    name: str
    files: int = Field(ge=0)
    books: int = Field(ge=0)
    authors: int = Field(ge=0)
    present: tuple[str, ...]
    missing: tuple[str, ...]
    wrong: tuple[str, ...]
    unpinned: tuple[str, ...]
    words: int | None


class CorpusOverview(Record):
    """One corpus; `source` is package, local or https."""

    name: str
    title: str
    licence: str
    provenance: str
    source: str
    splits: tuple[SplitOverview, ...]

    @property
    def complete(self) -> bool:
        """Whether the cache holds every text, each as it is pinned."""
        return all(len(split.present) == split.files for split in self.splits)


def list_corpora(workspace: Path, cache: Path) -> tuple[CorpusOverview, ...]:
    """An overview of every manifest, without word counts. Raises InputError for the first bad manifest."""
    return tuple(show_corpus(workspace, cache, name, count=False) for name in list_manifests(workspace))


def show_corpus(workspace: Path, cache: Path, name: str, *, count: bool = True) -> CorpusOverview:
    """An overview of one corpus, with word counts of the splits that are complete.

    Raises as `load_manifest` does, and CorpusError for a text that is there and cannot be read as text.
    """
    manifest = load_manifest(workspace, name)
    return CorpusOverview(
        name=name,
        title=manifest.title,
        licence=manifest.licence,
        provenance=manifest.provenance,
        source=type(manifest.source.one).__name__.lower(),
        splits=tuple(_split(workspace, cache, manifest, split, count) for split in manifest.splits),
    )


def _split(workspace: Path, cache: Path, manifest: Manifest, name: str, count: bool) -> SplitOverview:
    files = [file for file in manifest.files if file.split == name]
    by_state: dict[State, list[TextFile]] = {state: [] for state in State}
    for file in files:
        by_state[look_up(cache, manifest, file).state].append(file)
    complete = len(by_state[State.PRESENT]) == len(files)
    return SplitOverview(
        name=name,
        files=len(files),
        books=len({(file.author, file.title) for file in files}),
        authors=len({file.author for file in files}),
        present=_paths(by_state[State.PRESENT]),
        missing=_paths(by_state[State.MISSING]),
        wrong=_paths(by_state[State.WRONG]),
        unpinned=_paths([file for file in files if file.pinned is None]),
        words=_words(workspace, cache, f"{manifest.name}/{name}") if count and complete else None,
    )


def _paths(files: list[TextFile]) -> tuple[str, ...]:
    return tuple(file.path for file in files)


def _words(workspace: Path, cache: Path, ref: str) -> int:
    return sum(len(words(document.text)) for document in load_split(workspace, cache, ref))
