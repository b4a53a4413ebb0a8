"""From a reference such as `bronte/train` to texts: manifest, cache, hash, decoding, cleaning, a look at the script."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from gates.corpora.cache import Cached, State, look_up
from gates.corpora.clean import GUTENBERG, strip_gutenberg
from gates.corpora.manifest import Manifest, TextFile
from gates.errors import CorpusError, InputError, Problem
from gates.records import sha256
from gates.spec.document import read_document
from gates.spec.fields import CorpusRef
from gates.text import letters_lost

_LINE_END = re.compile(r"\r+\n")

MOST_LETTERS_LOST = 0.05
"""Share of a text's letters that the tokeniser may lose before the text is refused."""


@dataclass(frozen=True)
class Document:
    """A text that is fit to measure.

    `name` is the path in its manifest, `corpus` the name of the manifest. Line ends in `text` are newlines. `sha256` is
    of the raw bytes, `text_sha256` of `text` in UTF-8; `cleaner` is the signature of what cleaned it, or `none`.
    """

    name: str
    corpus: str
    author: str
    title: str
    split: str
    text: str
    sha256: str
    text_sha256: str
    cleaner: str


_NEW = "; a new one is a file corpora/NAME.yaml: `gates init` writes two, `gates schema manifest` says its fields"


def manifest_path(workspace: Path, name: str) -> Path:
    """Where the manifest of that name stands."""
    return workspace / "corpora" / f"{name}.yaml"


def list_manifests(workspace: Path) -> tuple[str, ...]:
    """The names of the workspace's manifests, sorted; none when there is no folder `corpora`."""
    return tuple(sorted(path.stem for path in (workspace / "corpora").glob("*.yaml")))


def load_manifest(workspace: Path, name: str) -> Manifest:
    """Read `corpora/NAME.yaml`.

    Raises CorpusError when there is no such manifest, and InputError with all mistakes when it is not a valid one.
    """
    known = list_manifests(workspace)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean `{near[0]}`? " if near else ""
        raise CorpusError(
            f"no corpus manifest {manifest_path(workspace, name)}",
            next_step=f"{hint}manifests here: {', '.join(known) or 'none'}{'' if near else _NEW}",
        )
    path = manifest_path(workspace, name)
    manifest = read_document(path, Manifest)
    if manifest.name != name:
        lines = path.read_text("utf-8").split("\n")
        number = next((number for number, line in enumerate(lines, 1) if line.startswith("name:")), 1)
        problem = Problem(f"{path}:{number}", "name", manifest.name, f"must be the name of the file, {name!r}")
        raise InputError(f"{path}: not a valid manifest", (problem,), next_step="rename the file or correct `name`")
    return manifest


def resolve(workspace: Path, ref: str) -> tuple[Manifest, tuple[TextFile, ...]]:
    """The manifest that a reference MANIFEST or MANIFEST/SPLIT names, and its files of that split (all without one).

    Raises CorpusError for a malformed reference, an unknown manifest or split, InputError for a bad manifest.
    """
    try:
        TypeAdapter(CorpusRef).validate_python(ref)
    except ValidationError:
        raise CorpusError(f"{ref!r} is not a corpus reference", next_step="write MANIFEST or MANIFEST/SPLIT") from None
    name, _, split = ref.partition("/")
    manifest = load_manifest(workspace, name)
    files = tuple(file for file in manifest.files if split in {"", file.split})
    if not files:
        raise CorpusError(
            f"corpus {name} has no split {split!r}", next_step=f"its splits are: {', '.join(manifest.splits)}"
        )
    return manifest, files


def load_split(workspace: Path, cache: Path, ref: str) -> tuple[Document, ...]:
    """The texts of a reference MANIFEST or MANIFEST/SPLIT, in the manifest's order, each verified and cleaned.

    Raises CorpusError naming every text that is missing, has a wrong hash, is not in the manifest's encoding, loses
    more than 5 % of its letters in the tokeniser, or cannot be cleaned; and as `resolve` does.
    """
    manifest, files = resolve(workspace, ref)
    found = [look_up(cache, manifest, file) for file in files]
    bad = [cached.complaint for cached in found if cached.state is not State.PRESENT]
    if bad:
        raise _unusable(ref, bad, len(files), f"gates corpora fetch {manifest.name}{_handing_over(manifest)}")
    documents: list[Document] = []
    steps: list[str] = []
    for cached in found:
        try:
            documents.append(_document(manifest, cached))
        except CorpusError as error:
            bad.append(f"{cached.file.path}: {error.message}")
            steps.append(error.next_step)
    if bad:
        raise _unusable(ref, bad, len(files), steps[0])
    return tuple(documents)


def _unusable(ref: str, lines: list[str], total: int, next_step: str) -> CorpusError:
    title = f"corpus {ref}: {len(lines)} of {total} texts cannot be used"
    return CorpusError("\n  ".join([title, *lines]), next_step=next_step)


def _handing_over(manifest: Manifest) -> str:
    return " --from FOLDER_OR_ARCHIVE" if manifest.source.local is not None else ""


def _document(manifest: Manifest, cached: Cached) -> Document:
    data = cached.data or b""
    text = _LINE_END.sub("\n", _decode(data, manifest.encoding))
    if manifest.clean is not None:
        text = strip_gutenberg(text)
    lost = letters_lost(text)
    if lost > MOST_LETTERS_LOST:
        raise CorpusError(
            f"the tokeniser loses {lost:.1%} of the text's letters (at most {MOST_LETTERS_LOST:.0%}): "
            "a script written with combining marks, or without spaces between words",
            next_step="use texts in a script that the tokeniser reads: letters, with spaces between words",
        )
    if not re.search(r"[^\W\d_]", text):
        raise CorpusError("there is not one word in it", next_step="take the file out of the manifest, or replace it")
    file = cached.file
    return Document(
        name=file.path,
        corpus=manifest.name,
        author=file.author,
        title=file.title,
        split=file.split,
        text=text,
        sha256=sha256(data),
        text_sha256=sha256(text.encode()),
        cleaner=GUTENBERG if manifest.clean is not None else "none",
    )


def _decode(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CorpusError(
            f"not {encoding}: byte 0x{data[error.start]:02x} at offset {error.start}, line {line}",
            next_step="convert the file to UTF-8, or name its `encoding` in the manifest (cp1252, latin-1, cp437)",
        ) from None


def readable(workspace: Path, cache: Path, name: str) -> Iterator[tuple[TextFile, Document | CorpusError]]:
    """Each file of a manifest with its document, or with the reason why there is none."""
    manifest = load_manifest(workspace, name)
    for file in manifest.files:
        cached = look_up(cache, manifest, file)
        if cached.state is not State.PRESENT:
            yield file, CorpusError(cached.complaint)
            continue
        try:
            yield file, _document(manifest, cached)
        except CorpusError as error:
            yield file, error
