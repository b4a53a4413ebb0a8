"""One candidate's verdict as an in-toto statement with the test-result predicate, for policy engines.

Statement v1 and test-result v0.1: https://github.com/in-toto/attestation. The statement is not signed: wrap and sign it
with the tool that your policy engine reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from gates.errors import UsageError
from gates.judge.verdict import Verdict
from gates.record.body import said
from gates.record.ledger import Stored
from gates.record.seal import SealOnDisk
from gates.record.standing import own_standing
from gates.record.verdicts import outcome_in, standing_in, told_of, weighs
from gates.records import Outcome, Sha256
from gates.report.wording import is_imported

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"


def statement(
    sealed: SealOnDisk, arm: str, verdict: Verdict, files: Mapping[str, Sha256], rescored: Sequence[Stored] = ()
) -> dict[str, JsonValue]:
    """The statement about a candidate: its adapter's files are the subject, the axes its tests.

    `files` are the run's files by name, each with its SHA-256. The predicate knows no INCONCLUSIVE and no INVALID: only
    PASS is PASSED, everything else FAILED; the outcome itself stands in the annotations of verdict.json. `rescored` are
    the ledger's records of the run's re-scores: where one that says otherwise weighs, a PASS is WARNED. Raises
    UsageError for what is no candidate, for an adapter that is sealed by its model card alone, and for imported texts.
    """
    judged = verdict.candidates.get(arm)
    if judged is None:
        raise UsageError(f"{arm!r} is no candidate", next_step=f"choose one of: {', '.join(verdict.candidates)}")
    adapter = sealed.seal.binding.adapters[arm].files
    if adapter is None:
        raise UsageError(
            f"the seal knows the adapter of {arm} by its model card alone, and a statement is about bytes",
            next_step="seal the gate where the adapter's files can be read",
        )
    if is_imported(verdict):
        raise UsageError(
            f"the texts were imported: nothing shows that the adapter of {arm} wrote them",
            next_step="seal the gate, run it, and export that run",
        )
    passed: list[JsonValue] = [name for name, axis in judged.axes.items() if axis.outcome is Outcome.PASS]
    failed: list[JsonValue] = [name for name in judged.axes if name not in passed]
    outcomes: dict[str, JsonValue] = {name: axis.outcome.value for name, axis in judged.axes.items()}
    told: dict[str, dict[str, JsonValue]] = {"verdict.json": {"outcome": judged.outcome.value, "axes": outcomes}}
    if verdict.standing is not None:
        told["verdict.json"]["standing"] = str(verdict.standing)
    own = own_standing(sealed.seal, verdict).name
    warned: list[JsonValue] = [
        told_of(one, arm)
        for one in rescored
        if outcome_in(one, arm) != Outcome.PASS.value and weighs(standing_in(one), own)
    ]
    passing = "WARNED" if warned else "PASSED"
    return {
        "_type": STATEMENT,
        "subject": [_descriptor(name, digest) for name, digest in adapter.items()],
        "predicateType": PREDICATE,
        "predicate": {
            "result": passing if judged.outcome is Outcome.PASS else "FAILED",
            "configuration": [
                _descriptor(sealed.seal.gate_file, sealed.seal.binding.gate, {"canonicalised": "RFC 8785"}),
                _descriptor(sealed.path.name, sealed.sha256),
                *(_descriptor(name, digest, told.get(name)) for name, digest in files.items()),
                *(_rescore(one, arm) for one in rescored),
            ],
            "passedTests": passed,
            "warnedTests": warned,
            "failedTests": failed,
        },
    }


def _rescore(entered: Stored, arm: str) -> dict[str, JsonValue]:
    """A re-score's verdict, what must be said before its outcome first."""
    body = entered.entry.body
    told: dict[str, JsonValue] = {key: body[key] for key in ("first", "asked", "standing") if key in body}
    name = f"re-score {said(entered, 'rescore', int):03d} verdict.json"
    return _descriptor(name, said(entered, "verdict_sha256", str), {**told, "outcome": outcome_in(entered, arm)})


def _descriptor(name: str, digest: str, annotations: dict[str, JsonValue] | None = None) -> dict[str, JsonValue]:
    said: dict[str, JsonValue] = {} if annotations is None else {"annotations": annotations}
    return {"name": name, "digest": {"sha256": digest}, **said}
