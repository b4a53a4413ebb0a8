"""Drawings that follow the page's theme: matplotlib's SVG with every colour a CSS variable and no style of its own."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.figure import Figure

from gates.report.wording import one_line

WIDTH = 5.2
"""Inches; with type of 10 points it can be read on a phone and does not shout on a wide screen."""

INK, MUTED, GRID, BAND = "#000101", "#000202", "#000303", "#000404"
PASS, FAIL, UNSURE, INVALID = "#000505", "#000606", "#000707", "#000808"
SERIES = ("#001010", "#001111", "#001212", "#001313", "#001414", "#001515")
"""Colours that stand for the page's own, which replaces them: the same drawing serves both themes and print."""

MARKERS = ("o", "s", "D", "^", "v", "P")

_VARIABLES = {
    INK: "currentColor",
    MUTED: "var(--muted)",
    GRID: "var(--line)",
    BAND: "var(--band)",
    PASS: "var(--pass)",
    FAIL: "var(--fail)",
    UNSURE: "var(--unsure)",
    INVALID: "var(--invalid)",
    **{colour: f"var(--series-{place})" for place, colour in enumerate(SERIES, 1)},
}
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "gates",
    "text.parse_math": False,
    "font.size": 10,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.left": False,
    "grid.color": GRID,
    "legend.frameon": False,
    "legend.fontsize": 9,
}
_SVG = "http://www.w3.org/2000/svg"
_HREF = "{http://www.w3.org/1999/xlink}href"
_KEPT = frozenset(
    {
        "fill",
        "fill-opacity",
        "stroke",
        "stroke-width",
        "stroke-dasharray",
        "stroke-dashoffset",
        "text-anchor",
        "opacity",
    }
)
_LONG = re.compile(r"-?\d+\.\d{3,}")


@contextmanager
def drawing(height: float) -> Iterator[Figure]:
    """A figure of the page's width and `height` inches, in the page's colours."""
    with mpl.rc_context(_STYLE):
        yield Figure(figsize=(WIDTH, height), layout="constrained")


def finish(figure: Figure, name: str, label: str) -> Markup:
    """The figure as an element of the page; `name` keeps its ids apart from other figures', `label` is read aloud."""
    out = io.BytesIO()
    with mpl.rc_context(_STYLE):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    root = ET.fromstring(out.getvalue())  # noqa: S314 - what matplotlib has just written
    used = set(re.findall(r"#([\w-]+)", " ".join(v for element in root.iter() for v in element.attrib.values())))
    for parent in root.iter():
        for child in list(parent):
            if child.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"):
                parent.remove(child)
    for element in root.iter():
        _plain(element, name, used)
    for gone in ("width", "height", "version"):
        root.attrib.pop(gone, None)
    root.attrib |= {"role": "img", "aria-label": one_line(label), "class": "drawing"}
    ET.register_namespace("", _SVG)
    return Markup(ET.tostring(root, encoding="unicode"))  # noqa: S704 - serialised, so every text in it is escaped


def series(place: int) -> tuple[str, str]:
    """The colour and the marker of the candidate or control at that place, from 0: no two of the first 36 are alike."""
    return SERIES[place % len(SERIES)], MARKERS[(place + place // len(SERIES)) % len(MARKERS)]


def short(name: str, most: int = 22) -> str:
    """A name that fits beside a drawing; tables hold the whole."""
    line = one_line(name)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _plain(element: ET.Element, name: str, used: set[str]) -> None:
    """Attributes instead of styles, which the page's policy refuses; ids of this figure alone, and short numbers."""
    style = dict(_declarations(element.attrib.pop("style", "")))
    element.attrib |= {key: value for key, value in style.items() if key in _KEPT}
    font = re.search(r"([\d.]+)px", f"{style.get('font', '')} {style.get('font-size', '')}")
    if font:
        element.set("font-size", font[1])
    if re.search(r"\b(?:bold|700)\b", f"{style.get('font', '')} {style.get('font-weight', '')}"):
        element.set("font-weight", "700")
    if _HREF in element.attrib:
        element.set("href", element.attrib.pop(_HREF))
    if element.get("id", "") not in used:
        element.attrib.pop("id", None)
    for key, value in element.attrib.items():
        if key == "id":
            element.set(key, f"{name}-{value}")
        elif "#" in value and key in ("href", "clip-path"):
            element.set(key, value.replace("#", f"#{name}-"))
        else:
            element.set(key, _VARIABLES.get(value, _LONG.sub(lambda found: f"{float(found[0]):.2f}", value)))


def _declarations(style: str) -> Iterator[tuple[str, str]]:
    for declaration in style.split(";"):
        key, _, value = declaration.partition(":")
        if value:
            yield key.strip(), value.strip()
