"""mutmut with the strings left out that people read: a message in other words is no other behaviour."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mutmut.__main__ import cli
from mutmut.mutation import mutators

_every_string: Callable[[Any], Iterable[Any]] = mutators.operator_string


def _no_sentences(node: Any) -> Iterable[Any]:
    """Every mutant of a string that is one word (a key, a name, a mode); none of a sentence or a part of one."""
    return () if " " in getattr(node, "value", "") else _every_string(node)


mutators.mutation_operators[:] = [
    (kind, _no_sentences if operator is _every_string else operator) for kind, operator in mutators.mutation_operators
]

if __name__ == "__main__":
    cli()
