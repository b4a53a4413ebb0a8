"""Whether the driver keeps a seat saturated: gates against bare loops at one server of fixed latency; and its memory.

    python benchmarks/driver.py                    # ratios, all interleaved in one run
    python benchmarks/driver.py --peers FOLDER     # beside clients that benchmarks/peers.sh has put there
    python benchmarks/driver.py --seat http://127.0.0.1:PORT/v1 --models BASE,ADAPTER   # at a real seat instead
    ... --vllm VENV/bin/vllm --tokenizer FOLDER    # either of them beside `vllm bench serve`
    python benchmarks/driver.py --memory 100000    # peak memory while so many generations are asked for and recorded

The server is a process of its own that answers each request after the same time, whatever it is asked. `sockets` is the
least that can ask: connections that stay open, ready-made requests, no JSON read, nothing checked, nothing written. The
peers are what a user would write with a client library (benchmarks/peer_driver.py). gates does all that `gates run`
does: each answer is checked and on the disk before it counts, and with one request at a time before the next is sent.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gates.record.store import RunStore
from gates.seat.client import SeatClient
from gates.seat.generate import Run, Task, generate, plan
from gates.seat.pace import Pace
from gates.seat.requests import request_body
from gates.spec.schema import Gate

BEATS = tuple(f"The {noun} waits at the gate." for noun in ("ship", "dog", "rain", "girl", "lamp", "horse", "king"))
PEERS = ("aiohttp", "httpx", "openai")
BENCH = "vllm bench serve"
ARMS = 2
WORDS = 300
SPAWNED = multiprocessing.get_context("spawn")


def gate(generations: int, models: Sequence[str] = ("base", "voice-one"), tokens: int = 400) -> Gate:
    """A gate of about so many generations by these models, of so many tokens each where the seat can be told so."""
    seeds = max(2, -(-generations // (ARMS * len(BEATS))))
    return Gate.model_validate(
        {
            "schema": "gates/1",
            "name": "bench",
            "question": "How fast?",
            "seat": {"base_url": "http://127.0.0.1:9/v1"},
            "arms": {"base": models[0], "candidates": {"one": {"model": models[1], "adapter": "a"}}},
            "corpora": {"train": "t", "heldout": "h", "reference": ("r",)},
            "prompts": {"file": "beats.txt", "template": "Beat: {beat}"},
            "sampling": {
                "seeds": tuple(range(seeds)),
                "temperature": 0.9,
                "top_p": 0.95,
                "max_tokens": tokens,
                "extra_body": {"ignore_eos": True},
            },
            "voice": {"mfw": 100, "words_per_seed": 500},
        }
    )


def reply(model: str) -> bytes:
    """A whole answer of HTTP, as long as a text of 300 words."""
    document = {
        "id": "x",
        "object": "chat.completion",
        "model": model,
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": " ".join(f"word{n}" for n in range(WORDS))},
                "logprobs": None,
            }
        ],
        "system_fingerprint": "f",
        "usage": {"prompt_tokens": 12, "completion_tokens": 390, "total_tokens": 402},
        "prompt_token_ids": list(range(12)),
    }
    data = json.dumps(document).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(data), data)


def streamed(model: str) -> bytes:
    """The same text as a stream of one event, for who asks for one, as `vllm bench serve` does."""
    usage = {"prompt_tokens": 12, "completion_tokens": 390, "total_tokens": 402}
    said = {"index": 0, "delta": {"role": "assistant", "content": " ".join(f"word{n}" for n in range(WORDS))}}
    events = [{"choices": [said], "model": model}, {"choices": [], "usage": usage, "model": model}]
    data = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events) + b"data: [DONE]\n\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n"
    return head % len(data) + data


def serve(latency: float, told: Connection) -> None:
    """Answer for ever; tells its port."""
    replies = {(model, False): reply(model) for model in ("base", "voice-one")}
    replies |= {(model, True): streamed(model) for model in ("base", "voice-one")}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                if b"content-length:" not in head:
                    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}")
                    continue
                length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
                body = await reader.readexactly(length)
                await asyncio.sleep(latency)
                model = "voice-one" if b"voice-one" in body else "base"
                writer.write(replies[model, b'"stream": true' in body or b'"stream":true' in body])
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        told.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


@contextmanager
def served(latency: float) -> Iterator[int]:
    """A server of this latency in seconds; its port."""
    ours, theirs = SPAWNED.Pipe(duplex=False)
    process = SPAWNED.Process(target=serve, args=(latency, theirs), daemon=True)
    process.start()
    yield ours.recv()
    process.terminate()
    process.join()


async def bare(port: int, tasks: list[Task], asked: Gate, concurrency: int) -> float:
    """Ask for all of it in the same order, as plainly as can be; the seconds of it."""
    begun = time.perf_counter()
    queue = iter(tasks)
    ready = {arm: sent(port, request_body(asked, arm, BEATS[0], 0)) for arm in ("base", "one")}

    async def work() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for task in queue:
            writer.write(ready[task.arm])
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
        writer.close()

    await asyncio.gather(*(work() for _ in range(concurrency)))
    return time.perf_counter() - begun


def sent(port: int, body: object) -> bytes:
    """A request as it goes over the wire."""
    data = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


async def driven(port: int, tasks: list[Task], asked: Gate, concurrency: int, folder: Path) -> float:
    """The same through gates' driver, recorded as a run's; the seconds of it, without those of making the client."""
    store = RunStore(folder, "bench", 1)
    store.folder.mkdir(parents=True)
    run = Run(asked, BEATS, "0" * 64, f"http://127.0.0.1:{port}/v1", "salt", context=8192)
    pace = Pace(concurrency, 3, np.random.default_rng(1), lambda: datetime.now(UTC))
    async with SeatClient(run.seat) as client:
        await client.version()
        begun = time.perf_counter()
        await generate(tasks, client, store.add_all, run, pace)
        return time.perf_counter() - begun


class Peers(NamedTuple):
    """Who else asks: a folder of environments; vLLM's command and the folder of the tokenizer that it counts with."""

    clients: Path | None
    bench: tuple[Path, Path] | None


