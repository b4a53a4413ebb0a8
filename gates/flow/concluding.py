"""From the texts of a run to its verdict, its report and its ledger record: generated here or imported alike."""

from __future__ import annotations

from pydantic import JsonValue

from gates import __version__
from gates.flow.inputs import Inputs
from gates.flow.recorded import measure_run
from gates.flow.world import World
from gates.judge.verdict import Verdict, judge, outcomes_of
from gates.record.ledger import Ledger, Stored
from gates.record.seal import SealOnDisk
from gates.record.standing import History, in_context
from gates.record.store import RunStore
from gates.records import sha256
from gates.report.markdown import markdown
from gates.report.seat import seat_sentences


def conclude(inputs: Inputs, sealed: SealOnDisk, store: RunStore, world: World) -> Stored:
    """Measure a run, judge it, write all of it down, and enter the verdict in the ledger."""
    ledger = Ledger(inputs.prereg)
    measurements = measure_run(inputs, sealed.sha256, store)
    history = History(inputs.prereg, ledger.entries())
    verdict = in_context(judge(inputs.gate, measurements, inputs.rules), history, inputs.gate.name, store.number)
    measurements = store.write("measurements.json", measurements)
    verdict = store.write("verdict.json", verdict)
    seat = seat_sentences(store.sessions())
    report = markdown(sealed, store.number, measurements, verdict, deviations=store.deviations(), seat=seat)
    store.write_report(report)
    return ledger.append(
        "verdict",
        inputs.gate.name,
        _outcome(store, verdict, report, judged=inputs.gate.judge is not None),
        world.stamp(),
    )


def _outcome(store: RunStore, verdict: Verdict, report: str, *, judged: bool) -> dict[str, JsonValue]:
    return {
        "run": store.number,
        "seal": verdict.seal,
        "generations_sha256": store.generations_sha256(),
        **({"judgements_sha256": store.judgements_sha256()} if judged else {}),
        "measurements_sha256": verdict.measurements_sha256,
        "verdict_sha256": verdict.digest(),
        "sessions_sha256": store.sessions_sha256(),
        "report_sha256": sha256(report.encode()),
        "gates": __version__,
        **outcomes_of(verdict),
    }
