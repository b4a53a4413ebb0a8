"""`gates seat serve`: the embedded seat on its own, for curl or any OpenAI client."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from gates.cli.output import print_json, say
from gates.cli.seat.connect import key_of
from gates.cli.show import as_json
from gates.corpora.cache import cache_dir
from gates.errors import ExitCode, UsageError
from gates.seat.embedded.serve import EmbeddedSeat, serve_forever


@click.command()
@click.option("--port", default=8027, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free port.")
@click.option("--base", default="voices-base", show_default=True, help="The name that the base is served under.")
@click.option("--adapter", "adapters", multiple=True, metavar="NAME=PATH", help="A GGUF file or a PEFT folder.")
@click.option("--api-key-env", metavar="NAME", help="The environment variable that holds the API key to ask for.")
@click.option("--allow-runtime-lora", is_flag=True, help="Let clients load and unload adapters.")
@as_json
def serve(port: int, base: str, adapters: tuple[str, ...], **options: Any) -> int:
    """Serve SmolLM2-135M-Instruct and adapters on 127.0.0.1 until Ctrl-C, with the vLLM contract."""
    api_key_env: str | None = options["api_key_env"]
    key = key_of(api_key_env)
    named = dict(_named(adapter) for adapter in adapters)
    if len(named) != len(adapters):
        raise UsageError("--adapter: two adapters have the same name", next_step="give each a name of its own")
    served = EmbeddedSeat(
        cache_dir(os.environ), base, named, port=port, api_key=key, runtime_lora=options["allow_runtime_lora"]
    )

    def announce(url: str) -> None:
        if options["json_wanted"]:
            print_json({"base_url": url, "models": [base, *named]})
            sys.stdout.flush()
        say(f"serving {base} and {len(named)} adapters at {url}; Ctrl-C stops it", needed=True)

    serve_forever(served, announce)
    return ExitCode.PASS


def _named(adapter: str) -> tuple[str, Path]:
    name, separator, path = adapter.partition("=")
    if not (name and separator and path):
        raise UsageError(f"--adapter {adapter!r}: write NAME=PATH", next_step="for example lv-x=adapters/lv-x.gguf")
    return name, Path(path)
