"""The same requests without a framework: aiohttp, orjson, uvloop, and lists of messages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import aiohttp
import orjson
import uvloop
from workload import OPTIONS, arguments, measure, question

SEED = 1_234_567_890  # Parley sends one of its own with every call
given = arguments()


async def play(session: aiohttp.ClientSession, url: str) -> None:
    """One match."""
    conversations: tuple[list[Any], list[Any]] = ([], [])
    said = ""
    for number in range(given.calls):
        messages = conversations[number % 2]
        messages.append({"role": "user", "content": question(number, said)})
        body = {"model": "fixed", **OPTIONS, "seed": SEED, "messages": messages}
        async with session.post(url, data=orjson.dumps(body)) as response:
            said = orjson.loads(await response.read())["choices"][0]["message"]["content"]
        messages.append({"role": "assistant", "content": said})


async def play_all() -> None:
    url = f"{given.url}/chat/completions"
    waiting = iter(range(given.matches))
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=given.concurrency),
        headers={"Content-Type": "application/json"},
    ) as session:

        async def worker(matches: Iterator[int]) -> None:
            for _ in matches:
                await play(session, url)

        await asyncio.gather(*(worker(waiting) for _ in range(given.concurrency)))


measure(given, lambda: uvloop.run(play_all()))
