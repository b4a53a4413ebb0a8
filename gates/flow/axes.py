"""The damage axes that a gate names, loaded: built in, or from the distribution that plugs them in."""

from __future__ import annotations

from importlib.metadata import EntryPoint

from gates.errors import UsageError
from gates.measure.damage import AXES, Axis
from gates.spec.axes import GROUP, plugged_in
from gates.spec.explain import did_you_mean
from gates.spec.schema import Gate


def axes_of(gate: Gate) -> dict[str, Axis]:
    """The axes of a gate by name.

    Raises UsageError, naming every axis that is not installed, that several distributions offer, that cannot be
    loaded, or that is not the Axis of its name.
    """
    offered = plugged_in()
    found: dict[str, Axis] = {}
    wrong: list[str] = []
    for name in gate.damage.named():
        entries = offered.get(name, ())
        try:
            found[name] = _built_in(name, entries) if name in AXES else _plugged_in(name, entries, [*AXES, *offered])
        except UsageError as error:
            wrong.append(f"damage.{name}: {error.message}")
    if wrong:
        raise UsageError(
            "\n".join(wrong), next_step=f"install or mend the distribution that offers it as {GROUP!r}, or name another"
        )
    return found


def _built_in(name: str, entries: tuple[EntryPoint, ...]) -> Axis:
    if entries:
        raise UsageError(f"{_from(entries)} offers an axis that has the name of a built-in one")
    return AXES[name]


def _plugged_in(name: str, entries: tuple[EntryPoint, ...], known: list[str]) -> Axis:
    if not entries:
        hint = did_you_mean(name, known)
        raise UsageError(f"no such axis is installed{f' ({hint})' if hint else ''}")
    if len(entries) > 1:
        raise UsageError(f"several distributions offer it: {_from(entries)}")
    try:
        axis = entries[0].load()
    except Exception as error:  # noqa: BLE001 - importing foreign code may raise anything
        raise UsageError(f"{_from(entries)} cannot be loaded: {type(error).__name__}: {str(error)[:200]}") from None
    if not isinstance(axis, Axis):
        raise UsageError(f"{_from(entries)} offers a {type(axis).__name__}, not a gates.measure.damage.Axis")
    if not axis.signature.startswith(f"{name}@") or axis.worse not in ("higher", "lower"):
        raise UsageError(
            f"{_from(entries)} offers {axis.signature!r}, worse {axis.worse!r}; "
            f"the signature must begin with '{name}@VERSION', and worse be 'higher' or 'lower'"
        )
    return axis


def _from(entries: tuple[EntryPoint, ...]) -> str:
    return ", ".join(f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value for entry in entries)
