"""Loading and unloading adapters while the seat runs, as vLLM's two routes do."""

from __future__ import annotations

import asyncio
from pathlib import Path

from gates.errors import GatesError, SeatError, UsageError
from gates.seat.embedded.peft import prepare
from gates.seat.embedded.protocol import ApiError, LoadRequest, UnloadRequest
from gates.seat.embedded.state import State

_WRONG = "InvalidUserInput"


def check_names(base_name: str, names: list[str]) -> None:
    """Raises UsageError when adapter names are empty, not plain, or shared with each other or the base."""
    for name in (base_name, *names):
        if not name or not name.isprintable() or len(name) > 256 or "," in name:
            raise UsageError(f"model name {name!r}: must be 1 to 256 printable characters without a comma")
    if base_name in names:
        raise UsageError(f"adapter {base_name!r} conflicts with the base model's name", next_step="rename one of them")


async def load(state: State, request: LoadRequest) -> str:
    """Load an adapter by name and path. Raises ApiError in vLLM's words."""
    name, path = request.lora_name, request.lora_path
    if not name or not path:
        raise ApiError(400, "Both 'lora_name' and 'lora_path' must be provided.", kind=_WRONG)
    if name == state.base_name:
        raise ApiError(400, f"The lora adapter '{name}' conflicts with a served base model.", kind=_WRONG)
    if name in state.roots and not request.load_inplace:
        raise ApiError(
            400,
            f"The lora adapter '{name}' has already been loaded. If you want to load the adapter in place, set"
            " 'load_inplace' to True.",
            kind=_WRONG,
        )
    try:
        check_names(state.base_name, [name])
    except UsageError as error:
        raise ApiError(400, error.message, kind=_WRONG) from None
    if "\0" in path or not Path(path).exists():
        raise ApiError(404, f"Loading lora {name} failed: No adapter found for {path}", kind="NotFoundError")
    try:
        file = await asyncio.to_thread(prepare, Path(path), state.cache)
        await state.engine.replace({**state.engine.adapters, name: file})
    except GatesError as error:
        message = f"Call to add_lora method failed: Worker failed with error '{error.message}'"
        raise ApiError(500, message, kind="InternalServerError") from None
    state.roots[name] = path
    return f"Success: LoRA adapter '{name}' added successfully."


async def unload(state: State, request: UnloadRequest) -> str:
    """Forget an adapter. Raises ApiError in vLLM's words."""
    name = request.lora_name
    if not name:
        raise ApiError(400, "'lora_name' needs to be provided to unload a LoRA adapter.", kind=_WRONG)
    if name not in state.roots:
        raise ApiError(404, f"The lora adapter '{name}' cannot be found.", kind="NotFoundError")
    del state.roots[name]
    try:
        await state.engine.replace({other: file for other, file in state.engine.adapters.items() if other != name})
    except SeatError as error:
        raise ApiError(500, error.message, kind="InternalServerError") from None
    return f"Success: LoRA adapter '{name}' removed successfully."
