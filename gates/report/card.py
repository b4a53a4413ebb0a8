"""The gate's block of an adapter's model card (Hugging Face's form), written between markers and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Sequence

import yaml

from gates.errors import UsageError
from gates.judge.axes import AxisVerdict
from gates.judge.verdict import CandidateVerdict, Verdict
from gates.record.ledger import Stored
from gates.record.seal import SealOnDisk
from gates.record.verdicts import outcome_in, told_of
from gates.records import Outcome
from gates.report.markdown import standing
from gates.report.marks import code, plain, table
from gates.report.wording import ANSWERS, FIRST, SYMBOLS, caution, in_order, threshold_of, value_of

_FRONT = re.compile(r"\A---\n(.*?)^---\n", re.DOTALL | re.MULTILINE)


def card_body(
    sealed: SealOnDisk, run: tuple[int, int], verdict: Verdict, candidate: str, rescored: Sequence[Stored] = ()
) -> str:
    """The block for people: answer, figures, caveats, what it rests on, how to check; `run` is its number of so many.

    `rescored` are the ledger's records of the run's re-scores: one that says otherwise stands in the heading. Raises
    UsageError for a name that is no candidate of the run.
    """
    judged = _candidate(verdict, candidate)
    gate = sealed.seal.gate
    rows = [
        [plain(axis.axis), f"{SYMBOLS[axis.outcome]} {axis.outcome.value}", value_of(axis), threshold_of(axis)]
        for axis in in_order(judged.axes)
    ]
    caveats = [
        f"- {plain(f'{axis.axis}: {said}')}"
        for axis in in_order(judged.axes)
        for said in ([axis.reason] if axis.outcome is not Outcome.PASS else []) + list(axis.warnings)
    ]
    return "\n".join(
        [
            f"## Gate: {SYMBOLS[judged.outcome]} {judged.outcome.value}{caution(verdict)}"
            + _but(rescored, candidate, judged),
            "",
            f"*{plain(gate.question)}* {plain(candidate)} {ANSWERS[judged.outcome]}.",
            "",
            *table(["axis", "verdict", "figure", "required"], rows),
            f"Standing: {plain(standing(sealed, verdict))} Run {run[0]} of {run[1]} that this gate has had.",
            "",
            *([*(f"- {plain(told_of(one, candidate))}" for one in rescored), ""] if rescored else []),
            *([f"Caveats:\n\n{chr(10).join(caveats)}\n"] if caveats else []),
            *table(["what", "SHA-256"], _rests_on(sealed, verdict, candidate)),
            f"To check: `gates verify` in the workspace that holds `{gate.name}`; `gates verify --adapter PATH` says "
            "which verdict an adapter's bytes have.",
        ]
    )


def _but(rescored: Sequence[Stored], candidate: str, judged: CandidateVerdict) -> str:
    """What re-scores say otherwise, for the heading."""
    other = [one for one in rescored if outcome_in(one, candidate) != judged.outcome.value]
    return "".join(f"; but {plain(told_of(one, candidate))}" for one in other)


def card_index(sealed: SealOnDisk, number: int, verdict: Verdict, candidate: str) -> str:
    """The block for machines: `model-index` of the card's front matter, every figure as a metric."""
    gate = sealed.seal.gate
    metrics = [
        {
            "type": axis.signature.split("|", 1)[0] or axis.axis,
            "name": f"{axis.axis}{_kind(axis)} ({axis.outcome.value})",
            "value": axis.value,
        }
        for axis in in_order(_candidate(verdict, candidate).axes)
        if axis.value is not None
    ]
    result = {
        "task": {"type": "text-generation"},
        "dataset": {
            "type": f"gates/{gate.name}",
            "name": f"gate {gate.name}, run {number:03d}, seal {sealed.sha256[:12]}",
        },
        "metrics": metrics,
    }
    index = {"model-index": [{"name": candidate, "results": [result]}]}
    return yaml.safe_dump(index, sort_keys=False, allow_unicode=True).rstrip("\n")


def updated(card: str, gate: str, body: str, index: str) -> str:
    """The card with both blocks put between their markers, or added where there are none; all else stays as it is.

    The body goes to the end of the card, the index to the end of its front matter, which is made where there is none.
    Raises UsageError for markers that do not pair up, and for a `model-index` of somebody else's.
    """
    front = _FRONT.match(card)
    head, rest = (front[1], card[front.end() :]) if front else ("", card)
    head = _between(head, f"# gates:begin {gate}", f"# gates:end {gate}", index)
    _refuse_twice(head)
    rest = _between(rest, f"<!-- gates:begin {gate} -->", f"<!-- gates:end {gate} -->", body, apart="\n")
    return f"---\n{head}---\n{rest}"


def _between(text: str, begin: str, end: str, block: str, apart: str = "") -> str:
    counts = [len(re.findall(rf"^{re.escape(mark)}$", text, re.MULTILINE)) for mark in (begin, end)]
    if counts not in ([0, 0], [1, 1]):
        raise UsageError(
            f"the card holds {counts[0]} lines {begin!r} and {counts[1]} lines {end!r}",
            next_step="leave one of each, or remove all of them",
        )
    whole = f"{begin}\n{block}\n{end}\n"
    if counts == [0, 0]:
        gap = apart if text and not text.endswith("\n\n") else ""
        return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{gap}{whole}"
    before, _, after = text.partition(f"{begin}\n")
    inside, mark, after = after.partition(f"{end}\n") if f"{end}\n" in after else after.partition(end)
    if not mark or begin in inside:
        raise UsageError(f"the card holds {end!r} before {begin!r}", next_step="put them in order, or remove both")
    return f"{before}{whole}{after}"


def _refuse_twice(head: str) -> None:
    if len(re.findall(r"^model-index\s*:", head, re.MULTILINE)) > 1:
        raise UsageError(
            "the card's front matter has a model-index of its own, and YAML knows one",
            next_step="remove it, or let gates print the block and put it there by hand",
        )


def _kind(axis: AxisVerdict) -> str:
    """What the figure of a damage axis is: a change, not a rate."""
    return " harm against the base" if axis.axis not in FIRST else ""


def _candidate(verdict: Verdict, candidate: str) -> CandidateVerdict:
    if candidate not in verdict.candidates:
        known = ", ".join(verdict.candidates)
        raise UsageError(f"{candidate!r} is no candidate of this run", next_step=f"choose one of: {known}")
    return verdict.candidates[candidate]


def _rests_on(sealed: SealOnDisk, verdict: Verdict, candidate: str) -> list[list[str]]:
    binding = sealed.seal.binding
    identity = binding.adapters.get(candidate)
    files = (identity.files or {}) if identity else {}
    return [
        ["seal", code(sealed.sha256)],
        ["gate", code(binding.gate)],
        ["verdict", code(verdict.digest())],
        *([f"adapter {plain(name)}", code(value)] for name, value in files.items()),
    ]
