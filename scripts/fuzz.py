"""Every reader under hostile bytes for some seconds each: `python scripts/fuzz.py [SECONDS] [NAME ...]`.

It prints, for each reader, how many files it read or refused, its slowest one, and the memory it took. A reader that
raises anything but an error of this package, takes longer than 10 s, or more than 4 GiB, is printed with
the seed that does it, and the script ends with 1. scripts/fuzz.txt keeps the output of the last full run.
"""

from __future__ import annotations

import faulthandler
import random
import resource
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.fuzz.mutations import mutated  # noqa: E402 - the repository is not installed with its tests
from tests.fuzz.readers import Reader, readers, survives  # noqa: E402

LONGEST_S = 10.0
MOST_BYTES = 4 * 2**30


def attack(reader: Reader, folder: Path, seconds: float) -> tuple[str, int]:
    """One reader for `seconds`; what there is to say, and how many of its files broke it."""
    refused = read = broke = 0
    slowest, told = 0.0, []
    seed = 0
    end = time.monotonic() + seconds
    seen: set[str] = set()
    while time.monotonic() < end:
        rng = random.Random(f"{reader.name} {seed}")  # noqa: S311 - a test, no secret
        data = mutated(rng.choice(reader.seeds), reader.kind, rng.randrange(2**32), rng.randint(1, 4))
        faulthandler.dump_traceback_later(60, exit=True)
        begun = time.process_time()
        try:
            error = survives(reader, folder, data)
            refused, read = refused + (error is not None), read + (error is None)
        except Exception as caught:  # noqa: BLE001 - what is looked for
            broke += 1
            where = traceback.extract_tb(caught.__traceback__)[-1]
            key = f"{type(caught).__name__} {where.filename}:{where.lineno}"
            if key not in seen:
                seen.add(key)
                frames = [f for f in traceback.extract_tb(caught.__traceback__) if "/gates/" in f.filename]
                ours = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames[-4:]))
                told.append(f"\n    seed {seed}: {type(caught).__name__}: {str(caught)[:150]!r} {ours}")
        took = time.process_time() - begun
        slowest = max(slowest, took)
        if took > LONGEST_S:
            broke += 1
            told.append(f"\n    seed {seed}: took {took:.0f} s")
        seed += 1
    faulthandler.cancel_dump_traceback_later()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    line = (
        f"{reader.name:30} {refused:7,} refused {read:7,} read  slowest {slowest:6.3f} s  peak so far {peak:5.0f} MiB"
    )
    return line + "".join(told), broke


def main() -> int:
    """Attack all readers, or those named."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    broke = 0
    home = Path(tempfile.mkdtemp())
    try:
        made = readers(home)
        for reader in made:
            if len(sys.argv) > 2 and reader.name not in sys.argv[2:]:
                continue
            folder = home / "attack" / reader.name.replace(" ", "-")
            folder.mkdir(parents=True)
            line, wrong = attack(reader, folder, seconds)
            print(line, flush=True)
            broke += wrong
    finally:
        shutil.rmtree(home)
    print(f"{len(made)} readers, {broke} files broke one" if broke else f"{len(made)} readers, none broke")
    return int(broke > 0)


if __name__ == "__main__":
    sys.exit(main())
