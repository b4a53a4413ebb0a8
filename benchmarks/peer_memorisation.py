"""One peer's run of the memorisation benchmark; started by benchmarks/memorisation.py in the peer's environment.

    python benchmarks/peer_memorisation.py PEER SOURCE.flat TEXTS.flat

Prints one JSON object: seconds of the processor from the open file to the runs (imports left out), what was found, and
the most memory held. The words are normalised already, which `gates` has to do itself.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

N = 8
Runs = list[tuple[int, int, int]]
"""(text, start, length)"""


def chained(hits: list[list[bool]]) -> Runs:
    """Runs of consecutive hit windows: what a tool without positions can say."""
    runs = []
    for text, row in enumerate(hits):
        start = None
        for at, hit in enumerate([*row, False]):
            if hit and start is None:
                start = at
            elif not hit and start is not None:
                runs.append((text, start, at - start + N - 1))
                start = None
    return runs


def windows(texts: list[list[str]]) -> Iterator[Iterator[tuple[str, ...]]]:
    """Each text's n-grams."""
    return (zip(*(text[k:] for k in range(N)), strict=False) for text in texts)


def python_set(source: Path, texts: list[list[str]]) -> Runs:
    """The texts' n-grams in a set, the source streamed by; no positions."""
    wanted = {gram for grams in windows(texts) for gram in grams}
    found: set[tuple[str, ...]] = set()
    carry = ""
    with source.open(encoding="utf-8") as file:
        while block := file.read(1 << 20):
            cut = block.rfind(" ") + 1
            words = (carry + block[:cut]).split()
            found |= wanted.intersection(zip(*(words[k:] for k in range(N)), strict=False))
            carry = " ".join(words[-(N - 1) :]) + " " + block[cut:]
    return chained([[gram in found for gram in grams] for grams in windows(texts)])


def polars_semi_join(source: Path, texts: list[list[str]]) -> Runs:
    """Hashes of n shifted columns, semi-joined with the texts'; no positions."""
    import polars as pl

    def hashed(words: Any) -> Any:
        frame = pl.DataFrame({"w": words})
        return frame.select(pl.struct([pl.col("w").shift(-k).alias(str(k)) for k in range(N)]).hash().alias("h"))

    grams = [hashed(text)["h"].to_list()[: len(text) - N + 1] for text in texts]
    wanted = pl.DataFrame({"h": sorted({gram for row in grams for gram in row})}, schema={"h": pl.UInt64})
    found: set[int] = set()
    carry = ""
    with source.open(encoding="utf-8") as file:
        while block := file.read(2 << 20):
            cut = block.rfind(" ")
            words = pl.Series([carry + block[:cut]]).str.split(" ").explode()
            found |= set(hashed(words).join(wanted, on="h", how="semi")["h"].to_list())
            carry = " ".join(words[-(N - 1) :].to_list()) + block[cut:]
    return chained([[gram in found for gram in row] for row in grams])


def pydivsufsort_bisect(source: Path, texts: list[list[str]]) -> Runs:
    """A suffix array over the bytes, each window bisected, runs from all its places."""
    import pydivsufsort

    data = b" " + source.read_bytes()
    order = pydivsufsort.divsufsort(data)
    hits = []
    for text in texts:
        row = []
        for at in range(len(text) - N + 1):
            sought = b" " + " ".join(text[at : at + N]).encode() + b" "
            low, high = 0, len(order)
            while low < high:
                middle = (low + high) // 2
                place = order[middle]
                if data[place : place + len(sought)] < sought:
                    low = middle + 1
                else:
                    high = middle
            row.append(low < len(order) and data[order[low] : order[low] + len(sought)] == sought)
        hits.append(row)
    return chained(hits)


def numbered(source: Path, texts: list[list[str]], most: int) -> tuple[Any, list[list[int]]]:
    """Words as ids."""
    import numpy as np

    ids: dict[str, int] = {}
    words = source.read_text("utf-8").split()
    numbers = np.fromiter((ids.setdefault(word, len(ids)) for word in words), dtype=np.uint32, count=len(words))
    if len(ids) >= most:
        raise SystemExit(f"{len(ids)} types of words do not fit")
    return numbers.astype(np.uint16), [[ids.get(word, most - 1) for word in text] for text in texts]


def tokengrams_contains(source: Path, texts: list[list[str]]) -> Runs:
    """A suffix array over word ids; no positions."""
    from tokengrams import MemmapIndex

    numbers, asked = numbered(source, texts, 1 << 16)
    folder = Path(tempfile.mkdtemp())
    numbers.tofile(folder / "tokens.bin")
    index = MemmapIndex.build(str(folder / "tokens.bin"), str(folder / "index.idx"))
    found = chained([[index.contains(text[k : k + N]) for k in range(len(text) - N + 1)] for text in asked])
    shutil.rmtree(folder)
    return found


