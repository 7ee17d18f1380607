"""A line to a PostgreSQL server that breaks at a chosen moment: a socket that forwards to the
server's own."""

import asyncio
import shutil
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

SOCKET = ".s.PGSQL.5432"


class FaultyLine:
    """Forwards everything, until the answer to a COMMIT is to get lost."""

    def __init__(self, target):
        self.folder = Path(tempfile.mkdtemp(prefix="parley-line-", dir="/tmp"))
        self._target = target / SOCKET
        self._losing = b""  # a word of a transaction whose commit is to lose its answer
        self.lost = 0  # answers

    def lose_answer(self, word):
        """Cut the connection after the next commit of a transaction that says `word`. The server
        has committed then, and the client does not learn it."""
        self._losing = word

    async def serve(self, ready, stop):
        server = await asyncio.start_unix_server(self._forward, str(self.folder / SOCKET))
        ready.set()
        async with server:
            await stop.wait()

    async def _forward(self, client_in, client_out):
        try:
            server_in, server_out = await asyncio.open_unix_connection(str(self._target))
        except OSError:
            client_out.close()
            return
        said = bytearray()

        async def to_server():
            while data := await client_in.read(65536):
                said.extend(data)
                server_out.write(data)
                await server_out.drain()

        async def to_client():
            while data := await server_in.read(65536):
                if b"COMMIT\0" in data:
                    if self._losing and self._losing in said:
                        self._losing, self.lost = b"", self.lost + 1
                        return
                    said.clear()
                client_out.write(data)
                await client_out.drain()

        tasks = [asyncio.create_task(to_server()), asyncio.create_task(to_client())]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for each in (*tasks, client_out, server_out):
            with suppress(OSError):
                each.cancel() if isinstance(each, asyncio.Task) else each.close()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def faulty_line(server):
    """A line to the server of tests."""
    line, ready, loop = FaultyLine(server.folder), threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=[line.serve(ready, stop)])
    thread.start()
    try:
        assert ready.wait(60)
        yield line
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        shutil.rmtree(line.folder)
