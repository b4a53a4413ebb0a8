"""`gates completion`: the script that lets a shell complete commands, options and files."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from gates.cli.output import print_json, tell
from gates.cli.show import as_json
from gates.errors import ExitCode


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
@as_json
def completion(context: click.Context, shell: str, json_wanted: bool) -> int:
    """Print the completion script of SHELL.

    \b
    gates completion bash >> ~/.bashrc
    gates completion zsh  >> ~/.zshrc
    gates completion fish > ~/.config/fish/completions/gates.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise AssertionError(f"click knows {shell}")
    made = kind(context.find_root().command, {}, "gates", "_GATES_COMPLETE")
    script = made.source_template % made.source_vars()
    if json_wanted:
        print_json({"shell": shell, "script": script})
    else:
        tell(script.strip("\n"))
    return ExitCode.PASS
