"""Gathering what the page of a finished run shows: texts, matched runs in their context, words that moved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from gates.errors import CorpusError
from gates.flow.curve import power_curve
from gates.flow.finished import FinishedRun, sealed_inputs
from gates.flow.history import Event, events_of
from gates.flow.inputs import Inputs
from gates.flow.measuring import yardstick_of
from gates.measure.figures import ArmMeasurements, MemorisationFigures, NearRun, Run, Source
from gates.measure.memorisation import excerpt
from gates.measure.movers import Movers, measure_movers
from gates.measure.ngrams import NgramIndex
from gates.measure.voice import ArmCounts, Yardstick, count_arm
from gates.record.ledger import Ledger
from gates.record.votes import Votes, tallies
from gates.records import Generation
from gates.report.html.model import Matched, Page, Place
from gates.report.html.texts import shown_prompt
from gates.text import prose_words

Answers = Mapping[tuple[str, int, int], Generation]


def page_of(run: FinishedRun, cache: Path, *, with_sources: bool = False) -> Page:
    """The page of a finished run. Words of the sources enter it `with_sources` alone.

    Raises CorpusError when these are asked for and the cache lacks the texts, or holds others than the sealed ones.
    """
    inputs = sealed_inputs(run.workspace, cache, run.sealed)
    lacking = inputs if isinstance(inputs, str) else ""
    if with_sources and lacking:
        raise CorpusError(f"the sources cannot be shown: {lacking}", next_step="gates corpora fetch NAME, or leave out")
    answers = {generation.key: generation for generation in run.store.generations(run.sealed.sha256)}
    texts = _texts(inputs) if with_sources and isinstance(inputs, Inputs) else {}
    return Page(
        sealed=run.sealed,
        number=run.store.number,
        attempts=run.attempts,
        measurements=run.measurements,
        verdict=run.verdict,
        prompts=_prompts(inputs, answers),
        generations=tuple(answers.values()),
        matched=_matched(run, answers, texts),
        power=power_curve(run.seal.gate),
        deviations=run.store.deviations(),
        movers=_movers(inputs, answers) if isinstance(inputs, Inputs) else {},
        own_runs=_own_runs(inputs) if isinstance(inputs, Inputs) else None,
        lacking=lacking,
        sources_shown=with_sources,
        readers=tallies(Votes(run.store.folder).read()),
        events=tuple(event.sentence() for event in _events(run)),
    )


def _prompts(inputs: Inputs | str, answers: Answers) -> dict[int, str]:
    """What was asked, by number; an import holds no requests, so there the sealed gate's beats say it."""
    found = {key[1]: shown_prompt(generation) for key, generation in sorted(answers.items(), reverse=True)}
    beats = [one.beat for one in inputs.shown] if isinstance(inputs, Inputs) else []
    return {prompt: text or (beats[prompt] if prompt < len(beats) else "") for prompt, text in found.items()}


def _events(run: FinishedRun) -> tuple[Event, ...]:
    entries = Ledger(run.workspace / "prereg").entries()
    return events_of(entries, run.store.gate, run.store.number)


def _texts(inputs: Inputs) -> dict[str, str]:
    """Train and protected texts by the names that measurements give them."""
    protected = (document for texts in inputs.protected.values() for document in texts)
    return {f"{document.corpus}/{document.name}": document.text for document in (*inputs.train, *protected)}


def _matched(run: FinishedRun, answers: Answers, texts: Mapping[str, str]) -> tuple[Matched, ...]:
    """Every matched run, the longest first, candidates before the base."""
    found = [
        _match(name, kind, one, answers, texts)
        for name, arm in run.measurements.arms.items()
        for kind, runs in _kinds(arm)
        for one in runs
        if (name, one.prompt, one.seed) in answers
    ]
    return tuple(sorted(found, key=lambda match: (match.arm == "base", -match.length, match.arm, match.prompt)))


def _kinds(arm: ArmMeasurements) -> Iterable[tuple[str, tuple[Run | NearRun, ...]]]:
    for figures, where in ((arm.memorisation, ""), (arm.extraction, ", in an answer to the probe")):
        if isinstance(figures, MemorisationFigures):
            yield f"word for word{where}", figures.runs
            yield f"near-verbatim{where}", figures.near.runs
            if figures.protected is not None:
                yield f"of a protected text{where}", figures.protected.runs


def _match(arm: str, kind: str, run: Run | NearRun, answers: Answers, texts: Mapping[str, str]) -> Matched:
    return Matched(
        arm=arm,
        kind=kind,
        prompt=run.prompt,
        seed=run.seed,
        length=run.length,
        sha256=run.sha256,
        answer=excerpt(answers[arm, run.prompt, run.seed].text, run.start, run.length),
        changed=run.changed if isinstance(run, NearRun) else (),
        places=tuple(_place(source, run.length, texts) for source in run.sources),
        elsewhere=run.elsewhere if isinstance(run, Run) else (),
    )


def _place(source: Source, length: int, texts: Mapping[str, str]) -> Place:
    text = texts.get(source.file)
    return Place(source, None if text is None else excerpt(text, source.start, length))


def _movers(inputs: Inputs, answers: Answers) -> dict[str, Movers]:
    """The words that moved, by arm; not of an arm whose answers are not all there."""
    yardstick = yardstick_of(inputs)
    counts = {arm: _counts(inputs, arm, answers, yardstick) for arm in inputs.gate.arms.all()}
    base, found = counts.pop("base"), {}
    for arm, own in counts.items():
        movers = None if own is None or base is None else measure_movers(own, base, yardstick)
        if movers is not None:
            found[arm] = movers
    return found


def _counts(inputs: Inputs, arm: str, answers: Answers, yardstick: Yardstick) -> ArmCounts | None:
    seeds, prompts = inputs.gate.seeds(arm), range(len(inputs.beats))
    if any((arm, prompt, seed) not in answers for seed in seeds for prompt in prompts):
        return None
    texts = [[answers[arm, prompt, seed].text for prompt in prompts] for seed in seeds]
    return count_arm(seeds, texts, yardstick)


def _own_runs(inputs: Inputs) -> tuple[int, ...] | None:
    """Lengths in words of the runs that the held-out text shares with the train split."""
    asked = inputs.gate.memorisation
    if asked is None:
        return None
    index = NgramIndex(((d.name, prose_words(d.text)) for d in inputs.train), asked.n)
    return tuple(match.length for match in index.matches([prose_words(d.text) for d in inputs.heldout]))
