"""docs/rescore.md does what it says: the Brontë case from its texts to both verdicts."""

from __future__ import annotations

import json
from pathlib import Path

from gates.flow.inputs import load_inputs
from tests.bronte import GATE, HEMINGWAY, MODELS, Record, house_texts
from tests.docs.walk import walk
from tests.small import BEATS


def house_workspace(home: Path) -> Record:
    """The workspace that the page begins in: lv-bronte ran, lv-hemingway was sealed later; older texts in a file."""
    record = Record(home)
    sealed = record.seal(record.gate)
    texts = house_texts(load_inputs(record.gate, record.cache))
    record.run(record.gate, sealed, texts)
    record.seal(record.write("lv-hemingway", HEMINGWAY))
    record.write("lv-bronte-2025", GATE)
    lines = [
        {"model": MODELS[arm], "seed": seed, "beat": BEATS[prompt], "completion": text, "finish_reason": "stop"}
        for (arm, prompt, seed), text in texts.items()
    ]
    old = record.workspace / "old" / "bronte.jsonl"
    old.parent.mkdir()
    old.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return record


def test_the_page_does_what_it_says(root: Path, tmp_path: Path) -> None:
    record = house_workspace(tmp_path)
    page = root / "docs" / "rescore.md"
    assert walk(page, record.workspace, GATES_CACHE=str(record.cache), PYTHONPATH=str(root)) == []
    text = page.read_text("utf-8")
    for figure in ("+0.193", "+0.210", "0.091", "0.251", "2.1×"):
        assert figure in text
