"""report.md: the verdict first, then every figure with its signature, and what could not be decided.

Text from gates, models and seats is hostile here too: `gates.report.marks` makes it harmless in Markdown and HTML.
"""

from __future__ import annotations

from collections.abc import Sequence

from gates.judge.axes import AxisVerdict
from gates.judge.verdict import Verdict
from gates.measure.figures import Measurements
from gates.record.seal import SealOnDisk
from gates.records import canonical
from gates.report.figures import figures
from gates.report.marks import bullets, code, plain, table
from gates.report.wording import SYMBOLS, in_order, threshold_of, value_of
from gates.spec.operating import OperatingCharacteristics, own_rules


def markdown(
    sealed: SealOnDisk,
    number_of_run: int,
    measurements: Measurements,
    verdict: Verdict,
    *,
    deviations: Sequence[str] = (),
    seat: Sequence[str] = (),
) -> str:
    """The report of one run."""
    gate = sealed.seal.gate
    lines = [
        f"# {SYMBOLS[verdict.outcome]} {verdict.outcome.value}: {plain(gate.name)}, run {number_of_run:03d}",
        "",
        f"**Question:** {plain(gate.question)}",
        "",
        f"**Standing:** {standing(sealed)} This is attempt {number_of_run} of this gate.",
        "",
        *_verdict_table(verdict),
        *_reasons(verdict),
        *bullets("Not decided", verdict.undecided, "Everything was decided."),
        *bullets("Warnings", _warnings(verdict), "None."),
        *bullets("Deviations from the sealed context", deviations, "None."),
        *(bullets("The seat", seat, "") if seat else ()),
        *figures(measurements),
        *_controls(verdict),
        *_operating(sealed),
        *_record(sealed, measurements, verdict),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _verdict_table(verdict: Verdict) -> list[str]:
    rows: list[list[str]] = []
    for name, candidate in verdict.candidates.items():
        outcome = f"{SYMBOLS[candidate.outcome]} {candidate.outcome.value}"
        rows.append([f"**{plain(name)}**", "", f"**{outcome}**", "", "", ""])
        rows.extend(["", *_axis_cells(axis)] for axis in in_order(candidate.axes))
    return table(["candidate", "axis", "verdict", "figure", "against", "rule"], rows)


def _axis_cells(axis: AxisVerdict) -> list[str]:
    return [
        plain(axis.axis),
        f"{SYMBOLS[axis.outcome]} {axis.outcome.value}",
        value_of(axis),
        threshold_of(axis),
        code(axis.rule) if axis.rule else "–",
    ]


def _reasons(verdict: Verdict) -> list[str]:
    candidates = verdict.candidates.items()
    sentences = [f"{name}, {axis.axis}: {axis.reason}" for name, c in candidates for axis in in_order(c.axes)]
    return bullets("Why", sentences, "")


def standing(sealed: SealOnDisk) -> str:
    """Whether the rule was fixed before anything was seen, in one sentence."""
    if not sealed.seal.runs_before:
        return "prospective: sealed before any generation of this gate."
    return f"post-hoc: sealed after {sealed.seal.runs_before} earlier run(s) of this gate had begun."


def _warnings(verdict: Verdict) -> list[str]:
    return [
        *verdict.warnings,
        *(
            f"{name}, {axis.axis}: {warning}"
            for name, candidate in verdict.candidates.items()
            for axis in in_order(candidate.axes)
            for warning in axis.warnings
        ),
    ]


def _controls(verdict: Verdict) -> list[str]:
    if not verdict.controls:
        return []
    rows = [
        [plain(name), *_axis_cells(axis)]
        for name, control in verdict.controls.items()
        for axis in in_order(control.axes)
    ]
    head = ["control", "axis", "would be", "figure", "against", "rule"]
    return ["### Controls (measured, not judged)", "", *table(head, rows)]


def _operating(sealed: SealOnDisk) -> list[str]:
    operating = OperatingCharacteristics.parse(canonical(sealed.seal.operating), where=str(sealed.path))
    rows = [
        [
            f"{power.k} (this gate)" if power.k == operating.voice.k else str(power.k),
            f"{power.false_pass:.2%}",
            f"{power.shift_80:.2f}",
        ]
        for power in sorted({operating.voice, *operating.voice_by_seeds}, key=lambda power: power.k)
    ]
    sentences = [f"- {plain(warning)}" for warning in operating.warnings]
    if operating.memorisation is not None:
        rate = operating.memorisation
        sentences.insert(
            0,
            f"- memorisation: 0 hits of {rate.n} leave an upper limit of {rate.upper_at_zero:.3f}; "
            + (f"at most {rate.most_hits} hits pass" if rate.most_hits is not None else "no count of hits can pass"),
        )
    for name, row in own_rules(operating).items():
        rates = ", ".join(f"{at.passes:.0%} at a rate of {at.rate:g}" for at in row.passes)
        sentences.append(f"- {code(name)}: a candidate that copies no more than chance passes in {rates}")
    for axis, powers in operating.damage.items():
        rates = ", ".join(f"{power.passes:.0%} at a rate of {power.rate:g}" for power in powers)
        sentences.append(f"- {plain(axis)}: an unchanged candidate passes in {rates}")
    return [
        "## What this size can prove (sealed before generation)",
        "",
        *table(["seeds", "false pass (voice)", "shift caught with probability 0.8, in seed sd"], rows),
        *sentences,
        *_splits(operating),
        "",
        code(operating.signature),
        "",
    ]


def _splits(operating: OperatingCharacteristics) -> list[str]:
    if operating.earlier is None:
        return [f"- {plain(operating.splits)}"] if operating.splits else []
    which, k = operating.earlier.earlier, operating.voice.k
    voice = [
        f"{row.false_pass:.2%} ± {row.false_pass_error:.2%} pass, a move of {row.shift_80:.3f} is caught"
        for row in operating.earlier.voice
        if row.k == k
    ]
    margins = [
        f"{plain(axis)} passes in {row.passes:.0%} ± {row.passes_error:.0%}"
        for axis, row in operating.earlier.margins.items()
    ]
    named = f"gate {plain(which.gate)}, run {which.run:03d} (figures {code(which.measurements_sha256)})"
    told = "; ".join([*voice, *margins])
    return [f"- random splits of {which.seeds} base seeds of {named} into two groups of {k}: {told}"]


def _record(sealed: SealOnDisk, measurements: Measurements, verdict: Verdict) -> list[str]:
    seal = sealed.seal
    made = dict.fromkeys(
        axis.signature
        for candidate in verdict.candidates.values()
        for axis in candidate.axes.values()
        if axis.signature
    )
    rows = [
        ["seal", code(sealed.sha256)],
        ["sealed", f"{plain(seal.sealed_at)} by {plain(seal.sealed_by)}"],
        ["gate", code(seal.binding.gate)],
        ["generations", code(measurements.generations_sha256)],
        ["measurements", code(verdict.measurements_sha256)],
        ["seat", code(f"{seal.binding.seat.get('version')} {seal.binding.seat.get('fingerprint')}")],
        *([f"adapter {plain(name)}", _adapter(identity.files)] for name, identity in seal.binding.adapters.items()),
        ["data seen", plain(seal.gate.declarations.data_seen)],
        ["stopping", plain(seal.gate.declarations.stopping)],
        ["exclusions", plain(seal.gate.declarations.exclusions)],
    ]
    return ["## Record", "", *table(["what", "which"], rows), *(f"- {code(line)}" for line in made), ""]


def _adapter(files: dict[str, str] | None) -> str:
    if files is None:
        return "identity by the seat's model card alone (weaker)"
    return ", ".join(f"{code(name)} {code(value)}" for name, value in files.items())
