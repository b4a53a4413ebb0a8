"""The figures of report.md: voice, memorisation, shared runs, damage, validity, each in a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
from gates.report.marks import plain, table
from gates.report.wording import number
from gates.stats import clopper_pearson


def figures(measurements: Measurements) -> list[str]:
    """Every figure of a run, as lines of Markdown."""
    arms = measurements.arms.items()
    return [
        "## Figures",
        "",
        *_voice(measurements),
        *_memorisation("Memorisation", {name: arm.memorisation for name, arm in arms}),
        *_memorisation("Extraction (the probe)", {name: arm.extraction for name, arm in arms}),
        *_leaks(measurements.leaks),
        *_damage(measurements),
        *_validity(measurements),
    ]


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
        notes.extend(f"{name}: {sentence}" for sentence in _carried(figures))
        notes.extend(f"{name}: move toward {who} {move:+.3f}" for who, move in figures.imposters.items())
    head = ["arm", "delta", "95 % over prompts", "spread", "base spread", "own text at", "span closed", "specificity"]
    lines += table(head, rows)
    lines += table(["arm", "seed", "distance", "words"], _seed_rows(measurements))
    return [*lines, *(f"- {plain(note)}" for note in dict.fromkeys(notes)), ""]


def _carried(figures: VoiceFigures) -> list[str]:
    """Which prompt carries the move: the one without which delta would differ most; nothing where none matters."""
    most = max(range(len(figures.influence)), key=lambda prompt: abs(figures.influence[prompt]), default=0)
    if not any(figures.influence):
        return []
    return [
        f"without prompt {most} the move would be {figures.delta + figures.influence[most]:+.3f}, not "
        f"{figures.delta:+.3f}: of all {len(figures.influence)} prompts, counted from 0, the one that matters most"
    ]


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
    checked = {name: arm.validity for name, arm in measurements.arms.items()}
    rows = [
        [
            plain(name),
            f"{found.present} of {found.expected}",
            *map(str, (found.errors, found.empty, found.repeated_seeds, found.prompt_mismatches)),
        ]
        for name, found in checked.items()
    ]
    head = ["arm", "generations", "errors", "empty", "repeated between seeds", "prompts altered"]
    return ["### Validity", "", *table(head, rows)]
