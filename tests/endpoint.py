"""A chat endpoint in a process of its own, whose replies are a pure function of what it is sent.

It answers after LATENCY seconds and keeps, for every request, when it came and when its answer was
written. It rejects the key "wrong", and breaks off the next requests if it is asked to.
    python -m tests.endpoint LATENCY     prints its port
"""

import asyncio
import hashlib
import json
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from aiohttp import web


def coins(messages: list[dict[str, str]]) -> str:
    """A number of coins that depends on every word of the conversation."""
    digest = hashlib.sha256(json.dumps(messages).encode()).digest()
    return json.dumps({"reason": digest[:4].hex(), "coins": digest[0] % 11})


def letter_or_coins(messages: list[dict[str, str]]) -> str:
    """A letter where a question with choices is asked, else a number of coins."""
    if "letter of the right choice" not in messages[-1]["content"]:
        return coins(messages)
    return "ABCD"[hashlib.sha256(json.dumps(messages).encode()).digest()[0] % 4]


async def serve(latency: float) -> None:
    log: list[tuple[str, float, float]] = []
    arrived = losing = 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal arrived, losing
        if request.headers.get("Authorization") == "Bearer wrong":
            return web.json_response({"error": {"message": "wrong key"}}, status=401)
        arrived, came = arrived + 1, time.time()
        messages = (await request.json())["messages"]
        if losing:
            losing -= 1
            request.transport.abort()
        await asyncio.sleep(latency)
        log.append((hashlib.sha256(json.dumps(messages).encode()).hexdigest(), came, time.time()))
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        choice = {
            "message": {"role": "assistant", "content": letter_or_coins(messages)},
            "finish_reason": "stop",
        }
        return web.json_response({"model": "mock-1", "choices": [choice], "usage": usage})

    async def lose(request: web.Request) -> web.Response:
        nonlocal losing
        losing += int(request.query["requests"])
        return web.Response()

    async def left_to_lose(request: web.Request) -> web.Response:
        return web.json_response(losing)

    async def seen(request: web.Request) -> web.Response:
        return web.json_response(log)

    async def count(request: web.Request) -> web.Response:
        return web.json_response(arrived)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    app.router.add_get("/log", seen)
    app.router.add_get("/arrived", count)
    app.router.add_get("/left_to_lose", left_to_lose)
    app.router.add_post("/lose", lose)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(site._server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


class Endpoint:
    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def arrived(self) -> int:
        """How many requests have come, answered or not."""
        return self._get("arrived")

    def log(self) -> list[list]:
        return self._get("log")

    def lose(self, requests: int) -> None:
        """Break off so many of the next requests."""
        urllib.request.urlopen(f"{self.url}/lose?requests={requests}", b"", timeout=10).close()

    def left_to_lose(self) -> int:
        return self._get("left_to_lose")

    def _get(self, what: str):
        with urllib.request.urlopen(f"{self.url}/{what}", timeout=10) as answer:
            return json.load(answer)


@contextmanager
def endpoint(latency: float):
    command = [sys.executable, "-m", "tests.endpoint", str(latency)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]
    ) as process:
        try:
            yield Endpoint(int(process.stdout.readline()))
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
