"""`gates seat`: the operator's commands, each imported only when it is called."""

from __future__ import annotations

import click

from gates.cli.lazy import LazyGroup


@click.group(
    cls=LazyGroup,
    commands_at={
        "serve": "gates.cli.seat.serve:serve",
        "fit": "gates.cli.seat.fit:fit",
        "supports": "gates.cli.seat.supports:supports",
    },
    short={
        "serve": "Serve the embedded seat: a small language model and adapters, for any OpenAI client.",
        "fit": "Say what fits on a card: KV tokens, LoRA slots, the memory fraction vLLM will not refuse.",
        "supports": "Say what vLLM's source declares about LoRA for an architecture.",
    },
)
def seat() -> None:
    """Operate a seat."""
