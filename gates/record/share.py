"""A record without the text: what a shared folder holds in place of generations, and what it leaves out.

FOLDER/share.json                                   which run it shares, and what of the workspace is not in it
FOLDER/prereg/                                      ledger, head, seals, signatures, as they are
FOLDER/reports/GATE/NUMBER/generations.shared.jsonl one line a generation: its hash, and its text without matched words
                           measurements.json, verdict.json, report.md, sessions.jsonl, signoffs/, as they are
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from gates.errors import RecordError, TamperedError
from gates.records import Record, Sha256, canonical, sha256

MANIFEST = "share.json"
TEXTS = "generations.shared.jsonl"

WITHHELD = ("generations.jsonl", "judgements.jsonl")
"""Files of a run that hold whole texts, what a judging model was asked included."""


class SharedText(Record):
    """One generation without the words it shares with a source (`gates.shared-text/1`).

    `text_sha256` is of the whole text; of the text as it stands here where `omitted`, the words left out, is 0.
    """

    schema_: Literal["gates.shared-text/1"] = Field(default="gates.shared-text/1", alias="schema")
    arm: str
    prompt: int = Field(ge=0)
    seed: int
    finish_reason: str | None
    error: str | None
    text: str
    text_sha256: Sha256
    omitted: int = Field(ge=0)


class Share(Record):
    """What a shared folder shares (`gates.share/1`): one run, and the hash of its texts; `withheld` are other runs."""

    schema_: Literal["gates.share/1"] = Field(default="gates.share/1", alias="schema")
    run: str
    texts_sha256: Sha256
    texts: int
    omitted: int
    withheld: tuple[str, ...]


def read_share(workspace: Path) -> Share | None:
    """What this folder says it shares; None for a workspace, which is whole."""
    path = workspace / MANIFEST
    if not path.is_file():
        return None
    data = path.read_bytes()
    try:
        found = Share.parse(data, where=str(path))
    except RecordError as error:
        raise TamperedError(error.message, next_step=error.next_step) from None
    if canonical(found.as_json()) != data:
        raise TamperedError(f"{path}: it is not the canonical JSON it was written as")
    return found


def read_texts(folder: Path, share: Share) -> Iterator[SharedText]:
    """The shared texts of a run's folder. Raises TamperedError for one that is not what its hashes say."""
    path = folder / TEXTS
    data = path.read_bytes() if path.is_file() else b""
    if sha256(data) != share.texts_sha256:
        raise TamperedError(f"{path}: it is not the file that {MANIFEST} names by hash")
    for number, line in enumerate(data.splitlines(), start=1):
        place = f"{path}:{number}"
        shared = SharedText.parse(line, where=place)
        if not shared.omitted and sha256(shared.text.encode()) != shared.text_sha256:
            raise TamperedError(f"{place}: a text from which nothing is left out, and it is not the one of its hash")
        yield shared
