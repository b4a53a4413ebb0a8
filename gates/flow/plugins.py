"""Loading what distributions plug in: one object by its name, or every reason why not."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import TypeVar

from gates.errors import UsageError
from gates.spec.axes import BUILT_IN
from gates.spec.floors import BUILT_IN_FLOORS
from gates.spec.plugins import AXES, FLOORS, origin, plugged_in
from gates.spec.schema import Gate

T = TypeVar("T")


def load_one(entries: tuple[EntryPoint, ...], kind: type[T], what: str, hint: str = "") -> T:
    """The object that a single entry offers.

    Raises UsageError where none or several offer it, where importing it fails, and where it is no `kind`.
    """
    if not entries:
        raise UsageError(f"no such {what} is installed{f' ({hint})' if hint else ''}")
    if len(entries) > 1:
        raise UsageError(f"several distributions offer it: {origins(entries)}")
    try:
        found = entries[0].load()
    except Exception as error:  # noqa: BLE001 - importing foreign code may raise anything
        raise UsageError(f"{origins(entries)} cannot be loaded: {type(error).__name__}: {str(error)[:200]}") from None
    if not isinstance(found, kind):
        wanted = f"{kind.__module__.removesuffix('.axis')}.{kind.__name__}"
        raise UsageError(f"{origins(entries)} offers a {type(found).__name__}, not a {wanted}")
    return found


def origins(entries: tuple[EntryPoint, ...]) -> str:
    """The distributions of entries, with their versions."""
    return ", ".join(map(origin, entries))


def plug_ins(gate: Gate) -> dict[str, str]:
    """Name and version of the distribution behind everything plugged in that a gate names, by `GROUP:NAME`."""
    axes = {f"{AXES}:{name}": plugged_in(AXES).get(name, ()) for name in gate.damage.named() if name not in BUILT_IN}
    rules = {rule for rule in named_rules(gate) if rule not in BUILT_IN_FLOORS}
    floors = {f"{FLOORS}:{rule}": plugged_in(FLOORS).get(rule.split("@")[0], ()) for rule in sorted(rules)}
    return {name: origins(entries) or "not installed" for name, entries in (axes | floors).items()}


def named_rules(gate: Gate) -> list[str]:
    """The floor rules that a gate names, each once."""
    return list(dict.fromkeys(axis.floor for axis in (gate.voice, *gate.damage.named().values())))
