"""A real HTTP server on loopback that gives prepared answers, misbehaves on purpose, and records
its requests.

async with Server(sent(b"later", 429, Retry_After="1"), reset, says("hello")) as server:
    ...  # ask a model with base_url=server.url; server.asked holds the requests
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple


class Asked(NamedTuple):
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    text: str
    method: str = "POST"

    @property
    def body(self) -> Any:
        return json.loads(self.text)


Act = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Gives these answers in order and repeats the last one. An answer is an object, the bytes of a
    body, or a function that writes the response."""

    def __init__(self, *answers: Any, pause: float = 0) -> None:
        self.answers, self.pause = list(answers), pause
        self.asked: list[Asked] = []
        self.connections = self.now = self.most = 0
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Server:
        self._server = await asyncio.start_server(self._begin, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, *lines = head.strip().split("\r\n")
                headers = {
                    name.lower(): value.strip()
                    for name, _, value in (line.partition(":") for line in lines)
                }
                text = (await reader.readexactly(int(headers.get("content-length", 0)))).decode()
                method, path, *_ = first.split(" ")
                asked = Asked(path, headers, text, method)
                self.asked.append(asked)
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                self.now += 1
                self.most = max(self.most, self.now)
                await asyncio.sleep(self.pause)
                self.now -= 1
                await (answer if callable(answer) else sent(answer))(asked, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def says(content: Any = "hello", **more: Any) -> dict[str, Any]:
    """A chat completion with these words; further keywords stand in the message."""
    message = {"role": "assistant", "content": content, **more}
    return {"model": "served-1", "choices": [{"message": message, "finish_reason": "stop"}]}


def sent(body: Any, status: int = 200, **headers: str) -> Act:
    """An orderly answer: bytes as they are, all else as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items()]

    async def act(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(
            f"HTTP/1.1 {status} X\r\nContent-Length: {len(data)}\r\n{''.join(lines)}\r\n".encode()
            + data
        )

    return act


def echo_of_the_key(status: int, words: Callable[[str], Any]) -> Act:
    """An answer that holds the key it was sent."""

    async def act(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await sent(words(asked.headers["authorization"]), status)(asked, writer)

    return act


def raw(data: bytes) -> Act:
    """These bytes, and then the connection is closed."""

    async def act(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        writer.close()

    return act


async def silence(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """No answer, for a minute."""
    await asyncio.sleep(60)


async def trickle(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """An answer that comes byte by byte and never ends."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.02)


async def flood(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """An answer without end, as fast as it is read."""
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
        await writer.drain()


async def reset(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Half an answer, then a connection that is torn down."""
    writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"choices"')
    await writer.drain()
    writer.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
    )
    writer.transport.abort()
