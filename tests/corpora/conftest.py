"""A small workspace with manifests over texts made on the spot."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml

BOOKS = {
    "grey_1.txt": b"All true histories contain instruction.\n",
    "grey_2.txt": b"The treasure may be hard to find.\n",
    "tenant_1.txt": b"You must go back with me to the autumn of 1827.\n",
}

WriteManifest = Callable[..., str]


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def entry(path: str, data: bytes, **changes: str) -> dict[str, str]:
    book, split = ("Tenant", "heldout") if path.startswith("tenant") else ("Agnes Grey", "train")
    return {"path": path, "sha256": sha(data), "author": "Anne Brontë", "title": book, "split": split} | changes


def manifest_document(texts: Mapping[str, bytes] = BOOKS, **changes: object) -> dict[str, object]:
    document: dict[str, object] = {
        "schema": "gates.corpus/1",
        "name": "tiny",
        "title": "A tiny corpus",
        "licence": "public domain",
        "provenance": "written for this test",
        "source": {"local": {"root": "texts/tiny"}},
        "files": [entry(path, data) for path, data in texts.items()],
    }
    return {key: value for key, value in (document | changes).items() if value is not None}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "workspace" / "corpora").mkdir(parents=True)
    return tmp_path / "workspace"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def write_manifest(workspace: Path) -> WriteManifest:
    def write(texts: Mapping[str, bytes] = BOOKS, *, file: str = "tiny", **changes: object) -> str:
        text = yaml.safe_dump(manifest_document(texts, **changes), allow_unicode=True, sort_keys=False)
        (workspace / "corpora" / f"{file}.yaml").write_text(text, "utf-8")
        return file

    return write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The texts as a user has them, outside the workspace."""
    for path, data in BOOKS.items():
        (tmp_path / "mine" / path).parent.mkdir(exist_ok=True)
        (tmp_path / "mine" / path).write_bytes(data)
    return tmp_path / "mine"
