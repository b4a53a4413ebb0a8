"""Loading and unloading an adapter while the seat runs: checked before the call, timed, and every refusal explained.

What vLLM says, and under which status, was read from 0.32 and 0.33: serve/lora, openai/models/serving.py and
lora/peft_helper.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from gates.errors import SeatError
from gates.seat.client import SeatClient
from gates.seat.faults import FaultError, printable
from gates.seat.operate.peft import adapter_config, largest_rank, no_rank
from gates.seat.operate.status import bases_of

INITS = frozenset({"gaussian", "eva", "orthogonal", "mica", "lora_ga"})
"""Initialisations of LoRA weights that leave the base as it is."""

LOAD, UNLOAD = "/load_lora_adapter", "/unload_lora_adapter"


@dataclass(frozen=True)
class _Refusal:
    """What the server says (a pattern), why it says it, and what to do."""

    said: re.Pattern[str]
    cause: str
    remedy: str


def _refusal(said: str, cause: str, remedy: str) -> _Refusal:
    return _Refusal(re.compile(said, re.IGNORECASE | re.DOTALL), cause, remedy)


REFUSALS = (
    _refusal(
        r"already been loaded",
        "an adapter is loaded under this name, and its bytes may be others",
        "load it under a new name: an old name with new bytes can answer from the old one's cache",
    ),
    _refusal(
        r"No adapter found for",
        "the path is not there for the server; a relative path that it does not find it takes for a hub's repository",
        "give the absolute path as the server's container sees it, for example /adapters/NAME",
    ),
    _refusal(
        r"conflicts with a served base model",
        "the name is the base's own",
        "give the adapter a name that no base has",
    ),
    _refusal(
        r"LoRA rank \d+ is greater than max_lora_rank",
        "the adapter's rank is over the server's --max-lora-rank",
        "start the server with a higher --max-lora-rank (8, 16, 32, 64, 128, 256, 320 or 512)",
    ),
    _refusal(
        r"supports modules_to_save|Unsupported modules_to_save",
        "the adapter saves whole modules, which vLLM does not serve",
        "train it without modules_to_save, or merge it",
    ),
    _refusal(
        r"support DoRA",
        "the adapter is a DoRA, which vLLM does not serve",
        "train it with use_dora: false, or merge it",
    ),
    _refusal(
        r"bias is not supported|support LoRA bias",
        "the adapter trains biases, which vLLM does not serve",
        'train it with bias: "none"',
    ),
    _refusal(
        r"support init_lora_weights",
        "the adapter's initialisation changed the base's weights",
        "convert it to a plain LoRA first (PEFT: path_initial_model_for_weight_conversion)",
    ),
    _refusal(
        r"contain tensors|no tensors",
        "the server found no LoRA tensors in the adapter",
        "copy it anew; adapter_model.safetensors must hold lora_A and lora_B tensors",
    ),
    _refusal(
        r"expected target modules",
        "the adapter trains modules that the server's class of model does not take LoRA for",
        "train it on modules that vLLM serves, or merge it; `gates seat supports` says what the class declares",
    ),
    _refusal(
        r"LoRA is not enabled",
        "the server serves no adapters at all",
        "start it with --enable-lora (and --max-loras, --max-lora-rank)",
    ),
    _refusal(
        r"\b404\b.*detail.*Not Found",
        "the server takes no adapters while it runs",
        "start it with VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 in its environment (1 or true, nothing else), or list the "
        "adapter in --lora-modules and restart it",
    ),
    _refusal(r"adapter '.*' cannot be found", "no adapter of this name is loaded", "`gates seat status` lists them"),
    _refusal(
        r"must be provided|body\.lora_(name|path)",
        "name and path must both be given",
        "write `gates seat load NAME PATH`",
    ),
    _refusal(r"needs to be provided to unload", "no name was given", "write `gates seat unload NAME`"),
)
"""All that match explain a refusal: vLLM names several faults of one adapter together."""

_OTHERWISE = _refusal(
    r"add_lora method failed|loading lora .* failed|could not be loaded",
    "the server could not read the adapter",
    "read the server's log; check that adapter_model.safetensors holds lora_A and lora_B tensors",
)
_MESSAGE = re.compile(r'"message":\s*"((?:[^"\\]|\\.)*)"')


def explain(fault: FaultError) -> SeatError:
    """The fault again, with its cause and remedy where the server's words are known."""
    known = [refusal for refusal in REFUSALS if refusal.said.search(fault.message)]
    if not known and _OTHERWISE.said.search(fault.message):
        known = [_OTHERWISE]
    if not known:
        return fault
    quoted = _MESSAGE.search(fault.message)
    said = f"the server said: {quoted[1]}" if quoted else fault.message
    return SeatError(
        f"{'; '.join(refusal.cause for refusal in known)} ({said})",
        next_step="; ".join(refusal.remedy for refusal in known),
    )


