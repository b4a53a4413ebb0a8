"""`gates seat supports`: does vLLM declare LoRA for this architecture?"""

from __future__ import annotations

from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import click

from gates.cli.output import print_json, tell
from gates.cli.show import as_json
from gates.errors import ExitCode, UsageError
from gates.seat.operate.supports import Source, Support
from gates.spec.foreign import read_object
from gates.spec.source import shown

LONGEST, MOST = 200, 100
"""The longest name that may be a path, and the most architectures of one model."""


@click.command()
@click.argument("model", metavar="ARCH|MODEL_DIR")
@click.option("--source", type=click.Path(path_type=Path), help="A vLLM source tree; the installed one without it.")
@as_json
def supports(model: str, source: Path | None, json_wanted: bool) -> int:
    """Say whether vLLM's class for an architecture declares LoRA support, and what else it declares about modules.

    ARCH is a name such as Qwen3ForCausalLM; MODEL_DIR a folder with config.json. Exit 1 where one has no LoRA support,
    3 where that is not known because a file of the source cannot be read.
    """
    tree = Source(source or _installed())
    found = [tree.support(architecture) for architecture in _architectures(model)]
    if json_wanted:
        print_json([asdict(one) | {"supported": one.supported} for one in found])
    else:
        for one in found:
            _print(one)
    known = {one.supported for one in found}
    return ExitCode.FAIL if False in known else ExitCode.INCONCLUSIVE if None in known else ExitCode.PASS


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
    if len(model) > LONGEST or not path.exists():
        if "/" in model:
            raise UsageError(
                f"{model[:LONGEST]}: there is no such folder, and an architecture's name has no slash",
                next_step="download the model's config.json and name it, or the architecture that it names",
            )
        return [model]
    config = path / "config.json" if path.is_dir() else path
    document = read_object(config, "name a Hugging Face model's folder, or the architecture itself")
    named = document.get("architectures")
    names = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
    if not (isinstance(named, list) and 0 < len(names) == len(named) <= MOST):
        raise UsageError(
            f"{config}: architectures is {shown(named)}, not a list of names", next_step="name the architecture itself"
        )
    return list(dict.fromkeys(names))


def _print(found: Support) -> None:
    tell(f"{found.architecture}: {found.declared}")
    refused = "not known: a file that may declare it cannot be read"
    if not found.unread:
        refused = "not declared: vLLM refuses adapters for it"
    tell(f"  LoRA support: {f'yes, {found.lora}' if found.lora else refused}")
    for name, place in found.attributes.items():
        tell(f"  {name}: {place}")
    tell(f"  MoE expert mapping: {found.experts or 'none declared'}")
    for sentence in found.unread:
        tell(f"  not read: {sentence}")
