"""How far generation is: what was recorded since this start, counted over all seats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gates.records import Generation


@dataclass(frozen=True)
class Progress:
    """How far generation is: counts since this start.

    `errors` counts generations without an answer, by arm; `arms` holds (done, total) of each arm.
    """

    done: int
    total: int
    completion_tokens: int
    retries: int
    errors: Mapping[str, int]
    arms: Mapping[str, tuple[int, int]] = field(default_factory=dict)


class Tally:
    """Counts what is recorded, by arm; one for all the seats of a run."""

    def __init__(self, arms: Iterable[str]) -> None:
        """`arms` names the arm of every task."""
        self._totals = Counter(arms)
        self._by_arm: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._tokens = 0
        self.retries = 0

    def add(self, generation: Generation) -> None:
        """Count one that is recorded."""
        self._by_arm[generation.arm] += 1
        self._tokens += generation.usage.completion_tokens if generation.usage else 0
        if generation.error is not None:
            self._errors[generation.arm] += 1

    def progress(self) -> Progress:
        """The counts so far."""
        arms = {arm: (self._by_arm[arm], total) for arm, total in self._totals.items()}
        done, total = self._by_arm.total(), self._totals.total()
        return Progress(done, total, self._tokens, self.retries, dict(self._errors), arms)

    @property
    def state(self) -> str:
        """The counts so far, for an error."""
        return f"{self._by_arm.total()} of {self._totals.total()} generations of this start are recorded"
