"""The floor rules that a gate names, loaded: built in, or from the distribution that plugs them in."""

from __future__ import annotations

from gates.errors import UsageError
from gates.flow.plugins import load_one, named_rules, origins
from gates.judge.floors import RULES, FloorRule, plugged
from gates.spec.floors import BUILT_IN_FLOORS
from gates.spec.plugins import FLOORS, plugged_in
from gates.spec.schema import Gate


def rules_of(gate: Gate) -> dict[str, FloorRule]:
    """Every rule built in, and those plugged in that the gate names, by name.

    Raises UsageError, naming every rule that is not installed, that several distributions offer, that cannot be loaded,
    that is not the FloorRule of its name, or that hides a built-in one; and a `times_floor` where it means nothing.
    """
    offered = plugged_in(FLOORS)
    found = dict(RULES)
    wrong: list[str] = []
    for name in named_rules(gate):
        entries = offered.get(name.split("@")[0], ())
        if name in BUILT_IN_FLOORS:
            wrong += [f"{name}: {origins(entries)} offers a floor rule that has the name of a built-in one"] * bool(
                entries
            )
            continue
        try:
            rule = load_one(entries, FloorRule, "floor rule")
        except UsageError as error:
            wrong.append(f"{name}: {error.message}")
            continue
        if rule.name != name:
            wrong.append(f"{name}: {origins(entries)} offers {rule.name!r}, another rule or version")
        found[name] = plugged(rule)
    if found.get(gate.voice.floor, RULES["pairwise-range@1"]).fixed_level and gate.voice.times_floor != 1.0:
        wrong.append(f"{gate.voice.floor}: it states its own error rate and takes no voice.times_floor")
    if wrong:
        raise UsageError(
            "\n".join(wrong),
            next_step=f"install or mend the distribution that offers it as {FLOORS!r}, or name another",
        )
    return found
