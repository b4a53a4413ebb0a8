"""Files that would be more than they look: each is given to its reader, and what it took of memory is printed.

Run as a process of its own (`python -m tests.fuzz.bombs`), under a limit of CPU time, so that a hang ends.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import lzma
import resource
import struct
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import httpx2
import pyarrow
import pyarrow.parquet as pq

from gates.corpora.containers import members
from gates.corpora.files import read_texts
from gates.corpora.streams.plan import plan
from gates.corpora.streams.read import documents_of, text_of
from gates.errors import GatesError
from gates.seat.client import SeatClient, SeatRequest
from gates.seat.embedded.lora import read_gguf
from gates.seat.operate.lint import lint
from gates.seat.operate.service import read_service
from gates.spec.load import load_gate

SECONDS = 120
MIB = 2**20

Bomb = tuple[str, Callable[[Path], object], Callable[[Path], None]]


def zeros(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", bytes(200 * MIB))


def long_header(kind: bytes) -> Callable[[Path], None]:
    """A tar whose next header claims to go on for 300 MiB."""

    def write(path: Path) -> None:
        info = tarfile.TarInfo("x")
        info.type, info.size = kind, 300 * MIB
        with gzip.open(path, "wb", compresslevel=1) as out:
            out.write(info.tobuf(tarfile.USTAR_FORMAT))
            for _ in range(300):
                out.write(b"1" * MIB)

    return write


def backwards(path: Path) -> None:
    """A tar whose member has a size below zero, so that the next one would be itself."""
    info = tarfile.TarInfo("x")
    head = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    head[124:136] = b"\xff" * 10 + b"\xfe\x00"
    head[148:156] = b" " * 8
    head[148:156] = f"{sum(head):06o}".encode() + b"\0 "
    path.write_bytes(bytes(head) + bytes(2048))


def one_line(pack: Callable[[Path], io.IOBase], begin: bytes, middle: bytes, mib: int) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        block = middle * (MIB // len(middle))
        with pack(path) as out:
            out.write(begin)
            for _ in range(mib):
                out.write(block)

    return write


def plain(path: Path) -> io.IOBase:
    return path.open("wb")


def zipped(path: Path) -> io.IOBase:
    return gzip.open(path, "wb", compresslevel=1)


def dictionary(path: Path) -> None:
    """Parquet that names one text of 5 MB in each of 100 rows, and does not say that it was a dictionary."""
    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 100), pyarrow.array(["word " * MIB]))
    told = {"compression": "zstd", "dictionary_pagesize_limit": 2**30, "store_schema": False}
    pq.write_table(pyarrow.table({"text": column}), path, **told)


def huge_window(path: Path) -> None:
    path.write_bytes(lzma.compress(b"words " * 1000, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 512 * MIB}]))


def aliases(top: str) -> Callable[[Path], None]:
    """Ten lines that stand for 10^10 values."""

    def write(path: Path) -> None:
        lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
        lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 11)]
        path.write_text("\n".join([*lines, top]), "utf-8")

    return write


def merges(path: Path) -> None:
    lines = ["b0: &b0 {x: 1}"]
    lines += [f"b{n}: &b{n} {{<<: [{', '.join([f'*b{n - 1}'] * 10)}]}}" for n in range(1, 10)]
    path.write_text("\n".join([*lines, "services: {seat: {image: vllm, <<: *b9}}"]), "utf-8")


def itself(path: Path) -> None:
    path.write_text("services: &s {seat: {image: vllm, ports: [&p [*p]], <<: *s}}", "utf-8")


def yaml_of(text: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_text(text * (900_000 // len(text)), "utf-8")

    return write


def overlapping(path: Path) -> None:
    """GGUF whose 400 tensors are all the same 20 MiB."""
    size = 20 * MIB

    def string(text: str) -> bytes:
        return struct.pack("<Q", len(text)) + text.encode()

    heads = b"".join(string(f"t{n}") + struct.pack("<IQQIQ", 2, 1024, size // 2048, 1, 0) for n in range(400))
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 400, 0) + heads + bytes(64 + size))


def many_strings(path: Path) -> None:
    """GGUF with an array of four million empty strings."""
    count = 4_000_000
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<IIQ", 9, 8, count)
    path.write_bytes(head + bytes(8 * count))


class _Endless(httpx2.AsyncBaseTransport):
    """A server that never stops: one event without an end, or an answer without one."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=self._body(), headers={"content-type": "text/event-stream"})

    async def _body(self) -> AsyncIterator[bytes]:
        yield b"data: "
        while True:
            yield b"x" * MIB


def endless(_: Path) -> object:
    async def ask(client: SeatClient) -> object:
        return await client.timed(SeatRequest("chat", {}), lambda: 0.0)

    client = SeatClient("http://127.0.0.1:9/v1", "key-0123456789")
    client._http._transport = _Endless()
    return asyncio.run(ask(client))


