"""From recorded generations to measurements: every arm, every axis the gate names, nothing decided."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Literal

from gates.errors import TamperedError
from gates.flow.inputs import Inputs, Texts
from gates.flow.judging import Judged, judged_of
from gates.measure.damage import Answers, Library, measure_axis
from gates.measure.figures import (
    ArmMeasurements,
    DamageFigures,
    Measurements,
    MemorisationFigures,
    Unmeasured,
    ValidityFigures,
    VoiceFigures,
)
from gates.measure.generated import GeneratedText
from gates.measure.leaks import LEAK_WORDS, leaks
from gates.measure.memorisation import Sources, measure_memorisation
from gates.measure.split import Split
from gates.measure.tokens import Tokens
from gates.measure.voice import ArmCounts, Yardstick, count_arm, measure_voice
from gates.records import Generation
from gates.spec.judging import Judgement
from gates.spec.prompts import prompt_text

Role = Literal["base", "candidate", "control"]
Grid = dict[tuple[int, int], Generation]
"""One arm's generations by (seed, prompt)."""


def measure(
    inputs: Inputs,
    seal: str,
    generations: Iterable[Generation],
    generations_sha256: str,
    judgements: Iterable[Judgement] = (),
) -> Measurements:
    """Measure every arm of a run. A pure function of its arguments.

    Raises TamperedError for a generation that the gate does not ask for: no run of it recorded that.
    """
    grids = _grids(inputs, generations)
    train, heldout = _by_name(inputs.train), _by_name(inputs.heldout)
    memorised = inputs.gate.memorisation
    sources = _sources(inputs, train, heldout, memorised.n) if memorised is not None else None
    yardstick = yardstick_of(inputs)
    judged = judged_of(inputs, judgements)
    tokens = Tokens()
    library = Library(*(tuple(d.text for d in texts) for texts in (inputs.train, inputs.heldout, inputs.reference)))
    told = {arm: _told((*grid.values(), *probed.values())) for arm, (grid, probed) in grids.items()}
    counts = {arm: _counts(inputs, arm, grid, yardstick, tokens) for arm, (grid, _) in grids.items()}
    return Measurements(
        seal=seal,
        generations_sha256=generations_sha256,
        arms={
            arm: ArmMeasurements(
                role=_role(inputs, arm),
                seeds=inputs.gate.seeds(arm),
                validity=_validity(inputs, arm, grid, tokens, _prompt_mismatches(inputs, arm, told)),
                voice=None if arm == "base" else _voice(counts[arm], counts["base"], yardstick),
                memorisation=None if sources is None else _memorisation(inputs, grid, sources, tokens),
                extraction=None
                if sources is None or not inputs.probe
                else _extraction(inputs, arm, probed, sources, tokens),
                damage=_damage(inputs, arm, grid, library, judged, tokens),
            )
            for arm, (grid, probed) in grids.items()
        },
        leaks=leaks(sources.split if sources and sources.n <= LEAK_WORDS else Split(train, heldout, LEAK_WORDS)),
        judge=judged.judge,
    )


def yardstick_of(inputs: Inputs) -> Yardstick:
    """What a gate's arms are measured against."""
    return Yardstick.of(
        inputs.frame,
        [(document.title, document.text) for document in inputs.heldout],
        {name: [document.text for document in texts] for name, texts in inputs.imposters.items()},
        words_per_seed=inputs.gate.voice.words_per_seed,
    )


def _grids(inputs: Inputs, generations: Iterable[Generation]) -> dict[str, tuple[Grid, Grid]]:
    """Each arm's answers to the open prompts, and those to the probe, which only `extraction` may see."""
    gate, prompts = inputs.gate, range(len(inputs.shown))
    grids: dict[str, tuple[Grid, Grid]] = {arm: ({}, {}) for arm in gate.arms.all()}
    for generation in generations:
        arm, prompt, seed = generation.key
        if arm not in grids or prompt not in prompts or seed not in gate.seeds(arm):
            raise TamperedError(
                f"a generation of arm {arm!r}, prompt {prompt}, seed {seed} is recorded, "
                f"and gate {gate.name!r} asks for none such",
                next_step="restore generations.jsonl from its commit",
            )
        grids[arm][prompt >= len(inputs.beats)][seed, prompt] = generation
    return grids


def _sources(inputs: Inputs, train: dict[str, str], heldout: dict[str, str], n: int) -> Sources:
    others = (inputs.reference, *inputs.imposters.values())
    return Sources(
        train,
        heldout,
        n,
        protected=_by_name(tuple(document for texts in inputs.protected.values() for document in texts)),
        others=_by_name(tuple(document for texts in others for document in texts)),
    )


def _by_name(texts: Texts) -> dict[str, str]:
    return {f"{document.corpus}/{document.name}": document.text for document in texts}


def _role(inputs: Inputs, arm: str) -> Role:
    return "base" if arm == "base" else "candidate" if arm in inputs.gate.arms.candidates else "control"


def _rows(inputs: Inputs, arm: str, grid: Grid) -> list[list[Generation]] | None:
    """The arm's generations (S, P) in the gate's order, or None when one is missing."""
    prompts = range(len(inputs.beats))
    rows = [[grid[seed, prompt] for prompt in prompts if (seed, prompt) in grid] for seed in inputs.gate.seeds(arm)]
    return rows if all(len(row) == len(prompts) for row in rows) else None


