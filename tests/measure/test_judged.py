"""The judging model's own errors and log-odds, by hand."""

from __future__ import annotations

import pytest

from gates.measure.damage.judged import log_odds, mean_odds, measure_judge
from gates.measure.figures import JudgeFigures, Unmeasured
from gates.spec.judging import ORDERS, WORDING, Judgement, Labelled
from gates.stats import clopper_pearson


def heard(place: int, order: str, yes: float | None, no: float | None, **more: object) -> Judgement:
    about = {"seal": "0" * 64, "arm": None, "prompt": place, "seed": 0, "order": order, "request": {}}
    return Judgement.model_validate({**about, "yes": yes, "no": no, **more})


def labelled(*answers: bool) -> list[Labelled]:
    return [Labelled(beat="A dog barks.", text=f"text {number}", on_beat=on) for number, on in enumerate(answers)]


def test_log_odds_are_of_both_orders_or_none() -> None:
    first, second = ORDERS
    found = log_odds(
        [
            heard(0, first, -0.5, -2.0),
            heard(0, second, -1.0, -0.25),
            heard(1, first, -0.5, -2.0),  # the other order is missing
            heard(2, first, -0.5, -2.0),
            heard(2, second, None, None, error="cut off"),
            heard(3, first, -0.5, None),
            heard(3, second, -0.5, -2.0),
            heard(4, second, -3.0, -1.0, arm="one", seed=7),  # whichever order comes first
            heard(4, first, -1.0, -1.5, arm="one", seed=7),
        ]
    )
    assert found == {
        (None, 0, 0): (1.5, -0.75),
        (None, 1, 0): None,
        (None, 2, 0): None,
        (None, 3, 0): None,
        ("one", 4, 7): (0.5, -2.0),
    }
    assert (mean_odds((1.5, -0.75)), mean_odds(None)) == (0.375, None)


def test_a_judge_is_known_by_its_errors_on_labelled_texts() -> None:
    pairs = [(2.0, 1.0), (3.0, -1.0), (0.5, -0.5), (-2.0, -1.0), (1.0, -0.5), (-1.0, 0.5), (-0.1, -0.2)]
    pairs += [(0.25, 0.5), (0.5, -0.5), (0.0, 2.0), (2.0, 0.0)]
    texts = labelled(True, True, True, False, False, False, False, True, False, True, True)
    odds = {(None, number, 0): pair for number, pair in enumerate(pairs)}
    found = measure_judge(texts, odds, "voices-base")
    assert isinstance(found, JudgeFigures)
    # Texts 2 and 8 are ties, and a tie is no yes; 4 is taken for its beat. The order sways 1, 2, 4, 5, 8, 9 and 10.
    assert (found.on_beat, found.off_beat, found.missed, found.taken, found.swayed) == (6, 5, 1, 1, 7)
    assert found.error_rate == pytest.approx(2 / 11)
    assert (found.error_low, found.error_high) == clopper_pearson(2, 11, 0.95)
    assert found.signature == f"judged_on_beat@1|wording:{WORDING[:12]}|orders:2|model:voices-base"


@pytest.mark.parametrize(("texts", "lost"), [(2, "1 of 2"), (0, "0 of 0")])
def test_a_judge_that_was_not_heard_on_every_text_is_unmeasured(texts: int, lost: str) -> None:
    found = measure_judge(labelled(*[True] * texts), {(None, 0, 0): (1.0, 1.0), (None, 1, 0): None}, "m")
    assert found == Unmeasured(unmeasured=f"{lost} labelled texts have no judgement")