def endless_answer(_: Path) -> object:
    async def ask(client: SeatClient) -> object:
        return await client.complete(SeatRequest("chat", {}))

    client = SeatClient("http://127.0.0.1:9/v1", "key-0123456789")
    client._wire = None  # asked as through a proxy
    client._http._transport = _Endless()
    return asyncio.run(ask(client))


def streamed(path: Path) -> int:
    """The bytes of a source, read as it is read: piece by piece, nothing kept."""
    return sum(len(piece) for part in plan([str(path)]) for piece in _pieces(part))


def _pieces(part: object) -> Iterator[bytes]:
    if part.kind == "text":
        yield from text_of(part)
    else:
        yield from (document.text or b"" for document in documents_of(part))


def archive(path: Path) -> object:
    return list(members(path, ["a.txt"]))


def gate(path: Path) -> object:
    return load_gate(path)


def service(path: Path) -> object:
    return lint(read_service(path))


BOMBS: tuple[Bomb, ...] = (
    ("a.zip", archive, zeros),
    ("pax.tar.gz", archive, long_header(tarfile.XHDTYPE)),
    ("global.tar.gz", archive, long_header(tarfile.XGLTYPE)),
    ("longname.tar.gz", archive, long_header(tarfile.GNUTYPE_LONGNAME)),
    ("backwards.tar", archive, backwards),
    ("window.txt.xz", streamed, huge_window),
    ("letters.txt.gz", streamed, one_line(zipped, b"", b"a", 200)),
    ("blanks.txt.gz", streamed, one_line(zipped, b"", b" ", 200)),
    ("underscores.txt.gz", streamed, one_line(zipped, b"", b"_ ", 200)),
    ("hyphens.txt.gz", streamed, one_line(zipped, b"", b"-\n", 200)),
    ("text.jsonl.gz", streamed, one_line(zipped, b'{"text": "', b"word ", 100)),
    ("lists.jsonl.gz", streamed, one_line(zipped, b'{"text": "a", "b": [', b"[],", 60)),
    ("deep.jsonl.gz", streamed, one_line(zipped, b"", b"[", 60)),
    ("number.jsonl", lambda path: read_texts([path]), one_line(plain, b"", b"9", 30)),
    ("rows.parquet", streamed, dictionary),
    ("aliases.yaml", gate, aliases("name: *a10")),
    ("brackets.yaml", gate, yaml_of("[")),
    ("braces.yaml", gate, yaml_of("{a: ")),
    ("dashes.yaml", gate, yaml_of("- ")),
    ("questions.yaml", gate, yaml_of("? ")),
    ("number.yaml", gate, yaml_of("9")),
    ("quote.yaml", gate, yaml_of('"\\x41')),
    ("keys.yaml", gate, yaml_of("a: 1\n")),
    ("compose-aliases.yaml", service, aliases("services: {seat: {image: vllm, ports: [*a10]}}")),
    ("compose-merges.yaml", service, merges),
    ("compose-itself.yaml", service, itself),
    ("compose-brackets.yaml", service, yaml_of("[")),
    ("overlapping.gguf", read_gguf, overlapping),
    ("strings.gguf", read_gguf, many_strings),
    ("endless event", endless, lambda path: None),
    ("endless answer", endless_answer, lambda path: None),
)


def main() -> None:
    """Set off every bomb; one JSON line each: its name, how it ended, MiB that it took at most, seconds of CPU."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, 8 * 2**30))
    with tempfile.TemporaryDirectory() as folder:
        for name, read, write in BOMBS[int(sys.argv[1]) if sys.argv[1:] else 0 :]:
            path = Path(folder, name)
            write(path)
            Path("/proc/self/clear_refs").write_text("5")  # the peak from here on
            before, begun = _status("VmRSS"), resource.getrusage(resource.RUSAGE_SELF).ru_utime
            try:
                ended = f"read {read(path)!r}"[:60]
            except GatesError as error:
                ended = f"{type(error).__name__}: {error.message}"[-150:]
            except Exception as error:  # noqa: BLE001 - what is looked for
                ended = f"TRACEBACK {type(error).__name__}: {error}"[:300]
            took = resource.getrusage(resource.RUSAGE_SELF).ru_utime - begun
            print(json.dumps([name, ended, _status("VmHWM") - before, round(took, 1)]), flush=True)  # noqa: T201 - what the test reads
            path.unlink(missing_ok=True)


def _status(key: str) -> int:
    """MiB of memory by /proc."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return int(next(line for line in lines if line.startswith(f"{key}:")).split()[1]) // 1024


if __name__ == "__main__":
    sys.exit(main())
