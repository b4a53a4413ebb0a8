"""What lies among the records of a workspace and no record holds: named, at most hashed, never counted as checked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from gates.record.body import said
from gates.record.ledger import Stored
from gates.record.recheck import store_of
from gates.record.rescore import folder_of
from gates.record.seal import SEALING
from gates.record.share import TEXTS
from gates.record.store import RunStore
from gates.records import sha256

_OF_RUN = ("sessions.jsonl", "generations.jsonl", "judgements.jsonl", "measurements.json", "verdict.json", "report.md")
_OF_RESCORE = ("rescore.json", "verdict.json", "measurements.json", "report.md")
_OF_RECHECK = ("plan.json", "generations.jsonl", "judgements.jsonl", "recheck.json", "report.md")
_LINES = {"review": "review.jsonl", "votes": "votes.jsonl"}
_MOST = 10


def unchecked(workspace: Path, records: Sequence[Stored]) -> list[str]:
    """Sentences on what is not checked: proofs that people attached, as of a time stamp (`prereg/seals/NAME.proof.*`,
    NAME being the seal's without .json); pages, which are made from the record; files that no record names; bytes after
    the last whole line of a file.

    Raises TamperedError for a ledger whose records do not say which files are theirs.
    """
    known = {path for record in records for path in _files(workspace, record)}
    here = [path for name in ("prereg/seals", "prereg/signatures", "reports") for path in _below(workspace / name)]
    pages = [path for path in here if path.suffix == ".html"]
    proofs = [path for path in here if ".proof." in path.name and path.parent.name == "seals"]
    strays = [path for path in here if path not in known and path not in pages and path not in proofs]
    found = [_proof(path, known) for path in proofs]
    if pages:
        found.append(
            f"{pages[0]}{f' and {len(pages) - 1} more pages' if len(pages) > 1 else ''}: made from the record and not "
            "checked; `gates report` makes a page anew"
        )
    found += [f"{path}: no record of this ledger names it, not checked" for path in strays[:_MOST]]
    if len(strays) > _MOST:
        found.append(f"{len(strays) - _MOST} more files that no record of this ledger names, not checked")
    lines = [workspace / "prereg/ledger.jsonl", *sorted(path for path in known if path.suffix == ".jsonl")]
    return found + [f"{path}: its last line is unfinished, and no record" for path in lines if _torn(path)]


def _below(folder: Path) -> Iterator[Path]:
    """Every file in a folder but hidden ones, as locks are; links are not followed."""
    for home, folders, names in os.walk(folder):
        folders.sort()
        yield from (Path(home, name) for name in sorted(names) if not name.startswith("."))


def _files(workspace: Path, record: Stored) -> Iterator[Path]:
    """The files whose bytes a record holds, as far as it has any."""
    kind, prereg = record.entry.kind, workspace / "prereg"
    yield prereg / "signatures" / f"{record.sha256}.sig"
    if kind in SEALING:
        yield prereg / said(record, "file", str)
    if kind in (*SEALING, "merge"):
        return
    store = RunStore(workspace / "reports", record.entry.gate, said(record, "run", int))
    if kind == "run":
        yield from (store.folder / name for name in (*_OF_RUN, "received.jsonl", TEXTS))
    elif kind in _LINES:
        yield store.folder / _LINES[kind]
    elif kind == "signoff":
        yield store.folder / "signoffs" / f"{said(record, 'signoff_sha256', str)[:12]}.json"
    elif kind == "rescore":
        yield from (folder_of(store, record) / name for name in _OF_RESCORE)
    elif kind == "recheck":
        yield from (store_of(store, record).folder / name for name in _OF_RECHECK)


def _proof(path: Path, known: set[Path]) -> str:
    of = path.name.split(".proof.")[0]
    which = f"a proof attached to seal {of}" if path.with_name(f"{of}.json") in known else "a proof attached to no seal"
    hashed = f"; SHA-256 {sha256(path.read_bytes())}" if path.is_file() else ": it is no file"
    return f"{path}: {which}{'' if 'to seal' in which else ' of this ledger'}, not checked{hashed}"


def _torn(path: Path) -> bool:
    if not path.is_file() or not path.stat().st_size:
        return False
    with path.open("rb") as handle:
        handle.seek(-1, os.SEEK_END)
        return handle.read(1) != b"\n"
