"""How figures are written, the same in the terminal and in report.md."""

from __future__ import annotations

from collections.abc import Mapping

from gates.judge.axes import AxisVerdict
from gates.judge.verdict import Verdict
from gates.records import Outcome
from gates.spec.source import printable

SYMBOLS = {Outcome.PASS: "✔", Outcome.FAIL: "✘", Outcome.INCONCLUSIVE: "?", Outcome.INVALID: "!"}

ANSWERS = {
    Outcome.PASS: "may ship, as far as this gate can say",
    Outcome.FAIL: "may not ship",
    Outcome.INCONCLUSIVE: "may not ship yet: the evidence cannot decide",
    Outcome.INVALID: "may not ship: not fit to judge",
}
"""What an outcome means for a candidate, in words."""

_UNSIGNED = {"memorisation", "extraction"}
FIRST = ("run", "validity", "voice", "same_voice", "memorisation", "extraction")


def in_order(axes: Mapping[str, AxisVerdict]) -> list[AxisVerdict]:
    """The axes as people read them: the whole run, validity, voice, memorisation, extraction, then damage by name."""
    return sorted(axes.values(), key=lambda axis: (FIRST.index(axis.axis) if axis.axis in FIRST else 9, axis.axis))


def is_imported(verdict: Verdict) -> bool:
    """Whether the texts are older than the record, so that an outcome must never stand without saying so."""
    return verdict.standing is not None and verdict.standing.name == "imported"


def caution(verdict: Verdict) -> str:
    """What must stand beside an outcome wherever it is shown, in brackets; nothing of a rule that was fixed before."""
    if verdict.standing is None or verdict.standing.name == "prospective":
        return ""
    imported = ", not sealed before generation" if is_imported(verdict) else ""
    return f" ({verdict.standing.name}{imported})"


def one_line(text: object) -> str:
    """Any text as one line of printable characters, so that none of it can break a row or command a terminal."""
    return printable(" ".join(str(text).split()))


def cell(text: str) -> str:
    """A text as a cell of CSV: behind an apostrophe where a spreadsheet would take it for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def number(value: float | None, *, signed: bool = False) -> str:
    """A figure with three decimals, an en dash for none."""
    if value is None:
        return "–"
    return f"{value:+z.3f}" if signed else f"{value:z.3f}"


def value_of(axis: AxisVerdict) -> str:
    """The axis's figure with its one-sided 95 % limits where they decide."""
    text = number(axis.value, signed=axis.axis not in _UNSIGNED)
    if axis.value is not None and axis.axis not in FIRST:
        text = f"harm {text}"
    if axis.low is None or axis.high is None:
        return text
    return f"{text} [{axis.low:z.3f}, {axis.high:z.3f}]"


def threshold_of(axis: AxisVerdict) -> str:
    """What the figure is compared with, and by how many times it exceeds the floor."""
    if axis.threshold is None:
        return number(None)
    if axis.axis == "voice":
        times = f" ({axis.times_floor:.1f}× the floor)" if axis.times_floor is not None else ""
        return f"> {axis.threshold:.3f}{times}"
    return f"within ±{axis.threshold:.3f}" if axis.axis == "same_voice" else f"≤ {axis.threshold:.3f}"


def why_changed(old: AxisVerdict | None, new: AxisVerdict | None) -> str:
    """What lies between two verdicts on one axis: the outcomes, and each part that differs."""
    if old is None or new is None:
        return "was not judged" if old is None else "is judged no more"
    same = old.outcome is new.outcome
    outcome = f"{new.outcome.value} as before" if same else f"{old.outcome.value} becomes {new.outcome.value}"
    parts = [
        f"{what} {before} becomes {after}"
        for what, before, after in (
            ("rule", old.rule, new.rule),
            ("figure", number(old.value), number(new.value)),
            ("threshold", number(old.threshold), number(new.threshold)),
            ("measure", old.signature, new.signature),
        )
        if before != after
    ]
    return "; ".join([outcome, *parts]) if parts else f"{outcome}: nothing differs" if same else outcome


def duration(seconds: float) -> str:
    """A time as people say it: 42 s, 3 min 20 s, 2 h 05 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
