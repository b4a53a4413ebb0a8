"""Run docs/notebook.ipynb in a workspace that holds the demonstration's run, and keep what its cells show.

python scripts/notebook.py WORKSPACE     after `gates demo` there
"""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebook.ipynb"

Cell = dict[str, Any]


def cells(document: dict[str, Any]) -> list[Cell]:
    """The code cells."""
    return [cell for cell in document["cells"] if cell["cell_type"] == "code"]


def executed(document: dict[str, Any], space: dict[str, object]) -> Iterator[tuple[Cell, Any]]:
    """Every code cell with the value of its last expression, all run in `space`, in the workspace where we are."""
    for cell in cells(document):
        *before, last = ast.parse("".join(cell["source"])).body
        if not isinstance(last, ast.Expr):
            raise TypeError(f"the cell shows nothing: {cell['source']}")
        exec(compile(ast.Module(before, []), "notebook", "exec"), space)  # noqa: S102 - our own notebook
        yield cell, eval(compile(ast.Expression(last.value), "notebook", "eval"), space)  # noqa: S307 - the same


def main(workspace: Path) -> None:
    """Write the outputs into the notebook."""
    document = json.loads(NOTEBOOK.read_text("utf-8"))
    os.chdir(workspace)
    for count, (cell, value) in enumerate(executed(document, {}), start=1):
        shown = {"text/html": value._repr_html_(), "text/plain": repr(value)}
        data = {kind: text.splitlines(keepends=True) for kind, text in shown.items()}
        cell["execution_count"] = count
        cell["outputs"] = [{"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": data}]
    NOTEBOOK.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