class Asked(NamedTuple):
    """What everybody is asked to do: so many requests, so many at a time.

    `peers` and `bench` are as in `Peers`.
    """

    port: int
    tasks: list[Task]
    gate: Gate
    concurrency: int
    peers: Path | None
    bench: tuple[Path, Path] | None

    def who(self) -> list[str]:
        """All who ask."""
        return ["sockets", "gates", *(PEERS if self.peers else ()), *([BENCH] if self.bench else ())]

    def run(self, who: str) -> tuple[float, float]:
        """Seconds, and milliseconds of the processor a request."""
        if who in PEERS:
            return self._peer(who)
        if who == BENCH and self.bench:
            return self._bench(*self.bench)
        begun = time.process_time()
        if who == "sockets":
            wall = asyncio.run(bare(self.port, self.tasks, self.gate, self.concurrency))
        else:
            with tempfile.TemporaryDirectory() as folder:
                wall = asyncio.run(driven(self.port, self.tasks, self.gate, self.concurrency, Path(folder)))
        return wall, 1e3 * (time.process_time() - begun) / len(self.tasks)

    def _peer(self, who: str) -> tuple[float, float]:
        python = str(self.peers / "clients" / "bin" / "python") if self.peers else ""
        script = str(Path(__file__).with_name("peer_driver.py"))
        url = f"http://127.0.0.1:{self.port}/v1"
        words = [python, script, who, url, str(len(self.tasks)), str(self.concurrency)]
        body = json.dumps(request_body(self.gate, "base", BEATS[0], 0))
        said = json.loads(subprocess.run(words, input=body, text=True, check=True, capture_output=True).stdout)
        return float(said["wall"]), float(said["cpu_ms"])

    def _bench(self, vllm: Path, tokenizer: Path) -> tuple[float, float]:
        """The same prompts, models in turn, sampling and lengths through `vllm bench serve`, which streams answers."""
        arms, sampling = self.gate.arms, self.gate.sampling
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN)
        with tempfile.TemporaryDirectory() as folder:
            prompts = Path(folder) / "prompts.jsonl"
            asked = [f"Beat: {BEATS[number % len(BEATS)]}" for number in range(len(self.tasks))]
            prompts.write_text("".join(json.dumps({"prompt": prompt}) + "\n" for prompt in asked))
            words = ["bench", "serve", "--backend", "openai-chat", "--endpoint", "/v1/chat/completions"]
            words += ["--base-url", f"http://127.0.0.1:{self.port}", "--model", arms.base.model]
            words += ["--tokenizer", str(tokenizer), "--dataset-name", "custom", "--dataset-path", str(prompts)]
            words += ["--skip-chat-template", "--disable-shuffle", "--custom-output-len", str(sampling.max_tokens)]
            words += ["--num-prompts", str(len(self.tasks)), "--max-concurrency", str(self.concurrency)]
            words += ["--lora-modules", *(arm.model for arm in arms.all().values()), "--lora-assignment", "round-robin"]
            words += ["--temperature", str(sampling.temperature), "--top-p", str(sampling.top_p), "--ignore-eos"]
            words += ["--num-warmups", "0", "--disable-tqdm", "--save-result", "--result-dir", folder]
            words += ["--result-filename", "result.json"]
            subprocess.run([str(vllm), *words], check=True, capture_output=True)
            result = json.loads((Path(folder) / "result.json").read_text())
        if result["completed"] != len(self.tasks):
            raise SystemExit(f"vllm bench serve: {result['completed']} of {len(self.tasks)} answers")
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = spent.ru_utime + spent.ru_stime - seconds.ru_utime - seconds.ru_stime
        return float(result["duration"]), 1e3 * cpu / len(self.tasks)


