"""Texts that several tests of measures share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gates.corpora.cache import cache_dir
from gates.corpora.texts import Document, load_split


@pytest.fixture(scope="session")
def novels(root: Path) -> tuple[Document, ...]:
    """The 75 English novels of refcor, from the corpus cache."""
    return load_split(root, cache_dir(os.environ), "refcor-en")
