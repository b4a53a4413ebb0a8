"""The judging model of a run: what it is asked, what it has answered, and what that comes to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gates.errors import TamperedError
from gates.flow.inputs import Inputs
from gates.measure.damage.judged import log_odds, mean_odds, measure_judge
from gates.measure.figures import JudgeFigures, Unmeasured
from gates.record.store import RunStore
from gates.records import Generation
from gates.seat.judge import Case, body_of, both_orders
from gates.spec.judging import Judgement


@dataclass(frozen=True)
class Judged:
    """What the judge said: mean log-odds by (arm, prompt, seed), and how often it errs; nothing without a judge."""

    odds: Mapping[tuple[str | None, int, int], float | None] | None = None
    judge: JudgeFigures | Unmeasured | None = None


def cases_of(inputs: Inputs, generations: Iterable[Generation]) -> list[Case]:
    """All that the gate's judge is asked: of the labelled texts, then of every answer to an open prompt."""
    if inputs.gate.judge is None:
        return []
    known = [c for n, one in enumerate(inputs.labelled) for c in both_orders(None, n, 0, one.beat, one.text)]
    open_ones = (g for g in generations if g.prompt < len(inputs.beats) and g.error is None)
    return known + [c for g in open_ones for c in both_orders(g.arm, g.prompt, g.seed, inputs.beats[g.prompt], g.text)]


def left_to_ask(inputs: Inputs, seal: str, store: RunStore) -> list[Case]:
    """The cases without a recorded judgement. Raises TamperedError for a judgement that the gate does not ask for."""
    cases = {case.key: case for case in cases_of(inputs, store.generations(seal))}
    for judgement in store.judgements(seal):
        case = cases.pop(judgement.key, None)
        if case is None or judgement.request != body_of(inputs.gate, case):
            raise TamperedError(
                f"{store.judgements_path}: judgement {judgement.key} is none that the sealed gate asks for of what was "
                "generated",
                next_step="restore the run's folder, or start another attempt with --again",
            )
    return list(cases.values())


def judged_of(inputs: Inputs, judgements: Iterable[Judgement]) -> Judged:
    """What the recorded judgements come to."""
    if inputs.gate.judge is None:
        return Judged()
    odds = log_odds(judgements)
    model = inputs.gate.judge.model or inputs.gate.arms.base.model
    return Judged({key: mean_odds(pair) for key, pair in odds.items()}, measure_judge(inputs.labelled, odds, model))
