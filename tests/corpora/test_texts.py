from __future__ import annotations

from pathlib import Path

import pytest

from gates.corpora.cache import text_path
from gates.corpora.overview import list_corpora, show_corpus
from gates.corpora.pins import pin
from gates.corpora.sources import fetch
from gates.corpora.texts import list_manifests, load_manifest, load_split
from gates.errors import CorpusError, InputError
from tests.corpora.conftest import BOOKS, WriteManifest, entry, sha

REPOSITORY = Path(__file__).parents[2]


def fill(workspace: Path, cache: Path, texts: dict[str, bytes], name: str = "tiny") -> None:
    """Put texts where the cache keeps them, whatever their hash."""
    manifest = load_manifest(workspace, name)
    for file in manifest.files:
        if file.path in texts:
            path = text_path(cache, manifest, file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(texts[file.path])


def test_a_split_is_read_in_the_order_of_the_manifest(
    workspace: Path, cache: Path, folder: Path, write_manifest: WriteManifest
) -> None:
    fetch(load_manifest(workspace, write_manifest()), cache, workspace=workspace, source=folder)
    train = load_split(workspace, cache, "tiny/train")
    assert [document.name for document in train] == ["grey_1.txt", "grey_2.txt"]
    assert train[0].text == "All true histories contain instruction.\n"
    assert train[0].sha256 == train[0].text_sha256 == sha(BOOKS["grey_1.txt"])
    assert (train[0].corpus, train[0].author, train[0].title) == ("tiny", "Anne Brontë", "Agnes Grey")
    assert (train[0].split, train[0].cleaner) == ("train", "none")
    assert len(load_split(workspace, cache, "tiny")) == 3


def test_line_ends_are_read_alike(workspace: Path, cache: Path, write_manifest: WriteManifest) -> None:
    texts = {"grey_1.txt": b"one\r\ntwo\r\r\nthree\n"}
    write_manifest(texts)
    fill(workspace, cache, texts)
    (document,) = load_split(workspace, cache, "tiny")
    assert document.text == "one\ntwo\nthree\n"
    assert document.sha256 != document.text_sha256 == sha(b"one\ntwo\nthree\n")


def test_what_is_missing_or_wrong_is_named_all_at_once(
    workspace: Path, cache: Path, write_manifest: WriteManifest
) -> None:
    write_manifest()
    fill(workspace, cache, {"grey_1.txt": b"forged"})
    with pytest.raises(CorpusError) as caught:
        load_split(workspace, cache, "tiny")
    assert str(caught.value) == (
        "corpus tiny: 3 of 3 texts cannot be used\n"
        f"  grey_1.txt: wrong hash: expected sha256 {sha(BOOKS['grey_1.txt'])}, found {sha(b'forged')}\n"
        "  grey_2.txt: missing\n"
        "  tenant_1.txt: missing\n"
        "  next: gates corpora fetch tiny --from FOLDER_OR_ARCHIVE"
    )


def test_texts_that_cannot_be_read_are_named_with_the_place(
    workspace: Path, cache: Path, write_manifest: WriteManifest
) -> None:
    texts = {
        "grey_1.txt": b"first line\nsecond caf\xe9 line\n",
        "grey_2.txt": "人人生而自由在尊严和权利上一律平等".encode(),
        "tenant_1.txt": b"1827\n",
    }
    write_manifest(texts)
    fill(workspace, cache, texts)
    with pytest.raises(CorpusError) as caught:
        load_split(workspace, cache, "tiny")
    title, *lines = caught.value.message.split("\n  ")
    assert title == "corpus tiny: 3 of 3 texts cannot be used"
    assert lines[0] == "grey_1.txt: not utf-8: byte 0xe9 at offset 21, line 2"
    assert lines[1].startswith("grey_2.txt: the tokeniser loses 100.0% of the text's letters (at most 5%)")
    assert lines[2] == "tenant_1.txt: there is not one word in it"


def test_another_encoding_is_read_where_the_manifest_names_it(
    workspace: Path, cache: Path, write_manifest: WriteManifest
) -> None:
    texts = {"grey_1.txt": b"Zenobia\x92s caf\xe9\n"}
    write_manifest(texts, encoding="cp1252")
    fill(workspace, cache, texts)
    assert load_split(workspace, cache, "tiny")[0].text == "Zenobia’s café\n"


def test_the_cleaner_runs_where_the_manifest_asks(workspace: Path, cache: Path, write_manifest: WriteManifest) -> None:
    texts = {"grey_1.txt": b"Produced by A Volunteer\n\n\n" + BOOKS["grey_1.txt"] * 20}
    write_manifest(texts, clean="gutenberg")
    fill(workspace, cache, texts)
    (document,) = load_split(workspace, cache, "tiny")
    assert "Volunteer" not in document.text
    assert document.text.endswith("All true histories contain instruction.\n")
    assert document.cleaner == "gutenberg@1"


@pytest.mark.parametrize(
    ("ref", "message", "step"),
    [
        ("tini/train", "no corpus manifest", "did you mean `tiny`? manifests here: tiny"),
        (
            "austen/train",
            "no corpus manifest",
            "manifests here: tiny; a new one is a file corpora/NAME.yaml: `gates init` writes two, "
            "`gates schema manifest` says its fields",
        ),
        ("tiny/test", "corpus tiny has no split 'test'", "its splits are: train, heldout"),
        ("../tiny", "is not a corpus reference", "write MANIFEST or MANIFEST/SPLIT"),
        ("tiny/train/more", "is not a corpus reference", "write MANIFEST or MANIFEST/SPLIT"),
    ],
)
def test_references_that_lead_nowhere_say_what_there_is(
    workspace: Path, cache: Path, write_manifest: WriteManifest, ref: str, message: str, step: str
) -> None:
    write_manifest()
    with pytest.raises(CorpusError) as caught:
        load_split(workspace, cache, ref)
    assert message in caught.value.message
    assert caught.value.next_step == step


def test_a_manifest_is_named_as_its_file(workspace: Path, write_manifest: WriteManifest) -> None:
    write_manifest(file="other")
    with pytest.raises(InputError) as caught:
        load_manifest(workspace, "other")
    (problem,) = caught.value.problems
    assert problem.where.endswith("other.yaml:2")
    assert (problem.path, problem.value, problem.rule) == ("name", "tiny", "must be the name of the file, 'other'")


def test_all_mistakes_of_a_manifest_come_at_once(workspace: Path, write_manifest: WriteManifest) -> None:
    write_manifest(licence=None, clean="soap", files=[entry("../x", b"x", sha256="abc")])
    with pytest.raises(InputError) as caught:
        load_manifest(workspace, "tiny")
    text = str(caught.value)
    for place in ("licence", "clean", "path", "sha256"):
        assert place in text
    assert len(caught.value.problems) >= 4


def test_the_overview_counts_files_books_and_words(workspace: Path, cache: Path, write_manifest: WriteManifest) -> None:
    write_manifest()
    fill(workspace, cache, {"grey_1.txt": BOOKS["grey_1.txt"], "grey_2.txt": BOOKS["grey_2.txt"], "tenant_1.txt": b"x"})
    overview = show_corpus(workspace, cache, "tiny")
    train, heldout = overview.splits
    # Counted by hand: five words and seven.
    assert (train.files, train.books, train.authors, train.words) == (2, 1, 1, 12)
    assert (heldout.present, heldout.missing, heldout.wrong, heldout.words) == ((), (), ("tenant_1.txt",), None)
    assert (overview.source, overview.complete) == ("local", False)
    assert [split.words for split in list_corpora(workspace, cache)[0].splits] == [None, None]


def test_pinning_writes_the_hashes_and_nothing_else(
    workspace: Path, cache: Path, folder: Path, write_manifest: WriteManifest
) -> None:
    files = [entry(path, data, sha256="unpinned") for path, data in BOOKS.items()]
    files[1]["sha256"] = sha(BOOKS["grey_2.txt"])
    path = workspace / "corpora" / f"{write_manifest(files=files)}.yaml"
    before = "# a comment: unpinned\n" + path.read_text("utf-8").replace("written for", "unpinned for")
    path.write_text(before, "utf-8")
    with pytest.raises(CorpusError, match=r"2 texts cannot be pinned\n  grey_1\.txt: missing\n  tenant_1"):
        pin(workspace, cache, "tiny")
    fetch(load_manifest(workspace, "tiny"), cache, workspace=workspace, source=folder)
    assert pin(workspace, cache, "tiny") == ("grey_1.txt", "tenant_1.txt")
    after = before
    for name in ("grey_1.txt", "tenant_1.txt"):
        after = after.replace("sha256: unpinned", f"sha256: {sha(BOOKS[name])}", 1)
    assert path.read_text("utf-8") == after
    assert load_manifest(workspace, "tiny").unpinned == ()


@pytest.mark.parametrize("name", list_manifests(REPOSITORY))
def test_every_manifest_of_the_repository_is_valid(name: str) -> None:
    manifest = load_manifest(REPOSITORY, name)
    assert bool(manifest.unpinned) == name.startswith("house-")


def test_the_reference_frame_holds_no_author_under_test_and_no_imposter() -> None:
    def authors(name: str) -> set[str]:
        return {file.author for file in load_manifest(REPOSITORY, name).files}

    for frame, others in {
        "english-prose": ("bronte", "hawthorne", "irving"),
        "house-english": ("house-bronte", "house-hemingway", "house-yarros", "house-austen"),
    }.items():
        assert len(authors(frame)) >= 15
        for other in others:
            assert authors(frame).isdisjoint(authors(other))
