"""report.md: the verdict first, then every figure with its signature, and what could not be decided.

Text from gates, models and seats is hostile here too: `plain` makes it harmless in Markdown and in HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from gates.judge.axes import AxisVerdict
from gates.judge.verdict import Verdict
from gates.measure.figures import (
    ArmMeasurements,
    DamageFigures,
    Leak,
    Measurements,
    MemorisationFigures,
    NearRun,
    Run,
    Unmeasured,
    VoiceFigures,
)
from gates.record.seal import SealOnDisk
from gates.records import canonical
from gates.report.wording import SYMBOLS, in_order, number, one_line, threshold_of, value_of
from gates.spec.operating import OperatingCharacteristics
from gates.stats import clopper_pearson

# What Markdown reads as mark-up anywhere, bare addresses that some readers link, and what starts a list or heading.
# An underscore inside a word means nothing.
_SPECIAL = re.compile(
    r"[\\`*\[\]|~$]|_(?![^\W_])|(?<![^\W_])_|:(?=//)|(?<=www)\.|^[-+#=]|^\d+[.)](?= |$)", re.IGNORECASE
)


def plain(text: object) -> str:
    """Any text as one line that Markdown and HTML show as it is."""
    return _SPECIAL.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", escape(one_line(text), quote=False))


def code(text: str) -> str:
    """A machine's word (hash, signature, name) in code style; back quotes and line breaks taken out."""
    return f"`{one_line(text.replace('`', ' ').replace('|', '¦')) or '–'}`"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """A Markdown table."""
    names = list(head)
    return [
        f"| {' | '.join(names)} |",
        f"|{'|'.join(' --- ' for _ in names)}|",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]


