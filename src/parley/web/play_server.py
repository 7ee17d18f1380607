"""Serves the people who play in a browser, while their run is played."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeAlias

from parley.config.extras import require_extra
from parley.config.prepare import Prepared
from parley.errors import UsageError
from parley.participants._desk import Desk
from parley.runs.run_context import Play, RunContext
from parley.runs.run_outcome import RunOutcome
from parley.store import Store

Tell: TypeAlias = Callable[[str], None]
BIND_VARIABLE, PORT_VARIABLE = "PARLEY_PLAY_BIND", "PARLEY_PLAY_PORT"
FAREWELL_SECONDS = 6.0  # how long the server waits for open pages to show the end
RECENT_SECONDS = 60.0  # a page that was asked for in this time may still be open


def with_people(play: Play, prepared: Prepared, store: Store, tell: Tell) -> Play:
    """The same way to play, with a server for the people in a browser. `tell` shows their links to
    the user."""
    require_extra("web", "human/web")
    bind, port = os.environ.get(BIND_VARIABLE, "127.0.0.1"), read_port()

    async def play_served(context: RunContext) -> RunOutcome:
        desk, people = Desk(prepared.people_in_browser), context.progress.people
        async with serve_desk(desk, store, bind, port) as url:
            for alias, chair in desk.chairs.items():
                people[alias] = f"{url}/play/{chair.secret}"
                tell(f"{alias} plays in the browser at {people[alias]}")
            try:
                outcome = await play(replace(context, desk=desk))
            except BaseException:
                desk.end("stopped")
                raise
            desk.end("done" if outcome.state == "done" else "stopped")
            return outcome

    return play_served


def read_port() -> int:
    """The port of the environment; 0 takes any free one."""
    given = os.environ.get(PORT_VARIABLE, "") or "0"
    if not given.isascii() or not given.isdecimal() or int(given) > 65_535:
        raise UsageError(f"{PORT_VARIABLE} must be a port from 0 to 65535, not {given!r:.80}")
    return int(given)


@asynccontextmanager
async def serve_desk(
    desk: Desk, store: Store, bind: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[str]:
    """Serve the pages of a desk in this event loop; the address. The secrets in the links are the
    only way in, so no other token is needed."""
    from parley.web.app import make_app, make_site
    from parley.web.listening import make_server, open_address

    address = open_address(bind, port, PORT_VARIABLE)
    app = make_app(make_site(store), replace(address.safety, token=""), ["play_page"])
    app.state.desk = desk
    server = make_server(app, takes_signals=False)  # they stop the run
    serving = asyncio.create_task(server.serve(sockets=[address.socket]))
    try:
        yield address.url
        await say_farewell(desk)
    finally:
        server.should_exit = True
        await asyncio.gather(serving, return_exceptions=True)
        address.socket.close()


async def say_farewell(desk: Desk) -> None:
    """Wait until the pages that are open show the end."""
    now = time.monotonic()
    open_pages = [
        chair.farewell.wait()
        for chair in desk.chairs.values()
        if chair.seen is not None and (chair.streams or now - chair.seen < RECENT_SECONDS)
    ]
    if open_pages:
        await asyncio.wait(map(asyncio.ensure_future, open_pages), timeout=FAREWELL_SECONDS)
