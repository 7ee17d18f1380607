"""A participant that answers after a while, as an endpoint does."""

import asyncio


async def play(view):
    await asyncio.sleep(0.05)
    return '{"coins": 5}'
