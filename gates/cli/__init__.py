"""The command line: parse, call, print, exit; nothing is decided here."""

from __future__ import annotations

import io
import os
import sys
import traceback
from typing import NoReturn

import click

from gates import __version__
from gates.cli.examples import EXITS
from gates.cli.lazy import LazyGroup
from gates.cli.output import open_streams, print_json, say, set_manners
from gates.errors import DiskError, ExitCode, GatesError

INTERRUPTED = 130
INTERNAL = 70


@click.group(
    cls=LazyGroup,
    commands_at={
        "init": "gates.cli.init:init",
        "check": "gates.cli.gate:check",
        "power": "gates.cli.power:power",
        "seal": "gates.cli.sealed:seal",
        "amend": "gates.cli.sealed:amend",
        "show": "gates.cli.sealed:show",
        "run": "gates.cli.gate:run",
        "import": "gates.cli.importing:import_",
        "rescore": "gates.cli.rescore:rescore",
        "status": "gates.cli.status:status",
        "list": "gates.cli.listing:list_command",
        "report": "gates.cli.report:report",
        "table": "gates.cli.table:table",
        "ci": "gates.cli.ci:ci",
        "card": "gates.cli.card:card",
        "compare": "gates.cli.compare:compare",
        "recheck": "gates.cli.recheck:recheck",
        "judge": "gates.cli.judge:judge",
        "schema": "gates.cli.gate:schema",
        "corpora": "gates.cli.corpora:corpora",
        "delta": "gates.cli.delta:delta",
        "overlap": "gates.cli.overlap:overlap",
        "seat": "gates.cli.seat:seat",
        "verify": "gates.cli.verify:verify",
        "ledger": "gates.cli.ledger:ledger",
        "export": "gates.cli.export:export",
        "review": "gates.cli.review:review",
        "read": "gates.cli.read:read",
        "signoff": "gates.cli.signoff:signoff",
        "demo": "gates.cli.demo:demo",
        "completion": "gates.cli.completion:completion",
    },
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXITS,
)
@click.option("--quiet", is_flag=True, help="Say nothing on the side: no progress, no remarks. Errors are still said.")
@click.option("--no-color", is_flag=True, help="Print without colours, as where NO_COLOR is set.")
@click.version_option(__version__, prog_name="gates")
def cli(quiet: bool, no_color: bool) -> None:
    """Pre-registered gates that decide whether a voice adapter may ship.

    \b
    gates check prereg/lv-bronte.yaml    everything that can be said before generation
    gates seal  prereg/lv-bronte.yaml    pre-register it
    gates run   prereg/lv-bronte.yaml    generate, measure, judge
    gates report reports/lv-bronte/001   look at it

    `gates init` makes a workspace to begin with, `gates demo` shows everything on a small model.
    --quiet and --no-color may stand anywhere in the line.
    """
    set_manners(quiet=quiet, no_color=no_color)


def main() -> None:
    """The `gates` command. Errors of this package end in one message on stderr and the exit code they carry."""
    open_streams()
    try:
        status = cli.main(args=_anywhere_first(sys.argv[1:]), standalone_mode=False)
    except GatesError as error:
        _complain(str(error), error.exit_code)
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        say(shown.getvalue().rstrip("\n"), needed=True)
        _end(error.format_message(), ExitCode.USAGE)
    except (KeyboardInterrupt, click.Abort):
        _complain("interrupted; what was recorded stays: give the same command again", INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(ExitCode.USAGE)
    except OSError as error:
        failed = DiskError.of(error)
        _complain(str(failed), failed.exit_code)
    except Exception as error:  # noqa: BLE001 - the last boundary: whatever it is, it is no verdict
        # A mistake of ours must never read as a verdict: Python's own exit code for it would be FAIL's.
        if os.environ.get("GATES_TRACEBACK"):
            traceback.print_exc()
        kind = type(error).__name__
        _complain(
            f"internal error in gates {__version__}, not a verdict: {kind}: {error}\n"
            "  next: report it with the output of the same command under GATES_TRACEBACK=1",
            INTERNAL,
        )
    else:
        sys.exit(status if isinstance(status, int) else ExitCode.PASS)


def _anywhere_first(arguments: list[str]) -> list[str]:
    """The options of all commands before everything else, wherever they stand; after `--` nothing is one."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    ours = [word for word in arguments[:end] if word in ("--quiet", "--no-color")]
    return [*ours, *(word for word in arguments[:end] if word not in ours), *arguments[end:]]


def _complain(message: str, status: int) -> NoReturn:
    say(f"gates: {message}", needed=True)
    _end(message, status)


def _end(message: str, status: int) -> NoReturn:
    if "--json" in sys.argv[1:]:
        # Where stdout itself is what failed, stderr and the exit code have said it.
        try:
            print_json({"error": message, "exit_code": int(status)})
        except OSError:
            # What Python still holds of it would fail again at exit, with a code of its own.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)