def compare(latency: float, concurrency: int, seconds: float, rounds: int, whom: Peers) -> None:
    """Print what each gets of what bare sockets get from a server of this latency, round by round in turns."""
    count = int(seconds / latency) * concurrency
    asked = gate(count)
    with served(latency) as port:
        told(f"{latency:g}", Asked(port, plan(asked, len(BEATS), 1)[:count], asked, concurrency, *whom), rounds)


def told(what: str, asked: Asked, rounds: int) -> None:
    """Print what each gets of `what`."""
    names = asked.who()
    walls: dict[str, list[float]] = {name: [] for name in names}
    used: dict[str, list[float]] = {name: [] for name in names}
    asked._replace(tasks=asked.tasks[: asked.concurrency]).run("gates")  # imports what is imported late
    for number in range(rounds):
        for who in names[:: 1 if number % 2 else -1]:
            wall, cpu = asked.run(who)
            walls[who].append(wall)
            used[who].append(cpu)
    for who in names:
        ratios = [bare_s / own_s for bare_s, own_s in zip(walls["sockets"], walls[who], strict=True)]
        share = f"{statistics.median(ratios):.3f} [{min(ratios):.3f}, {max(ratios):.3f}]" if who != "sockets" else "1"
        cells = [
            what,
            str(asked.concurrency),
            str(len(asked.tasks)),
            who,
            f"{statistics.median(walls[who]):.2f}",
            share,
        ]
        cells += [f"{min(used[who]):.2f}", f"{os.getloadavg()[0]:.1f}"]
        print(f"| {' | '.join(cells)} |", flush=True)


def memory(count: int) -> None:
    """Print the resident memory after every tenth of so many generations, of a server without latency."""
    asked = gate(count)
    tasks = plan(asked, len(BEATS), 1)[:count]
    print(f"{len(tasks)} generations; {resident():.0f} MB before the first", flush=True)
    begun = time.process_time()

    async def main(port: int, store: RunStore) -> None:
        run = Run(asked, BEATS, "0" * 64, f"http://127.0.0.1:{port}/v1", "salt", fingerprint="f", context=8192)
        pace = Pace(8, 3, np.random.default_rng(1), lambda: datetime.now(UTC))

        def watch(progress: object) -> None:
            done = getattr(progress, "done", 0)
            if done % (len(tasks) // 10) == 0:
                print(f"{done}: {resident():.0f} MB, {time.process_time() - begun:.0f} s of the processor", flush=True)

        async with SeatClient(run.seat) as client:
            await generate(tasks, client, store.add_all, run, pace, watch)

    with served(0.0) as port, tempfile.TemporaryDirectory() as folder:
        store = RunStore(Path(folder), "bench", 1)
        store.folder.mkdir(parents=True)
        asyncio.run(main(port, store))
        print(f"{store.generations_path.stat().st_size / 1e6:.0f} MB recorded", flush=True)
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB", flush=True)


def resident() -> float:
    """Resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The driver against a bare loop, and its memory.")
    parser.add_argument("--memory", type=int, metavar="N", help="record N generations and say how memory grows")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8.0, help="about how long a round of one takes")
    parser.add_argument("--peers", type=Path, metavar="FOLDER", help="where benchmarks/peers.sh has put the peers")
    parser.add_argument("--seat", metavar="URL", help="a seat on this machine, in place of the server of fixed latency")
    parser.add_argument("--models", metavar="BASE,ADAPTER", help="what it serves")
    parser.add_argument("--vllm", type=Path, metavar="FILE", help="vLLM's command, for `vllm bench serve` beside it")
    parser.add_argument("--tokenizer", type=Path, metavar="FOLDER", help="of the model served, for `vllm bench serve`")
    parser.add_argument("--count", type=int, default=64, help="requests to it")
    parser.add_argument("--at-a-time", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=32, help="of each answer")
    chosen = parser.parse_args()
    if chosen.memory:
        memory(chosen.memory)
    else:
        whom = Peers(chosen.peers, (chosen.vllm, chosen.tokenizer) if chosen.vllm else None)
        columns = "latency, s", "at a time", "requests", "who", "s", "of what sockets get", "CPU ms", "load"
        print(f"| {' | '.join(columns)} |")
        print("|---" * len(columns) + "|")
        if chosen.seat:
            asked = gate(chosen.count, chosen.models.split(","), tokens=chosen.tokens)
            tasks = plan(asked, len(BEATS), 1)[: chosen.count]
            port = int(chosen.seat.rpartition(":")[2].partition("/")[0])
            told("seat", Asked(port, tasks, asked, chosen.at_a_time, *whom), chosen.rounds)
        else:
            for latency, concurrency in ((2.0, 8), (1.0, 64), (0.2, 8), (0.2, 64)):
                compare(latency, concurrency, chosen.seconds, chosen.rounds, whom)
