"""The verdicts on a candidate beside each other, in sentences: what a reader of a decision on one of them must know."""

from __future__ import annotations

from collections.abc import Iterator

from gates.record.rescore import Rescore, before
from gates.record.verdicts import RescoreVerdict, Verdicts
from gates.records import Outcome
from gates.report.rescored import rule_words
from gates.report.wording import in_order


def beside(verdicts: Verdicts) -> tuple[str, ...]:
    """What stands first among the caveats: what must be said before an outcome, and whether the verdicts agree.

    Then, where a re-score is signed, its standing, the run's own verdict and that under every rule which the ledger
    held; then every other re-score. Nothing where the run's own verdict is the only one.
    """
    signed = verdicts.signed
    others = [other.said for other in verdicts.others]
    first = [] if signed is None else signed.said.first
    told = [] if signed is None else [_told(signed.said), _own(verdicts), *_held(signed.files.rescore, verdicts.arm)]
    return (*first, *_disagreement(verdicts), *told, *map(_told, others))


def _disagreement(verdicts: Verdicts) -> Iterator[str]:
    what = "the run's own verdict" if verdicts.signed is None else str(verdicts.signed.said)
    differ = [
        f"{other.said}{before(other.said.first)} says {other.said.outcome.value} ({other.said.standing.name})"
        for other in verdicts.others
        if other.said.outcome is not verdicts.outcome
    ]
    if verdicts.own_outcome is not verdicts.outcome:
        differ.insert(0, f"the run's own verdict is {verdicts.own_outcome.value} ({verdicts.own_standing.name})")
    if differ:
        yield f"THE VERDICTS DO NOT AGREE: {'; '.join(differ)}; signed is {what}, {verdicts.outcome.value}"


def _told(said: RescoreVerdict) -> str:
    return f"{said}{before(said.first)}: {said.outcome.value}; the rule is {said.standing}"


def _own(verdicts: Verdicts) -> str:
    axes = in_order(verdicts.own.candidates[verdicts.arm].axes)
    why = [f"{axis.axis}: {axis.outcome.value}: {axis.reason}" for axis in axes if axis.outcome is not Outcome.PASS]
    told = f"the run's own verdict: {verdicts.own_outcome.value}, {verdicts.own_standing}"
    return "; ".join([told.rstrip("."), *why])


def _held(made: Rescore, arm: str) -> Iterator[str]:
    """What each rule that the ledger held when the re-score was made says of the candidate."""
    for row in made.held:
        rule = rule_words(row.rule, [other.rule for other in made.held if other.axis == row.axis])
        by = "; ".join(row.held_by) or "no seal"
        axis, whole = row.outcomes.get(arm), row.overall.get(arm)
        says = f"{axis.value} {row.figures.get(arm, '')}".rstrip() if axis is not None else row.note or "not judged"
        would = "" if whole is None else f"; {arm} would be {whole.value}"
        yield f"{row.axis} under {rule} (held by {by}): {says}{would}"
