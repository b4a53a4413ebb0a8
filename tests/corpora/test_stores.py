"""Sources at web addresses and in object stores: the real clients against a store on loopback, read as local files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from gates.corpora.streams.plan import plan
from gates.corpora.streams.read import documents_of, text_of
from gates.errors import InputError, UsageError
from tests.corpora.stores import BUCKET, Store, serving
from tests.flow.conftest import gates
from tests.small import prose

TEXT = f"{prose(3, 30_000)}\n".replace(" ba ", "\n").encode()
LINES = b"".join(json.dumps({"text": prose(n, 50)}).encode() + b"\n" for n in range(40))
OBJECTS = {
    "train/": b"",
    "train/a.txt": TEXT,
    "train/deep/": b"",
    "train/deep/b.jsonl.gz": gzip.compress(LINES),
    "train/.hidden": b"no",
    "other/c.txt": b"nothing of it\n",
    "links/": b"<a href='a.txt'>text</a> <a href='.hidden'>no</a> <a href='/plain/other/c.txt'>elsewhere</a>\n",
    "links/a.txt": b"a line\n",
    "page.html": b"<a href='/plain/page.html/elsewhere'>a link</a> a line\n",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with serving(dict(OBJECTS)) as found, pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "AWS_ENDPOINT_URL": found.address,
            "AWS_ACCESS_KEY_ID": "made-up",
            "AWS_SECRET_ACCESS_KEY": "made-up-too",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_MAX_ATTEMPTS": "1",
            "STORAGE_EMULATOR_HOST": found.address,
            "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
        }.items():
            patch.setenv(name, value)
        patch.setitem(fsspec.config.conf, "gcs", {"token": "anon"})
        patch.setitem(fsspec.config.conf, "gs", {"token": "anon"})
        yield found


@pytest.fixture
def local(tmp_path: Path) -> Path:
    """The same files on the disk."""
    for key, data in ((key, data) for key, data in OBJECTS.items() if not key.endswith("/")):
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / key).write_bytes(data)
    return tmp_path


def words_of(source: str, part_bytes: int | None) -> list[bytes]:
    """Everything that a source holds: texts joined, documents one by one."""
    found: list[bytes] = []
    for part in plan([source], part_bytes):
        if part.kind == "text":
            found.append(b"".join(text_of(part)))
        else:
            found += [document.text or b"" for document in documents_of(part)]
    return found


def test_a_web_address_is_read_by_ranges_and_never_searched_for_links(store: Store) -> None:
    store.asked.clear()
    url = f"{store.address}/plain/train/a.txt"
    parts = plan([url], 50_000)
    assert len(parts) > 2
    assert {method for method, *_ in store.asked} == {"HEAD"}, "nothing is read to make a plan"
    assert b"".join(piece for part in parts for piece in text_of(part)) == TEXT
    assert all(wanted for method, _, wanted, _ in store.asked if method == "GET"), "ranges alone"
    assert [part.file for part in plan([f"{store.address}/plain/page.html"])] == [f"{store.address}/plain/page.html"]
    assert words_of(f"{store.address}/plain/train/deep/b.jsonl.gz", 9) == [
        json.loads(line)["text"].encode() for line in LINES.splitlines()
    ]


def test_a_web_address_that_ends_in_a_stroke_is_the_folder_of_its_links(store: Store) -> None:
    url = f"{store.address}/plain/links/"
    assert [(part.file, b"".join(text_of(part))) for part in plan([url])] == [(f"{url}a.txt", b"a line\n")]


def test_what_a_server_sends_only_whole_is_not_parted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "ranges", False)
    (part,) = plan([f"{store.address}/plain/train/a.txt"], 50_000)
    assert b"".join(text_of(part)) == TEXT


@pytest.mark.parametrize("misstated", [7, -7])
def test_another_size_than_was_promised_is_refused(
    store: Store, misstated: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "ranges", False)
    monkeypatch.setattr(store, "misstated", misstated)
    (part,) = plan([f"{store.address}/plain/train/a.txt"])
    with pytest.raises(InputError, match=r"a\.txt: file: cannot be read: [\d,]+ bytes were promised, [\d,]+ came"):
        list(text_of(part))


def test_the_address_that_a_store_leads_to_keeps_its_secret(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert words_of(f"{store.address}/moved/other/c.txt", None) == [OBJECTS["other/c.txt"]]
    (part,) = plan([f"{store.address}/moved/other/c.txt"])
    monkeypatch.setattr(store, "refuse", "GET")
    with pytest.raises(InputError, match=r"c\.txt: file: cannot be read: .*503.*plain/other/c\.txt\?\.\.\.") as refused:
        list(text_of(part))
    assert "hunter2" not in str(refused.value)


def test_overlap_with_a_web_address_is_that_with_the_file(store: Store, local: Path) -> None:
    texts = local / "texts.jsonl"
    texts.write_text(json.dumps({"text": " ".join(TEXT.decode().split()[500:530])}) + "\n", "utf-8")
    url, path = f"{store.address}/plain/train/a.txt", str(local / "train" / "a.txt")
    one, other = (gates("overlap", "--source", source, "--texts", texts, "--json") for source in (url, path))
    assert json.loads(one.stdout)["hits"] == 1
    assert one.stdout.replace(url, path) == other.stdout


def test_a_web_address_that_fails_is_named(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"plain/none\.txt: file: cannot be read"):
        plan([f"{store.address}/plain/none.txt"])
    (part,) = plan([f"{store.address}/plain/train/a.txt"])
    for refused in ("GET", "HEAD GET"):
        monkeypatch.setattr(store, "refuse", refused)
        with pytest.raises(InputError, match=r"a\.txt: file: cannot be read"):
            list(text_of(part))


def test_less_than_was_promised_is_no_shorter_source(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    (part,) = plan([f"{store.address}/plain/train/a.txt"])
    monkeypatch.setattr(store, "lost", 7)
    with pytest.raises(InputError, match=r"a\.txt: file: cannot be read"):
        list(text_of(part))


@pytest.mark.parametrize("now", [b"nothing of it\nand more\n", b"nothing of us\n"])
def test_what_is_another_than_when_the_work_was_planned_is_not_read(
    store: Store, now: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (part,) = plan([f"{store.address}/plain/other/c.txt"])
    monkeypatch.setitem(store.objects, "other/c.txt", now)
    with pytest.raises(InputError, match=r"c\.txt: file: .*changed while it was read"):
        list(text_of(part))


@pytest.mark.parametrize("cache", ["simplecache", "filecache", "blockcache"])
def test_no_cache_stands_between(store: Store, cache: str, tmp_path: Path) -> None:
    store.asked.clear()
    with pytest.raises(UsageError, match=f"{cache}::…: a cache between would leave copies"):
        plan([f"{cache}::{store.address}/plain/other/c.txt"])
    assert store.asked == []


@pytest.mark.parametrize(
    "url", ["zip://a.txt::http://ann:hunter2@127.0.0.1/x.zip", "zip://a::http://h/x.zip?key=hunter2"]
)
def test_no_link_of_a_chain_holds_a_secret(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        plan([url])
    assert "hunter2" not in str(refused.value)


@pytest.mark.clouds
@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_an_object_store_is_read_as_the_folder_it_holds(scheme: str, store: Store, local: Path) -> None:
    store.asked.clear()
    url = f"{scheme}://{BUCKET}/train"
    parts = plan([url], 50_000)
    assert {part.file.rpartition("/")[2] for part in parts} == {"a.txt", "b.jsonl.gz"}
    assert sum(part.kind == "text" for part in parts) > 2
    text = b"".join(piece for part in parts if part.kind == "text" for piece in text_of(part))
    assert text == TEXT
    read = [sent for method, key, _, sent in store.asked if method == "GET" and key == "train/a.txt"]
    assert len(read) > 2, "in ranges"
    assert words_of(f"{scheme}://{BUCKET}/train/deep/b.jsonl.gz", None) == words_of(str(local / "train" / "deep"), None)


@pytest.mark.clouds
@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_an_object_that_changes_once_the_work_is_planned_is_refused(
    scheme: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = plan([f"{scheme}://{BUCKET}/other"])  # a listing, which the client keeps
    monkeypatch.setitem(store.objects, "other/c.txt", OBJECTS["other/c.txt"] + b"and more\n")
    with pytest.raises(InputError, match=r"c\.txt: file: .*changed while it was read"):
        list(text_of(parts[0]))


@pytest.mark.clouds
@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_what_an_object_store_has_not_is_named(scheme: str, store: Store) -> None:
    with pytest.raises(InputError, match=rf"{scheme}://{BUCKET}/none\.txt: file: cannot be read"):
        plan([f"{scheme}://{BUCKET}/none.txt"])