def infini_gram_attribute(source: Path, texts: list[list[str]]) -> Runs:
    """Maximal spans by `attribute`, over an index in its own format."""
    import numpy as np
    from infini_gram import indexing
    from infini_gram.engine import InfiniGramEngine

    numbers, asked = numbered(source, texts, (1 << 16) - 1)
    folder = Path(tempfile.mkdtemp())
    (folder / "tokenized.0").write_bytes(np.concatenate([[65535], numbers]).astype("<u2").tobytes())
    (folder / "offset.0").write_bytes(np.array([0], dtype="<u8").tobytes())
    os.chdir(Path(indexing.__file__).parent)  # it calls its indexer by a relative path
    with contextlib.redirect_stdout(io.StringIO()):
        indexing.build_sa(_arguments(folder))
    engine = InfiniGramEngine(index_dir=str(folder), eos_token_id=65534, vocab_size=65535, version=4, token_dtype="u16")
    runs = []
    for number, text in enumerate(asked):
        spans = engine.attribute(input_ids=text, delim_ids=[], min_len=N, max_cnt=1 << 30, enforce_bow=False)["spans"]
        runs += [(number, span["l"], span["length"]) for span in spans]
    shutil.rmtree(folder)
    return sorted(runs)


def _arguments(folder: Path) -> Any:
    from argparse import Namespace

    return Namespace(
        temp_dir=str(folder),
        save_dir=str(folder),
        cpus=2,
        mem=8,
        token_width=2,
        version=4,
        doc_sep=b"\xff\xff",
        batch_size=65536,
        ulimit=4096,
        add_metadata=False,
        add_unigram=False,
        workers=1,
        worker_id=0,
        shards=1,
    )


def numba_scan(source: Path, texts: list[list[str]]) -> Runs:
    """A scan over the bytes with a rolling hash of word hashes and a bitmap; word positions of every hit."""
    import numba
    import numpy as np

    @numba.njit(cache=True)
    def scan(data: Any, bitmap: Any, hits: Any, at: Any) -> int:
        ring = np.zeros(8, dtype=np.uint64)
        base, power = np.uint64(0xD1342543DE82EF95), np.uint64(1)
        for _ in range(8):
            power *= base
        word, rolled = np.uint64(0), np.uint64(0)
        count, found = 0, 0
        for k in range(data.size):
            byte = data[k]
            if byte != 32:
                word = (word ^ np.uint64(byte)) * np.uint64(1099511628211)
            elif word != np.uint64(0):
                mixed = word ^ (word >> np.uint64(29))
                rolled = rolled * base + mixed - ring[count & 7] * power
                ring[count & 7] = mixed
                count += 1
                word = np.uint64(0)
                if count >= 8 and bitmap[rolled >> np.uint64(40)] and found < hits.size:
                    hits[found], at[found] = rolled, count - 8
                    found += 1
        return found

    def grams(data: bytes, bitmap: Any) -> tuple[Any, Any]:
        raw = np.frombuffer(data, dtype=np.uint8)
        hits, at = np.empty(raw.size // 2 + 1, np.uint64), np.empty(raw.size // 2 + 1, np.int64)
        count = scan(raw, bitmap, hits, at)
        return hits[:count], at[:count]

    everything = np.ones(1 << 24, dtype=np.bool_)
    scan(np.frombuffer(b"warm up ", np.uint8), everything, np.empty(1, np.uint64), np.empty(1, np.int64))
    begin()
    asked = [grams((" ".join(text) + " ").encode(), everything)[0] for text in texts]
    known = np.sort(np.concatenate(asked))
    bitmap = np.zeros(1 << 24, dtype=np.bool_)
    bitmap[(known >> np.uint64(40)).astype(np.int64)] = True
    found: set[int] = set()
    carry = b""
    with source.open("rb") as file:
        while block := file.read(16 << 20):
            block = carry + block
            cut = block.rfind(b" ") + 1
            hits, _ = grams(block[:cut], bitmap)
            found.update(hits[known[np.minimum(np.searchsorted(known, hits), known.size - 1)] == hits].tolist())
            carry = b" ".join(block[:cut].rsplit(None, N - 1)[1:]) + b" " + block[cut:]
    return chained([[gram in found for gram in row.tolist()] for row in asked])


PEERS: dict[str, Callable[[Path, list[list[str]]], Runs]] = {
    "infini-gram": infini_gram_attribute,
    "numba": numba_scan,
    "polars": polars_semi_join,
    "pydivsufsort": pydivsufsort_bisect,
    "python": python_set,
    "tokengrams": tokengrams_contains,
}
_started = [0.0, 0.0]


def begin() -> None:
    """Start the clocks; children count too."""
    _started[:] = [spent(), time.perf_counter()]


def spent() -> float:
    """Seconds of the processor, user and system, threads and children included."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


if __name__ == "__main__":
    peer, source, texts = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]).read_text("utf-8").splitlines()
    for module in (
        {"infini-gram": "infini_gram.engine", "pydivsufsort": "pydivsufsort", "polars": "polars"}.get(peer, "json"),
        "json",
    ):
        __import__(module)
    begin()
    runs = PEERS[peer](source, [text.split() for text in texts])
    cpu, wall = spent() - _started[0], time.perf_counter() - _started[1]
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
    print(
        json.dumps(
            {"cpu_s": cpu, "wall_s": wall, "peak_mb": peak, "runs": len(runs), "texts": len({run[0] for run in runs})}
        )
    )
