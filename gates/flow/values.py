"""A table of per-seed values as CSV, read strictly: every mistake is listed with its line."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path

from gates.errors import Problem
from gates.judge.values import SeedValue
from gates.spec.explain import did_you_mean
from gates.spec.source import listed, located, read_text, shown, unreadable

COLUMNS = ("arm", "seed", "axis", "value")
OPTIONAL = ("n",)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_WHOLE = re.compile(r"0|[1-9][0-9]{0,14}")
_VALUE = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,17})?")


def read_values(path: Path, ranges: Mapping[str, tuple[float, float]]) -> tuple[SeedValue, ...]:
    """The rows of a CSV file with the columns arm, seed, axis, value and, for rates, n; in any order of columns.

    `ranges` names each known axis with its smallest and largest value; an axis that ends at 1 is a rate. A rate with
    n must be some count of n at the decimals it is written with. Raises InputError listing all mistakes.
    """
    reader = csv.reader((line + "\n" for line in read_text(path).split("\n")), strict=True)
    try:
        table = [(reader.line_num, cells) for cells in reader if cells]
    except csv.Error as error:
        raise unreadable(
            path, reader.line_num, "", f"this is no CSV: {error}", "is every quotation mark closed?"
        ) from None
    if not table:
        raise unreadable(path, 1, "", "the file is empty", f"begin with the line {','.join(COLUMNS)}")
    (first, header), *rows = table
    _check_header(path, first, header)
    problems: list[Problem] = []
    values: list[SeedValue] = []
    seen: dict[tuple[str, int, str], int] = {}
    for line, cells in rows:
        if len(cells) != len(header):
            problems.append(located(path, line, "row", "", f"needs {len(header)} cells, this has {len(cells)}"))
            continue
        row = dict(zip(header, cells, strict=True))
        wrong = [
            located(path, line, column, shown(row.get(column, "")), rule, hint)
            for column, rule, hint in _mistakes(row, ranges)
        ]
        problems.extend(wrong)
        if wrong:
            continue
        value = _value(row)
        key = (value.arm, value.seed, value.axis)
        if key in seen:
            problems.append(located(path, line, "row", "", f"repeats arm, seed and axis of line {seen[key]}"))
        seen.setdefault(key, line)
        values.append(value)
    if not problems and not values:
        problems.append(located(path, first, "table", "", "there are no rows below the header"))
    if problems:
        raise listed(path, problems)
    return tuple(values)


def _check_header(path: Path, line: int, header: list[str]) -> None:
    known = [*COLUMNS, *OPTIONAL]
    problems = [
        located(path, line, "column", shown(name), "unknown column", did_you_mean(name, known))
        for name in header
        if name not in known
    ]
    problems += [located(path, line, "column", shown(name), "stands twice") for name in known if header.count(name) > 1]
    problems += [
        located(path, line, "column", name, "is missing", f"the columns are {', '.join(COLUMNS)} and, for rates, n")
        for name in COLUMNS
        if name not in header
    ]
    if problems:
        raise listed(path, problems)


def _mistakes(row: dict[str, str], ranges: Mapping[str, tuple[float, float]]) -> list[tuple[str, str, str]]:
    """(column, rule, suggestion) for everything wrong in a row."""
    found = []
    if not _NAME.fullmatch(row["arm"]):
        found.append(("arm", "a name of letters, digits, dots, underscores and hyphens is needed, at most 64", ""))
    if not _WHOLE.fullmatch(row["seed"]):
        found.append(("seed", "a whole number of at least 0 is needed", ""))
    if row["axis"] not in ranges:
        found.append(("axis", f"must be one of: {', '.join(ranges)}", did_you_mean(row["axis"], list(ranges))))
    if not _VALUE.fullmatch(row["value"]):
        found.append(("value", "a number such as 0.193 is needed", ""))
    elif row["axis"] in ranges:
        low, high = ranges[row["axis"]]
        if not low <= float(row["value"]) <= high:
            found.append(("value", f"{row['axis']} lies between {low:g} and {high:g}", ""))
        elif row.get("n"):
            found.extend(_wrong_count(row, high))
    return found


def _wrong_count(row: dict[str, str], high: float) -> list[tuple[str, str, str]]:
    if high != 1:
        return [("n", f"n counts the texts behind a rate; {row['axis']} is none", "leave it empty")]
    if not _WHOLE.fullmatch(row["n"]) or row["n"] == "0":
        return [("n", "a whole number of at least 1 is needed", "")]
    if _hits(row) is None:
        return [("value", f"no count of {row['n']} texts gives this rate", "is n the number of texts of this seed?")]
    return []


def _hits(row: dict[str, str]) -> int | None:
    """The count that gives the rate at the decimals it is written with; None when none does."""
    n, rate = int(row["n"]), float(row["value"])
    hits = round(rate * n)
    half = 0.5 * 10.0 ** -len(row["value"].partition(".")[2])
    return hits if abs(hits / n - rate) <= half + 1e-12 else None


def _value(row: dict[str, str]) -> SeedValue:
    counted = bool(row.get("n"))
    return SeedValue(
        arm=row["arm"],
        seed=int(row["seed"]),
        axis=row["axis"],
        value=float(row["value"]),
        n=int(row["n"]) if counted else None,
        hits=_hits(row) if counted else None,
    )
