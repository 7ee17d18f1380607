"""A participant that answers only as many calls as a file allows, so that a test steps through a
run."""

import asyncio
import os
from pathlib import Path

calls = 0


async def play(view):
    global calls
    calls += 1
    mine, gate = calls, Path(os.environ["GATE"])
    while int(gate.read_text() or 0) < mine:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    return f'{{"coins": {mine % 10}}}'
