"""`gates seat compose` and `gates seat alias`: what stands in the stack's files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from gates.cli.output import print_json, say, tell
from gates.cli.seat.connect import asked, client_of
from gates.cli.show import as_json
from gates.errors import ExitCode, UsageError
from gates.record.files import write_once
from gates.seat.address import check_variable, host_of
from gates.seat.client import SeatClient
from gates.seat.operate.alias import alias_entry
from gates.seat.operate.compose import SeatFile, render
from gates.seat.operate.lint import lint
from gates.seat.operate.service import read_service
from gates.seat.operate.status import ask
from gates.spec.document import read_document

_FILE = click.Path(path_type=Path, dir_okay=False)
EXAMPLE = "`gates schema seat` says what stands in a seat.yaml; docs/operate.md shows one"


@click.command()
@click.argument("seat_file", required=False, type=_FILE)
@click.option("--out", type=_FILE, help="Where to write it; standard output without it. An existing file stays.")
@click.option("--lint", "existing", type=_FILE, help="Read this compose file instead, and say what will go wrong.")
@click.option("--service", metavar="NAME", help="The seat's service in it, where there are several.")
@click.option("--seat", "url", metavar="URL", help="With --lint: a running seat, for adapters that are only loaded.")
@click.option("--api-key-env", metavar="NAME", help="The environment variable that holds the seat's API key.")
@as_json
def compose(seat_file: Path | None, out: Path | None, existing: Path | None, json_wanted: bool, **more: str) -> int:
    """Write the compose file of SEAT_FILE (seat.yaml), or lint an existing one; nobody's file is edited.

    With --lint, exit 1 when there is any finding.
    """
    if (seat_file is None) == (existing is None):
        raise UsageError("name either a seat.yaml or --lint FILE", next_step=EXAMPLE)
    if existing is not None:
        return _lint(existing, json_wanted, **more)
    if seat_file is None or not seat_file.exists():
        raise UsageError(f"{seat_file}: there is no such file", next_step=EXAMPLE)
    text = render(read_document(seat_file, SeatFile))
    if out is not None:
        say(f"{'written' if _write(out, text.encode()) else 'as it was'}: {out}")
    if json_wanted:
        print_json({"compose": text, "written": None if out is None else str(out)})
    elif out is None:
        tell(text.rstrip("\n"))
    return ExitCode.PASS


def _write(out: Path, data: bytes) -> bool:
    """Write a file that is not there yet; whether it was not. Raises UsageError for one with other content."""
    if out.is_file():
        if out.read_bytes() == data:
            return False
        raise UsageError(
            f"{out} is there with other content, and nobody's file is edited",
            next_step=f"write another one (--out {out.stem}-2{out.suffix}), compare them and take what you want",
        )
    write_once(out, data)
    return True


def _lint(existing: Path, json_wanted: bool, *, service: str | None, url: str | None, api_key_env: str | None) -> int:
    found = read_service(existing, service)
    loaded = asked(_loaded(client_of(url, api_key_env))) if url else None
    findings = lint(found, loaded=loaded)
    if json_wanted:
        print_json({"service": found.name, "findings": [asdict(finding) for finding in findings]})
    else:
        tell("\n".join(map(str, findings)) if findings else f"{found.name}: nothing to complain of")
        if url is None:
            say("adapters that are only loaded were not looked for: --seat URL asks a running seat")
    return ExitCode.FAIL if findings else ExitCode.PASS


async def _loaded(client: SeatClient) -> dict[str, str]:
    async with client:
        return (await ask(client)).adapters


@click.command()
@click.argument("voices", nargs=-1, required=True, metavar="ALIAS=MODEL...")
@click.option("--seat", "url", required=True, metavar="URL", help="The seat's address as the proxy reaches it.")
@click.option("--api-key-env", metavar="NAME", help="The proxy's environment variable with the seat's key.")
@as_json
def alias(voices: tuple[str, ...], url: str, api_key_env: str | None, json_wanted: bool) -> int:
    """Write LiteLLM's model_list entry for each voice: ALIAS is what people ask for, MODEL the served name.

    The entries belong under `model_list:` in the proxy's config.yaml.
    """
    pairs = [voice.partition("=")[::2] for voice in voices]
    wrong = [voice for voice, (name, model) in zip(voices, pairs, strict=True) if not (name and model)]
    if wrong:
        raise UsageError(f"{wrong[0]!r}: write ALIAS=MODEL", next_step="for example bronte=lv-bronte-475")
    host_of(url, "--seat")
    if api_key_env is not None:
        check_variable(api_key_env, "--api-key-env")
    twice = sorted({name for name, _ in pairs if [each for each, _ in pairs].count(name) > 1})
    if twice:
        raise UsageError(
            f"{twice[0]!r} is given twice: LiteLLM would answer now with one voice, now with the other",
            next_step="give each voice an alias of its own",
        )
    text = "".join(alias_entry(name, model, url, api_key_env) for name, model in pairs)
    if json_wanted:
        print_json({"model_list": text})
    else:
        tell(text.rstrip("\n"))
    return ExitCode.PASS
