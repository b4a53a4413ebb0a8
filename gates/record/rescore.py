"""Re-scores of a run: another rule on the same generations, a new verdict beside the old one, which stays.

reports/GATE/NUMBER/rescores/NUMBER-HASH/rescore.json   what was asked, why, its standing, old and new side by side
                                         verdict.json        the new verdict
                                         measurements.json   only where the new gate measures otherwise
                                         report.md           the same for people
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue

from gates import __version__
from gates.errors import RecordError, TamperedError
from gates.judge.axes import AxisVerdict
from gates.judge.standing import Standing
from gates.judge.verdict import Verdict, outcomes_of
from gates.measure.figures import Measurements
from gates.record.body import said
from gates.record.files import read_recorded, write_once
from gates.record.ledger import Ledger, Stored
from gates.record.store import RunStore
from gates.records import Outcome, Record, Sha256, canonical, sha256
from gates.spec.fields import Text
from gates.spec.schema import Gate


class AxisChange(Record):
    """One axis of one candidate under the sealed rule and under the new one, and what changed its outcome."""

    candidate: str
    axis: str
    old: AxisVerdict | None
    new: AxisVerdict | None
    why: str


class HeldRule(Record):
    """A rule for an axis that the ledger held, or that judges now; by whom, and what each says of the run.

    `outcomes`: of the axis by candidate; `overall`: of the candidate, were this the axis's rule in the re-score. Both
    are empty where `note` says why the rule could not be tried.
    """

    axis: str
    rule: dict[str, JsonValue]
    held_by: tuple[str, ...]
    judges_now: bool
    outcomes: dict[str, Outcome]
    overall: dict[str, Outcome]
    figures: dict[str, str]
    note: str = ""


class Rescore(Record):
    """A re-score (`gates.rescore/1`): the gate that judges now, and all that a reader must know of it.

    `asked` is what was asked for; `first` what must be said before anything else. `axes` holds the standing of every
    axis, `standing` the weakest. `as_of`: the ledger's heads when it was made. `texts`: whether figures had to be
    measured again; `missing` where a rule that the ledger held could not be tried because they were not here.
    `inputs`: hashes of what was measured with, where the new gate measures otherwise. `signatures`: the versions of
    measures and rules that gates had then.
    """

    schema_: Literal["gates.rescore/1"] = Field(default="gates.rescore/1", alias="schema")
    run: int
    seal: Sha256
    generations_sha256: Sha256
    old_verdict_sha256: Sha256
    asked: str
    reason: Text
    gate: Gate
    gate_file: str
    first: tuple[str, ...]
    standing: Standing
    axes: dict[str, Standing]
    changes: tuple[AxisChange, ...]
    held: tuple[HeldRule, ...]
    earlier: tuple[str, ...]
    texts: Literal["not needed", "used", "missing"]
    inputs: dict[str, JsonValue] | None
    signatures: dict[str, str]
    as_of: tuple[Sha256, ...]
    at: str
    by: str


def rescore_folder(run: RunStore, number: int, rescore_sha256: str) -> Path:
    """Where a re-score lies: by number and hash, for two git branches may each have made one under the same number."""
    return run.folder / "rescores" / f"{number:03d}-{rescore_sha256[:12]}"


def folder_of(run: RunStore, entered: Stored) -> Path:
    """Where the re-score lies that the ledger has entered."""
    return rescore_folder(run, said(entered, "rescore", int), said(entered, "rescore_sha256", str))


def rescores(ledger: Ledger, gate: str, run: int) -> list[Stored]:
    """The ledger's record of every re-score of a run."""
    mine = [s for s in ledger.entries() if s.entry.gate == gate and s.entry.kind == "rescore"]
    return [s for s in mine if said(s, "run", int) == run]


def told(entered: Stored) -> str:
    """A re-score in one line, by its ledger record; what must be said first stands before its outcome."""
    asked, outcome, standing = (said(entered, key, str) for key in ("asked", "outcome", "standing"))
    return (
        f"re-scored {said(entered, 'rescore', int):03d}, {asked}{before(said_first(entered))}: {outcome} ({standing})"
    )


