"""What several sign-offs of one candidate amount to: how many people have signed the same verdict, knowing the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gates.judge.standing import StandingName
from gates.record.chain import Stored, with_ancestors
from gates.record.signoff import Entered, SignOff
from gates.record.verdicts import of_run, outcome_in, standing_in, told_of, weighs
from gates.records import Outcome


class Release(NamedTuple):
    """What the sign-offs of a candidate amount to: `given` of `needed` signatures to ship, and who holds it back.

    `signed` are those that count, all on one verdict; `notes` say of the others why they do not.
    """

    given: int
    needed: int
    held_by: tuple[str, ...]
    signed: tuple[SignOff, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether the candidate may ship."""
        return self.given >= self.needed and not self.held_by

    def __str__(self) -> str:
        if self.held_by:
            return f"held by {', '.join(self.held_by)}"
        on = f" on {self.signed[-1].rescored}" if self.signed and self.signed[-1].rescored else ""
        if self.complete:
            return f"released, {self.given} of {self.needed} signatures{on}"
        missing = f"not released: {self.given} of {self.needed} signatures by different people with different keys{on}"
        return "; ".join([missing, *self.notes])


class Ledgered(NamedTuple):
    """The ledger's records, the run they are of, and the standing of its own verdict."""

    entries: Sequence[Stored]
    gate: str
    run: int
    standing: StandingName


def release_of(found: Sequence[Entered], arm: str, needed: int, ledger: Ledgered | None = None) -> Release:
    """Count the sign-offs of a candidate: of each key the last one, no person or key twice, all on one verdict.

    A signature made before a re-score that weighs against it does not count: the person did not know of it. Of several
    verdicts that enough have signed the one signed last counts; else the one that most have signed.
    """
    last: dict[str, Entered] = {}
    for one in found:
        if one.signoff.arm == arm:
            last.pop(one.signoff.key, None)
            last[one.signoff.key] = one
    held = tuple(sorted({one.signoff.by for one in last.values() if one.signoff.decision == "hold"}))
    groups: dict[str, list[SignOff]] = {}
    notes: list[str] = []
    for one in last.values():
        late = [] if ledger is None or one.signoff.decision == "hold" else unknown_to(one, ledger)
        if late:
            notes.append(f"{one.signoff.by} signed before {late[0]}: it takes a new signature")
        elif one.signoff.decision != "hold":
            # The group that was signed last stands last.
            groups[one.signoff.signed_sha256] = [*groups.pop(one.signoff.signed_sha256, []), one.signoff]
    counted = [_counted(group, needed, held) for group in groups.values()]
    best = max(reversed(counted), key=_rank, default=Release(0, needed, held))
    elsewhere = sum(len(group) for group in groups.values()) - len(best.signed)
    apart = [f"{elsewhere} more on another verdict do not count with them"] if elsewhere else []
    return best._replace(notes=(*apart, *notes))


def _rank(counted: Release) -> tuple[bool, int]:
    """Complete ones are worth the same, so that the last one is taken; others what they have of signatures."""
    complete = counted.given >= counted.needed
    return complete, 0 if complete else counted.given


def _counted(group: Sequence[SignOff], needed: int, held: tuple[str, ...]) -> Release:
    needed = max([needed, *(one.signers for one in group)])
    return Release(min(len(group), len({one.by for one in group})), needed, held, tuple(group))


def unknown_to(one: Entered, ledger: Ledgered) -> list[str]:
    """The re-scores that weigh against a signed verdict and that its signature does not follow."""
    signed = one.signoff.rescored.standing.name if one.signoff.rescored else ledger.standing
    known = with_ancestors(ledger.entries, {one.stored.sha256})
    return [
        told_of(entered, one.signoff.arm)
        for entered in of_run(ledger.entries, ledger.gate, ledger.run)
        if entered.sha256 not in known
        and outcome_in(entered, one.signoff.arm) != Outcome.PASS.value
        and weighs(standing_in(entered), signed)
    ]
