"""Delta of every text of a folder to every other at 1000 MFW, and nine measure/MFW combinations: gates beside peers.

    python benchmarks/delta.py PEERS TEXTS FIGURES.json [COUNT ...]

The first COUNT texts of the folder, all of them where no COUNT is given; FIGURES.json is for benchmarks/plot.py.
Each figure is of a process of its own, from the texts in memory to the matrices, imports left out. gates and bitig
compute cosine Delta for the one matrix, faststylometry Burrows's (it has no other); the nine are cosine, Burrows and
quadratic at 250, 500 and 1000 MFW: gates counts words once, a peer does again what its interface makes it do again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BEGIN = """
import json, sys, time
from pathlib import Path
texts = {path.stem: path.read_text("utf-8") for path in sorted(Path(sys.argv[1]).glob("*.txt"))[: int(sys.argv[2])]}
NINE = [(mfw, name) for mfw in (250, 500, 1000) for name in ("cosine", "burrows", "quadratic")]
"""
END = """
print(json.dumps({"one_s": one - started, "nine_s": nine - one + shared, "texts": len(texts)}))
"""
SCRIPTS = {
    "gates": """
from gates.measure.counted import Counted
from gates.measure.delta import DISTANCES, count_matrix, frame_of_texts
from gates.text import count_words
started = time.process_time()
cut = Counted(count_words(text) for text in texts.values())
shared = time.process_time() - started
frame = frame_of_texts(cut, mfw=1000)
DISTANCES["cosine"](count_matrix(cut, frame.words), frame)
one = time.process_time()
counted = {}
for mfw, name in NINE:
    if mfw not in counted:
        own = frame_of_texts(cut, mfw=mfw)
        counted[mfw] = count_matrix(cut, own.words), own
    DISTANCES[name](*counted[mfw])
nine = time.process_time()
""",
    "bitig": """
import numpy as np
from bitig.corpus import Corpus, Document
from bitig.features.mfw import MFWExtractor
from bitig.methods.delta.burrows import BurrowsDelta
from bitig.methods.delta.cosine import CosineDelta
from bitig.methods.delta.argamon import QuadraticDelta
corpus = Corpus(documents=[Document(id=name, text=text, metadata={}) for name, text in texts.items()])
def z(mfw):
    return MFWExtractor(n=mfw, scale="zscore", lowercase=True).fit_transform(corpus).X
def matrix(kind, rows):
    return np.stack([kind()._distance(rows, row) for row in rows])
started = time.process_time()
matrix(CosineDelta, z(1000))
one = time.process_time()
shared = 0.0
for mfw in (250, 500, 1000):
    rows = z(mfw)
    for kind in (CosineDelta, BurrowsDelta, QuadraticDelta):
        matrix(kind, rows)
nine = time.process_time()
""",
    "faststylometry": """
from faststylometry import Corpus, calculate_burrows_delta
from faststylometry.en import tokenise_remove_pronouns_en
def corpus():
    own = Corpus()
    for name, text in texts.items():
        own.add_book(name, name, text)
    return own
started = time.process_time()
own = corpus()
own.tokenise(tokenise_remove_pronouns_en)
shared = time.process_time() - started
calculate_burrows_delta(own, own, vocab_size=1000)
one = time.process_time()
for mfw, name in NINE:
    if name == "burrows":  # the others it does not have: a third of the work is counted
        calculate_burrows_delta(own, own, vocab_size=mfw)
nine = time.process_time()
""",
}


FLOOR = """
import numpy as np
started = time.process_time()
for path in sorted(Path(sys.argv[1]).glob("*.txt"))[: int(sys.argv[2])]:
    np.frombuffer(path.read_bytes(), dtype=np.uint8).max()
one = nine = time.process_time()
shared = 0.0
"""


def main(peers: Path, texts: Path, figures: Path, counts: list[int]) -> None:
    """Run all three at each size and print a table in Markdown."""
    told: list[dict[str, object]] = []
    print("| tool | texts | one matrix, CPU s | nine, CPU s | one against gates | nine against gates |\n|" + "---|" * 6)
    for count in counts or [len(list(texts.glob("*.txt")))]:
        rows = {}
        for name, script in {**SCRIPTS, "every byte read once": FLOOR}.items():
            python = str(peers / name / "bin" / "python") if name in ("bitig", "faststylometry") else sys.executable
            ended = subprocess.run(
                [python, "-c", BEGIN + script + END, str(texts), str(count)],
                capture_output=True,
                text=True,
                check=False,
            )
            if ended.returncode:
                print(f"| {name} | {ended.stderr.strip().splitlines()[-1][:100]} | | | | |")
                continue
            row = rows[name] = json.loads(ended.stdout.strip().splitlines()[-1])
            one, nine = (row[key] / rows["gates"][key] for key in ("one_s", "nine_s"))
            print(
                f"| {name} | {row['texts']} | {row['one_s']:.2f} | {row['nine_s']:.2f} | {one:.1f} | {nine:.1f} |",
                flush=True,
            )
            told.append({"size": row["texts"], "tool": name, "cpu_s": row["one_s"]})
            if name != "every byte read once":
                told.append({"size": row["texts"], "tool": f"{name}, nine", "cpu_s": row["nine_s"]})
    figures.write_text(json.dumps(told, indent=1), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), [int(count) for count in sys.argv[4:]])
