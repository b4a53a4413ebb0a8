"""`gates power`: what a gate can prove at its size, and at other sizes, before anything is generated."""

from __future__ import annotations

import os
from pathlib import Path

import click
from rich.table import Table

from gates.cli.output import print_json, tell
from gates.cli.show import as_json, console, earlier_run, gate_file
from gates.corpora.cache import cache_dir
from gates.errors import ExitCode
from gates.flow.planning import power as power_of
from gates.report.operating import noise_sentence, split_sentences
from gates.spec.operating import OperatingCharacteristics
from gates.spec.power import RatePower


@click.command()
@gate_file
@earlier_run
@as_json
def power(gate: Path, earlier: Path | None, json_wanted: bool) -> int:
    """Say what GATE can prove: its false-pass rate, the smallest move it catches, its margins and maximum rates.

    For the gate's own seeds and for 2 to 10, so that their number can be chosen: by simulation, and by random splits of
    the base seeds of an earlier run where there is one. Of the texts only the held-out one is read, if it is there.

    Example: gates power prereg/demo.yaml --earlier reports/panel/001
    """
    read, found = power_of(gate, cache_dir(os.environ), earlier)
    if json_wanted:
        print_json({"gate": read.name, "sha256": read.digest(), **found.as_json()})
        return ExitCode.PASS
    tell(
        f"gate {read.name}, {found.voice.k} seeds: how often {read.voice.floor} passes a candidate that moved nothing; "
        "the smallest move, in units of the seeds' sd, that passes with probability 0.8; what memorisation can prove"
    )
    console().print(_by_seeds(found))
    for sentence in (*split_sentences(found), noise_sentence(found)):
        tell(sentence)
    if found.unchanged:
        tell("P(pass | no change): how often a rule passes a candidate that does no harm, by number of seeds")
        console().print(_unchanged(found))
    for axis, zeros in found.zero_floors.items():
        rates = ", ".join(f"{row.chance:.1%} at a rate of {row.rate:g}" for row in zeros)
        tell(f"{axis}: its floor is 0 in {rates}")
    for warning in found.warnings:
        tell(f"note: {warning}")
    tell(found.signature)
    return ExitCode.PASS


def _by_seeds(found: OperatingCharacteristics) -> Table:
    """One row a number of seeds; the gate's own is marked."""
    table = Table(expand=False)
    for name in ("seeds", "false passes", "move caught (0.8)"):
        table.add_column(name, justify="right")
    rates = {row.k: rate for row, rate in zip(found.voice_by_seeds, found.memorisation_by_seeds, strict=False)}
    if rates:
        for name in ("texts", "hits that pass", "limit at 0 hits"):
            table.add_column(name, justify="right")
        if found.memorisation is not None:
            rates[found.voice.k] = found.memorisation
    for row in sorted({found.voice, *found.voice_by_seeds}, key=lambda row: row.k):
        own = "→ " if row.k == found.voice.k else ""
        passes = f"{row.false_pass:.2%} ± {row.false_pass_error:.2%}"
        table.add_row(f"{own}{row.k}", passes, f"{row.shift_80:.2f}", *_rate(rates.get(row.k)))
    return table


def _unchanged(found: OperatingCharacteristics) -> Table:
    """One row a rule and rate, one column a number of seeds; the gate's own is marked."""
    table = Table(expand=False)
    table.add_column("rule", overflow="fold")
    table.add_column("rate", justify="right")
    for row in next(iter(found.unchanged.values())):
        table.add_column(f"{'→ ' if row.k == found.voice.k else ''}{row.k}", justify="right")
    for name, rows in found.unchanged.items():
        for at, power in enumerate(rows[0].passes):
            shares = (f"{row.passes[at].passes:.0%}" for row in rows)
            table.add_row(name if at == 0 else "", f"{power.rate:g}", *shares)
    return table


def _rate(rate: RatePower | None) -> tuple[str, ...]:
    if rate is None:
        return ()
    return str(rate.n), "none" if rate.most_hits is None else str(rate.most_hits), f"{rate.upper_at_zero:.3f}"
