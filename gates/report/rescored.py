"""A re-score for people: what must be said first, its standing, then and now, every rule that the ledger held."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gates.judge.axes import AxisVerdict
from gates.judge.verdict import Verdict
from gates.record.rescore import AxisChange, HeldRule, Rescore
from gates.record.seal import SealOnDisk
from gates.records import Outcome
from gates.report.markdown import attempts, title
from gates.report.marks import bullets, code, plain, table
from gates.report.terminal import outcome_text, standing_lines
from gates.report.wording import SYMBOLS, one_line, threshold_of, value_of

_SIDES = ("candidate", "axis", "then", "now")
_HELD = ("axis", "rule", "held by", "candidate", "axis says", "candidate would be")
KEPT = "the verdict of the run stays; this one stands beside it"


def rescored_markdown(sealed: SealOnDisk, made: Rescore, verdict: Verdict) -> str:
    """The report of one re-score."""
    gate = sealed.seal.gate
    lines = [
        *(f"**First: {plain(sentence)}**\n" for sentence in made.first),
        f"# {title(verdict)}: {plain(gate.name)}, run {made.run:03d} re-scored",
        "",
        f"**Question:** {plain(made.gate.question)}",
        "",
        f"**Asked:** {plain(made.asked)}, because: {plain(made.reason)}",
        "",
        f"**Standing:** {plain(made.standing)}",
        "",
        *attempts(verdict),
        *bullets("Standing by axis", (f"{axis}: {found}" for axis, found in made.axes.items()), ""),
        f"## Then and now ({KEPT})",
        "",
        *table(_SIDES, (map(plain, [change.candidate, change.axis, *_sides(change)]) for change in made.changes)),
        *bullets("What changed", (f"{one.candidate}, {one.axis}: {one.why}" for one in _different(made)), "Nothing."),
        "## Every rule that the ledger held",
        "",
        *table(_HELD, ([*map(plain, row)] for row in _held_rows(made.held))),
        *bullets("Earlier re-scores of this run", made.earlier, "None."),
        *bullets("Warnings", verdict.warnings, "None."),
        "## Record",
        "",
        *table(["what", "which"], _record(sealed, made, verdict)),
    ]
    return "\n".join(lines).rstrip() + "\n"


def rescored_tables(made: Rescore, old: Verdict, new: Verdict) -> RenderableType:
    """The same for a terminal; everything is plain text to rich."""
    sides = Table(title=_text(made.gate.question), title_justify="left", title_style="bold", expand=False)
    for name in _SIDES:
        sides.add_column(name, overflow="fold")
    for candidate in dict.fromkeys(change.candidate for change in made.changes):
        sides.add_section()
        whole = [_outcome(verdict, candidate) for verdict in (old, new)]
        sides.add_row(_text(candidate), "", *whole)
        for change in made.changes:
            if change.candidate == candidate:
                sides.add_row("", _text(change.axis), *map(_text, _sides(change)))
    held = Table(title="every rule that the ledger held", title_justify="left", expand=False)
    for name in _HELD:
        held.add_column(name, overflow="fold")
    for row in _held_rows(made.held):
        held.add_row(*map(_text, row))
    said = [f"{one.candidate}, {one.axis}: {one.why}" for one in _different(made)]
    return Group(
        *(_text(f"first: {sentence}") for sentence in made.first),
        sides,
        *map(_text, said),
        held,
        *(_text(f"note: {warning}") for warning in (*made.earlier, *new.warnings)),
        *standing_lines(new),
        _text(KEPT),
    )


def _different(made: Rescore) -> Iterable[AxisChange]:
    return (change for change in made.changes if change.old != change.new)


def _outcome(verdict: Verdict, candidate: str) -> Text:
    found = verdict.candidates.get(candidate)
    return Text("–") if found is None else outcome_text(found.outcome)


def _sides(change: AxisChange) -> list[str]:
    return [_side(change.old), _side(change.new)]


def _side(axis: AxisVerdict | None) -> str:
    if axis is None:
        return "–"
    figures = "" if axis.value is None else f" {value_of(axis)} {threshold_of(axis)}"
    return f"{_said(axis.outcome)}{figures}"


def _said(outcome: Outcome | None) -> str:
    return "–" if outcome is None else f"{SYMBOLS[outcome]} {outcome.value}"


def _held_rows(held: Sequence[HeldRule]) -> Iterable[list[str]]:
    for row in held:
        rivals = [other.rule for other in held if other.axis == row.axis]
        rule = f"{'→ ' if row.judges_now else ''}{rule_words(row.rule, rivals)}"
        by = "; ".join(row.held_by) or "no seal"
        if not row.overall:
            yield [row.axis, rule, by, "–", row.note or "not judged", "–"]
        for candidate, outcome in row.overall.items():
            axis = f"{_said(row.outcomes.get(candidate))} {row.figures.get(candidate, '')}".strip()
            yield [row.axis, rule, by, candidate, axis, _said(outcome)]
            rule, by = "", ""


def rule_words(rule: Mapping[str, object], rivals: Iterable[Mapping[str, object]]) -> str:
    """A rule in one line: its floor, and everything in which the rules for its axis differ."""
    mine, others = _flat(rule), [_flat(rival) for rival in rivals]
    floor = [str(rule["floor"])] if rule.get("floor") and rule.get("margin") is None else []
    apart = [f"{key} {value}" for key, value in mine.items() if any(other.get(key) != value for other in others)]
    return ", ".join([*floor, *apart]) or "the same rule"


def _flat(rule: Mapping[str, object]) -> dict[str, object]:
    """A rule's parts, those of the measures that made it among them; not the floor, which is named first."""
    made_by = rule.get("made_by")
    parts = {**rule, **(made_by if isinstance(made_by, Mapping) else {})}
    return {
        key: value for key, value in parts.items() if key not in ("floor", "made_by") and not key.endswith(".floor")
    }


def _record(sealed: SealOnDisk, made: Rescore, verdict: Verdict) -> list[list[str]]:
    return [
        ["seal of the run", code(sealed.sha256)],
        ["generations", code(made.generations_sha256)],
        ["verdict of the run", code(made.old_verdict_sha256)],
        ["measurements", code(verdict.measurements_sha256)],
        ["gate that judges now", f"{code(made.gate.digest())} {plain(made.gate_file)}"],
        ["re-scored", f"{plain(made.at)} by {plain(made.by)}"],
        ["ledger as of", ", ".join(map(code, made.as_of))],
    ]


def _text(words: str) -> Text:
    return Text(one_line(words))
