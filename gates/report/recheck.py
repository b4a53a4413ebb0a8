"""A recheck's report.md: whether the voice answers as it did when it was judged, and what is served otherwise."""

from __future__ import annotations

from gates.record.recheck import Recheck, RecheckPlan
from gates.record.seal import SealOnDisk
from gates.records import Outcome
from gates.report.figures import figures
from gates.report.marks import bullets, code, plain, table
from gates.report.wording import SYMBOLS, in_order, threshold_of, value_of

SAID = {
    Outcome.PASS: "answers as it did",
    Outcome.FAIL: "does not answer as it did",
    Outcome.INCONCLUSIVE: "may or may not answer as it did: the sample cannot decide",
    Outcome.INVALID: "could not be rechecked",
}


def headline(arm: str, outcome: Outcome) -> str:
    """The recheck in one sentence."""
    return f"{arm} {SAID[outcome]}"


def worth(plan: RecheckPlan) -> str:
    """What a recheck of this size can tell, in one sentence."""
    return (
        f"{len(plan.seeds)} seeds: a voice that has not changed is said to have in {plan.false_alarm:.1%} of rechecks; "
        f"a shift of {plan.shift_80:.1f} seed sd is noticed with probability 0.8"
    )


def _changed(plan: RecheckPlan) -> list[str]:
    number = len(plan.signoffs)
    said = f"the sign-off of {plan.arm} covers" if number == 1 else f"the {number} sign-offs of {plan.arm} cover"
    covered = f"{plan.otherwise}: {said} another serving form"
    return [*plan.changed, *([covered] if plan.changed and plan.signoffs else [])]


def recheck_markdown(sealed: SealOnDisk, run: int, plan: RecheckPlan, found: Recheck) -> str:
    """The report of one recheck."""
    candidate = found.candidates[plan.arm]
    rows = [
        [plain(axis.axis), f"{SYMBOLS[axis.outcome]} {axis.outcome.value}", value_of(axis), threshold_of(axis)]
        for axis in in_order(candidate.axes)
    ]
    lines = [
        f"# {SYMBOLS[found.outcome]} {found.outcome.value}: {plain(headline(plan.arm, found.outcome))}",
        "",
        f"Run {run:03d} of {plain(sealed.seal.gate.name)}, generated again on {plain(plan.at)} by {plain(plan.by)}.",
        "",
        *bullets("Served otherwise than what was judged", _changed(plan), "Nothing: the same serving form."),
        *table(["axis", "outcome", "since then", "allowed"], rows),
        *bullets("Why", [f"{axis.axis}: {axis.reason}" for axis in in_order(candidate.axes)], ""),
        *bullets("Trouble with the seat", found.troubles, "None."),
        f"{found.same_texts} of {found.texts} texts are the same to the letter. {plain(worth(plan))}.",
        "",
        "In the figures below, `base` is the same voice as it was in the run.",
        "",
        *figures(found.measurements),
        "## Record",
        "",
        *table(
            ["what", "which"],
            [
                ["seal", code(plan.seal)],
                ["verdict", code(plan.verdict_sha256)],
                ["plan", code(found.plan_sha256)],
                ["generations", code(found.generations_sha256)],
                ["seeds", code(", ".join(map(str, plan.seeds)))],
                ["seat", code(plan.seat_label)],
            ],
        ),
    ]
    return "\n".join(lines).rstrip() + "\n"
