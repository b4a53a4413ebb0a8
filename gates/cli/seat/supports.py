"""`gates seat supports`: does vLLM declare LoRA for this architecture?"""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import click

from gates.cli.output import print_json, tell
from gates.cli.show import as_json
from gates.errors import ExitCode, UsageError
from gates.seat.operate.supports import Source, Support


@click.command()
@click.argument("model", metavar="ARCH|MODEL_DIR")
@click.option("--source", type=click.Path(path_type=Path), help="A vLLM source tree; the installed one without it.")
@as_json
def supports(model: str, source: Path | None, json_wanted: bool) -> int:
    """Say whether vLLM's class for an architecture declares LoRA support, and what else it declares about modules.

    ARCH is a name such as Qwen3ForCausalLM; MODEL_DIR a folder with config.json. Exit 1 where one has no LoRA support.
    """
    tree = Source(source or _installed())
    found = [tree.support(architecture) for architecture in _architectures(model)]
    if json_wanted:
        print_json([asdict(one) | {"supported": one.lora is not None} for one in found])
    else:
        for one in found:
            _print(one)
    return ExitCode.PASS if all(one.lora for one in found) else ExitCode.FAIL


def _installed() -> Path:
    spec = find_spec("vllm")
    if spec is None or not spec.submodule_search_locations:
        raise UsageError(
            "vllm is not installed here, and no --source is given",
            next_step="give the folder of an installed or cloned vllm with --source; `pip download --no-deps vllm` and "
            "`python -m zipfile -e` of the wheel make one without installing it",
        )
    return Path(next(iter(spec.submodule_search_locations)))


def _architectures(model: str) -> list[str]:
    path = Path(model)
    if not path.exists():
        if "/" in model:
            raise UsageError(
                f"{model}: there is no such folder, and an architecture's name has no slash",
                next_step="download the model's config.json and name it, or the architecture that it names",
            )
        return [model]
    config = path / "config.json" if path.is_dir() else path
    try:
        named = json.loads(config.read_bytes())["architectures"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        said = f"{config}: no architectures in it: {type(error).__name__}: {str(error)[:200]}"
        raise UsageError(said, next_step="name a Hugging Face model's folder, or the architecture itself") from None
    if not isinstance(named, list) or not named or not all(isinstance(name, str) for name in named):
        raise UsageError(
            f"{config}: architectures is {named!r}, not a list of names", next_step="name the architecture itself"
        )
    return named


def _print(found: Support) -> None:
    tell(f"{found.architecture}: {found.declared}")
    tell(f"  LoRA support: {f'yes, {found.lora}' if found.lora else 'not declared: vLLM refuses adapters for it'}")
    for name, place in found.attributes.items():
        tell(f"  {name}: {place}")
    tell(f"  MoE expert mapping: {found.experts or 'none declared'}")
    for sentence in found.unread:
        tell(f"  not read: {sentence}")
