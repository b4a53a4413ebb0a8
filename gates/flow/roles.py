"""Which text may stand in which role of a gate: the frame knows nothing of what is tested, and a split no twin."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path

from gates.corpora.manifest import TextFile
from gates.corpora.texts import resolve
from gates.errors import UsageError
from gates.spec.schema import Gate


def check_roles(workspace: Path, gate: Gate) -> None:
    """The frame may hold no text of the held-out author, of the train split, or of an imposter; nor a text twice.

    Authors are compared without regard to letter case and to how accents are composed, texts by their pinned hashes.
    """
    corpora = gate.corpora

    def files(*refs: str) -> list[TextFile]:
        return [file for ref in refs for file in resolve(workspace, ref)[1]]

    train, heldout, reference = files(corpora.train), files(corpora.heldout), files(*corpora.reference)
    imposters, protected = files(*corpora.imposters), files(*corpora.protected)
    tested = [*train, *heldout]
    for role, clash in (
        ("corpora.reference", _shared(reference, [*tested, *imposters], _author)),
        ("corpora.imposters", _shared(imposters, tested, _author)),
    ):
        if clash:
            raise UsageError(
                f"{role}: {', '.join(sorted({file.author for file in clash}))} may not stand there: an author under "
                "test or an imposter is no part of the frame, and the author under test is no imposter",
                next_step="name a manifest without that author",
            )
    books = _shared(heldout, train, lambda file: (_author(file), _folded(file.title)))
    if books:
        raise UsageError(
            f"corpora.train and corpora.heldout share a book: {', '.join(sorted({file.title for file in books}))}",
            next_step="split by book: a book stands on one side only",
        )
    for role, clash in (
        ("corpora.reference", _shared(reference, [*tested, *imposters], _bytes)),
        ("corpora.imposters", _shared(imposters, tested, _bytes)),
        ("corpora.protected", _shared(protected, tested, _bytes)),
        ("corpora.heldout", _shared(heldout, train, _bytes)),
    ):
        if clash:
            raise UsageError(
                f"{role}: the same text stands in another role: {', '.join(sorted({file.path for file in clash}))}",
                next_step="name each text in one role only, whatever author and title its manifest gives it",
            )
    twice = _twice(workspace, corpora.reference)
    if twice:
        raise UsageError(
            f"corpora.reference: the same text stands there twice: {', '.join(twice)}",
            next_step="name each text once: the frame would count it double",
        )


def _shared(files: list[TextFile], others: list[TextFile], key: Callable[[TextFile], object]) -> list[TextFile]:
    """The files whose key one of the others has too; a key of None is nobody's."""
    known = {key(other) for other in others} - {None}
    return [file for file in files if key(file) in known]


def _author(file: TextFile) -> str:
    return _folded(file.author)


def _bytes(file: TextFile) -> str | None:
    return file.pinned


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _twice(workspace: Path, refs: Iterable[str]) -> list[str]:
    """The paths that name a text a second time: the same file of a manifest, or the same bytes."""
    seen: set[str] = set()
    found = []
    for ref in refs:
        manifest, files = resolve(workspace, ref)
        for file in files:
            keys = {f"{manifest.name}/{file.path}", *([file.pinned] if file.pinned else [])}
            if keys & seen:
                found.append(file.path)
            seen |= keys
    return found
