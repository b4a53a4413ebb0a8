"""`gates corpora list`, `fetch`, `show`: the texts that gates rest on."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gates.cli.output import print_json, say, tell
from gates.cli.show import as_json
from gates.corpora.cache import cache_dir
from gates.corpora.overview import CorpusOverview, list_corpora, show_corpus
from gates.corpora.pins import pin
from gates.corpora.sources import fetch as fetch_corpus
from gates.corpora.texts import load_manifest
from gates.errors import ExitCode, UsageError
from gates.spec.workspace import find_workspace

workspace_option = click.option(
    "--workspace",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder that holds corpora/; by default the nearest one above the current folder.",
)


def workspace_of(given: Path | None) -> Path:
    """The workspace that is meant: the one given, or the nearest above the current folder."""
    return given if given is not None else find_workspace(Path.cwd() / "gate.yaml")


@click.group()
def corpora() -> None:
    """List, fetch and show the texts that gates rest on (manifests in corpora/, texts in the cache)."""


@corpora.command("list")
@workspace_option
@as_json
def list_command(workspace: Path | None, json_wanted: bool) -> int:
    """List every corpus manifest and how much of it the cache holds."""
    home = workspace_of(workspace)
    if not (home / "corpora").is_dir():
        raise UsageError(
            f"{home}: no workspace here or above: a workspace is a folder with manifests in corpora/NAME.yaml",
            next_step="change into a workspace, or name one with --workspace",
        )
    found = list_corpora(home, cache_dir(os.environ))
    if json_wanted:
        print_json([overview.as_json() for overview in found])
        return ExitCode.PASS
    for overview in found:
        present = sum(len(split.present) for split in overview.splits)
        total = sum(split.files for split in overview.splits)
        tell(f"{overview.name:20} {present:3} of {total:3} texts  {overview.title}")
    return ExitCode.PASS


@corpora.command()
@click.argument("names", nargs=-1, required=True)
@click.option(
    "--from", "source", type=click.Path(path_type=Path, exists=True), help="A folder or archive that holds the texts."
)
@click.option("--pin", "pin_wanted", is_flag=True, help="Write the hashes of unpinned texts into the manifest.")
@workspace_option
@as_json
def fetch(
    names: tuple[str, ...], source: Path | None, pin_wanted: bool, workspace: Path | None, json_wanted: bool
) -> int:
    """Bring the texts of the corpora NAMES into the cache, each checked against its hash.

    NAME is that of a manifest, corpora/NAME.yaml. --pin writes the hashes of texts that have none into it: do so once,
    when they are the right ones; no gate is sealed before.

    \b
    gates corpora fetch my-author my-reference --pin
    """
    home, cache = workspace_of(workspace), cache_dir(os.environ)
    reports = []
    for name in names:
        manifest = load_manifest(home, name)
        report = fetch_corpus(manifest, cache, workspace=home, source=source)
        pinned = pin(home, cache, name) if pin_wanted else ()
        if manifest.unpinned and not pin_wanted:
            say(f"note: {len(manifest.unpinned)} of them have no fixed hash yet: gates corpora fetch {name} --pin")
        reports.append({**report.as_json(), "pinned": list(pinned)})
        if not json_wanted:
            tell(f"{name}: {len(report.fetched)} texts fetched, {len(report.kept)} were there")
            for path in pinned:
                tell(f"  pinned {path}")
    if json_wanted:
        print_json(reports)
    return ExitCode.PASS


@corpora.command()
@click.argument("name")
@workspace_option
@as_json
def show(name: str, workspace: Path | None, json_wanted: bool) -> int:
    """Show one corpus: licence, provenance, splits with their words, what is missing."""
    overview = show_corpus(workspace_of(workspace), cache_dir(os.environ), name)
    if json_wanted:
        print_json(overview.as_json())
    else:
        _print(overview)
    return ExitCode.PASS


def _print(overview: CorpusOverview) -> None:
    tell(f"{overview.name}: {overview.title}\nlicence: {overview.licence}\n{overview.provenance}")
    for split in overview.splits:
        words = "words not counted" if split.words is None else f"{split.words:,} words"
        tell(
            f"  {split.name}: {split.files} texts of {split.books} books by {split.authors} authors, {words}, "
            f"{len(split.present)} in the cache"
        )
        for state, paths in (("missing", split.missing), ("wrong hash", split.wrong), ("unpinned", split.unpinned)):
            for path in paths:
                tell(f"    {state}: {path}")
