"""A group that imports a command's module only when that command is called, so that `gates --help` is quick."""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from gates.cli.examples import epilog_of

_SHORT = {
    "check": "Say everything about a gate that can be said before generation.",
    "power": "Say what a gate can prove at its size, and with 2 to 10 seeds.",
    "seal": "Pre-register a gate: bind everything it rests on and enter it in the ledger.",
    "amend": "Seal a changed gate anew, with the reason and every difference on record.",
    "show": "Show a seal for people to read: every field of the gate, defaults included.",
    "run": "Run a sealed gate: generate, measure, judge; continues an interrupted run.",
    "import": "Make texts that are older than this record a run; it says for ever that it was imported.",
    "rescore": "Judge a finished run again under another rule; both verdicts stand side by side.",
    "status": "Say how far a run is, from another terminal, or how it ended.",
    "list": "List every gate and run over time, and write the index page.",
    "report": "Write the page of a finished run: the answer, pictures, copied words, every text.",
    "table": "Write the measurements of a finished run as tidy CSV.",
    "card": "Write what a gate said of a candidate into its model card.",
    "ci": "Say a verdict where continuous integration shows it: JUnit, annotations, summary.",
    "compare": "Compare two arms of a finished run; the choice is a preference, never evidence.",
    "recheck": "Generate a sample of a judged run again: does the voice still answer alike?",
    "judge": "Judge a table of per-seed values, for results of which only numbers are left.",
    "schema": "Print the JSON schema of gate files or of a record.",
    "corpora": "List, fetch and show the texts that gates rest on.",
    "delta": "Write a matrix of stylistic distances between anybody's texts.",
    "overlap": "Find which texts repeat a source word for word, and where.",
    "seat": "Operate a seat: what fits, is served, costs and is routed; serve the embedded one.",
    "verify": "Derive a record again: ledger, seals, measurements, verdicts, reports.",
    "export": "Export a finished run: in-toto statements, or logs for Inspect.",
    "ledger": "List the ledger's records and its head; join the ledgers of two git branches.",
    "review": "Read what must be read of a finished run, and mark it.",
    "read": "Read base, candidate and author blind; votes stand beside the voice figure.",
    "signoff": "Sign one candidate of a finished run off: ship, hold, or waive.",
    "init": "Make a workspace: a commented gate, beats, a manifest and a workflow.",
    "completion": "Print the completion script of a shell.",
    "demo": "Run the demonstration gate on a real language model with two adapters.",
}


class LazyGroup(click.Group):
    """A click group whose commands are named as `module:attribute`."""

    def __init__(
        self, *args: Any, commands_at: dict[str, str], short: dict[str, str] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._at = commands_at
        self._short = short or _SHORT
        # Of the outermost group `name` is what its function is called.
        self._name = "gates" if short is None else f"gates {self.name}"

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        """The commands in the order a person meets them."""
        return list(self._at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the command."""
        if cmd_name not in self._at:
            return None
        module, attribute = self._at[cmd_name].split(":")
        command = getattr(import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{self._at[cmd_name]} is no command")
        _end_help(command, f"{self._name} {cmd_name}")
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands' names and this group's options, no command imported."""
        names = [name for name in self._at if name.startswith(incomplete)]
        return [
            *(CompletionItem(name, help=self._short[name]) for name in names),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._short[name]) for name in self._at])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, with a suggestion for a mistyped command."""
        near = difflib.get_close_matches(args[0], self._at, n=1)
        if args[0] not in self._at and near and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)


def _end_help(command: click.Command, path: str) -> None:
    """Put examples and exit codes at the end of a command's help, and of those of its own commands."""
    if isinstance(command, LazyGroup):
        return
    if isinstance(command, click.Group):
        for name, own in command.commands.items():
            _end_help(own, f"{path} {name}")
    command.epilog = command.epilog or epilog_of(path)
