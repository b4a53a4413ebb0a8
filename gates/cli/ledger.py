"""`gates ledger`: every record and the head, and `gates ledger merge`, which joins two git branches."""

from __future__ import annotations

from pathlib import Path

import click

from gates import flow
from gates.cli.corpora import workspace_of, workspace_option
from gates.cli.output import print_json, say, tell
from gates.cli.show import as_json, head_at_the_end, signing_key
from gates.errors import ExitCode
from gates.record.ledger import Ledger
from gates.record.merging import merge as join
from gates.report.wording import one_line


@click.group(invoke_without_command=True)
@workspace_option
@as_json
@click.pass_context
def ledger(context: click.Context, workspace: Path | None, json_wanted: bool) -> int:
    """List the ledger of a workspace, its chain checked, and its head: the one hash that holds all of it.

    \b
    gates ledger                  every record, and the head
    gates ledger merge BRANCH     join what another git branch has entered
    """
    if context.invoked_subcommand is not None:
        return ExitCode.PASS
    book = Ledger(workspace_of(workspace) / "prereg")
    records = book.entries()
    if json_wanted:
        print_json(
            {"head": list(book.heads()), "records": [{"sha256": r.sha256, **r.entry.as_json()} for r in records]}
        )
        return ExitCode.PASS
    for record in records:
        entry = record.entry
        run = entry.body.get("run")
        number = f" run {run:03d}" if isinstance(run, int) else ""
        signed = ", signed" if "signing_key" in entry.body else ""
        when, by = one_line(entry.at), one_line(entry.by)
        tell(f"{record.sha256[:12]}  {when}  {entry.kind:8}  {entry.gate}{number}  by {by}{signed}")
    tell(f"{len(records)} records, head {' '.join(book.heads()) or 'none'}")
    return ExitCode.PASS


@ledger.command()
@click.argument("branch", required=False)
@workspace_option
@click.option("--by", help="Who joins them; your user name by default.")
@signing_key
@as_json
def merge(branch: str | None, workspace: Path | None, by: str | None, key: Path | None, json_wanted: bool) -> int:
    """Join the ledger of the git branch BRANCH, by default of the merge under way, into this one.

    A record with two parents is added; no record of either branch is changed. Marks and votes that both branches have
    added to one run are joined alike. After a `git merge` that stops at prereg/ledger.jsonl, ledger.head, or the
    review.jsonl or votes.jsonl of a run:

    \b
    gates ledger merge
    git add prereg reports && git commit
    """
    home = workspace_of(workspace)
    head_at_the_end(home)
    joined = join(home, branch, flow.this_world(say, by=by, key=key).stamp())
    head = Ledger(home / "prereg").heads()
    if json_wanted:
        print_json(
            {
                "head": list(head),
                "records": joined.came,
                "joined": joined.record is not None,
                "moved": [one.as_json() for one in joined.moved],
                "lines": [str(path) for path in joined.lines],
            }
        )
        return ExitCode.PASS
    for path in joined.lines:
        tell(f"{path}: what both branches have added stands in it now")
    for one in joined.moved:
        tell(
            f"{one.gate} run {one.run:03d} of the other branch is now run {one.to:03d}; this branch keeps its own: "
            f"`git checkout --ours reports/{one.gate}/{one.run:03d}`"
        )
    tell(f"{joined.came} records came, {'joined' if joined.record else 'none had to be joined'}; head {' '.join(head)}")
    return ExitCode.PASS