@dataclass(frozen=True)
class Timed:
    """What the server said, and how long it took, in seconds."""

    said: str
    seconds: float


async def load(client: SeatClient, name: str, path: str, clock: Callable[[], float]) -> Timed:
    """Load an adapter under a name that is free. Raises SeatError with cause and remedy.

    What the seat serves is asked first: up to vLLM 0.30 an adapter of the base's name hides the base without a word.
    """
    if name in bases_of(await client.models()):
        raise SeatError(
            f"{name!r} is the base's own name: up to vLLM 0.30 the adapter would hide the base, later ones refuse",
            next_step="give the adapter a name that no base has",
        )
    done = await _timed(client, LOAD, {"lora_name": name, "lora_path": path}, clock)
    if name not in await _listed(client):
        raise SeatError(
            f"the server answered 200 ({done.said}) and does not list {name}: it is not loaded",
            next_step="see that this address is the server's own and no proxy's; its log says what it did",
        )
    return done


async def unload(client: SeatClient, name: str, clock: Callable[[], float]) -> Timed:
    """Take an adapter's name off the server; its weights stay in memory until others need the room."""
    done = await _timed(client, UNLOAD, {"lora_name": name}, clock)
    if name in await _listed(client):
        raise SeatError(
            f"the server answered 200 ({done.said}) and still lists {name}: it is not unloaded",
            next_step="see that this address is the server's own and no proxy's; its log says what it did",
        )
    return done


async def _listed(client: SeatClient) -> set[str]:
    return {str(card["id"]) for card in await client.models()}


async def _timed(client: SeatClient, path: str, body: dict[str, JsonValue], clock: Callable[[], float]) -> Timed:
    begun = clock()
    try:
        said = await client.manage(path, body)
    except FaultError as fault:
        raise explain(fault) from None
    return Timed(printable(said), clock() - begun)


def check_adapter(folder: Path, *, max_rank: int | None = None) -> list[str]:
    """What vLLM would refuse about a PEFT adapter, as sentences, before it is asked; empty when nothing is known.

    Raises UsageError when the folder holds no adapter_config.json that can be read.
    """
    path, config = folder / "adapter_config.json", adapter_config(folder)
    wrong = [*_wrong_rank(config, max_rank), *_wrong_kind(config)]
    if not any((folder / name).is_file() for name in ("adapter_model.safetensors", "adapter_model.bin")):
        wrong.append("there is no adapter_model.safetensors")
    return [printable(f"{path}: {sentence}") for sentence in wrong]


def _wrong_rank(config: Mapping[str, object], max_rank: int | None) -> Iterator[str]:
    rank = largest_rank(config)
    if rank is None:
        yield no_rank(config)
    elif max_rank is not None and rank > max_rank:
        yield f"rank {rank} is over --max-lora-rank {max_rank}: start the server with a higher one"


def _wrong_kind(config: Mapping[str, object]) -> Iterator[str]:
    """What makes an adapter less or more than a plain LoRA, as vLLM's peft_helper refuses it."""
    for needed in ("lora_alpha", "target_modules"):
        if config.get(needed) is None:
            yield f"{needed} is missing: vLLM does not serve an adapter without"
    if config.get("peft_type", "LORA") != "LORA":
        yield f"peft_type is {config.get('peft_type')!r}: vLLM serves LORA"
    if config.get("use_dora"):
        yield "use_dora is set: vLLM does not serve DoRA"
    saved = config.get("modules_to_save")
    if saved and not (isinstance(saved, list) and {*map(str, saved)} <= {"classifier", "score"}):
        yield f"modules_to_save is {saved!r}: vLLM does not serve whole modules"
    for unread in ("lora_bias", "alora_invocation_tokens", "layer_replication", "use_bdlora", "use_qalora"):
        if config.get(unread):
            yield f"{unread} is set: vLLM does not serve it"
    init = config.get("init_lora_weights", True)
    if isinstance(init, str) and init.lower() not in INITS:
        yield f"init_lora_weights is {init!r}: such an adapter changed the base's weights; convert it first"
    if config.get("bias", "none") != "none":
        yield f"bias is {config['bias']!r}: vLLM does not serve trained biases"