def before(first: Iterable[str]) -> str:
    """What must be said first, as it stands before an outcome on one line; empty where nothing must."""
    return "".join(f" [{sentence}]" for sentence in first)


def said_first(entered: Stored) -> list[str]:
    """What must be said before a re-score's outcome; none for other records. Raises TamperedError otherwise."""
    sentences = entered.entry.body.get("first", [])
    if not isinstance(sentences, list) or not all(isinstance(one, str) for one in sentences):
        raise TamperedError(f"ledger record {entered.sha256}: first is {sentences!r}, which is no list of sentences")
    return [str(one) for one in sentences]


def next_number(ledger: Ledger, run: RunStore) -> int:
    """The number of the next re-score: past all that the ledger knows, and past what a killed process has left."""
    known = [said(s, "rescore", int) for s in rescores(ledger, run.gate, run.number)]
    left = [int(path.name[:3]) for path in (run.folder / "rescores").glob("[0-9][0-9][0-9]-*")]
    return max([0, *known, *left]) + 1


def write_rescore(
    run: RunStore, number: int, made: Rescore, verdict: Verdict, measurements: Measurements | None, report: str
) -> dict[str, JsonValue]:
    """Write a re-score's files, each once; returns what the ledger is to say of it."""
    folder = rescore_folder(run, number, made.digest())
    hashes: dict[str, JsonValue] = {}
    parts = {"rescore": made, "verdict": verdict, **({} if measurements is None else {"measurements": measurements})}
    for name, record in parts.items():
        data = canonical(record.as_json())
        write_once(folder / f"{name}.json", data)
        hashes[f"{name}_sha256"] = sha256(data)
    write_once(folder / "report.md", report.encode())
    return {
        "run": run.number,
        "rescore": number,
        **hashes,
        "report_sha256": sha256(report.encode()),
        "gates": __version__,
        **_words(made, verdict),
    }


def _words(made: Rescore, verdict: Verdict) -> dict[str, JsonValue]:
    """What the ledger says of a re-score beside its hashes; `first` only where something must be said first."""
    return {
        "seal": made.seal,
        "asked": made.asked,
        "standing": made.standing.name,
        **outcomes_of(verdict),
        **({"first": [*made.first]} if made.first else {}),
    }


def check_words(folder: Path, found: RescoreFiles, entered: Stored) -> None:
    """Check what the ledger says of a re-score in words against its files.

    Raises TamperedError where it says otherwise, RecordError where it leaves out what must be said first.
    """
    told, words = entered.entry.body, _words(found.rescore, found.verdict)
    other = [name for name in dict.fromkeys([*words, "first"]) if told.get(name) != words.get(name)]
    if other == ["first"] and "first" not in told:
        raise RecordError(f"{folder / 'rescore.json'}: an earlier gates entered it without what must be said first")
    if other:
        raise TamperedError(f"{folder / 'rescore.json'}: the ledger says otherwise of {', '.join(other)}")


class RescoreFiles(Record):
    """A re-score as read back."""

    rescore: Rescore
    verdict: Verdict
    measurements: Measurements | None
    report: str


def read_rescore(folder: Path, entered: Stored) -> RescoreFiles:
    """A re-score, each of its files checked against the ledger. Raises TamperedError."""
    own = "measurements_sha256" in entered.entry.body
    return RescoreFiles(
        rescore=Rescore.parse(_checked(folder / "rescore.json", entered), where=str(folder / "rescore.json")),
        verdict=Verdict.parse(_checked(folder / "verdict.json", entered), where=str(folder / "verdict.json")),
        measurements=Measurements.parse(
            _checked(folder / "measurements.json", entered), where=str(folder / "measurements.json")
        )
        if own
        else None,
        report=_checked(folder / "report.md", entered).decode("utf-8", "replace"),
    )


def _checked(path: Path, entered: Stored) -> bytes:
    return read_recorded(path, said(entered, f"{path.stem}_sha256", str))