def markdown(
    sealed: SealOnDisk,
    number_of_run: int,
    measurements: Measurements,
    verdict: Verdict,
    *,
    deviations: Sequence[str] = (),
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
        *_bullets("Not decided", verdict.undecided, "Everything was decided."),
        *_bullets("Warnings", _warnings(verdict), "None."),
        *_bullets("Deviations from the sealed context", deviations, "None."),
        "## Figures",
        "",
        *_voice(measurements),
        *_memorisation("Memorisation", {name: arm.memorisation for name, arm in measurements.arms.items()}),
        *_memorisation("Extraction (the probe)", {name: arm.extraction for name, arm in measurements.arms.items()}),
        *_leaks(measurements.leaks),
        *_damage(measurements),
        *_validity(measurements),
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
    return _bullets("Why", sentences, "")


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


def _bullets(title: str, sentences: Iterable[str], none: str) -> list[str]:
    listed = [f"- {plain(sentence)}" for sentence in sentences]
    return [f"## {title}", "", *(listed or [none]), ""]


def _voice(measurements: Measurements) -> list[str]:
    lines = ["### Voice", ""]
    rows: list[list[str]] = []
    notes: list[str] = []
    for name, arm in measurements.arms.items():
        figures = arm.voice
        if isinstance(figures, Unmeasured):
            notes.append(f"{name}: not measured: {figures.unmeasured}")
        if not isinstance(figures, VoiceFigures):
            continue
        rows.append(
            [
                plain(name),
                number(figures.delta, signed=True),
                f"[{figures.interval[0]:+.3f}, {figures.interval[1]:+.3f}]",
                number(figures.spread),
                number(figures.base_spread),
                number(figures.ceiling),
                "–" if figures.span_closed is None else f"{figures.span_closed:.1%}",
                number(figures.specificity, signed=True),
            ]
        )
        notes.extend(f"{name}: {note}" for note in figures.notes)
        notes.extend(f"{name}: move toward {who} {move:+.3f}" for who, move in figures.imposters.items())
    head = ["arm", "delta", "95 % over prompts", "spread", "base spread", "own text at", "span closed", "specificity"]
    lines += table(head, rows)
    lines += table(["arm", "seed", "distance", "words"], _seed_rows(measurements))
    return [*lines, *(f"- {plain(note)}" for note in dict.fromkeys(notes)), ""]


def _seed_rows(measurements: Measurements) -> list[list[str]]:
    rows: list[list[str]] = []
    base_done = False
    for name, arm in measurements.arms.items():
        if not isinstance(arm.voice, VoiceFigures):
            continue
        if not base_done:
            seeds = measurements.arms["base"].seeds
            pairs = zip(seeds, arm.voice.base_distances, arm.voice.base_words, strict=True)
            rows += [["base", str(seed), number(distance), str(words)] for seed, distance, words in pairs]
            base_done = True
        triples = zip(arm.seeds, arm.voice.distances, arm.voice.words, strict=True)
        rows += [[plain(name), str(seed), number(distance), str(words)] for seed, distance, words in triples]
    return rows


def _memorisation(title: str, arms: Mapping[str, MemorisationFigures | Unmeasured | None]) -> list[str]:
    rows: list[list[str]] = []
    runs: list[str] = []
    for name, figures in arms.items():
        if isinstance(figures, Unmeasured):
            runs.append(f"{name}: not measured: {figures.unmeasured}")
        if not isinstance(figures, MemorisationFigures):
            continue
        own = figures.self_collision
        rows.append(
            [
                plain(name),
                _hits(figures),
                f"{own.hits} of {own.windows} ({own.rate:.3f})",
                _ratio(figures),
                str(figures.longest),
                str(own.longest),
                str(figures.heldout_hits),
            ]
        )
        runs.extend(f"{name}: {_run_sentence(run)}" for run in figures.runs)
        if figures.near.hits:
            runs.append(
                f"{name}: {figures.near.hits} of {figures.generations} hold near-verbatim runs, the longest "
                f"{figures.near.longest} words; the author's own unseen text has {figures.near.unseen_longest}"
            )
        runs.extend(f"{name}, near-verbatim: {_run_sentence(run)}" for run in figures.near.runs)
        if figures.protected is not None:
            runs.append(f"{name}: {figures.protected.hits} of {figures.generations} hold words of the protected texts")
            runs.extend(f"{name}, protected: {_run_sentence(run)}" for run in figures.protected.runs)
    if not rows and not runs:
        return []
    head = ["arm", "hits", "author's own (self-collision)", "ratio", "longest run", "author's longest", "held-out hits"]
    return [f"### {title}", "", *table(head, rows), *(f"- {plain(run)}" for run in runs), ""]


def _hits(figures: MemorisationFigures) -> str:
    text = f"{figures.hits} of {figures.generations} ({figures.rate:.3f})"
    if figures.hits:
        return text
    return f"{text}; still allows {100 * clopper_pearson(0, figures.generations)[1]:.1f} %"


def _leaks(leaks: Iterable[Leak]) -> list[str]:
    """What train and held-out text share; nothing where they share nothing."""
    sentences = [
        f"{leak.length} words of {leak.train.file} (word {leak.train.start}) stand in held-out {leak.heldout.file} "
        f"(word {leak.heldout.start})" + (f", near-verbatim: {len(leak.changed)} words differ" if leak.changed else "")
        for leak in leaks
    ]
    return ["### Shared by train and held-out text", "", *(f"- {plain(s)}" for s in sentences), ""] if sentences else []


def _ratio(figures: MemorisationFigures) -> str:
    if figures.ratio_low is None:
        return "undefined"
    low = f"at least {figures.ratio_low:.1f}"
    if figures.ratio is None:
        return low
    high = "no upper limit" if figures.ratio_high is None else f"at most {figures.ratio_high:.1f}"
    return f"{figures.ratio:.1f} ({low}, {high})"


def _run_sentence(run: Run | NearRun) -> str:
    places = ", ".join(f"{source.file} at word {source.start}" for source in run.sources[:3])
    more = f" and {len(run.sources) - 3} more places" if len(run.sources) > 3 else ""
    place = f"prompt {run.prompt}, seed {run.seed}, {run.length} words from word {run.start}"
    return f"{place}, as in {places}{more}{_mark(run)}"


def _mark(run: Run | NearRun) -> str:
    """What a reader should know of a run beside its place."""
    if isinstance(run, NearRun):
        return f", {len(run.changed)} words changed"
    return f"; other authors have it too: {run.elsewhere[0].file}" if run.elsewhere else ""


def _damage(measurements: Measurements) -> list[str]:
    axes = dict.fromkeys(axis for arm in measurements.arms.values() for axis in arm.damage)
    if not axes:
        return []
    rows = [[plain(name), *(_rate(arm, axis) for axis in axes)] for name, arm in measurements.arms.items()]
    return ["### Damage", "", *table(["arm", *map(plain, axes)], rows)]


def _rate(arm: ArmMeasurements, axis: str) -> str:
    figures = arm.damage.get(axis)
    if not isinstance(figures, DamageFigures):
        return "not measured"
    return f"{figures.rate:.3f} (seeds {', '.join(f'{rate:.2f}' for rate in figures.per_seed)})"


def _validity(measurements: Measurements) -> list[str]:
    rows = [
        [plain(name), f"{v.present} of {v.expected}", str(v.errors), str(v.empty), str(v.repeated_seeds)]
        for name, arm in measurements.arms.items()
        for v in [arm.validity]
    ]
    return ["### Validity", "", *table(["arm", "generations", "errors", "empty", "repeated between seeds"], rows)]


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
    for axis, powers in operating.damage.items():
        rates = ", ".join(f"{power.passes:.0%} at a rate of {power.rate:g}" for power in powers)
        sentences.append(f"- {plain(axis)}: an unchanged candidate passes in {rates}")
    return [
        "## What this size can prove (sealed before generation)",
        "",
        *table(["seeds", "false pass (voice)", "shift caught with probability 0.8, in seed sd"], rows),
        *sentences,
        "",
        code(operating.signature),
        "",
    ]


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
