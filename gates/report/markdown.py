"""report.md: the verdict first, then every figure with its signature, and what could not be decided.

Text from gates, models and seats is hostile here too: `gates.report.marks` makes it harmless in Markdown and HTML.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from gates.judge.axes import AxisVerdict
from gates.judge.verdict import Verdict
from gates.measure.figures import Measurements
from gates.record.seal import Seal, SealOnDisk
from gates.record.standing import own_standing
from gates.records import canonical
from gates.report.figures import figures
from gates.report.marks import bullets, code, plain, table
from gates.report.seat import SEATS, matched_blocks, seat_rows
from gates.report.wording import SYMBOLS, caution, in_order, threshold_of, value_of
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
        f"# {title(verdict)}: {plain(gate.name)}, run {number_of_run:03d}",
        "",
        f"**Question:** {plain(gate.question)}",
        "",
        f"**Standing:** {plain(standing(sealed, verdict))} This is attempt {number_of_run} of this gate.",
        "",
        *_amendment(sealed),
        *attempts(verdict),
        *_verdict_table(verdict),
        *_reasons(verdict),
        *bullets("Not decided", verdict.undecided, "Everything was decided."),
        *bullets("Warnings", _warnings(verdict), "None."),
        *bullets("Deviations from the sealed context", deviations, "None."),
        *(bullets("The seat", seat, "") if seat else ()),
        *figures(measurements),
        *_several(sealed.seal, measurements),
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


def title(verdict: Verdict) -> str:
    """The outcome, and at once what would make a reader take it for more than it is."""
    return f"{SYMBOLS[verdict.outcome]} {verdict.outcome.value}{caution(verdict)}"


def standing(sealed: SealOnDisk, verdict: Verdict) -> str:
    """Whether the rule was fixed before anything was seen, in one sentence."""
    return str(own_standing(sealed.seal, verdict))


def _amendment(sealed: SealOnDisk) -> list[str]:
    """What the seal amends and why; nothing for a gate's first seal."""
    made = sealed.seal.amendment
    if made is None:
        return []
    return [
        f"**Amendment** of seal {code(sealed.seal.amends or '')}: {plain(made.reason)}",
        "",
        *(f"- {plain(change)}" for change in made.changes),
        "",
    ]


def attempts(verdict: Verdict) -> list[str]:
    """Everything that was tried up to a verdict."""
    if verdict.attempts is None:
        return []
    return [*(f"- {plain(sentence)}" for sentence in verdict.attempts.sentences()), ""]


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
        f"## What this size can prove{'' if sealed.seal.imported else ' (sealed before generation)'}",
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
        ["imported" if seal.imported else "sealed", f"{plain(seal.sealed_at)} by {plain(seal.sealed_by)}"],
        *_received(seal),
        ["gate", code(seal.binding.gate)],
        ["generations", code(measurements.generations_sha256)],
        ["measurements", code(verdict.measurements_sha256)],
        *_seats(seal),
        *([f"adapter {plain(name)}", _adapter(seal, name)] for name in seal.binding.adapters),
        ["data seen", plain(seal.gate.declarations.data_seen)],
        ["stopping", plain(seal.gate.declarations.stopping)],
        ["exclusions", plain(seal.gate.declarations.exclusions)],
    ]
    return ["## Record", "", *table(["what", "which"], rows), *(f"- {code(line)}" for line in made), ""]


def _several(seal: Seal, measurements: Measurements) -> list[str]:
    """Which of several seats answered what; nothing where there is one."""
    found = measurements.seats
    if found is None:
        return []
    rows = [
        [code(seat), code(version), code(mark), *map(plain, rest)]
        for seat, version, mark, *rest in seat_rows(seal, found)
    ]
    return ["### Seats", "", *table(SEATS, rows), matched_blocks(found), ""]


def _seats(seal: Seal) -> list[list[str]]:
    if seal.imported:
        return [["seat", "unknown"]]
    if seal.gate.seats is None:
        return [["seat", _answering(seal.binding.seat)]]
    return [["seat", f"{code(seat.name)} {_answering(seal.seat_at(seat.name))}"] for seat in seal.gate.seats]


def _answering(seat: Mapping[str, JsonValue]) -> str:
    return code(f"{seat.get('version')} {seat.get('fingerprint')}")


def _received(seal: Seal) -> list[list[str]]:
    made = seal.imported
    return [] if made is None else [["received", f"{plain(made.file)} {code(made.sha256)}"]]


def _adapter(seal: Seal, arm: str) -> str:
    files = seal.binding.adapters[arm].files
    listed = "" if files is None else ", ".join(f"{code(name)} {code(value)}" for name, value in files.items())
    if seal.imported is not None:
        return f"declared, nothing shows that it wrote the texts: {listed or 'its files are not here'}"
    return listed or "identity by the seat's model card alone (weaker)"
