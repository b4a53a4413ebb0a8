"""Every reader under bytes that coverage guides: `python scripts/fuzz_atheris.py [SECONDS] [NAME ...]`.

It needs atheris (`pip install atheris`), which notes what of this package each input reaches and breeds those that
reach more. Changes are made by it and, every other time, by the hand that knows the file's kind (tests/fuzz). Each
reader has a process of its own for SECONDS (default 20), those that read what strangers send for three times as long.
What breaks a reader: anything raised but an error of this package, more than 30 s for one input, more than 4 GiB, or
a write outside the folder it was given. Each is printed once with its input, and the script then ends with 1.
scripts/fuzz_atheris.txt keeps the output of the last full run.
"""

from __future__ import annotations

import base64
import json
import os
import random
import re
import shutil
import sys
import tempfile
import traceback
from pathlib import Path

import atheris

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

LONGEST_S = 30
MOST_MIB = 4096
LONGER = 3
STRANGERS = frozenset(
    {
        *("gate", "generations", "review marks", "votes", "values.csv", "imported texts"),
        *("chat answer", "completion", "answer over http", "stream over http"),
        *("GGUF", "safetensors", "archive", "JSONL", "JSONL in parts", "Parquet"),
    }
)

with atheris.instrument_imports(include=["gates"]):
    from tests.fuzz.mutations import mutated
    from tests.fuzz.readers import Reader, readers, survives
    from tests.fuzz.writes import Outside


def attack(reader: Reader, home: Path, seconds: float) -> None:
    """Attack one reader until the time is up; never returns. What breaks it goes to the file `found`."""
    folder, corpus, found = home / "attack", home / "corpus", home / "found"
    for made in (folder, corpus):
        made.mkdir()
    for number, seed in enumerate(reader.seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    outside = Outside(home)
    seen: set[str] = set()

    def tell(key: str, said: str, data: bytes) -> None:
        if key not in seen:
            seen.add(key)
            with found.open("a", encoding="utf-8") as out:
                out.write(json.dumps([said, base64.b64encode(data[:3000]).decode()]) + "\n")

    def one_input(data: bytes) -> None:
        try:
            with outside.watched():
                survives(reader, folder, data)
        except Exception as error:  # noqa: BLE001 - what is looked for
            frames = traceback.extract_tb(error.__traceback__)
            ours = " < ".join(
                f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames) if "/gates/" in f.filename
            )
            tell(f"{type(error)} {frames[-1]}", f"{type(error).__name__}: {str(error)[:150]!r} {ours}", data)
        for said in outside.found:
            tell(said, f"wrote outside: {said}", data)
        outside.found.clear()

    def changed(data: bytes, most: int, seed: int) -> bytes:
        made = mutated(data, reader.kind, seed, random.Random(seed).randint(1, 2)) if seed % 2 else b""  # noqa: S311
        return made[:most] if made else atheris.Mutate(data, most)

    longest = max(4096, 2 * max(map(len, reader.seeds)))
    options = {"max_total_time": int(seconds), "timeout": LONGEST_S, "rss_limit_mb": MOST_MIB, "max_len": longest}
    arguments = [f"-{name}={value}" for name, value in options.items()]
    last = [f"-artifact_prefix={home}/broke-", "-print_final_stats=1", str(corpus)]
    atheris.Setup([sys.argv[0], *arguments, *last], one_input, custom_mutator=changed)
    atheris.Fuzz()


def in_its_own_process(reader: Reader, home: Path, seconds: float) -> tuple[str, int]:
    """What there is to say of one reader, and how many different things broke it."""
    home.mkdir()
    child = os.fork()
    if not child:
        said = os.open(home / "said", os.O_WRONLY | os.O_CREAT)
        os.dup2(said, 1)
        os.dup2(said, 2)
        attack(reader, home, seconds)
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said = (home / "said").read_text("utf-8", "replace")
    told = [json.loads(line) for line in _text(home / "found").splitlines()]
    told += [[path.name, base64.b64encode(path.read_bytes()[:3000]).decode()] for path in home.glob("broke-*")]
    if ended and not told:
        told.append([f"ended with {ended}: {said[-1500:]}", ""])

    def figure(name: str) -> int:
        return int((re.findall(rf"\b{name}: +(\d+)", said) or ["0"])[-1])

    line = (
        f"{reader.name:30} {figure('number_of_executed_units'):8,} inputs in {seconds:3.0f} s  "
        f"{figure('cov'):5,} places reached  {figure('corp'):5,} inputs kept  peak {figure('peak_rss_mb'):4} MiB"
    )
    return line + "".join(f"\n    {what}\n      {data}" for what, data in told), len(told)


def _text(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def main() -> int:
    """Attack all readers, or those named."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    home = Path(tempfile.mkdtemp())
    attacked = broke = 0
    try:
        with atheris.instrument_imports(include=["gates"]):  # what is imported only when it is needed
            known = readers(home)
        for number, reader in enumerate(known):
            if len(sys.argv) > 2 and reader.name not in sys.argv[2:]:
                continue
            attacked += 1
            time = seconds * (LONGER if reader.name in STRANGERS else 1)
            line, wrong = in_its_own_process(reader, home / str(number), time)
            print(line, flush=True)
            broke += wrong
    finally:
        shutil.rmtree(home)
    print(f"{attacked} readers, {broke or 'none'} broke")
    return int(broke > 0)


if __name__ == "__main__":
    sys.exit(main())
