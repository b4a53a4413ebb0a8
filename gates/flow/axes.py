"""The damage axes that a gate names, loaded: built in, or from the distribution that plugs them in."""

from __future__ import annotations

from importlib.metadata import EntryPoint

from gates.errors import UsageError
from gates.flow.plugins import load_one, origins
from gates.measure.damage import AXES, Axis
from gates.spec.explain import did_you_mean
from gates.spec.plugins import AXES as GROUP
from gates.spec.plugins import plugged_in
from gates.spec.schema import Gate


def axes_of(gate: Gate) -> dict[str, Axis]:
    """The axes of a gate by name.

    Raises UsageError, naming every axis that is not installed, that several distributions offer, that cannot be
    loaded, or that is not the Axis of its name.
    """
    offered = plugged_in(GROUP)
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
        raise UsageError(f"{origins(entries)} offers an axis that has the name of a built-in one")
    return AXES[name]


def _plugged_in(name: str, entries: tuple[EntryPoint, ...], known: list[str]) -> Axis:
    axis = load_one(entries, Axis, "axis", did_you_mean(name, known))
    if not axis.signature.startswith(f"{name}@") or axis.worse not in ("higher", "lower"):
        raise UsageError(
            f"{origins(entries)} offers {axis.signature!r}, worse {axis.worse!r}; "
            f"the signature must begin with '{name}@VERSION', and worse be 'higher' or 'lower'"
        )
    return axis
