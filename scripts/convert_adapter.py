"""Turn a PEFT LoRA adapter of the carrier into llama.cpp's GGUF form: convert_adapter.py FOLDER OUT.gguf.

Needs the extra `embedded`. The same adapter gives the same bytes.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import click

from gates.errors import GatesError
from gates.seat.embedded.lora import write_gguf
from gates.seat.embedded.peft import read_adapter


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("target", type=click.Path(path_type=Path))
def main(source: Path, target: Path) -> None:
    """Convert the adapter at SOURCE (a PEFT folder or a GGUF file) to TARGET and print TARGET's SHA-256."""
    try:
        write_gguf(read_adapter(source), target)
    except GatesError as error:
        click.echo(str(error), err=True)
        sys.exit(error.exit_code)
    click.echo(f"{hashlib.sha256(target.read_bytes()).hexdigest()}  {target}")


if __name__ == "__main__":
    main()
