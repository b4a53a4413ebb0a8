"""`judged_on_beat@1`: whether a text tells of its beat, as a model said when asked yes or no in two orders.

The model's answers were recorded before; nobody is asked here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gates.measure.damage.axis import Answers, Measured, figures
from gates.measure.figures import JudgeFigures, Unmeasured
from gates.records import signature
from gates.spec.judging import ORDERS, WORDING, Judgement, Labelled
from gates.stats import clopper_pearson

LEVEL = 0.95

Odds = Mapping[tuple[str | None, int, int], tuple[float, float] | None]
"""By (arm, prompt, seed): the log-odds of yes in each order; None where one of them is missing or failed."""


def judged_on_beat(answers: Answers) -> Measured:
    """`judged_on_beat@1`: share of the texts (S, P) in [0, 1] of which the judge says that they tell of their beat.

    The judge is asked twice, in swapped order; a text is on its beat when the mean of the two log-odds of yes is above
    0, so that a leaning toward what comes first, or toward one of the words, cancels. Lower is worse. A generation
    that failed counts as harm. Unmeasured where a judgement is missing or failed: a gap is no figure.

    For "The dog barks at a stranger." Passing: "The old dog growled at him and barked." Failing: "She counted coins."
    """
    if answers.judged is None and answers.generations:
        return Unmeasured(unmeasured="no judge was asked")
    rows = [
        [0.0 if given.error is not None else odds for given, odds in zip(*pair, strict=True)]
        for pair in zip(answers.generations, answers.judged or (), strict=True)
    ]
    lost = sum(odds is None for row in rows for odds in row)
    if lost:
        return Unmeasured(unmeasured=f"{lost} of {sum(map(len, rows))} judgements are missing or failed")
    made_by = signature("judged_on_beat@1", wording=WORDING[:12], orders=len(ORDERS))
    return figures(made_by, "lower", [[float(odds is not None and odds > 0) for odds in row] for row in rows])


def log_odds(judgements: Iterable[Judgement]) -> Odds:
    """The log-odds of yes of everything judged, in the two orders."""
    by_order: dict[tuple[str | None, int, int], dict[str, float]] = {}
    for one in judgements:
        heard = by_order.setdefault(one.key[:3], {})
        if one.error is None and one.yes is not None and one.no is not None:
            heard[one.order] = one.yes - one.no
    return {
        key: (heard[ORDERS[0]], heard[ORDERS[1]]) if len(heard) == len(ORDERS) else None
        for key, heard in by_order.items()
    }


def mean_odds(odds: tuple[float, float] | None) -> float | None:
    """The mean of the two orders, which decides."""
    return None if odds is None else (odds[0] + odds[1]) / 2


def measure_judge(labelled: Sequence[Labelled], odds: Odds, model: str) -> JudgeFigures | Unmeasured:
    """How often the judge errs on texts whose answer is known. Unmeasured where a judgement is missing or failed."""
    heard = [(one.on_beat, odds.get((None, number, 0))) for number, one in enumerate(labelled)]
    known = [(right, pair) for right, pair in heard if pair is not None]
    if len(known) < len(labelled) or not labelled:
        lost = len(labelled) - len(known)
        return Unmeasured(unmeasured=f"{lost} of {len(labelled)} labelled texts have no judgement")
    missed = sum(right and sum(pair) <= 0 for right, pair in known)
    taken = sum(not right and sum(pair) > 0 for right, pair in known)
    low, high = clopper_pearson(missed + taken, len(known), LEVEL)
    return JudgeFigures(
        signature=signature("judged_on_beat@1", wording=WORDING[:12], orders=len(ORDERS), model=model),
        on_beat=sum(right for right, _ in known),
        off_beat=sum(not right for right, _ in known),
        missed=missed,
        taken=taken,
        swayed=sum((pair[0] > 0) != (pair[1] > 0) for _, pair in known),
        error_rate=(missed + taken) / len(known),
        error_low=low,
        error_high=high,
    )
