"""Measuring what a run's folder holds."""

from __future__ import annotations

from gates.flow.inputs import Inputs
from gates.flow.measuring import measure
from gates.measure.figures import Measurements
from gates.record.store import RunStore


def measure_run(inputs: Inputs, seal: str, store: RunStore) -> Measurements:
    """The measurements of a run's recorded generations and judgements. Raises TamperedError as `measure` does."""
    return measure(inputs, seal, store.generations(seal), store.generations_sha256(), store.judgements(seal))
