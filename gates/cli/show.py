"""What commands share: their options, the console for tables, and how generation is shown while it goes on."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, TypeVar, cast

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from gates.cli.output import Uncommanding, manners, on_runner, say
from gates.record.chain import Head
from gates.seat.progress import Progress as Done

F = TypeVar("F", bound=Callable[..., Any])

PLAIN_EVERY_S = 15.0

as_json: Callable[[F], F] = click.option(
    "--json", "json_wanted", is_flag=True, help="Print one JSON document on stdout and nothing else there."
)
signing_key: Callable[[F], F] = click.option(
    "--key",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    envvar="GATES_SIGNING_KEY",
    show_envvar=True,
    help="Sign what is entered in the ledger with this SSH key: a private key, or a public one that your agent holds.",
)
earlier_run: Callable[[F], F] = click.option(
    "--earlier",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="RUN",
    help="Folder of the earlier run whose base seeds are split at random; by default the newest of this workspace that "
    "has the same base, seat, prompts, sampling and texts, and twice the seeds.",
)
gate_file: Callable[[F], F] = click.argument("gate", type=click.Path(path_type=Path))


def interactive() -> bool:
    """Whether there is a person at a terminal to ask; no, when standard input is closed."""
    return _terminal(sys.stdin)


def _terminal(stream: TextIO | None) -> bool:
    return stream is not None and not stream.closed and stream.isatty()


def console() -> Console:
    """A console on stdout; at least 110 columns where there is no terminal, so that tables keep their shape."""
    colours = True if manners.no_color else None
    plain = Console(no_color=colours)
    if plain.is_terminal:
        return plain
    stream = cast("TextIO", Uncommanding(sys.stdout)) if on_runner() else None
    return Console(file=stream, width=max(110, plain.width), no_color=colours)


def head_at_the_end(*places: Path) -> None:
    """Say on stderr, when the command ends, the new head of the ledger above each place, where it has entered anything.

    Whoever keeps that line elsewhere has an anchor: a ledger that was rebuilt since has another head.
    """
    before = _heads(places)

    def at_the_end() -> None:
        for path, data in _heads(places).items():
            if data != before.get(path):
                head = Head.parse(data, where=str(path))
                say(f"ledger head {' '.join(head.head)} ({head.records} record{'s' * (head.records != 1)})")

    click.get_current_context().call_on_close(at_the_end)


def _heads(places: Sequence[Path]) -> dict[Path, bytes]:
    """The head file of the nearest workspace at or above each place, where there is one."""
    found = {}
    for place in map(Path.resolve, places):
        above = (folder / "prereg" / "ledger.head" for folder in (place, *place.parents))
        if (path := next((path for path in above if path.is_file()), None)) is not None:
            found[path] = path.read_bytes()
    return found


@contextmanager
def progress() -> Iterator[Callable[[Done], None]]:
    """A callback that shows generation: a bar on a terminal, else a plain line every 15 seconds; on stderr.

    Nothing under --quiet."""
    if manners.quiet:
        yield lambda _done: None
        return
    started = time.monotonic()
    if not _terminal(sys.stderr):
        yield _plain_lines(started)
        return
    bar = Progress(
        TextColumn("generating"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]:.0f} tokens/s"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        # Plain text: an arm's name is no mark-up of the console's.
        TextColumn("{task.fields[arms]}", markup=False),
        console=Console(stderr=True, no_color=True if manners.no_color else None),
    )
    with bar:
        task = bar.add_task("generating", total=None, speed=0.0, arms="")

        def watch(done: Done) -> None:
            told = ", ".join(filter(None, (_arms(done), _trouble(done))))
            bar.update(task, completed=done.done, total=done.total, speed=_speed(done, started), arms=told)

        yield watch


def _plain_lines(started: float) -> Callable[[Done], None]:
    last = started

    def watch(done: Done) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < PLAIN_EVERY_S and done.done < done.total:
            return
        last = now
        left = (done.total - done.done) * (now - started) / done.done
        told = ", ".join(filter(None, (_trouble(done), _arms(done))))
        say(
            f"generated {done.done} of {done.total}, {_speed(done, started):.0f} tokens/s, about {left:.0f} s left"
            + (f", {told}" if told else "")
        )

    return watch


def _speed(done: Done, started: float) -> float:
    return done.completion_tokens / max(1e-9, time.monotonic() - started)


def _arms(done: Done) -> str:
    return ", ".join(f"{arm} {count}/{total}" for arm, (count, total) in done.arms.items())


def _trouble(done: Done) -> str:
    parts = [f"{done.retries} retries"] if done.retries else []
    parts += [f"{count} errors in {arm}" for arm, count in done.errors.items()]
    return ", ".join(parts)
