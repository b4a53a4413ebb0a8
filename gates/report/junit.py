"""JUnit XML of a verdict: one case per candidate and axis. Whatever is not PASS is never shown green."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from gates.judge.axes import AxisVerdict
from gates.judge.verdict import CandidateVerdict, Verdict
from gates.records import Outcome
from gates.report.wording import caution, in_order, one_line, threshold_of, value_of

_KINDS = {Outcome.FAIL: "failure", Outcome.INCONCLUSIVE: "failure", Outcome.INVALID: "error"}


def junit(gate: str, number: int, verdict: Verdict, *, seconds: float = 0.0) -> str:
    """The verdict of run `number` of a gate as JUnit XML; `seconds` is how long the run took.

    FAIL and INCONCLUSIVE are failures, each under its own type; INVALID is an error.
    """
    name = one_line(f"{gate} {number:03d}{caution(verdict)}")
    suites = ET.Element("testsuites", {"name": name, "time": f"{seconds:.3f}", **_counts(*verdict.candidates.values())})
    for candidate, judged in verdict.candidates.items():
        label = one_line(candidate)
        suite = ET.SubElement(suites, "testsuite", {"name": f"{name} {label}", **_counts(judged)})
        for axis in in_order(judged.axes):
            _case(suite, f"{one_line(gate)}.{label}", axis)
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ET.Element, place: str, axis: AxisVerdict) -> None:
    case = ET.SubElement(suite, "testcase", {"classname": place, "name": one_line(axis.axis)})
    said = one_line(axis.reason)
    if axis.outcome is not Outcome.PASS:
        found = ET.SubElement(case, _KINDS[axis.outcome], {"type": axis.outcome.value, "message": said})
        found.text = one_line("; ".join(filter(None, (axis.reason, axis.to_decide, axis.rule))))
    out = ET.SubElement(case, "system-out")
    out.text = one_line(f"{axis.outcome.value}: {said}; figure {value_of(axis)}, required {threshold_of(axis)}")


def _counts(*judged: CandidateVerdict) -> dict[str, str]:
    kinds = [_KINDS.get(axis.outcome) for one in judged for axis in one.axes.values()]
    return {"tests": str(len(kinds)), "failures": str(kinds.count("failure")), "errors": str(kinds.count("error"))}