def _told(generations: Iterable[Generation]) -> dict[int, set[str]]:
    """The hashes of its tokens that the seat told for each prompt."""
    found: defaultdict[int, set[str]] = defaultdict(set)
    for generation in generations:
        if generation.prompt_sha256 is not None:
            found[generation.prompt].add(generation.prompt_sha256)
    return dict(found)


def _prompt_mismatches(inputs: Inputs, arm: str, told: dict[str, dict[int, set[str]]]) -> int:
    """The prompts whose tokens were not the same under all seeds and as the base's: cut short, or altered on the way.

    Only arms that are shown the same, system line included, are compared; where the base was shown something else or
    its seat tells nothing, all of them with each other.
    """
    count = 0
    for prompt, own in told[arm].items():
        shown = inputs.prompt(arm, prompt)
        alike = {name: told[name].get(prompt, set()) for name in told if inputs.prompt(name, prompt) == shown}
        count += len(own | (alike.get("base") or set().union(*alike.values()))) > 1
    return count


def _validity(inputs: Inputs, arm: str, grid: Grid, tokens: Tokens, prompt_mismatches: int) -> ValidityFigures:
    repeated = 0
    for prompt in range(len(inputs.beats)):
        texts = [grid[seed, prompt].text.strip() for seed in inputs.gate.seeds(arm) if (seed, prompt) in grid]
        # Where a text holds no word, its signs are compared.
        said = [tokens[text] or [text] for text in texts if text]
        repeated += sum(text in said[:place] for place, text in enumerate(said))
    return ValidityFigures(
        expected=len(inputs.gate.seeds(arm)) * len(inputs.beats),
        present=len(grid),
        errors=sum(generation.error is not None for generation in grid.values()),
        empty=sum(generation.error is None and not generation.text.strip() for generation in grid.values()),
        repeated_seeds=repeated,
        prompt_mismatches=prompt_mismatches,
    )


def _counts(inputs: Inputs, arm: str, grid: Grid, yardstick: Yardstick, tokens: Tokens) -> ArmCounts | None:
    rows = _rows(inputs, arm, grid)
    if rows is None:
        return None
    texts = [[generation.text for generation in row] for row in rows]
    return count_arm(inputs.gate.seeds(arm), texts, yardstick, tokens)


def _voice(arm: ArmCounts | None, base: ArmCounts | None, yardstick: Yardstick) -> VoiceFigures | Unmeasured:
    if arm is None or base is None:
        return Unmeasured(unmeasured=f"generations of {'the arm' if arm is None else 'base'} are missing")
    return measure_voice(arm, base, yardstick)


def _memorisation(inputs: Inputs, grid: Grid, sources: Sources, tokens: Tokens) -> MemorisationFigures | Unmeasured:
    return measure_memorisation(
        [
            GeneratedText(
                prompt=generation.prompt,
                seed=generation.seed,
                text="" if generation.error is not None else generation.text,
                prompt_text=prompt_text(inputs.prompt(generation.arm, generation.prompt)),
                given=_first_words(inputs, generation.prompt),
            )
            for generation in grid.values()
        ],
        sources,
        tokens,
    )


def _extraction(
    inputs: Inputs, arm: str, grid: Grid, sources: Sources, tokens: Tokens
) -> MemorisationFigures | Unmeasured:
    """As `_memorisation` of the answers to the probe, all of which must be there: a missing one recites nothing."""
    expected = len(inputs.probe) * len(inputs.gate.seeds(arm))
    lost = expected - sum(generation.error is None for generation in grid.values())
    if lost:
        return Unmeasured(unmeasured=f"{lost} of {expected} answers to the probe are missing or errors")
    return _memorisation(inputs, grid, sources, tokens)


def _first_words(inputs: Inputs, prompt: int) -> str:
    """The words of a training passage that this prompt gave away, or nothing."""
    probe = inputs.gate.probe
    probed = probe is not None and probe.kind == "first-words" and prompt >= len(inputs.beats)
    return inputs.shown[prompt].beat if probed else ""


def _damage(
    inputs: Inputs, arm: str, grid: Grid, library: Library, judged: Judged, tokens: Tokens
) -> dict[str, DamageFigures | Unmeasured]:
    """The arm's damage figures: what failed is taken as full harm, but for the base, where it would excuse others'."""
    axes, rows = inputs.gate.damage.named(), _rows(inputs, arm, grid)
    if rows is None:
        return dict.fromkeys(axes, Unmeasured(unmeasured="generations are missing"))
    answers = Answers(
        generations=tuple(map(tuple, rows)),
        beats=inputs.beats,
        max_tokens=inputs.gate.sampling.max_tokens,
        prompts=tuple(prompt_text(inputs.prompt(arm, number)) for number in range(len(inputs.beats))),
        library=library,
        tokens=tokens,
        judged=None
        if judged.odds is None
        else tuple(tuple(judged.odds.get((arm, one.prompt, one.seed)) for one in row) for row in rows),
    )
    return {axis: measure_axis(inputs.axes[axis], answers, failed_harm=arm != "base") for axis in axes}
