"""`gates judge`: verdicts from a table of per-seed values, for results of which only numbers are left."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from gates.cli.output import print_json, tell
from gates.cli.show import F, as_json, console
from gates.flow.values import read_values
from gates.judge.values import RANGES, RULE_NAMES, ValuesRule, judge_values
from gates.records import Outcome
from gates.report.terminal import verdict_table


def _number(_context: click.Context, _option: click.Parameter, value: float | None) -> float | None:
    """The option's number; click's ranges let not-a-number through."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("a number is needed")
    return value


def _option(name: str, low: float, high: float, meaning: str) -> Callable[[F], F]:
    """An option that takes a number within limits."""
    return click.option(name, type=click.FloatRange(low, high), callback=_number, help=meaning)


@click.command()
@click.argument("values", type=click.Path(path_type=Path))
@click.option("--rule", required=True, type=click.Choice(RULE_NAMES), help="The rule that judges.")
@click.option("--base", default="base", show_default=True, help="The arm that the others are compared with.")
@_option("--threshold", 0, 1000, "How many times the floor voice must exceed (1); of max-rate, max-ratio: the most.")
@_option("--floor", 0, 1000, "A recorded floor, instead of the table's own ranges.")
@_option("--alpha", 1e-4, 0.4, "The error rate of pairwise-calibrated@1 (0.025).")
@_option("--ceiling", 0, 2, "Distance of the author's own text: prints the span closed.")
@as_json
def judge(values: Path, json_wanted: bool, **options: Any) -> int:
    """Judge the arms of VALUES, a CSV table with the columns arm, seed, axis, value and, for rates, n.

    For the axis voice, value is the distance to the held-out text; for every other axis it is a rate. Floor rules
    ask of voice a move beyond the floor, of other axes a harm within it; max-rate@1 limits a rate, max-ratio@1 its
    ratio to the base's, both by exact limits.
    """
    found = judge_values(read_values(values, RANGES), ValuesRule(**options))
    if json_wanted:
        print_json(found.as_json())
    else:
        console().print(verdict_table(f"{values.name} under {options['rule']}", found))
        for name, candidate in found.candidates.items():
            for axis in candidate.axes.values():
                if axis.outcome is Outcome.PASS:
                    tell(f"{name}, {axis.axis}: {axis.reason} ({axis.rule})")
    return found.exit_code
