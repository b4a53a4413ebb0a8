"""`gates seat`: the operator's commands, each imported only when it is called."""

from __future__ import annotations

import click

from gates.cli.lazy import LazyGroup


@click.group(
    cls=LazyGroup,
    commands_at={
        "serve": "gates.cli.seat.serve:serve",
        "status": "gates.cli.seat.adapters:status",
        "load": "gates.cli.seat.adapters:load",
        "unload": "gates.cli.seat.adapters:unload",
        "compose": "gates.cli.seat.compose:compose",
        "alias": "gates.cli.seat.compose:alias",
        "audit": "gates.cli.seat.audit:audit",
        "bench": "gates.cli.seat.bench:bench",
        "fit": "gates.cli.seat.fit:fit",
        "supports": "gates.cli.seat.supports:supports",
    },
    short={
        "serve": "Serve the embedded seat: a small language model and adapters, for any OpenAI client.",
        "status": "Say what is served, listed in the compose file and on disk, and where these differ.",
        "load": "Load an adapter while the seat runs, checked before, timed, every refusal explained.",
        "unload": "Take an adapter off a running seat.",
        "compose": "Write the stack's compose file from seat.yaml, or lint an existing one.",
        "alias": "Write LiteLLM's entries, one a voice.",
        "audit": "Read LiteLLM's keys and aliases: what is dead, what would open, what leads nowhere.",
        "bench": "Measure what each adapter costs, against what the base against itself shows.",
        "fit": "Say what fits on a card: KV tokens, LoRA slots, the memory fraction vLLM will not refuse.",
        "supports": "Say what vLLM's source declares about LoRA for an architecture.",
    },
)
def seat() -> None:
    """Operate a seat: the server of a base and its voices.

    \b
    before it runs     supports, fit, compose
    while it runs      status, load, unload, bench
    the proxy's side   alias, audit
    no server at hand  serve

    docs/operate.md walks from an empty machine to a released voice. GATES_SEAT and GATES_SEAT_KEY_ENV name the seat and
    the variable with its key once for status, load, unload and bench.
    """
