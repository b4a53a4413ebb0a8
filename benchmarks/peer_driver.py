"""A loop that a user would write: so many requests at a time through a client's ordinary call, texts kept in a list.

    python benchmarks/peer_driver.py PEER URL COUNT CONCURRENCY < BODY

Started by benchmarks/driver.py in the environment `clients` of peers.sh. Prints one JSON object: seconds from
the first request to the last answer (imports and making the client left out), and milliseconds of the processor a
request. Nothing is checked, tried again or written down, which gates does.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

Ask = Callable[[dict[str, Any]], Awaitable[str]]


@asynccontextmanager
async def httpx(url: str) -> AsyncIterator[Ask]:
    """httpx.AsyncClient."""
    import httpx

    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(timeout=60, limits=limits) as client:

        async def ask(body: dict[str, Any]) -> str:
            answer = await client.post(f"{url}/chat/completions", json=body)
            answer.raise_for_status()
            return str(answer.json()["choices"][0]["message"]["content"])

        yield ask


@asynccontextmanager
async def aiohttp(url: str) -> AsyncIterator[Ask]:
    """aiohttp.ClientSession."""
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), raise_for_status=True) as client:

        async def ask(body: dict[str, Any]) -> str:
            async with client.post(f"{url}/chat/completions", json=body) as answer:
                return str((await answer.json())["choices"][0]["message"]["content"])

        yield ask


@asynccontextmanager
async def openai(url: str) -> AsyncIterator[Ask]:
    """openai.AsyncOpenAI."""
    import openai

    async with openai.AsyncOpenAI(api_key="-", base_url=url, max_retries=0, timeout=60) as client:

        async def ask(body: dict[str, Any]) -> str:
            named = {key: body[key] for key in ("model", "messages", "seed", "temperature", "top_p", "max_tokens")}
            rest = {key: value for key, value in body.items() if key not in named}
            answer = await client.chat.completions.create(**named, extra_body=rest)
            return str(answer.choices[0].message.content)

        yield ask


PEERS = {"httpx": httpx, "aiohttp": aiohttp, "openai": openai}


async def main(peer: str, url: str, count: int, concurrency: int) -> None:
    """Ask and print."""
    body = json.load(sys.stdin)
    slots = asyncio.Semaphore(concurrency)
    async with PEERS[peer](url) as ask:

        async def one(seed: int) -> str:
            async with slots:
                return await ask({**body, "seed": seed})

        cpu, begun = time.process_time(), time.perf_counter()
        texts = await asyncio.gather(*map(one, range(count)))
        wall, cpu = time.perf_counter() - begun, time.process_time() - cpu
    if not all(texts):
        raise SystemExit("an answer without a text")
    print(json.dumps({"wall": wall, "cpu_ms": 1e3 * cpu / count}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
