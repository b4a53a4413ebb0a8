"""What goes with a released adapter: a passed memorisation axis is quoted with its figures all the same."""

from __future__ import annotations

from gates.flow.review import Reading
from gates.measure.figures import MemorisationFigures, SelfCollision
from gates.record.release import release_of
from gates.report.release import caveats
from gates.stats import poisson_ratio


def with_hits(reading: Reading, hits: int, of: int, own: int, windows: int):
    """The run's measurements with this many hits of candidate `two`."""
    figures = reading.run.measurements.arms["two"].memorisation
    assert isinstance(figures, MemorisationFigures)
    ratio, low, high = poisson_ratio(hits, of, own, windows, 0.95)
    changed = figures.model_copy(
        update={
            "hits": hits,
            "generations": of,
            "rate": hits / of,
            "longest": 9,
            "self_collision": SelfCollision(windows=windows, hits=own, rate=own / windows, longest=10),
            "ratio": ratio,
            "ratio_low": low,
            "ratio_high": high,
        }
    )
    arms = dict(reading.run.measurements.arms)
    arms["two"] = arms["two"].model_copy(update={"memorisation": changed})
    return reading.run.measurements.model_copy(update={"arms": arms})


def test_seven_times_the_author_is_said_of_an_axis_that_passed(reading: Reading) -> None:
    """The house case: 0.07 against 0.01, base 0.00; the longest run 9 words, unseen author text shares 10."""
    run = reading.run
    assert run.verdict.candidates["two"].axes["memorisation"].outcome == "PASS"
    found = caveats(run.sealed, with_hits(reading, 7, 100, 2, 200), run.verdict, "two", 1)
    said = next(sentence for sentence in found if sentence.startswith("memorisation: 7 of 100"))
    assert "7 of 100 texts (0.070) repeat 8 words in a row" in said
    assert "in 2 of 200 (0.010): 7.0× the author (95 % limits" in said
    assert "the longest run is 9 words, the author's own unseen text shares 10" in said
    none = caveats(run.sealed, with_hits(reading, 0, 100, 2, 200), run.verdict, "two", 3)
    assert not any(sentence.startswith("memorisation: 0") for sentence in none)
    assert "the gate has had 3 runs: the chance that one of them passes grows with each" in none


def test_without_a_sign_off_nothing_is_released() -> None:
    assert str(release_of([], "two", 2)).startswith("not released: 0 of 2")
